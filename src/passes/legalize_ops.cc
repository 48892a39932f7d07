#include "passes/legalize_ops.h"

#include "passes/outline.h"
#include "relax/builder.h"
#include "relax/ops/table.h"

namespace sator::passes {

using namespace relax;

namespace {

/// What takes the place of an op's call; null where it stays.
RExpr legalized(const RExpr& value, BlockBuilder& builder) {
  RCallRef call = cast<RCall>(value);
  const Op* op = call ? call->op.as<Op>() : nullptr;
  const OpDef* def = op ? find_op(op->name) : nullptr;
  if (!def) return nullptr;
  if (def->legalize) return def->legalize(call, builder);
  return def->compute ? builder.legalize_by_formula(call) : nullptr;
}

FuncRef legalized(const Function& f, BlockBuilder& builder, const PassContext& ctx) {
  const SeqExpr* seq = f.body.as<SeqExpr>();
  if (!seq) return ref(f);
  std::vector<BindingBlockRef> blocks;
  builder.begin_scope(f.params);
  for (const BindingBlockRef& block : seq->blocks) {
    builder.begin_block(block->is_dataflow);
    for (const Binding& b : block->bindings) {
      const VarBinding* v = b.as<VarBinding>();
      RExpr value = v ? legalized(v->value, builder) : nullptr;
      if (v && !value && op_name(v->value).size() && find_op(op_name(v->value)) && find_op(op_name(v->value))->compute)
        ctx.say("LegalizeOps", text(v->var->name, ": ", op_name(v->value), " stays, a shape is not known"));
      builder.emit_binding(value ? Binding(make<VarBinding>(builder.normalize(value), v->var)) : b);
    }
    blocks.push_back(builder.end_block());
  }
  builder.end_scope();
  return sator::with(f, &Function::body, RExpr(sator::with(*seq, &SeqExpr::blocks, std::move(blocks))));
}

}  // namespace

ModuleRef legalize_ops(const ModuleRef& module, const PassContext& ctx) {
  BlockBuilder builder(module);
  for (const auto& [name, func] : module->functions) {
    if (const Function* f = func.as<Function>()) builder.update_function(name, legalized(*f, builder, ctx));
  }
  return builder.module();
}

}  // namespace sator::passes
