#include "passes/fuse_patterns.h"

#include <algorithm>

#include "passes/dataflow_pattern.h"
#include "passes/fuse_ops.h"
#include "passes/op_pattern.h"
#include "passes/wide_sums.h"
#include "relax/builder.h"
#include "relax/ops/op.h"
#include "relax/outline.h"
#include "relax/shared_memory.h"
#include "tir/te.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The bindings of a block by their variable, and how often each variable is used in it or after it.
struct Uses {
  std::map<RVarRef, size_t> binder;
  std::map<RVarRef, int> count;
  std::vector<bool> early;  ///< by binding: SharedMemory::read_before_overwritten
  Uses(const BindingBlockRef& block, const std::vector<RVarRef>& live_out, const SharedMemory& memory) {
    for (size_t b = 0; b < block->bindings.size(); ++b) {
      binder[bound_var(block->bindings[b])] = b;
      for (const RVarRef& v : rvars_in(bound_value(block->bindings[b]))) ++count[v];
    }
    for (const RVarRef& v : live_out) ++count[v];
    early = memory.read_before_overwritten(*block);
  }
  /// The index of the binding of an expression that is a variable of this block, and may be computed later than it stands.
  std::optional<size_t> binding_of(const RExpr& e) const {
    RVarRef v = cast<RVar>(e);
    auto at = v ? binder.find(v) : binder.end();
    return at == binder.end() || early[at->second] ? std::nullopt : std::optional(at->second);
  }
};

/// Whether a permute_dims swaps the last two dimensions of a matrix, or of matrices in batches.
bool swaps_last_two(const RCall& permute) {
  const TensorInfo* info = permute.args[0]->sinfo.as<TensorInfo>();
  if (!info || info->ndim < 2) return false;
  const auto rank = static_cast<size_t>(info->ndim);
  auto at = permute.attrs.find("axes");
  if (at == permute.attrs.end() || !at->second) return rank == 2;
  const Array* axes = at->second.as<Array>();
  if (!axes || axes->items.size() != rank) return false;
  for (size_t d = 0; d < rank; ++d) {
    const size_t from = d + 2 < rank ? d : 2 * rank - 3 - d;
    if (!is_int(cast<ExprNode>(axes->items[d]), static_cast<int64_t>(from))) return false;
  }
  return true;
}

/// The one other binding that a match of two takes in, if it may be computed later than it stands.
std::optional<size_t> other_binding(const PatternGraph::Match& match, size_t root, const std::vector<bool>& early) {
  for (size_t m : match.members)
    if (m != root) return early[m] ? std::nullopt : std::optional(m);
  return {};
}

/// Whether the product of x with the turned w has a formula here: w is one matrix, or has the batches of x.
bool fits(const TensorInfo& x, const RExpr& w) {
  const TensorInfo* info = w->sinfo.as<TensorInfo>();
  const auto shape = relax::shape_of(x);
  if (!shape || x.ndim < 2) return false;
  if (info->ndim == 2) return true;
  const auto other = relax::shape_of(*info);
  return other && other->size() == shape->size() &&
         std::equal(shape->begin(), shape->end() - 2, other->begin(), [](const Expr& a, const Expr& b) {
           return equal(a, b);
         });
}

/// C[.., i, j] += x[.., i, k] * w[.., j, k]; w may be one matrix.
std::vector<te::Tensor> nt_matmul(const te::Tensor& x, const te::Tensor& w, DType out) {
  std::vector<Expr> shape(x.shape().begin(), x.shape().end() - 1);
  shape.push_back(w.dim(-2));
  tir::IterVarRef k = te::reduce_axis(x.dim(-1), "k");
  return {te::reduce({.name = "NT_matmul", .axis = "i"}, shape, [&](const te::Indices& i) {
    te::Indices at(i.begin(), i.end() - 1);
    te::Indices weight(i.begin(), i.begin() + (w.rank() - 2));
    weight.push_back(i.back());
    weight.push_back(k->var);
    at.push_back(k->var);
    return te::reduce_sum(cast_to(out, x(at)) * cast_to(out, w(weight)), {k});
  })};
}

}  // namespace

