// A primitive is one row: name, function, parameters, one line for the docs. From it follow the call from C++, the script
// command, the trace record and its replay.
#pragma once

#include <tuple>

#include "schedule/convert.h"
#include "schedule/schedule.h"

namespace sator::schedule {

/// What a parameter takes: a block, a loop or a value that a step may choose (of TVM's instructions an input, of which the list
/// stands for several), a buffer of a block, an index map, or a plain value.
enum class Takes : uint8_t { other, handle, handles, buffer, map };

template <class T>
constexpr Takes kTakes = Takes::other;
template <>
inline constexpr Takes kTakes<Loop> = Takes::handle;
template <>
inline constexpr Takes kTakes<BlockHandle> = Takes::handle;
template <>
inline constexpr Takes kTakes<Value> = Takes::handle;
template <>
inline constexpr Takes kTakes<std::vector<Loop>> = Takes::handles;
template <>
inline constexpr Takes kTakes<std::vector<BlockHandle>> = Takes::handles;
template <>
inline constexpr Takes kTakes<Factors> = Takes::handles;
template <>
inline constexpr Takes kTakes<BufferSelector> = Takes::buffer;
template <>
inline constexpr Takes kTakes<Ref<const arith::IndexMap>> = Takes::map;
template <class T>
constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

struct Parameter {
  std::string name;
  Takes takes = Takes::other;  ///< by its type; a value with a fallback is a plain one
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

/// Whether a step changes the program, or gives what is asked of it alone: such a step may go where nobody uses what it gives.
enum class Effect : uint8_t { rewrites, reads };

/// A primitive as scripts and traces call it.
class AnyPrimitive {
 public:
  AnyPrimitive(std::string name, std::vector<Parameter> parameters, std::string does, Effect effect, bool gives_list)
      : name(std::move(name)),
        parameters(std::move(parameters)),
        does(std::move(does)),
        effect(effect),
        gives_list(gives_list) {}
  virtual ~AnyPrimitive() = default;
  /// Calls with positional arguments; the rest take their fallbacks. The step is recorded.
  virtual Value invoke(Schedule& s, List arguments) const = 0;
  /// Orders positional and keyword arguments. Errors: unknown, doubled or missing ones, with the nearest name.
  List bind(List positional, std::vector<std::pair<std::string, Value>> keywords) const;

  const std::string name;
  const std::vector<Parameter> parameters;
  const std::string does;  ///< one line for the docs
  const Effect effect;
  const bool gives_list;  ///< of results, not one or none

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
  Primitive(std::string name, Run run, std::vector<Parameter> parameters, std::string does,
            Effect effect = Effect::rewrites)
      : AnyPrimitive(std::move(name), typed(std::move(parameters)), std::move(does), effect, kIsList<R>), run_(run) {}

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
  static std::vector<Parameter> typed(std::vector<Parameter> parameters) {
    size_t next = 0;
    auto set = [&](Takes takes, bool is_value) {
      Parameter& p = parameters.at(next++);
      if (!(is_value && !p.required)) p.takes = takes;
    };
    (set(kTakes<std::decay_t<Args>>, std::is_same_v<std::decay_t<Args>, Value>), ...);
    return parameters;
  }
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
      (s.evaluate(std::get<I>(args)), ...);
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
