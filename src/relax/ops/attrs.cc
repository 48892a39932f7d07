#include "relax/ops/attrs.h"

namespace sator::relax {

NodeRef AttrType<Axes>::store(const Axes& v) {
  std::vector<NodeRef> items;
  for (int64_t i : v) items.push_back(int_imm(i, i64));
  return make<Array>(std::move(items));
}
Axes AttrType<Axes>::load(const NodeRef& n) {
  Axes out;
  for (const NodeRef& item : n.as<Array>()->items) out.push_back(item.as<IntImm>()->value);
  return out;
}
std::optional<Axes> AttrType<Axes>::read(const Value& v) {
  if (v.is_none()) return {};
  Axes out;
  for (const Value& item : to_list(v)) {
    auto i = to_int(item);
    if (!i) return {};
    out.push_back(*i);
  }
  return out;
}

NodeRef AttrType<std::vector<double>>::store(const std::vector<double>& v) {
  std::vector<NodeRef> items;
  for (double d : v) items.push_back(float_imm(d, f64));
  return make<Array>(std::move(items));
}
std::vector<double> AttrType<std::vector<double>>::load(const NodeRef& n) {
  std::vector<double> out;
  for (const NodeRef& item : n.as<Array>()->items) out.push_back(item.as<FloatImm>()->value);
  return out;
}
std::optional<std::vector<double>> AttrType<std::vector<double>>::read(const Value& v) {
  if (v.is_none()) return {};
  std::vector<double> out;
  for (const Value& item : to_list(v)) {
    auto d = to_double(item);
    if (!d) return {};
    out.push_back(*d);
  }
  return out;
}

}  // namespace sator::relax
