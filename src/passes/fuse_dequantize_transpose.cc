// A weight that a tensor program dequantizes, transposes and writes, and that the graph turns back to multiply by: for a
// product of one row the program leaves its transposition out.
//
//   w = call_tir(dequantize, q)   # its last block: out[i, j] = t[j, i]        w = call_tir(dequantize1, q)   # t is its result
//   matmul(x, permute_dims(w))                                            =>   matmul(x, w)
#include <algorithm>

#include "passes/fuse_patterns.h"
#include "passes/graph/rewrite_calls.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The statements one after the other.
std::vector<tir::Stmt> statements_of(const tir::Stmt& body) {
  const tir::Seq* seq = body.as<tir::Seq>();
  return seq ? seq->stmts : std::vector{body};
}

/// The one block inside of plain loops that binds each iterator to the loop of its place; null for anything else.
const tir::Block* plain_block(tir::Stmt stmt) {
  std::vector<VarRef> loops;
  while (const tir::For* loop = stmt.as<tir::For>()) {
    if (!is_zero(loop->min)) return nullptr;
    loops.push_back(loop->var);
    stmt = loop->body;
  }
  const tir::BlockRealize* realize = stmt.as<tir::BlockRealize>();
  if (!realize || !is_one(realize->predicate) || realize->values.size() != loops.size()) return nullptr;
  for (size_t i = 0; i < loops.size(); ++i)
    if (realize->values[i].get() != loops[i].get()) return nullptr;
  const tir::Block& block = *realize->block;
  return block.init || !block.alloc_buffers.empty() || !block.match_buffers.empty() ? nullptr : &block;
}

/// A function whose last statement only copies its one temporary tensor to its result, with the axes in another order.
struct Transposing {
  BufferRef temporary;
  std::vector<int64_t> axes;  ///< axis k of the temporary is axis axes[k] of the result
};

std::optional<Transposing> transposing(const tir::PrimFunc& f) {
  const tir::BlockRealizeRef root = tir::root_of(f);
  if (!root || root->block->alloc_buffers.size() != 1 || f.buffer_map.empty()) return {};
  const BufferRef temporary = root->block->alloc_buffers[0], result = f.buffer_map.back().second;
  const std::vector<tir::Stmt> stmts = statements_of(root->block->body);
  const tir::Block* last = stmts.size() < 2 ? nullptr : plain_block(stmts.back());
  const tir::BufferStore* store = last ? last->body.as<tir::BufferStore>() : nullptr;
  const BufferLoad* load = store ? store->value.as<BufferLoad>() : nullptr;
  if (!load || store->buffer != result || load->buffer != temporary || load->indices.size() != store->indices.size())
    return {};
  Transposing out{temporary, {}};
  for (size_t k = 0; k < load->indices.size(); ++k) {
    const auto same = [&](const Expr& e) { return e.get() == load->indices[k].get(); };
    const auto at = std::ranges::find_if(store->indices, same);
    if (!load->indices[k].as<Var>() || at == store->indices.end()) return {};
    const auto axis = static_cast<size_t>(at - store->indices.begin());
    if (std::ranges::count(out.axes, static_cast<int64_t>(axis)) || !equal(temporary->shape[k], result->shape[axis]))
      return {};
    out.axes.push_back(static_cast<int64_t>(axis));
  }
  // Each element of the temporary is computed before, and nothing else reads or writes the result.
  for (size_t i = 0; i + 1 < stmts.size(); ++i) {
    bool uses_result = false;
    walk(
        stmts[i],
        [&](const BufferLoad& l) { uses_result |= l.buffer == result; },
        [&](const tir::BufferStore& s) { uses_result |= s.buffer == result; });
    if (uses_result) return {};
  }
  return out;
}

/// The function without its last statement: the temporary is its result.
tir::PrimFuncRef without_transposition(const tir::PrimFunc& f, const Transposing& t) {
  const tir::BlockRealizeRef root = tir::root_of(f);
  std::vector<tir::Stmt> stmts = statements_of(root->block->body);
  stmts.pop_back();
  tir::BlockRef block = with(root->block, &tir::Block::body, tir::seq(std::move(stmts)));
  block = with(block, &tir::Block::alloc_buffers, std::vector<BufferRef>());
  tir::PrimFuncRef out = with(f, &tir::PrimFunc::body, tir::Stmt(with(*root, &tir::BlockRealize::block, block)));
  auto buffers = f.buffer_map;
  buffers.back().second = t.temporary;
  return tir::fresh_function(with(out, &tir::PrimFunc::buffer_map, std::move(buffers)));
}

class TranspositionRemover final : public GraphRewriter {
 public:
  TranspositionRemover(BlockBuilder& builder, const PassContext& ctx)
      : GraphRewriter(builder), known_(builder), ctx_(ctx) {}

 private:
  RExpr value(const RVarRef& var, const RExpr& value) override {
    if (!is_op(value, "matmul")) return value;
    const RCall& product = *value.as<RCall>();
    const RCall* turned = known_.call(product.args[1], "permute_dims");
    const RCall* made = turned ? known_.call(turned->args[0], "call_tir") : nullptr;
    const GlobalVar* callee = made ? made->args[0].as<GlobalVar>() : nullptr;
    const auto at = callee ? builder().module()->functions.find(callee->name) : builder().module()->functions.end();
    const auto* f = at == builder().module()->functions.end() ? nullptr : at->second.as<tir::PrimFunc>();
    if (!f || !made->sinfo_args[0].as<TensorInfo>()) return value;
    const TensorInfo* x = product.args[0]->sinfo.as<TensorInfo>();
    const auto shape = x ? shape_of(*x) : std::nullopt;
    if (!shape || shape->size() < 2 || !is_one((*shape)[shape->size() - 2])) {
      ctx_.say("FuseDequantizeTranspose", text(var->name, ": the left operand is not one row"));
      return value;
    }
    const auto t = transposing(*f);
    const auto axes = permutation_of(*turned);
    if (!t || !axes || *axes != t->axes) {
      ctx_.say("FuseDequantizeTranspose",
               text(callee->name, ": its last block is not the transposition that permute_dims undoes"));
      return value;
    }
    std::vector<RExpr> args = made->args;
    args[0] = builder().add_function(without_transposition(*f, *t), callee->name);
    const RExpr weight = builder().emit(relax::call(made->op, std::move(args), made->attrs, {turned->sinfo}));
    return relax::call(product.op, {product.args[0], weight}, product.attrs);
  }

  KnownValues known_;
  const PassContext& ctx_;
};

}  // namespace

ModuleRef fuse_dequantize_transpose(const ModuleRef& module, const PassContext& ctx) {
  return rewrite_functions(
      module, [&](const FuncRef& f, BlockBuilder& builder) { return TranspositionRemover(builder, ctx).function(*f); });
}

}  // namespace sator::passes
