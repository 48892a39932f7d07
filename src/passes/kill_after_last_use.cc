#include <set>

#include "passes/to_vm.h"
#include "relax/outline.h"
#include "relax/rebind.h"

namespace sator::passes {

using namespace relax;

namespace {

/// y = x: uses of y become uses of x.
FuncRef inline_renamings(const FuncRef& func) {
  NodeMap map;
  FuncRef out = rewrite_bindings(func, [&](const Binding& b, Bindings& list) {
    const VarBinding* v = b.as<VarBinding>();
    if (v && v->value.as<RVar>()) {
      NodeRef target = v->value;
      if (auto at = map.find(target); at != map.end()) target = at->second;
      map.emplace(v->var, target);
      return;
    }
    list.keep(b);
  });
  return replaced(out, map);
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

    // A tensor lives as long as its views; a storage as long as its tensors.
    std::map<RVarRef, std::vector<RVarRef>> holds;
    std::vector<std::pair<RVarRef, std::string>> kill;  // in the order of definition
    std::map<RVarRef, int64_t> last;
    int64_t at = 0;
    for (const BindingBlockRef& block : seq->blocks) {
      for (const Binding& b : block->bindings) {
        RExpr value = bound_value(b);
        RVarRef var = bound_var(b);
        if (is_op(value, "memory.alloc_storage")) kill.emplace_back(var, "memory.kill_storage");
        if (is_op(value, "memory.alloc_tensor")) kill.emplace_back(var, "memory.kill_tensor");
        bool views = value.as<RVar>() || value.as<relax::Tuple>() || value.as<TupleGetItem>() ||
                     is_op(value, "reshape") || is_op(value, "memory.view");
        std::vector<RVarRef> uses = rvars_in(value);
        if (views) holds[var] = uses;
        auto touch = [&](auto& self, const RVarRef& v) -> void {
          last[v] = at;
          for (const RVarRef& inner : holds[v]) self(self, inner);
        };
        for (const RVarRef& v : uses) touch(touch, v);
        ++at;
      }
    }
    std::set<RVarRef> result;
    auto keep = [&](auto& self, const RVarRef& v) -> void {
      result.insert(v);
      for (const RVarRef& inner : holds[v]) self(self, inner);
    };
    for (const RVarRef& v : rvars_in(seq->body)) keep(keep, v);

    at = 0;
    std::vector<BindingBlockRef> blocks;
    for (const BindingBlockRef& block : seq->blocks) {
      Bindings list;
      for (const Binding& b : block->bindings) {
        list.keep(b);
        for (const char* kind : {"memory.kill_tensor", "memory.kill_storage"}) {
          for (const auto& [var, op] : kill) {
            auto l = last.find(var);
            if (op == kind && l != last.end() && l->second == at && !result.count(var))
              list.run(op_call(op.c_str(), {var}, tuple_info({})));
          }
        }
        ++at;
      }
      blocks.push_back(with(block, &BindingBlock::bindings, std::move(list.list())));
    }
    f = with(f, &Function::body, RExpr(with(*seq, &SeqExpr::blocks, std::move(blocks))));
    out = with_function(out, name, f);
  }
  return out;
}

}  // namespace sator::passes
