// What a caller hands to an op: the values of TVMScript's Python subset and of the Python module.
#pragma once

#include <concepts>
#include <variant>

#include "relax/nodes.h"

namespace sator::relax {

/// None, bool, int, float, str, a scalar expression, a graph expression, struct info, a list or tuple, a dict, or any
/// other node.
struct Value {
  using List = std::vector<Value>;
  using Dict = std::vector<std::pair<Value, Value>>;

  Value() = default;
  Value(std::same_as<bool> auto b) : v(b) {}
  Value(std::integral auto i)
    requires(!std::same_as<decltype(i), bool>)
      : v(static_cast<int64_t>(i)) {}
  Value(double d) : v(d) {}
  Value(std::string s) : v(std::move(s)) {}
  Value(const char* s) : v(std::string(s)) {}
  Value(RExpr e) : v(std::move(e)) {}
  Value(Expr e) : v(std::move(e)) {}
  Value(StructInfo s) : v(std::move(s)) {}
  Value(List items, bool is_tuple = false) : v(std::move(items)), is_tuple(is_tuple) {}
  Value(Dict items) : v(std::move(items)) {}
  explicit Value(NodeRef n) : v(std::move(n)) {}

  template <class T>
  const T* as() const {
    return std::get_if<T>(&v);
  }
  bool is_none() const { return std::holds_alternative<std::monostate>(v); }

  std::variant<std::monostate, bool, int64_t, double, std::string, Expr, RExpr, StructInfo, List, Dict, NodeRef> v;
  bool is_tuple = false;
};

/// What kind of value it is, for messages: "the integer 3", "a tensor expression".
void append_text(std::string& out, const Value& value);

// The value as what an op or an attribute needs; nothing if it is something else.
std::optional<int64_t> to_int(const Value& v);
std::optional<bool> to_bool(const Value& v);
std::optional<double> to_double(const Value& v);
std::optional<std::string> to_string(const Value& v);
std::optional<DType> to_dtype(const Value& v);
/// A scalar expression; Python numbers become int64 and float32.
Expr to_prim(const Value& v);
/// A graph expression: scalars become PrimValue, strings RString, lists and tuples Tuple.
RExpr to_rexpr(const Value& v);
/// A shape: a list or tuple of extents, or an expression that is one.
RExpr to_shape(const Value& v);
/// One struct info, or a list of them.
std::optional<std::vector<StructInfo>> to_sinfos(const Value& v);
/// A list or tuple, or a single value as a list of one.
std::vector<Value> to_list(const Value& v);
/// The value as an attribute: scalars become IntImm (int32, int64 where needed, bool) and FloatImm (float64), lists Array, dicts Dict.
NodeRef to_attribute(const Value& v);

}  // namespace sator::relax
