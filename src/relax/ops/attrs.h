// The attributes of an op: a plain struct, described once by its list of fields.
//
//   struct SoftmaxAttrs {
//     int axis = -1;
//     static constexpr auto fields() { return std::tuple{attr("axis", &SoftmaxAttrs::axis)}; }
//   };
//
// In a call they are stored as Attrs (name to node); a missing name reads as None.
#pragma once

#include <functional>
#include <tuple>

#include "relax/value.h"

namespace sator::relax {

/// A list of N extents (strides, dilation, pool size): one number stands for N equal ones.
template <int N>
struct PerAxis {
  std::vector<int64_t> v = std::vector<int64_t>(N, 1);
};
/// Padding of N axes as 2N numbers, all befores and then all afters: one number stands for all, N for both sides.
template <int N>
struct Padding {
  std::vector<int64_t> v = std::vector<int64_t>(2 * N, 0);
};
/// A list of integers; one integer stands for a list of one.
using Axes = std::vector<int64_t>;

/// One attribute, as the table shows it to the printer, the parser and Python.
struct AttrDef {
  std::string name;
  bool required = false;
  NodeRef standard;  ///< the value when it is left out; null is None
  /// The value as a node; nothing if it does not fit, null for None.
  std::function<std::optional<NodeRef>(const Value&)> read;
};

// How one C++ type is read from a Value, stored as a node, and read back.
template <class T>
struct AttrType;

template <>
struct AttrType<int64_t> {
  static NodeRef store(int64_t v) { return int_imm(v, i64); }
  static int64_t load(const NodeRef& n) { return n.as<IntImm>()->value; }
  static std::optional<int64_t> read(const Value& v) { return to_int(v); }
};
template <>
struct AttrType<int> {
  static NodeRef store(int v) { return int_imm(v, i64); }
  static int load(const NodeRef& n) { return static_cast<int>(n.as<IntImm>()->value); }
  static std::optional<int> read(const Value& v) {
    auto i = to_int(v);
    return i && *i == static_cast<int>(*i) ? std::optional(static_cast<int>(*i)) : std::nullopt;
  }
};
template <>
struct AttrType<bool> {
  static NodeRef store(bool v) { return bool_imm(v); }
  static bool load(const NodeRef& n) { return n.as<IntImm>()->value != 0; }
  static std::optional<bool> read(const Value& v) { return to_bool(v); }
};
template <>
struct AttrType<double> {
  static NodeRef store(double v) { return float_imm(v, f64); }
  static double load(const NodeRef& n) { return n.as<FloatImm>()->value; }
  static std::optional<double> read(const Value& v) { return to_double(v); }
};
template <>
struct AttrType<std::string> {
  static NodeRef store(const std::string& v) { return string_imm(v); }
  static std::string load(const NodeRef& n) { return n.as<StringImm>()->value; }
  static std::optional<std::string> read(const Value& v) { return to_string(v); }
};
template <>
struct AttrType<DType> {
  static NodeRef store(DType v) { return string_imm(v.name()); }
  static DType load(const NodeRef& n) { return *to_dtype(n.as<StringImm>()->value); }
  static std::optional<DType> read(const Value& v) { return v.is_none() ? DType::Void() : to_dtype(v); }
};
template <>
struct AttrType<Axes> {
  static NodeRef store(const Axes& v);
  static Axes load(const NodeRef& n);
  static std::optional<Axes> read(const Value& v);
};
template <>
struct AttrType<std::vector<double>> {
  static NodeRef store(const std::vector<double>& v);
  static std::vector<double> load(const NodeRef& n);
  static std::optional<std::vector<double>> read(const Value& v);
};
template <int N>
struct AttrType<PerAxis<N>> {
  static NodeRef store(const PerAxis<N>& v) { return AttrType<Axes>::store(v.v); }
  static PerAxis<N> load(const NodeRef& n) { return {AttrType<Axes>::load(n)}; }
  static std::optional<PerAxis<N>> read(const Value& v) {
    auto list = AttrType<Axes>::read(v);
    if (list && list->size() == 1) list->resize(N, list->front());
    return list && list->size() == N ? std::optional(PerAxis<N>{*list}) : std::nullopt;
  }
};
template <int N>
struct AttrType<Padding<N>> {
  static NodeRef store(const Padding<N>& v) { return AttrType<Axes>::store(v.v); }
  static Padding<N> load(const NodeRef& n) { return {AttrType<Axes>::load(n)}; }
  static std::optional<Padding<N>> read(const Value& v) {
    auto list = AttrType<Axes>::read(v);
    if (!list) return {};
    if (list->size() == 1) list->resize(N, list->front());
    if (list->size() == N) list->insert(list->end(), list->begin(), list->begin() + N);
    return list->size() == 2 * N ? std::optional(Padding<N>{*list}) : std::nullopt;
  }
};
template <class T>
struct AttrType<std::optional<T>> {
  static NodeRef store(const std::optional<T>& v) { return v ? AttrType<T>::store(*v) : nullptr; }
  static std::optional<T> load(const NodeRef& n) { return n ? std::optional(AttrType<T>::load(n)) : std::nullopt; }
  static std::optional<std::optional<T>> read(const Value& v) {
    if (v.is_none()) return std::optional<T>();
    std::optional<T> inner = AttrType<T>::read(v);
    if (!inner) return std::nullopt;
    return std::optional<std::optional<T>>(std::in_place, std::move(inner));
  }
};
/// An integer or a list (sections or split points).
template <>
struct AttrType<std::variant<int64_t, Axes>> {
  using T = std::variant<int64_t, Axes>;
  static NodeRef store(const T& v) {
    return v.index() == 0 ? AttrType<int64_t>::store(std::get<0>(v)) : AttrType<Axes>::store(std::get<1>(v));
  }
  static T load(const NodeRef& n) {
    return n.as<IntImm>() ? T(AttrType<int64_t>::load(n)) : T(AttrType<Axes>::load(n));
  }
  static std::optional<T> read(const Value& v) {
    if (auto i = to_int(v)) return T(*i);
    auto list = AttrType<Axes>::read(v);
    return list ? std::optional(T(*list)) : std::nullopt;
  }
};
/// Any node at all (an index map, a device).
template <>
struct AttrType<NodeRef> {
  static NodeRef store(const NodeRef& v) { return v; }
  static NodeRef load(const NodeRef& n) { return n; }
  static std::optional<NodeRef> read(const Value& v) { return to_attribute(v); }
};

template <class A, class T>
struct AttrField {
  const char* name;
  T A::* member;
  bool required;
};
template <class A, class T>
constexpr AttrField<A, T> attr(const char* name, T A::* member) {
  return {name, member, false};
}
/// An attribute without a standard value.
template <class A, class T>
constexpr AttrField<A, T> required(const char* name, T A::* member) {
  return {name, member, true};
}

/// The attributes of the struct A in the order of its fields, with its initialisers as standard values.
template <class A>
std::vector<AttrDef> attrs_of() {
  std::vector<AttrDef> defs;
  A standard;
  auto add = [&]<class T>(const AttrField<A, T>& f) {
    defs.push_back({f.name,
                    f.required,
                    f.required ? nullptr : AttrType<T>::store(standard.*f.member),
                    [](const Value& v) -> std::optional<NodeRef> {
                      auto value = AttrType<T>::read(v);
                      return value ? std::optional(AttrType<T>::store(*value)) : std::nullopt;
                    }});
  };
  std::apply([&](const auto&... f) { (add(f), ...); }, A::fields());
  return defs;
}

/// The struct A from a call's attributes; those that are missing keep their initialisers (an optional one: nothing).
template <class A>
A read_attrs(const Attrs& attrs) {
  A out;
  auto get = [&]<class T>(const AttrField<A, T>& f) {
    auto at = attrs.find(f.name);
    if constexpr (requires { out.*f.member = std::nullopt; }) {
      out.*f.member = at == attrs.end() ? T() : AttrType<T>::load(at->second);
    } else if (at != attrs.end() && at->second) {
      out.*f.member = AttrType<T>::load(at->second);
    }
  };
  std::apply([&](const auto&... f) { (get(f), ...); }, A::fields());
  return out;
}

/// For ops without attributes.
struct NoAttrs {
  static constexpr auto fields() { return std::tuple{}; }
};

}  // namespace sator::relax
