#include "arith/analyzer.h"
#include "ir/visit.h"
#include "passes/to_vm.h"
#include "relax/outline.h"
#include "relax/rebind.h"
#include "tir/nodes.h"

namespace sator::passes {

using namespace relax;

namespace {

Expr linear_index(const std::vector<Expr>& indices, const std::vector<Expr>& shape) {
  Expr at = int_imm(0, i64);
  for (size_t i = 0; i < indices.size(); ++i) at = at * cast_to(i64, shape[i]) + cast_to(i64, indices[i]);
  return at;
}

/// The index with remainders by symbolic sizes resolved where the dividend stays below the size.
Expr within_sizes(const Expr& index, arith::Analyzer& analyzer) {
  return transform(analyzer.simplify(index), [&](const FloorMod& m) -> NodeRef {
    const bool below =
        analyzer.prove(ge(m.a, int_imm(0, m.a->dtype))) && analyzer.prove(lt(m.a, m.b), arith::Strength::symbolic);
    return below ? NodeRef(m.a) : NodeRef(&m);
  });
}

Expr elements_of(const Buffer& buffer) {
  Expr count = int_imm(1, i64);
  for (const Expr& extent : buffer.shape) count = count * cast_to(i64, extent);
  return count;
}

}  // namespace

bool is_reshape(const tir::PrimFunc& f) {
  std::vector<BufferRef> buffers;
  for (const VarRef& p : f.params) {
    if (BufferRef b = f.buffer_of(p)) buffers.push_back(b);
  }
  if (buffers.size() != 2 || buffers[0]->dtype != buffers[1]->dtype) return false;
  tir::BlockRealizeRef root = tir::root_of(f);
  if (!root || !root->block->alloc_buffers.empty()) return false;
  const tir::BlockRealize* only = nullptr;
  int blocks = 0;
  walk(root->block->body, [&](const tir::BlockRealize& r) {
    only = &r;
    ++blocks;
    return false;
  });
  // A predicate, as schedules leave it where sizes are no multiples, keeps elements from being written, never moves them:
  // what it leaves out has no value, so any will do.
  if (blocks != 1) return false;
  const tir::BufferStore* store = only->block->body.as<tir::BufferStore>();
  const BufferLoad* load = store ? store->value.as<BufferLoad>() : nullptr;
  if (!load || load->buffer != buffers[0] || store->buffer != buffers[1]) return false;
  arith::Analyzer analyzer;
  for (const tir::IterVarRef& iter : only->block->iter_vars) analyzer.bind(iter->var, iter->dom);
  // A slice reads the same places too, but not all of them.
  if (!analyzer.prove_equal(elements_of(*load->buffer), elements_of(*store->buffer))) return false;
  std::vector<Expr> read = load->indices;
  for (Expr& index : read) index = within_sizes(index, analyzer);
  return analyzer.prove_equal(linear_index(read, load->buffer->shape),
                              linear_index(store->indices, store->buffer->shape));
}

ModuleRef rewrite_dataflow_reshape(const ModuleRef& module, const PassContext& ctx) {
  return rewrite_bindings(module, [&](const Binding& b, Bindings& out) {
    auto callee = called_prim_func(b);
    const tir::PrimFunc* f = callee ? module->functions.at(*callee).as<tir::PrimFunc>() : nullptr;
    const RCall* call = callee ? bound_value(b).as<RCall>() : nullptr;
    const TensorInfo* info = call ? call->sinfo_args.front().as<TensorInfo>() : nullptr;
    auto shape = info ? relax::shape_of(*info) : std::nullopt;
    if (!f || !shape || call_tir_inputs(*call).size() != 1 || !is_reshape(*f)) {
      out.keep(b);
      return;
    }
    ctx.say("RewriteDataflowReshape", text(*callee, " is a view"));
    out.bind(bound_var(b),
             op_call("reshape", {call_tir_inputs(*call).front(), shape_expr(*shape)}, bound_var(b)->sinfo));
  });
}

}  // namespace sator::passes
