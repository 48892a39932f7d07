#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "arith/analyzer.h"
#include "arith/iter_map.h"
#include "ir/visit.h"
#include "passes/to_vm.h"
#include "relax/outline.h"
#include "relax/rebind.h"
#include "relax/shared_memory.h"
#include "tir/nodes.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The place of an element in row-major order, counted in `dtype`.
Expr linear_index(const std::vector<Expr>& indices, const std::vector<Expr>& shape, DType dtype) {
  Expr at = int_imm(0, dtype);
  for (size_t i = 0; i < indices.size(); ++i) at = at * cast_to(dtype, shape[i]) + cast_to(dtype, indices[i]);
  return at;
}

/// int32 where all indices are, and count no further; else int64.
DType counting_dtype(const std::vector<Expr>& read, const std::vector<Expr>& written, const Expr& elements) {
  auto is_narrow = [](const Expr& e) { return e->dtype == i32; };
  const auto count = as_int(elements);
  const bool is_small = count && *count <= std::numeric_limits<int32_t>::max();
  return is_small && std::ranges::all_of(read, is_narrow) && std::ranges::all_of(written, is_narrow) ? i32 : i64;
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

std::optional<size_t> reshaped_parameter(const tir::PrimFunc& f) {
  std::vector<BufferRef> buffers;
  for (const VarRef& p : f.params) {
    if (BufferRef b = f.buffer_of(p)) buffers.push_back(b);
  }
  tir::BlockRealizeRef root = tir::root_of(f);
  if (buffers.size() < 2 || !root || !root->block->alloc_buffers.empty()) return {};
  const tir::BlockRealize* only = nullptr;
  int blocks = 0;
  walk(root->block->body, [&](const tir::BlockRealize& r) {
    only = &r;
    ++blocks;
    return false;
  });
  // A predicate, as schedules leave it where sizes are no multiples, keeps elements from being written, never moves them:
  // what it leaves out has no value, so any will do.
  if (blocks != 1) return {};
  const tir::BufferStore* store = only->block->body.as<tir::BufferStore>();
  const BufferLoad* load = store ? store->value.as<BufferLoad>() : nullptr;
  if (!load || store->buffer != buffers.back() || load->buffer->dtype != store->buffer->dtype) return {};
  const auto input = std::find(buffers.begin(), buffers.end() - 1, load->buffer);
  if (input == buffers.end() - 1) return {};
  arith::Analyzer analyzer;
  arith::RangeMap iters;
  for (const tir::IterVarRef& iter : only->block->iter_vars) {
    analyzer.bind(iter->var, iter->dom);
    iters.emplace(iter->var, iter->dom);
  }
  // A slice reads the same places too, but not all of them.
  const Expr elements = analyzer.simplify(elements_of(*load->buffer));
  if (!analyzer.prove_equal(elements, elements_of(*store->buffer))) return {};
  const DType dtype = counting_dtype(load->indices, store->indices, elements);
  std::vector<Expr> read = load->indices;
  for (Expr& index : read) index = within_sizes(index, analyzer);
  const Expr from = linear_index(read, load->buffer->shape, dtype);
  const Expr to = linear_index(store->indices, store->buffer->shape, dtype);
  auto in_one_piece = [&](const Expr& e) {
    return arith::normalize_iter_map_to_expr(arith::normalize_to_iter_sum(e, iters, analyzer));
  };
  // Quotients and remainders of one index join to that index.
  const Expr written = linear_index(load->indices, load->buffer->shape, dtype);
  if (!analyzer.prove_equal(from, to) && !analyzer.prove_equal(in_one_piece(written), in_one_piece(to))) return {};
  return input - buffers.begin();
}

bool is_reshape(const tir::PrimFunc& f) {
  const auto tensors = std::ranges::count_if(f.params, [&](const VarRef& p) { return f.buffer_of(p) != nullptr; });
  return tensors == 2 && reshaped_parameter(f).has_value();
}

namespace {

/// The variables of dataflow blocks that nothing outside of their block uses.
std::set<RVarRef> inner_variables(const ModuleRef& module) {
  std::set<RVarRef> inner;
  auto collect = [&](const BindingBlockRef& block, const std::vector<RVarRef>& live_out) {
    for (const Binding& b : block->bindings) {
      if (std::ranges::find(live_out, bound_var(b)) == live_out.end()) inner.insert(bound_var(b));
    }
    return block;
  };
  rewrite_dataflow_blocks(module, collect);
  return inner;
}

/// A binding that may be a view of what it reads.
struct View {
  RExpr of;
  std::vector<Expr> shape;
};

std::optional<View> view_in(const Module& module, const Binding& b) {
  const auto callee = called_prim_func(b);
  const tir::PrimFunc* f = callee ? module.functions.at(*callee).as<tir::PrimFunc>() : nullptr;
  const RCall* call = callee ? bound_value(b).as<RCall>() : nullptr;
  const TensorInfo* info = call ? call->sinfo_args.front().as<TensorInfo>() : nullptr;
  const auto shape = info ? relax::shape_of(*info) : std::nullopt;
  const auto input = f && shape ? reshaped_parameter(*f) : std::nullopt;
  if (!input) return {};
  return View{call_tir_inputs(*call).at(*input), *shape};
}

}  // namespace

ModuleRef rewrite_dataflow_reshape(const ModuleRef& module, const PassContext& ctx) {
  // What leaves a dataflow block gets memory of its own: a caller may keep it, or write to it. So does what is read while the
  // memory that it would share is overwritten.
  const std::set<RVarRef> inner = inner_variables(module);
  const SharedMemory memory(*module, [&](const Binding& b) {
    const auto view = view_in(*module, b);
    return view ? view->of : reshaped(b);
  });
  return rewrite_bindings(module, [&](const Binding& b, Bindings& out) {
    const auto view = inner.contains(bound_var(b)) ? view_in(*module, b) : std::nullopt;
    if (!view || memory.is_overwritten(*bound_var(b))) {
      out.keep(b);
      return;
    }
    ctx.say("RewriteDataflowReshape", text(*called_prim_func(b), " is a view"));
    out.bind(bound_var(b), op_call("reshape", {view->of, shape_expr(view->shape)}, bound_var(b)->sinfo));
  });
}

}  // namespace sator::passes
