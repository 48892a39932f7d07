// tir.IndexMap.from_func(lambda i: [i // 4, i % 4]) and its methods.
#include "arith/analyzer.h"
#include "arith/index_map.h"
#include "cases.h"
#include "program_values.h"

namespace sator::conformance {

using arith::IndexMap;
using arith::IndexMapRef;
using script::Expression;
using tir::Arguments;
using tir::Evaluator;
using tir::Value;
using tir::Values;

namespace {

Values list_of(const std::vector<Expr>& values) {
  Values out;
  for (const Expr& e : values) out.items.push_back(e);
  return out;
}

/// The extents as ranges from 0.
arith::Region box(const std::vector<Expr>& shape) {
  arith::Region out;
  for (const Expr& extent : shape) out.push_back(make<Range>(int_imm(0, extent->dtype), extent));
  return out;
}

/// The map over variables of the dtype.
IndexMapRef in_dtype(const IndexMap& map, DType dtype) {
  std::vector<VarRef> inputs;
  std::vector<Expr> values;
  for (const VarRef& v : map.initial_indices) {
    inputs.push_back(make_var(v->name, dtype));
    values.push_back(inputs.back());
  }
  arith::Analyzer a;
  return make<IndexMap>(inputs, arith::map_indices(map, values, a), nullptr);
}

/// The inverse of the method, or its error.
IndexMapRef inverse_of(const IndexMap& map, const std::vector<Expr>& shape, bool may_pad, Expr* padding) {
  arith::Analyzer a;
  const arith::Region ranges = box(shape);
  arith::InverseMap out = may_pad ? arith::non_surjective_inverse(map, ranges, a) : arith::inverse(map, ranges, a);
  if (!out.ok())
    fail({.what = out.error, .needs = "a map that has an inverse", .hint = "map every point to a place of its own"});
  *padding = out.padding_predicate;
  return out.map;
}

}  // namespace

Value index_map_of(Evaluator& ev, const Expression& call) {
  Arguments a(ev, call, {"mapping_function", "ndim", "inverse_index_map", "index_dtype"});
  const auto* lambda = a.need("mapping_function").as<tir::LambdaValue>();
  if (!lambda) throw Unsupported{"an index map of no lambda"};
  const DType dtype = a.dtype("index_dtype", i64);
  std::vector<VarRef> inputs;
  ev.push_scope();
  for (const std::string& name : lambda->expression->names) {
    inputs.push_back(make_var(name, dtype));
    ev.define(name, Expr(inputs.back()), lambda->expression->place);
  }
  std::vector<Expr> outputs = ev.to_exprs(ev.eval(lambda->expression->items[0]), call.place);
  ev.pop_scope();
  return NodeRef(make<IndexMap>(std::move(inputs), std::move(outputs), nullptr));
}

std::optional<Value> index_map_method(Evaluator& ev, const Value& object, const std::string& method,
                                      const Expression& call) {
  const NodeRef* n = object.as<NodeRef>();
  const IndexMap* map = n ? n->as<IndexMap>() : nullptr;
  if (!map) return {};
  arith::Analyzer analyzer;
  if (method == "is_equivalent_to") {
    const Value given = Arguments(ev, call, {"other"}).need("other");
    const NodeRef* other = given.as<NodeRef>();
    if (!other || !other->as<IndexMap>()) throw Unsupported{"an index map compared with something else"};
    return arith::equivalent(*in_dtype(*map, i64), *in_dtype(*other->as<IndexMap>(), i64));
  }
  Arguments a(ev, call, {"values"});
  std::vector<Expr> values = a.exprs("values");
  if (method == "map_indices") return list_of(arith::map_indices(*map, values, analyzer));
  if (method == "map_shape") return list_of(arith::map_shape(*map, values, analyzer));
  if (method != "inverse" && method != "non_surjective_inverse") return {};
  Expr padding;
  IndexMapRef back = inverse_of(*map, values, method != "inverse", &padding);
  if (method == "inverse") return NodeRef(back);
  return Values{{NodeRef(back), padding}};
}

bool is_index_map_method(const Value& object, const std::string& name) {
  const NodeRef* n = object.as<NodeRef>();
  return n && n->as<IndexMap>() &&
         (name == "is_equivalent_to" || name == "map_indices" || name == "map_shape" || name == "inverse" ||
          name == "non_surjective_inverse");
}

}  // namespace sator::conformance
