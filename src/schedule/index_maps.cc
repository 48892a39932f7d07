#include "schedule/index_maps.h"

namespace sator::schedule {

IndexMapRef in_dtype(const IndexMapRef& map, DType dtype) {
  VarMap wide;
  std::vector<VarRef> inputs;
  for (const VarRef& v : map->initial_indices) {
    inputs.push_back(v->dtype == dtype ? v : make_var(v->name, dtype));
    wide.emplace(v, inputs.back());
  }
  if (inputs == map->initial_indices) return map;
  std::vector<Expr> outputs;
  for (const Expr& e : map->final_indices) {
    Expr widened = transform(arith::substitute_promoting(e, wide), [](const Cast& c) -> NodeRef {
      return c.value->dtype == c.dtype ? NodeRef(c.value) : ref(c);
    });
    outputs.push_back(as_int(widened) && widened->dtype.bits > dtype.bits ? widened : cast_to(dtype, widened));
  }
  return make<arith::IndexMap>(std::move(inputs), std::move(outputs), nullptr);
}

Expr simple_index(const Expr& e, arith::Analyzer& a) { return cast<Var>(e) || as_int(e) ? e : a.simplify(e); }

std::vector<Expr> mapped_access(const arith::IndexMap& map, const std::vector<Expr>& indices, arith::Analyzer& a) {
  VarMap values;
  for (size_t i = 0; i < indices.size(); ++i) values.emplace(map.initial_indices[i], indices[i]);
  std::vector<Expr> out;
  for (const Expr& e : map.final_indices) out.push_back(simple_index(arith::substitute_promoting(e, values), a));
  return out;
}

}  // namespace sator::schedule