ModuleRef fuse_transpose_matmul(const ModuleRef& module, const PassContext& ctx) {
  const DFPattern x = wildcard(), w = wildcard(), product = is_op("matmul", {x, is_op("permute_dims", {w})});
  const SharedMemory memory(*module);
  BlockBuilder builder(module);
  ModuleRef out =
      rewrite_dataflow_blocks(module, [&](const BindingBlockRef& block, const std::vector<RVarRef>& live_out) {
        const PatternGraph graph(module, block, live_out);
        const std::vector<bool> early = memory.read_before_overwritten(*block);
        // The product of the binding as one tensor function; null where it is none of a turned matrix.
        const auto fused = [&](size_t b) -> RExpr {
          const auto match = graph.match({product}, b);
          const auto turned = match ? other_binding(*match, b, early) : std::nullopt;
          if (!turned || !swaps_last_two(*bound_value(block->bindings[*turned]).as<RCall>())) return nullptr;
          const RExpr value = bound_value(block->bindings[b]), left = match->parts.at(x), right = match->parts.at(w);
          const TensorInfo* in = left->sinfo.as<TensorInfo>();
          const TensorInfo* result = value->sinfo.as<TensorInfo>();
          if (!in || !result || !fits(*in, right) || result->dtype.is_void()) return nullptr;
          builder.begin_block(true);
          RExpr call = builder.call_te(
              "NT_matmul",
              {left, right},
              [&](const TeInputs& te) { return nt_matmul(te.tensor(0), te.tensor(1), result->dtype); },
              value->sinfo);
          if (call) call = builder.normalize(call);
          builder.end_block();
          return call;
        };
        std::vector<Binding> bindings = block->bindings;
        bool changed = false;
        for (size_t b = 0; b < bindings.size(); ++b) {
          const VarBinding* v = bindings[b].as<VarBinding>();
          if (!v || !is_op(v->value, "matmul")) continue;
          if (RExpr call = fused(b)) {
            bindings[b] = make<VarBinding>(call, v->var);
            changed = true;
          } else {
            ctx.say("FuseTransposeMatmul",
                    text(v->var->name,
                         ": the right operand is no transposed matrix, nor one for each of the same batches"));
          }
        }
        return changed ? sator::with(block, &BindingBlock::bindings, std::move(bindings)) : block;
      });
  // The functions that the builder made join the rewritten graph.
  for (const auto& [name, func] : builder.module()->functions) {
    if (!out->functions.count(name))
      out = with_function(std::move(out), name, with_wide_sums(cast<tir::PrimFunc>(func)));
  }
  return out;
}

ModuleRef fuse_add_rms_norm(const ModuleRef& module, const PassContext& ctx) {
  const DFPattern x = wildcard(), y = wildcard(), norm = is_op_beginning("nn.rms_norm", {is_op("add", {x, y})});
  const SharedMemory memory(*module);
  Outliner outliner(module);
  return rewrite_dataflow_blocks(
      module,
      [&](const BindingBlockRef& block, const std::vector<RVarRef>& live_out) {
        const PatternGraph graph(outliner.module(), block, live_out);
        const std::vector<bool> early = memory.read_before_overwritten(*block);
        std::vector<Group> groups;
        std::set<size_t> taken;
        for (size_t b = 0; b < graph.size(); ++b) {
          if (!is_op(bound_value(block->bindings[b]), "nn.rms_norm")) continue;
          const auto match = graph.match({norm}, b);
          const auto sum = match ? other_binding(*match, b, early) : std::nullopt;
          if (!sum || taken.contains(*sum)) {
            ctx.say("FuseAddRMSNorm", text(bound_var(block->bindings[b])->name, ": its input is no sum"));
            continue;
          }
          const TensorInfo* left = match->parts.at(x)->sinfo.as<TensorInfo>();
          const TensorInfo* right = match->parts.at(y)->sinfo.as<TensorInfo>();
          if (!left || !right || !equal(left->shape, right->shape)) continue;  // a bias, not a residual
          taken.insert(*sum);
          groups.push_back({{*sum, b}, "fused_add_rms_norm", {{"Primitive", int_imm(1)}}});
        }
        return outliner.outline(block, groups, live_out);
      },
      &outliner);
}

