#include <set>

#include "passes/to_vm.h"
#include "relax/outline.h"
#include "relax/rebind.h"

namespace sator::passes {

using namespace relax;

namespace {

/// y = x: uses of y become uses of x, where both say the same of it; else what is deduced from y would no longer hold.
FuncRef inline_renamings(const FuncRef& func) {
  NodeMap map;
  FuncRef out = rewrite_bindings(func, [&](const Binding& b, Bindings& list) {
    const VarBinding* v = b.as<VarBinding>();
    const RVar* renamed = v ? v->value.as<RVar>() : nullptr;
    if (renamed && equal(v->var->sinfo, renamed->sinfo)) {
      NodeRef target = v->value;
      if (auto at = map.find(target); at != map.end()) target = at->second;
      map.emplace(v->var, target);
      return;
    }
    list.keep(b);
  });
  return replaced(out, map);
}

constexpr const char *kKillTensor = "memory.kill_tensor", *kKillStorage = "memory.kill_storage",
                     *kKillObject = "vm.kill_object";

bool is_kill(const RExpr& value) {
  return is_op(value, kKillTensor) || is_op(value, kKillStorage) || is_op(value, kKillObject);
}

/// The op that frees what a binding makes; null for what the virtual machine keeps in no register of its own.
const char* kill_of(const RVarRef& var, const RExpr& value) {
  const StructInfo& info = var->sinfo;
  if (is_kill(value) || value.as<Constant>() || info.as<FuncInfo>() || info.as<ShapeInfo>() || info.as<PrimInfo>())
    return nullptr;
  if (is_op(value, "memory.alloc_storage") || is_op(value, "vm.alloc_storage")) return kKillStorage;
  return info.as<TensorInfo>() ? kKillTensor : kKillObject;
}

}  // namespace

ModuleRef kill_after_last_use(const ModuleRef& module, const PassContext&) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<Function>(func);
    const SeqExpr* seq = f ? f->body.as<SeqExpr>() : nullptr;
    if (!seq) continue;
    f = inline_renamings(f);
    seq = f->body.as<SeqExpr>();

    // Tensors, storages and other objects are counted references: a view or a tuple keeps what it is made of.
    std::vector<std::pair<RVarRef, const char*>> kill;  // in the order of definition
    std::map<RVarRef, int64_t> last;
    std::set<RVarRef> kept;  // results, and what somebody freed before
    int64_t at = 0;
    for (const BindingBlockRef& block : seq->blocks) {
      for (const Binding& b : block->bindings) {
        const RExpr value = bound_value(b);
        const std::vector<RVarRef> uses = rvars_in(value);
        if (const char* op = kill_of(bound_var(b), value)) kill.emplace_back(bound_var(b), op);
        if (is_kill(value)) kept.insert(uses.begin(), uses.end());
        for (const RVarRef& v : uses) last[v] = at;
        ++at;
      }
    }
    for (const RVarRef& v : rvars_in(seq->body)) kept.insert(v);

    at = 0;
    std::vector<BindingBlockRef> blocks;
    for (const BindingBlockRef& block : seq->blocks) {
      Bindings list;
      for (const Binding& b : block->bindings) {
        list.keep(b);
        for (const char* kind : {kKillTensor, kKillStorage, kKillObject}) {
          for (const auto& [var, op] : kill) {
            auto l = last.find(var);
            if (op == kind && l != last.end() && l->second == at && !kept.contains(var))
              list.run(op_call(op, {var}, tuple_info({})));
          }
        }
        ++at;
      }
      blocks.push_back(with(block, &BindingBlock::bindings, std::move(list.list())));
    }
    f = with(f, &Function::body, RExpr(with(*seq, &SeqExpr::blocks, std::move(blocks))));
    out = with_function(std::move(out), name, f);
  }
  return out;
}

}  // namespace sator::passes
