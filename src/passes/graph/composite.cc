// Groups that a backend takes whole, as functions with the attribute Composite inside of functions with the attribute Codegen.
#include <algorithm>
#include <set>

#include "passes/byoc.h"
#include "passes/dead_code_elimination.h"
#include "passes/graph/graph.h"
#include "relax/outline.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The composite function that a binding calls, where no backend's function is around it yet; null for other bindings.
FuncRef composite_of(const ModuleRef& module, const RExpr& value) {
  const RCall* call = value.as<RCall>();
  const GlobalVar* callee = call ? call->op.as<GlobalVar>() : nullptr;
  auto at = callee ? module->functions.find(callee->name) : module->functions.end();
  FuncRef f = at == module->functions.end() ? nullptr : sator::cast<Function>(at->second);
  return f && has_attr(f->attrs, "Composite") && !has_attr(f->attrs, "Codegen") ? f : nullptr;
}

std::string backend_of(const Function& composite) {
  const std::string name = *string_attr(composite.attrs, "Composite");
  return name.substr(0, name.find('.'));
}

/// The function with each composite that it calls as a local function, defined before its call.
FuncRef with_local_composites(const ModuleRef& module, const FuncRef& f) {
  const SeqExpr* seq = f->body.as<SeqExpr>();
  std::vector<Binding> bindings;
  NodeMap plain;
  std::map<FuncRef, RVarRef> locals;  ///< one for each composite that is called
  for (const BindingBlockRef& block : seq->blocks) {
    for (const Binding& b : block->bindings) {
      RVarRef var = bound_var(b);
      RExpr value = bound_value(b);
      if (var->is_dataflow) plain[var] = sator::with(var, &RVar::is_dataflow, false);
      FuncRef composite = composite_of(module, value);
      if (!composite) {
        bindings.push_back(b);
        continue;
      }
      RVarRef& local = locals[composite];
      if (!local) {
        Attrs attrs = {{"Composite", composite->attrs.at("Composite")}};
        FuncRef inner = fresh_copy(sator::with(composite, &Function::attrs, std::move(attrs)));
        local = make_rvar(var->name, info_of(*inner));
        bindings.push_back(bind_value(local, make<LocalFunction>(inner, info_of(*inner))));
      }
      const RCall* call = value.as<RCall>();
      bindings.push_back(bind_value(var, with_sinfo(relax::call(local, call->args), value->sinfo)));
    }
  }
  // Several results leave as the tuple itself.
  RExpr result = seq->body;
  if (!bindings.empty() && bound_var(bindings.back()) == result && bound_value(bindings.back()).as<relax::Tuple>()) {
    result = bound_value(bindings.back());
    bindings.pop_back();
  }
  RExpr body =
      make<SeqExpr>(std::vector<BindingBlockRef>{make<BindingBlock>(std::move(bindings), false)}, result, seq->sinfo);
  return sator::with(f, &Function::body, RExpr(replaced(body, plain)));
}

FuncRef published(const FuncRef& f, const std::string& name, const std::string& backend) {
  return sator::with(f, &Function::attrs, Attrs{{"Codegen", string_imm(backend)}, {"global_symbol", string_imm(name)}});
}

ModuleRef without_composites(const ModuleRef& module) {
  std::set<std::string> named;
  for (const auto& [name, func] : module->functions) walk(func, [&](const GlobalVar& v) { named.insert(v.name); });
  std::map<std::string, Func> functions;
  for (const auto& [name, func] : module->functions)
    if (named.contains(name) || !has_attr(func->attrs, "Composite") || has_attr(func->attrs, "Codegen"))
      functions.emplace(name, func);
  return sator::with(module, &Module::functions, std::move(functions));
}

/// The groups of a block: bindings of one backend that no value leaves and comes back to.
class Regions {
 public:
  Regions(const ModuleRef& module, const BindingBlock& block) : module_(module) {
    for (const Binding& b : block.bindings) place(b);
  }

