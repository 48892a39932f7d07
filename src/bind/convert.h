// Fields of nodes to Python and back.
#pragma once

#include "bind/node.h"
#include "bind/tensor.h"
#include "relax/nodes.h"

namespace sator::bind {

/// `exact`: attributes stay nodes, so that their dtypes are kept.
template <bool exact = false, class V>
nb::object field_to_python(const V& v) {
  if constexpr (detail::NodePointer<V>) {
    return to_python(v);
  } else if constexpr (std::is_same_v<V, relax::TensorValue>) {
    return tensor_to_python(v.tensor);
  } else if constexpr (std::is_same_v<V, Attrs>) {
    nb::dict out;
    for (const auto& [key, value] : v) out[key.c_str()] = exact ? to_python(value) : from_attribute(value);
    return out;
  } else if constexpr (std::is_same_v<V, Lanes>) {
    return v.scalable ? to_python(lane_count(v)) : nb::int_(v.count);
  } else if constexpr (std::is_same_v<V, DType>) {
    return nb::str(v.name().c_str());
  } else if constexpr (std::is_same_v<V, std::string>) {
    return text_to_python(v);
  } else if constexpr (std::is_enum_v<V>) {
    return nb::int_(static_cast<int64_t>(v));
  } else if constexpr (std::is_same_v<V, bool>) {
    return nb::bool_(v);
  } else if constexpr (std::is_arithmetic_v<V>) {
    return nb::cast(v);
  } else if constexpr (requires { typename V::mapped_type; }) {
    nb::dict out;
    for (const auto& [key, value] : v) out[field_to_python<exact>(key)] = field_to_python<exact>(value);
    return out;
  } else if constexpr (requires { v.first, v.second; }) {
    return nb::make_tuple(field_to_python<exact>(v.first), field_to_python<exact>(v.second));
  } else if constexpr (requires { v.has_value(), *v; }) {
    return v ? field_to_python<exact>(*v) : nb::none();
  } else {
    nb::list out;
    for (const auto& item : v) out.append(field_to_python<exact>(item));
    return out;
  }
}

template <class V>
V field_from_python(nb::handle o) {
  if constexpr (detail::NodePointer<V>) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(std::declval<V>().get())>>;
    if constexpr (std::is_same_v<T, NodeBase>) {
      return attribute_of(o);
    } else {
      if (o.is_none()) return nullptr;
      NodeRef node;
      if constexpr (std::is_same_v<T, ExprNode>)
        node = expr_of(o);
      else
        node = node_of(o);
      if (V out = V(node.as<T>())) return out;
      wrong_type(o, "another kind of node");
    }
  } else if constexpr (std::is_same_v<V, relax::TensorValue>) {
    return relax::TensorValue(tensor_of(o));
  } else if constexpr (std::is_same_v<V, Lanes>) {
    const std::optional<Lanes> lanes = as_lanes(expr_of(o));
    if (!lanes || lanes->count < 2) wrong_type(o, "2 to 65535 lanes, or T.vscale() times that many");
    return *lanes;
  } else if constexpr (std::is_same_v<V, DType>) {
    const std::optional<DType> dtype = DType::parse(nb::cast<std::string>(nb::str(o)));
    if (!dtype) wrong_type(o, "a dtype, such as \"float32\"");
    return *dtype;
  } else if constexpr (std::is_enum_v<V>) {
    return static_cast<V>(nb::cast<int>(nb::int_(o)));
  } else if constexpr (std::is_same_v<V, std::string>) {
    return text_from_python(o);
  } else if constexpr (std::is_arithmetic_v<V>) {
    return nb::cast<V>(o);
  } else if constexpr (requires { typename V::mapped_type; }) {
    V out;
    if (o.is_none()) return out;
    for (auto [key, value] : nb::cast<nb::dict>(o)) {
      if constexpr (std::is_same_v<V, Attrs>)
        out.emplace(field_from_python<std::string>(key), attribute_of(value));
      else
        out.emplace(field_from_python<typename V::key_type>(key), field_from_python<typename V::mapped_type>(value));
    }
    return out;
  } else if constexpr (requires(const V& v) { v.has_value(), *v; }) {
    if (o.is_none()) return {};
    return field_from_python<typename V::value_type>(o);
  } else {
    V out;
    if (o.is_none()) return out;
    using Item = typename V::value_type;
    if constexpr (requires(const Item& i) { i.first, i.second; }) {
      for (auto [key, value] : nb::cast<nb::dict>(o))
        out.emplace_back(field_from_python<typename Item::first_type>(key),
                         field_from_python<typename Item::second_type>(value));
    } else {
      for (nb::handle item : nb::iter(o)) out.push_back(field_from_python<Item>(item));
    }
    return out;
  }
}

}  // namespace sator::bind