namespace {

bool has_role(const ModuleRef& module, const Binding& b, const std::string& role) {
  auto callee = called_prim_func(b);
  if (!callee) return false;
  auto at = module->functions.find(*callee);
  return at != module->functions.end() && string_attr(at->second->attrs, "role") == role;
}

/// Joins each dequantize function with the one call that reads its result, where `fits` says so of the reader.
ModuleRef fuse_dequantize_with(const ModuleRef& module, const PassContext& ctx, const std::string& pass,
                               FunctionRef<bool(const tir::PrimFunc& reader, size_t input)> fits) {
  const SharedMemory memory(*module);
  Outliner outliner(module);
  ModuleRef grouped = rewrite_dataflow_blocks(
      module,
      [&](const BindingBlockRef& block, const std::vector<RVarRef>& live_out) {
        Uses uses(block, live_out, memory);
        std::vector<Group> groups;
        std::vector<bool> taken(block->bindings.size());
        for (size_t b = 0; b < block->bindings.size(); ++b) {
          auto callee = called_prim_func(block->bindings[b]);
          if (!callee || has_role(outliner.module(), block->bindings[b], "dequantize")) continue;
          Ref<const tir::PrimFunc> reader = cast<tir::PrimFunc>(outliner.module()->functions.at(*callee));
          std::vector<size_t> members;
          std::string name = "fused";
          std::vector<RExpr> inputs = call_tir_inputs(*bound_value(block->bindings[b]).as<RCall>());
          for (size_t i = 0; i < inputs.size(); ++i) {
            auto at = uses.binding_of(inputs[i]);
            if (!at || taken[*at] || !has_role(outliner.module(), block->bindings[*at], "dequantize")) continue;
            if (!fits(*reader, i)) {
              ctx.say(
                  pass,
                  text(*callee, ": it does not read ", bound_var(block->bindings[*at])->name, " as this pass needs"));
              continue;
            }
            // A table that several read is dequantized by each of them: its values never exist as a whole.
            if (std::find(members.begin(), members.end(), *at) == members.end()) members.push_back(*at);
            name += "_" + *called_prim_func(block->bindings[*at]);
          }
          if (members.empty()) continue;
          bool alone = std::all_of(
              members.begin(), members.end(), [&](size_t m) { return uses.count[bound_var(block->bindings[m])] == 1; });
          if (!alone) {
            ctx.say(pass, text(*callee, ": its dequantized weight has other readers"));
            continue;
          }
          std::sort(members.begin(), members.end());
          for (size_t m : members) taken[m] = true;
          members.push_back(b);
          std::string rest = callee->starts_with("fused_") ? callee->substr(6) : *callee;
          groups.push_back(
              {members, name + "_" + rest, {{"Primitive", int_imm(1)}, {"role", string_imm("dequantize_gemm")}}});
        }
        return outliner.outline(block, groups, live_out);
      },
      &outliner);
  return fuse_tir(grouped, ctx);
}

}  // namespace

ModuleRef fuse_dequantize_matmul_ewise(const ModuleRef& module, const PassContext& ctx) {
  return fuse_dequantize_with(module, ctx, "FuseDequantizeMatmulEwise", [](const tir::PrimFunc& reader, size_t input) {
    if (op_pattern_of(reader) != OpPattern::out_fusable && op_pattern_of(reader) != OpPattern::reduction) return false;
    // The weight is an operand of the product: some block that reduces reads it.
    BufferRef weight = tensor_parameter(reader, input);
    bool reduces = false;
    walk(reader.body, [&](const tir::Block& block) {
      if (!block.init) return true;
      walk(block.body, [&](const BufferLoad& l) { reduces |= l.buffer == weight; });
      return true;
    });
    return reduces;
  });
}

ModuleRef fuse_dequantize_take(const ModuleRef& module, const PassContext& ctx) {
  return fuse_dequantize_with(module, ctx, "FuseDequantizeTake", [](const tir::PrimFunc& reader, size_t input) {
    BufferRef table = tensor_parameter(reader, input);
    bool gathers = false;
    walk(reader.body, [&](const BufferLoad& l) {
      if (l.buffer != table) return;
      for (const Expr& index : l.indices) walk(index, [&](const BufferLoad&) { gathers = true; });
    });
    return gathers;
  });
}

}  // namespace sator::passes
