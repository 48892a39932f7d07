// A primitive is one row: name, function, parameters, one line for the docs. From it follow the call from C++, the script
// command, the trace record and its replay.
#pragma once

#include <tuple>

#include "schedule/convert.h"
#include "schedule/schedule.h"

namespace sator::schedule {

struct Parameter {
  std::string name;
  bool required = true;
  Value fallback;       ///< where not required
  bool is_own = false;  ///< TVM has no such parameter: steps are written without it where it has its fallback
  Parameter(const char* name) : name(name) {}
  Parameter(const char* name, Value fallback) : name(name), required(false), fallback(std::move(fallback)) {}
  /// A parameter of our own, off unless it is given.
  static Parameter own(const char* name) {
    Parameter p(name, Value(false));
    p.is_own = true;
    return p;
  }
};

/// A primitive as scripts and traces call it.
class AnyPrimitive {
 public:
  AnyPrimitive(std::string name, std::vector<Parameter> parameters, std::string does)
      : name(std::move(name)), parameters(std::move(parameters)), does(std::move(does)) {}
  virtual ~AnyPrimitive() = default;
  /// Calls with positional arguments; the rest take their fallbacks. The step is recorded.
  virtual Value invoke(Schedule& s, List arguments) const = 0;
  /// Orders positional and keyword arguments. Errors: unknown, doubled or missing ones, with the nearest name.
  List bind(List positional, std::vector<std::pair<std::string, Value>> keywords) const;

  const std::string name;
  const std::vector<Parameter> parameters;
  const std::string does;  ///< one line for the docs

 protected:
  /// The arguments as steps are written: without those of our own that are off.
  List written(List arguments) const;
  /// The error of an argument, with the primitive's name in front.
  [[noreturn]] void refuse_argument(const Error& error) const;
};

template <class Signature>
class Primitive;

/// `Primitive<std::vector<Loop>(Loop, Factors)> split{"split", do_split, {"loop", "factors"}, "divides a loop"}`.
template <class R, class... Args>
class Primitive<R(Args...)> final : public AnyPrimitive {
 public:
  using Run = R (*)(Schedule&, Args...);
  Primitive(std::string name, Run run, std::vector<Parameter> parameters, std::string does)
      : AnyPrimitive(std::move(name), std::move(parameters), std::move(does)), run_(run) {}

  /// From C++: trailing arguments may be left out where they have fallbacks.
  template <class... Given>
  R operator()(Schedule& s, Given&&... given) const {
    static_assert(sizeof...(Given) <= sizeof...(Args), "too many arguments");
    std::tuple<std::decay_t<Args>...> args;
    fill_given(args, std::index_sequence_for<Given...>(), std::forward<Given>(given)...);
    fill_rest<sizeof...(Given)>(s, args);
    return run(s, std::move(args), std::index_sequence_for<Args...>());
  }

  Value invoke(Schedule& s, List arguments) const override {
    std::tuple<std::decay_t<Args>...> args;
    try {
      fill_values<0>(s, args, arguments);
    } catch (const Error& e) {
      refuse_argument(e);
    }
    if constexpr (std::is_void_v<R>) {
      run(s, std::move(args), std::index_sequence_for<Args...>());
      return {};
    } else {
      return to_value(run(s, std::move(args), std::index_sequence_for<Args...>()));
    }
  }

 private:
  template <class Tuple, size_t... I, class... Given>
  static void fill_given(Tuple& args, std::index_sequence<I...>, Given&&... given) {
    ((std::get<I>(args) = std::forward<Given>(given)), ...);
  }
  template <size_t I, class Tuple>
  void fill_rest(Schedule& s, Tuple& args) const {
    if constexpr (I < sizeof...(Args)) {
      std::get<I>(args) =
          from_value<std::tuple_element_t<I, Tuple>>(s, parameters.at(I).fallback, parameters.at(I).name);
      fill_rest<I + 1>(s, args);
    }
  }
  template <size_t I, class Tuple>
  void fill_values(Schedule& s, Tuple& args, const List& values) const {
    if constexpr (I < sizeof...(Args)) {
      const Value& v = I < values.size() ? values[I] : parameters.at(I).fallback;
      std::get<I>(args) = from_value<std::tuple_element_t<I, Tuple>>(s, v, parameters.at(I).name);
      fill_values<I + 1>(s, args, values);
    }
  }
  template <class Tuple, size_t... I>
  R run(Schedule& s, Tuple args, std::index_sequence<I...>) const {
    (s.resolve(std::get<I>(args)), ...);
    s.begin_step(name, written(List{to_value(std::get<I>(args))...}));
    try {
      if constexpr (std::is_void_v<R>) {
        run_(s, std::move(std::get<I>(args))...);
        s.end_step({});
      } else {
        R result = run_(s, std::move(std::get<I>(args))...);
        s.end_step(to_value(result));
        return result;
      }
    } catch (const Error& e) {
      s.abandon_step(e);
    } catch (...) {
      s.abandon_step();
      throw;
    }
  }
  Run run_;
};

/// Every primitive, in the order of the documentation.
const std::vector<const AnyPrimitive*>& primitives();
/// Errors: no such primitive; lists the nearest names.
const AnyPrimitive& primitive_named(const std::string& name);

}  // namespace sator::schedule
