#include "passes/graph/rewrite_calls.h"

#include <set>

#include "passes/dead_code_elimination.h"
#include "passes/graph/graph.h"
#include "relax/ops/attrs.h"
#include "relax/ops/table.h"
#include "relax/outline.h"
#include "relax/shared_memory.h"

namespace sator::passes {

using namespace relax;

RExpr KnownValues::value(RExpr e) const {
  while (RExpr bound = builder_.bound_value(e)) e = bound;
  return e;
}

const RCall* KnownValues::call(const RExpr& e, const char* op) const {
  RExpr v = value(e);
  return is_op(v, op) ? v.as<RCall>() : nullptr;
}

namespace {

class CallRewriter final : public GraphRewriter {
 public:
  CallRewriter(BlockBuilder& builder, const SharedMemory& memory, const CallRewrite& rewrite)
      : GraphRewriter(builder), memory_(memory), known_(builder), rewrite_(rewrite) {}

 private:
  /// What a call overwrites has memory of its own: no other name takes its place.
  RExpr value(const RVarRef& var, const RExpr& value) override {
    RCallRef call = memory_.is_overwritten(*var) ? nullptr : relax_call(value);
    RExpr other = call ? rewrite_(call, known_) : nullptr;
    return other ? other : value;
  }
  static RCallRef relax_call(const RExpr& e) { return sator::cast<RCall>(e); }

  const SharedMemory& memory_;
  KnownValues known_;
  const CallRewrite& rewrite_;
};

}  // namespace

FuncRef rewrite_calls(const FuncRef& func, BlockBuilder& builder, const CallRewrite& rewrite) {
  FuncRef f = func;
  while (true) {
    FuncRef next = CallRewriter(builder, SharedMemory(*f, builder.module().get(), reshaped), rewrite).function(*f);
    if (next == f) return without_unused(f);
    while (true) {
      FuncRef start = next;
      next = without_unused(eliminate_common_subexpr(canonicalize_bindings(next, builder), builder));
      if (next == start || equal(next, start)) break;
    }
    if (equal(next, f)) return f;
    f = next;
  }
}

ModuleRef rewrite_calls(const ModuleRef& module, const std::function<CallRewrite(const Function&)>& rewrite_of) {
  return rewrite_functions(
      module, [&](const FuncRef& f, BlockBuilder& builder) { return rewrite_calls(f, builder, rewrite_of(*f)); });
}

std::set<RVarRef> known_when_compiled(const Function& f) {
  std::set<RVarRef> known;
  const auto inputs = int_attr(f.attrs, "num_input");
  if (!inputs) return known;
  for (size_t i = static_cast<size_t>(std::max<int64_t>(0, *inputs)); i < f.params.size(); ++i)
    known.insert(f.params[i]);
  walk(f.body, [&](const BindingBlock& block) {
    for (const Binding& b : block.bindings) {
      RExpr value = bound_value(b);
      const std::vector<RVarRef> uses = rvars_in(value);
      if (is_impure_call(value) || value.as<If>()) continue;
      if (std::ranges::all_of(uses, [&](const RVarRef& v) { return known.contains(v); })) known.insert(bound_var(b));
    }
  });
  return known;
}

RExpr matmul(RExpr a, RExpr b) { return make_call("matmul", {std::move(a), std::move(b)}); }

std::optional<std::vector<int64_t>> permutation_of(const RCall& permute_dims) {
  auto at = permute_dims.attrs.find("axes");
  const TensorInfo* x = permute_dims.args[0]->sinfo.as<TensorInfo>();
  const int64_t rank = x ? x->ndim : -1;
  std::vector<int64_t> axes;
  if (at != permute_dims.attrs.end() && at->second) {
    axes = AttrType<Axes>::load(at->second);
    for (int64_t& a : axes) a = a < 0 && rank >= 0 ? a + rank : a;
    return axes;
  }
  if (rank < 0) return {};
  for (int64_t d = rank; d-- > 0;) axes.push_back(d);
  return axes;
}

}  // namespace sator::passes
