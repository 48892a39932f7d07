// Between C++ values and schedule Values.
#pragma once

#include "schedule/schedule.h"

namespace sator::schedule {

[[noreturn]] void wrong_argument(const std::string& parameter, const Value& got, const std::string& needs);

inline Value to_value(bool v) { return v; }
inline Value to_value(int64_t v) { return v; }
inline Value to_value(int v) { return v; }
inline Value to_value(double v) { return v; }
inline Value to_value(const std::string& v) { return v; }
inline Value to_value(const Loop& v) { return v; }
inline Value to_value(const BlockHandle& v) { return v; }
inline Value to_value(const Expr& v) {
  if (!v) return {};
  if (auto i = as_int(v)) return *i;
  return v;
}
inline Value to_value(const NodeRef& v) { return v; }
inline Value to_value(const Value& v) { return v; }
inline Value to_value(const Ref<const arith::IndexMap>& v) { return v; }
Value to_value(const BufferSelector& v);
template <class T>
Value to_value(const std::vector<T>& v);
template <class T>
Value to_value(const std::optional<T>& v) {
  return v ? to_value(*v) : Value();
}
template <class T>
Value to_value(const std::vector<T>& v) {
  List list;
  for (const T& item : v) list.push_back(to_value(item));
  return list;
}

bool value_to_bool(const Value& v, const std::string& parameter);
int64_t value_to_int(const Value& v, const std::string& parameter);
double value_to_double(const Value& v, const std::string& parameter);
std::string value_to_string(const Value& v, const std::string& parameter);
Loop value_to_loop(const Schedule& s, const Value& v, const std::string& parameter);
/// A block handle, or a block's name.
BlockHandle value_to_block(const Schedule& s, const Value& v, const std::string& parameter);
Expr value_to_expr(const Value& v, const std::string& parameter);
BufferSelector value_to_selector(const Value& v, const std::string& parameter);
/// Numbers become IntImm (bool: of dtype bool) and FloatImm, strings StringImm, lists Array.
NodeRef value_to_node(const Value& v, const std::string& parameter);

template <class T>
struct FromValue;
template <class T>
T from_value(const Schedule& s, const Value& v, const std::string& parameter) {
  return FromValue<T>::get(s, v, parameter);
}
template <>
struct FromValue<Value> {
  static Value get(const Schedule&, const Value& v, const std::string&) { return v; }
};
template <>
struct FromValue<bool> {
  static bool get(const Schedule&, const Value& v, const std::string& p) { return value_to_bool(v, p); }
};
template <>
struct FromValue<int64_t> {
  static int64_t get(const Schedule&, const Value& v, const std::string& p) { return value_to_int(v, p); }
};
template <>
struct FromValue<int> {
  static int get(const Schedule&, const Value& v, const std::string& p) { return static_cast<int>(value_to_int(v, p)); }
};
template <>
struct FromValue<double> {
  static double get(const Schedule&, const Value& v, const std::string& p) { return value_to_double(v, p); }
};
template <>
struct FromValue<std::string> {
  static std::string get(const Schedule&, const Value& v, const std::string& p) { return value_to_string(v, p); }
};
template <>
struct FromValue<Loop> {
  static Loop get(const Schedule& s, const Value& v, const std::string& p) { return value_to_loop(s, v, p); }
};
template <>
struct FromValue<BlockHandle> {
  static BlockHandle get(const Schedule& s, const Value& v, const std::string& p) { return value_to_block(s, v, p); }
};
template <>
struct FromValue<Expr> {
  static Expr get(const Schedule&, const Value& v, const std::string& p) { return value_to_expr(v, p); }
};
template <>
struct FromValue<BufferSelector> {
  static BufferSelector get(const Schedule&, const Value& v, const std::string& p) { return value_to_selector(v, p); }
};
template <>
struct FromValue<NodeRef> {
  static NodeRef get(const Schedule&, const Value& v, const std::string& p) { return value_to_node(v, p); }
};
template <>
struct FromValue<Ref<const arith::IndexMap>> {
  static Ref<const arith::IndexMap> get(const Schedule&, const Value& v, const std::string& p) {
    if (auto* m = v.get_if<Ref<const arith::IndexMap>>()) return *m;
    wrong_argument(p, v, "an index map: lambda i, j: (...)");
  }
};
template <class T>
struct FromValue<std::optional<T>> {
  static std::optional<T> get(const Schedule& s, const Value& v, const std::string& p) {
    if (v.is_none()) return {};
    return from_value<T>(s, v, p);
  }
};
template <class T>
struct FromValue<std::vector<T>> {
  static std::vector<T> get(const Schedule& s, const Value& v, const std::string& p) {
    std::vector<T> out;
    if (const List* list = v.get_if<List>()) {
      for (const Value& item : *list) out.push_back(from_value<T>(s, item, p));
    } else if (!v.is_none()) {
      out.push_back(from_value<T>(s, v, p));  // one where a list may stand
    }
    return out;
  }
};

}  // namespace sator::schedule
