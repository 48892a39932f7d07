#include "rules/low_batch.h"

#include "rules/rule.h"
#include "schedule/edit.h"
#include "tir/copy.h"

namespace sator::rules {

using namespace tir;

namespace {

/// The symbolic size that is the number of the product's rows; null if the function has none.
VarRef row_count(const PrimFuncRef& func) {
  const schedule::Schedule s = named_schedule(func, "main");
  const schedule::BlockHandle product = product_block(s);
  if (!product) return nullptr;
  return cast<Var>(s.get(product).iter_vars[0]->dom->extent);
}

PrimFuncRef for_few_rows(const PrimFuncRef& func) {
  Attrs attrs = func->attrs;
  attrs[kMostRows] = int_imm(kFewRows);
  return with(func, &PrimFunc::attrs, std::move(attrs));
}

/// The scheduled branch as a block of `func`, over its buffers.
Stmt as_block(const PrimFuncRef& func, const LowBatchBranch& branch, const char* name) {
  NodeMap own;
  for (size_t i = 0; i < func->params.size(); ++i) {
    const BufferRef from = branch.func->buffer_of(branch.func->params[i]), to = func->buffer_of(func->params[i]);
    if (from != to) own.emplace(from, to);
  }
  const BlockRealizeRef realize = cast<BlockRealize>(fresh_copy(branch.func->body, std::move(own)));
  std::vector<BufferRef> visible;
  for (const auto& [param, buffer] : func->buffer_map) visible.push_back(buffer);
  BlockRef block = schedule::with_detected_regions(realize->block, visible, true, true);
  return with(realize, &BlockRealize::block, with(block, &Block::name, block_name(name)));
}

}  // namespace

std::vector<LowBatchBranch> low_batch_branches(const PrimFuncRef& func) {
  const VarRef rows = row_count(func);
  if (!rows) return {{.func = func}};
  auto size = [&](int64_t v) { return int_imm(v, rows->dtype); };
  return {{text(rows->name, " == 1"), eq(rows, size(1)), substitute(func, {{rows, size(1)}})},
          {text("2 <= ", rows->name, " <= ", kFewRows), le(rows, size(kFewRows)), for_few_rows(func)},
          {text(rows->name, " > ", kFewRows), nullptr, func}};
}

PrimFuncRef join_branches(const PrimFuncRef& func, const std::vector<LowBatchBranch>& branches) {
  static constexpr const char* kNames[] = {"one_row", "few_rows", "many_rows"};
  Stmt body;
  for (size_t i = branches.size(); i-- > 0;) {
    Stmt block = as_block(func, branches[i], kNames[i]);
    body = body ? Stmt(make<IfThenElse>(branches[i].condition, block, body)) : block;
  }
  const BlockRealizeRef root = root_of(*func);
  const Block& old = *root->block;
  Block whole = old;
  whole.alloc_buffers.clear();
  whole.body = body;
  return with(func, &PrimFunc::body, Stmt(with(root, &BlockRealize::block, BlockRef(new Block(whole)))));
}

}  // namespace sator::rules
