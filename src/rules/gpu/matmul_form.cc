#include <algorithm>
#include <array>

#include "rules/gpu/matmul.h"

namespace sator::rules::gpu {

using namespace schedule;
using namespace tir;

namespace {

enum AxisRole : size_t { kS, kI, kJ, kK, kOfOneValue };
struct AxisOf {
  VarRef iter;
  Expr extent;
  AxisRole axis;
};

/// The block is a sum over some iterators, or over none.
bool has_kinds(const Block& block, bool reduction) {
  bool spatial = false, reduce = false;
  for (const IterVarRef& i : block.iter_vars) {
    spatial |= i->kind == IterKind::spatial;
    reduce |= i->kind == IterKind::reduce;
    if (i->kind != IterKind::spatial && i->kind != IterKind::reduce) return false;
  }
  return spatial && reduce == reduction;
}

/// Fuses axes to the wanted ones, row-major; a wanted axis that no iterator has is 0.
arith::IndexMapRef fused_map(const std::vector<AxisOf>& axes, std::initializer_list<AxisRole> wanted) {
  const DType dtype = axes.empty() ? i32 : axes[0].extent->dtype;
  std::vector<VarRef> inputs;
  std::array<Expr, 4> fused;
  for (const AxisOf& a : axes) {
    inputs.push_back(make_var(text("i", inputs.size()), a.extent->dtype));
    if (a.axis == kOfOneValue) continue;
    Expr& at = fused[a.axis];
    at = at ? at * a.extent + inputs.back() : Expr(inputs.back());
  }
  std::vector<Expr> out;
  for (AxisRole w : wanted) out.push_back(fused[w] ? fused[w] : int_imm(0, dtype));
  return make<arith::IndexMap>(std::move(inputs), std::move(out), nullptr);
}

std::vector<AxisOf> those_in(const std::vector<AxisOf>& axes, const std::vector<VarRef>& used) {
  std::vector<AxisOf> out;
  for (const AxisOf& a : axes) {
    if (std::ranges::find(used, a.iter) != used.end()) out.push_back(a);
  }
  return out;
}

/// The axis of an iterator by who uses it; nothing where a product has no such axis.
std::optional<AxisRole> axis_of(const IterVar& iter, bool in_a, bool in_b, bool in_c) {
  if (is_one(iter.dom->extent)) return kOfOneValue;
  if (iter.kind == IterKind::reduce) return in_a && in_b && !in_c ? std::optional(kK) : std::nullopt;
  if (!in_c) return {};
  if (in_a && in_b) return kS;
  if (in_a) return kI;
  return in_b ? std::optional(kJ) : std::nullopt;
}

}  // namespace

MaybeReason find_matmul(Schedule& s, MatmulForm& out) {
  const std::vector<BlockHandle> blocks = leaf_blocks(s);
  for (const BlockHandle& b : blocks) {
    if (has_kinds(s.get(b), true)) {
      if (out.block)
        return because(text("there are two reductions: ", out.block->text, " and ", b->text), "one reduction block");
      out.block = b;
    } else if (!has_kinds(s.get(b), false)) {
      return because(text("block ", b->text, " is neither spatial nor a reduction with spatial axes"),
                     "no other blocks");
    }
  }
  if (!out.block) return because("there is no reduction", "one reduction block");
  const Block& block = s.get(out.block);
  if (block.reads.size() != 2 || block.writes.size() != 1 || !touches_elements(block))
    return because(text("block ", out.block->text, " reads ", block.reads.size(), " boxes of buffers"),
                   "two operands and one result, element by element");
  const std::vector<VarRef> a = iterators_in(block, *block.reads[0]), b = iterators_in(block, *block.reads[1]),
                            c = iterators_in(block, *block.writes[0]);
  auto in = [](const std::vector<VarRef>& list, const VarRef& v) { return std::ranges::find(list, v) != list.end(); };
  std::vector<AxisOf> axes;
  out.extents.assign(4, int_imm(1));
  std::array<bool, 4> has{};
  for (const IterVarRef& i : block.iter_vars) {
    const auto axis = axis_of(*i, in(a, i->var), in(b, i->var), in(c, i->var));
    if (!axis)
      return because(text("iterator ", i->var->name, " of block ", out.block->text, " is of no axis of a product"),
                     "spatial axes of an operand and the result, summed ones of both operands");
    if (i->var->dtype != block.iter_vars.front()->var->dtype)
      return because(text("iterators of block ",
                          out.block->text,
                          " count in ",
                          block.iter_vars.front()->var->dtype,
                          " and ",
                          i->var->dtype),
                     "one dtype of all sizes, as ForceNarrowIndexToInt32 or T.int64(...) gives it");
    axes.push_back({i->var, i->dom->extent, *axis});
    if (*axis == kOfOneValue) continue;
    out.extents[*axis] = has[*axis] ? out.extents[*axis] * i->dom->extent : i->dom->extent;
    has[*axis] = true;
  }
  if (!has[kI] || !has[kJ] || !has[kK])
    return because(text("the product has no axis ",
                        !has[kI]   ? "I"
                        : !has[kJ] ? "J"
                                   : "K"),
                   "rows (I), columns (J) and terms (K), more than one of each");
  out.in_dtype = block.reads[0]->buffer->dtype;
  out.out_dtype = block.writes[0]->buffer->dtype;
  out.a_map = fused_map(those_in(axes, a), {kS, kI, kK});
  out.b_map = fused_map(those_in(axes, b), {kS, kJ, kK});
  out.c_map = fused_map(those_in(axes, c), {kS, kI, kJ});
  out.block_map = fused_map(axes, {kS, kI, kJ, kK});
  return {};
}

std::string describe(const MatmulForm& form) {
  arith::Analyzer analyzer;
  auto extent = [&](size_t axis) {
    const Expr e = analyzer.simplify(form.extents[axis]);
    return as_int(e) ? text(*as_int(e)) : text(e);
  };
  return text("C[S, I, J] += A[S, I, K] * B[S, J, K] with S = ",
              extent(kS),
              ", I = ",
              extent(kI),
              ", J = ",
              extent(kJ),
              ", K = ",
              extent(kK));
}

std::vector<Loop> to_normal_form(Schedule& s, const MatmulForm& form, const std::vector<int64_t>& tile) {
  const BufferSelector read_0{false, int64_t{0}}, read_1{false, int64_t{1}}, write_0{true, int64_t{0}};
  transform_layout(s, reindex(s, form.block, read_0), write_0, form.a_map);
  transform_layout(s, reindex(s, form.block, read_1), write_0, form.b_map);
  transform_layout(s, reindex(s, form.block, write_0), read_0, form.c_map);
  transform_block_layout(s, form.block, form.block_map);
  pad_einsum(s, form.block, std::vector<int64_t>{1, tile.at(0), tile.at(1), tile.at(2)});
  return get_loops(s, form.block);
}

}  // namespace sator::rules::gpu
