// Passes by name: every row of the driver's table, with its options by position and by name.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "base/error.h"
#include "bind/gil.h"
#include "bind/legalize.h"
#include "bind/node.h"
#include "bind/parts.h"
#include "driver/pipeline.h"
#include "passes/legalize_ops.h"
#include "passes/option.h"
#include "passes/run.h"
#include "passes/to_vm.h"
#include "relax/ops/table.h"
#include "rules/gpu/gpu.h"
#include "target/kinds.h"

namespace sator::bind {

namespace {

/// The options of one call under the pass's name. Errors: more values than parameters; a name that is no parameter.
void add_arguments(const passes::Pass& pass, nb::list positional, nb::dict keywords, Attrs& config) {
  std::vector<std::string> names = pass.parameters;
  auto needs = [&] {
    return names.empty() ? text(pass.name, "(): it has no options") : text(pass.name, "(", join(names, ", "), ")");
  };
  if (positional.size() > names.size())
    fail({.what = text(pass.name, ": ", positional.size(), " arguments for ", names.size(), " options"),
          .needs = needs(),
          .hint = "leave the last ones out"});
  size_t next = 0;
  for (nb::handle value : positional) {
    const std::string key = text(pass.name, ".", names[next++]);
    if (!value.is_none()) config[key] = attribute_of(value);
  }
  for (auto [key, value] : keywords) {
    const auto name = nb::cast<std::string>(key);
    if (std::ranges::find(names, name) == names.end())
      fail({.what = text(pass.name, ": no option is called ", name),
            .needs = needs(),
            .hint = names.empty() ? "leave it out" : text("the nearest is ", join(nearest_names(name, names), ", "))});
    if (!value.is_none()) config[text(pass.name, ".", name)] = attribute_of(value);
  }
}

}  // namespace

void add_passes(nb::module_& m) {
  m.def(
      "passes",
      [] {
        nb::list out;
        for (const passes::Pass& p : driver::all_passes())
          out.append(nb::make_tuple(p.name, p.does, nb::cast(p.parameters)));
        return out;
      },
      "Name, what it does, options: one tuple per pass.");
  m.def(
      "run_pass",
      [](const std::string& name,
         const Handle& module,
         nb::list positional,
         nb::dict keywords,
         nb::dict config,
         nb::object target,
         nb::object explain,
         const std::map<std::string, int64_t>& bounds) {
        const passes::Pass& pass = driver::step_named(name);
        const Module* given = module.node.as<Module>();
        if (!given) throw nb::type_error(("pass " + name + " runs on an IRModule").c_str());
        passes::PassContext ctx{.bounds = bounds};
        for (auto [key, value] : config) ctx.config[nb::cast<std::string>(key)] = attribute_of(value);
        add_arguments(pass, positional, keywords, ctx.config);
        if (!target.is_none()) ctx.target = Target::parse(nb::cast<std::string>(nb::str(target)));
        if (!explain.is_none())
          ctx.explain = [&](const std::string& which, const std::string& message) {
            WithGil gil;
            explain(which, message);
          };
        ModuleRef out;
        {
          // A pass is short: alone, it keeps the lock, and objects their plain counts.
          std::optional<WithoutGil> released;
          if (has_other_threads()) released.emplace();
          out = passes::run_pass(pass, ModuleRef(given), ctx);
        }
        return to_python(NodeRef(out));
      },
      nb::arg("name"),
      nb::arg("module"),
      nb::arg("positional"),
      nb::arg("keywords"),
      nb::arg("config"),
      nb::arg("target").none(),
      nb::arg("explain").none() = nb::none(),
      nb::arg("bounds") = std::map<std::string, int64_t>());
  m.def(
      "legalize_ops",
      [](const Handle& module, nb::dict functions, nb::object missing, nb::dict config, nb::object explain) {
        const Module* given = module.node.as<Module>();
        if (!given) throw nb::type_error("LegalizeOps runs on an IRModule");
        passes::PassContext ctx;
        for (auto [key, value] : config) ctx.config[nb::cast<std::string>(key)] = attribute_of(value);
        if (!explain.is_none())
          ctx.explain = [&](const std::string& which, const std::string& message) { explain(which, message); };
        passes::Legalizations own;
        for (auto [op, function] : functions)
          own.by_op[nb::cast<std::string>(op)] = legalization_of(nb::borrow(function), true);
        if (!missing.is_none()) own.missing = [&](const std::string& op) { missing(op); };
        passes::Pass pass = driver::step_named("LegalizeOps");
        pass.run = [&](const ModuleRef& m, const passes::PassContext& c) { return passes::legalize_ops(m, c, own); };
        return to_python(NodeRef(passes::run_pass(pass, ModuleRef(given), ctx)));
      },
      nb::arg("module"),
      nb::arg("functions"),
      nb::arg("missing").none(),
      nb::arg("config"),
      nb::arg("explain").none(),
      "LegalizeOps with functions (builder, call) -> expression in front of those of the ops' rows, by the rows' "
      "names; "
      "missing(op) is told of each op that nothing replaces.");
  m.def(
      "pipeline",
      [](const std::string& target) {
        nb::list out;
        for (const driver::Phase& phase : driver::backend_of(Target::parse(target)).phases) {
          nb::list steps;
          for (const driver::Step& s : phase.steps) steps.append(nb::make_tuple(s.name, s.skipped));
          out.append(nb::make_tuple(phase.number, phase.does, steps));
        }
        return out;
      },
      "The phases of a target: number, what it does, steps: name, and why it is skipped, or nothing.");
  m.def("option_names", passes::all_option_names, "Every option that some pass reads.");
  m.def(
      "gpu_rules",
      [] {
        nb::list out;
        for (const rules::GpuRule& r : rules::gpu_rules())
          out.append(nb::make_tuple(std::string(r.name), std::string(r.does), r.by_default));
        return out;
      },
      "Name, what it does, whether it is tried by default: one tuple per rule for GPUs.");
  m.def(
      "schedule_for_gpu",
      [](const Handle& module, const std::string& target, const std::vector<std::string>& names, int64_t bucket) {
        const Module* given = module.node.as<Module>();
        if (!given) throw nb::type_error("rules schedule an IRModule");
        return to_python(NodeRef(rules::schedule_for_gpu(
            ModuleRef(given), Target::parse(target).config(), rules::gpu_rules_named(names), bucket)));
      },
      "The module with its tensor programs scheduled by the first of these rules that takes each.");
  m.def(
      "target_kinds",
      [] {
        nb::list out;
        for (const TargetKind& kind : target_kinds())
          out.append(nb::make_tuple(std::string(kind.name), kind.device_number));
        return out;
      },
      "Name, DLPack's number of the device: one tuple per kind of targets.");
  m.def(
      "target_node",
      [](const std::string& target) { return to_python(NodeRef(Target::parse(target).config())); },
      "A target as functions carry it.");
  m.def(
      "target_config",
      [](const std::string& target) {
        const Target parsed = Target::parse(target);
        nb::list keys;
        for (const std::string& key : parsed.keys()) keys.append(key);
        nb::object config = parsed.config() ? from_attribute(parsed.config()) : nb::none();
        return nb::make_tuple(std::string(parsed.kind().name), keys, config);
      },
      "Kind, keys and attributes of a target.");
  m.def(
      "is_reshape",
      [](const Handle& f) {
        const auto* program = f.node.as<tir::PrimFunc>();
        if (!program) throw nb::type_error("is_reshape asks about a tir.PrimFunc");
        return passes::is_reshape(*program);
      },
      "Whether a tensor program copies all elements in their order.");
  m.def(
      "verify",
      [](const Handle& module) {
        nb::list out;
        if (const Module* given = module.node.as<Module>())
          for (const Reason& reason : passes::verify(*given)) out.append(reason.render());
        return out;
      },
      "Every mistake of a module, as a text each.");
  m.def(
      "ops",
      [] {
        nb::list out;
        for (const relax::OpDef& op : relax::op_table()) out.append(nb::make_tuple(op.name, relax::signature(op)));
        return out;
      },
      "Name and signature of each op of graphs.");
  m.def(
      "op_defaults",
      [](const std::string& op) {
        nb::dict out;
        for (const relax::AttrDef& a : relax::op_named(op).attrs)
          if (!a.required) out[a.name.c_str()] = a.standard ? from_attribute(a.standard) : nb::none();
        return out;
      },
      "What an op takes where an attribute is left out.");
}

}  // namespace sator::bind