  std::vector<Group> groups(const BindingBlock& block) const {
    std::map<size_t, Group> out;
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      const size_t g = root(of_binding_[i]);
      if (backend_[g].empty()) continue;
      Group& group = out[g];
      group.bindings.push_back(i);
      if (group.name.empty()) group.name = "fused";
      const RCall* call = bound_value(block.bindings[i]).as<RCall>();
      const GlobalVar* callee = call ? call->op.as<GlobalVar>() : nullptr;
      if (!callee) continue;
      const std::string& name = callee->name;
      group.name += "_" + (name.starts_with("fused_") ? name.substr(6) : name);
    }
    std::vector<Group> list;
    for (auto& [g, group] : out) {
      // As TVM names it: the group gets a name of its own, which the backend's ends.
      group.name = fresh_name(module_, group.name) + "_" + backend_[g];
      group.attrs = {{"Codegen", string_imm(backend_[g])}};
      group.moves_readers = true;
      list.push_back(std::move(group));
    }
    std::ranges::sort(list, {}, [](const Group& g) { return g.bindings.front(); });
    return list;
  }

 private:
  size_t root(size_t g) const {
    while (merged_into_[g] != g) g = merged_into_[g];
    return g;
  }
  size_t fresh(std::string backend) {
    backend_.push_back(std::move(backend));
    merged_into_.push_back(backend_.size() - 1);
    depends_.emplace_back();
    return backend_.size() - 1;
  }
  std::set<size_t> roots(const std::set<size_t>& groups) const {
    std::set<size_t> out;
    for (size_t g : groups) out.insert(root(g));
    return out;
  }

  void place(const Binding& b) {
    RExpr value = bound_value(b);
    std::set<size_t> sources;
    for (const RVarRef& v : rvars_in(value))
      if (auto at = of_var_.find(v); at != of_var_.end()) sources.insert(root(at->second));
    FuncRef composite = composite_of(module_, value);
    size_t mine;
    if (value.as<RVar>() && sources.size() == 1) {
      mine = *sources.begin();  // another name
    } else if (composite) {
      const std::string backend = backend_of(*composite);
      std::set<size_t> behind;  // what the sources wait for
      for (size_t s : sources) behind.merge(roots(depends_[s]));
      mine = backend_.size();
      for (size_t s : sources) {
        if (backend_[s] != backend || behind.contains(s)) continue;
        if (mine == backend_.size()) {
          mine = s;
        } else {
          merged_into_[s] = mine;
          depends_[mine].merge(depends_[s]);
        }
      }
      if (mine == backend_.size()) mine = fresh(backend);
    } else {
      mine = fresh("");
    }
    for (size_t s : sources) {
      if (root(s) == mine) continue;
      depends_[mine].insert(s);
      for (size_t d : depends_[s]) depends_[mine].insert(d);
    }
    depends_[mine] = roots(depends_[mine]);
    depends_[mine].erase(mine);
    of_binding_.push_back(mine);
    of_var_[bound_var(b)] = mine;
  }

  const ModuleRef& module_;
  std::vector<std::string> backend_;  ///< of each group; empty for what no backend takes
  std::vector<size_t> merged_into_, of_binding_;
  std::vector<std::set<size_t>> depends_;
  std::map<RVarRef, size_t> of_var_;
};

}  // namespace

bool has_plain_composites(const ModuleRef& module) {
  return std::ranges::any_of(module->functions, [](const auto& entry) {
    const auto& [name, func] = entry;
    return func.template as<Function>() && has_attr(func->attrs, "Composite") && !has_attr(func->attrs, "Codegen");
  });
}

ModuleRef merge_plain_composites(const ModuleRef& module) {
  Outliner outliner(module);
  ModuleRef out = rewrite_dataflow_blocks(
      module,
      [&](const BindingBlockRef& block, const std::vector<RVarRef>& live_out) {
        return outliner.outline(block, Regions(module, *block).groups(*block), live_out);
      },
      &outliner);
  const ModuleRef grouped = out;
  for (const auto& [name, func] : grouped->functions) {
    FuncRef f = sator::cast<Function>(func);
    if (!f || module->functions.contains(name) || !has_attr(f->attrs, "Codegen")) continue;
    out =
        with_function(out, name, published(with_local_composites(module, f), name, *string_attr(f->attrs, "Codegen")));
  }
  return without_composites(out);
}

ModuleRef annotate_codegen(const ModuleRef& module) {
  std::map<std::string, std::string> renamed;
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = sator::cast<Function>(func);
    if (!f || !has_attr(f->attrs, "Composite") || has_attr(f->attrs, "Codegen")) continue;
    const std::string backend = backend_of(*f), outer = text(name, "_", backend);
    std::vector<RVarRef> params;
    for (const RVarRef& p : f->params) params.push_back(make_rvar(p->name, p->sinfo));
    RExpr callee = global_var(name, info_of(*f));
    RVarRef result = make_rvar("gv", f->ret);
    Binding b = bind_value(result, with_sinfo(relax::call(callee, {params.begin(), params.end()}), f->ret));
    RExpr body = make<SeqExpr>(
        std::vector<BindingBlockRef>{make<BindingBlock>(std::vector<Binding>{b}, false)}, RExpr(result), f->ret);
    FuncRef whole = with_local_composites(module, make<Function>(params, body, f->ret, true, Attrs()));
    out = with_function(std::move(out), outer, published(whole, outer, backend));
    renamed[name] = outer;
  }
  if (renamed.empty()) return module;
  const ModuleRef wrapped = out;
  for (const auto& [name, func] : wrapped->functions) {
    FuncRef f = sator::cast<Function>(func);
    if (!f || renamed.contains(name)) continue;
    FuncRef g = transform(f, [&](const GlobalVar& v) -> NodeRef {
      auto at = renamed.find(v.name);
      return at == renamed.end() ? NodeRef(&v) : NodeRef(sator::with(v, &GlobalVar::name, at->second));
    });
    if (g != f) out = with_function(std::move(out), name, g);
  }
  return without_composites(out);
}

}  // namespace sator::passes
