#include "passes/dead_code_elimination.h"

#include <set>

#include "passes/option.h"
#include "relax/builder.h"
#include "relax/outline.h"

namespace sator::passes {

using namespace relax;

namespace {

/// May be left out when its result is not used.
bool is_pure(const Binding& b) {
  if (b.as<MatchCast>()) return false;  // it checks, and binds sizes
  RExpr value = bound_value(b);
  if (value.as<If>()) return false;
  const RCall* call = value.as<RCall>();
  if (!call) return true;
  if (const Op* op = call->op.as<Op>()) {
    static const std::set<std::string> kEffects = {
        "call_tir_inplace", "print", "assert_op", "call_builtin_with_ctx", "call_inplace_packed", "invoke_closure"};
    return !kEffects.count(op->name) && !op->name.starts_with("memory.kill") && !op->name.starts_with("vm.");
  }
  if (call->op.as<GlobalVar>() || call->op.as<RVar>()) {
    const FuncInfo* info = call->op->sinfo.as<FuncInfo>();
    return info && info->pure;
  }
  return false;  // an external function may do anything
}

std::vector<std::string> names_of(const Module& module) {
  std::vector<std::string> out;
  for (const auto& [name, func] : module.functions) out.push_back(name);
  return out;
}

}  // namespace

FuncRef without_unused(const FuncRef& func) {
  return transform(func, [](const SeqExpr& seq) -> NodeRef {
    std::set<RVarRef> used;
    auto use = [&](const NodeRef& e) {
      for (const RVarRef& v : rvars_in(e)) used.insert(v);
    };
    use(seq.body);
    std::vector<BindingBlockRef> blocks;
    for (size_t i = seq.blocks.size(); i-- > 0;) {
      const BindingBlockRef& block = seq.blocks[i];
      std::vector<Binding> kept;
      for (size_t b = block->bindings.size(); b-- > 0;) {
        const Binding& binding = block->bindings[b];
        if (!used.count(bound_var(binding)) && is_pure(binding)) continue;
        use(bound_value(binding));
        kept.insert(kept.begin(), binding);
      }
      if (kept.empty()) continue;
      blocks.insert(blocks.begin(), kept == block->bindings ? block : with(block, &BindingBlock::bindings, kept));
    }
    blocks = joined_blocks(blocks);  // two of a kind with nothing left between them are one
    return blocks == seq.blocks ? ref(seq) : with(seq, &SeqExpr::blocks, blocks);
  });
}

ModuleRef dead_code_elimination(const ModuleRef& module, const PassContext& ctx) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<Function>(func);
    if (!f) continue;
    if (FuncRef lean = without_unused(f); lean != f) out = with_function(std::move(out), name, lean);
  }
  return without_unused_functions(out, names_option(ctx, "DeadCodeElimination.entry_functions"));
}

ModuleRef without_unused_functions(const ModuleRef& out, const std::vector<std::string>& entries) {
  std::vector<std::string> reached = entries;
  for (const std::string& name : entries)
    if (!out->functions.count(name))
      fail({.what = text("DeadCodeElimination: there is no function ", name),
            .needs = "entry_functions: names of functions of the module",
            .hint = text("the module has ", join(names_of(*out), ", "))});
  for (const auto& [name, func] : out->functions) {
    if (has_attr(func->attrs, "global_symbol")) reached.push_back(name);
  }
  if (reached.empty() && out->functions.count("main")) reached.push_back("main");
  if (reached.empty()) return out;
  std::set<std::string> keep(reached.begin(), reached.end());
  while (!reached.empty()) {
    Func f = out->functions.at(reached.back());
    reached.pop_back();
    auto reach = [&](const std::string& name) {
      if (out->functions.count(name) && keep.insert(name).second) reached.push_back(name);
    };
    walk(
        f,
        [&](const GlobalVar& gv) { reach(gv.name); },
        [&](const Call& call) {
          if (call.op.starts_with("global:")) reach(call.op.substr(7));
        });
  }
  std::map<std::string, Func> functions;
  for (const auto& [name, func] : out->functions) {
    if (keep.count(name)) functions.emplace(name, func);
  }
  return functions.size() == out->functions.size() ? out : with(out, &Module::functions, std::move(functions));
}

}  // namespace sator::passes
