#include "passes/graph/graph.h"
#include "relax/outline.h"
#include "relax/rewrite.h"
#include "relax/struct_info.h"

namespace sator::passes {

using namespace relax;

namespace {

/// Whether nothing is known of a variable yet, as builders outside of this library leave it.
bool has_unknown_variable(const Function& f) {
  bool found = false;
  walk(f.body, [&](const RVar& v) { found = found || !v.sinfo; });
  return found;
}

/// The function whose variables have what is known of their values, where nothing was known of them.
FuncRef with_known_variables(const FuncRef& f, BlockBuilder& builder) {
  const SeqExpr* seq = f->body.as<SeqExpr>();
  if (!seq || !has_unknown_variable(*f)) return f;
  NodeMap known;
  auto named = [&](const RVarRef& var, const StructInfo& info) {
    if (var->sinfo) return var;
    RVarRef out = with(var, &RVar::sinfo, info);
    known[var] = out;
    return out;
  };
  builder.begin_scope(f->params);
  std::vector<BindingBlockRef> blocks;
  for (const BindingBlockRef& block : seq->blocks) {
    builder.begin_block(block->is_dataflow);
    for (const Binding& b : block->bindings) {
      RExpr value = builder.normalize(RExpr(replaced(bound_value(b), known)));
      if (const MatchCast* m = b.as<MatchCast>())
        builder.emit_binding(bind_match_cast(named(m->var, m->sinfo), value, m->sinfo));
      else
        builder.emit_binding(bind_value(named(bound_var(b), value->sinfo), value));
    }
    blocks.push_back(builder.end_block());
  }
  builder.end_scope();
  RExpr result = replaced(seq->body, known);
  return with(f, &Function::body, RExpr(make<SeqExpr>(std::move(blocks), result, result->sinfo)));
}

}  // namespace

ModuleRef normalize(const ModuleRef& module, const PassContext&) {
  return rewrite_functions(module, [](const FuncRef& given, BlockBuilder& builder) -> FuncRef {
    const FuncRef f = with_known_variables(given, builder);
    builder.begin_scope(f->params);
    RExpr body = f->body;
    if (!body.as<SeqExpr>()) body = make<SeqExpr>(std::vector<BindingBlockRef>{}, body, StructInfo());
    body = builder.normalize(body);
    builder.end_scope();
    if (body == given->body) return given;
    // What the body tells of the result may be finer than what was declared of it.
    const bool is_finer = body->sinfo && is_base_of(f->ret, body->sinfo, builder.arith());
    return with(with(f, &Function::body, body), &Function::ret, is_finer ? body->sinfo : f->ret);
  });
}

ModuleRef normalize_global_var(const ModuleRef& module, const PassContext&) {
  // Names that others link to come first; a private function that has one of them gets another.
  std::map<std::string, std::string> renamed;
  std::map<std::string, Func> functions;
  for (const auto& [name, func] : module->functions) {
    auto symbol = string_attr(func->attrs, "global_symbol");
    if (!symbol) continue;
    if (functions.contains(*symbol))
      fail({.what = text("NormalizeGlobalVar: two functions have the global_symbol ", *symbol),
            .needs = "a symbol of its own for each public function",
            .hint = "make one of them private"});
    functions.emplace(*symbol, func);
    renamed[name] = *symbol;
  }
  for (const auto& [name, func] : module->functions) {
    if (renamed.contains(name)) continue;
    std::string fresh = name;
    for (int i = 1; functions.contains(fresh); ++i) fresh = text(name, i);
    functions.emplace(fresh, func);
    renamed[name] = fresh;
  }
  bool same = true;
  for (const auto& [name, fresh] : renamed) same = same && name == fresh;
  if (same) return module;
  for (auto& [name, func] : functions) {
    func = transform(
        func,
        [&](const GlobalVar& v) -> NodeRef {
          auto at = renamed.find(v.name);
          return at == renamed.end() || at->second == v.name ? NodeRef(&v)
                                                             : NodeRef(with(v, &GlobalVar::name, at->second));
        },
        [&](const Call& c) -> NodeRef {
          auto at = c.op.starts_with("global:") ? renamed.find(c.op.substr(7)) : renamed.end();
          return at == renamed.end() || "global:" + at->second == c.op
                     ? NodeRef(&c)
                     : NodeRef(with(c, &Call::op, "global:" + at->second));
        });
  }
  return with(module, &Module::functions, std::move(functions));
}

}  // namespace sator::passes
