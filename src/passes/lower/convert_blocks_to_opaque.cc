// A block's iterators become their values:
//   with block: vi = i * 4 + j; S(vi)   =>   with block: S(i * 4 + j)
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

PrimFuncRef convert_blocks_to_opaque(const PrimFuncRef& func, const LowerOptions&) {
  Stmt body = transform(func->body, [](const BlockRealize& realize) -> Stmt {
    const Block& block = *realize.block;
    if (block.init)
      fail({.what =
                text("ConvertBlocksToOpaque is given block ", string_literal(block.name->text), ", which has an init"),
            .needs = "blocks whose init is part of the body",
            .hint = "run LowerInitBlock before",
            .at = {{ref(realize), ""}}});
    if (block.iter_vars.empty()) return ref(realize);
    VarMap values;
    for (size_t i = 0; i < block.iter_vars.size(); ++i)
      values[block.iter_vars[i]->var] = cast_to(block.iter_vars[i]->var->dtype, realize.values[i]);
    Block opaque = block;
    opaque.iter_vars.clear();
    BlockRef substituted = substitute(BlockRef(new Block(opaque)), values);
    return make<BlockRealize>(std::vector<Expr>{}, realize.predicate, substituted);
  });
  return with_body(func, body);
}

}  // namespace sator::passes
