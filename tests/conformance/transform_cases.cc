// transform, transform_error: passes of the table, by the names that TVM gives them.
#include <algorithm>
#include <regex>

#include "base/text.h"
#include "cases.h"
#include "ir/script/parser.h"
#include "passes/library_form.h"
#include "passes/pass.h"
#include "passes/run.h"
#include "relax/nodes.h"
#include "rules/gpu/gpu.h"
#include "target/config.h"
#include "tir/analysis.h"
#include "tir/copy.h"
#include "tir/specialize.h"
#include "tir/verify.h"

namespace sator::conformance {

namespace {

using script::Expression;
using script::ExpressionKind;

/// "tir.transform.Simplify" of an attribute chain; "" of anything else.
std::string dotted(const Expression& e) {
  if (e.is(ExpressionKind::name)) return e.text;
  if (!e.is(ExpressionKind::attribute)) return "";
  std::string owner = dotted(e.items[0]);
  return owner.empty() ? "" : owner + "." + e.text;
}

/// One pass with its options, as `tir.transform.NarrowDataType(32)` or the contexts around it give them.
struct Step {
  const passes::Pass* pass;
  Attrs config;
};

/// Evaluates what a case says of its program: passes applied to passes applied to `$before`.
class Transformer {
 public:
  Transformer(ModuleRef before, ModuleRef after, const Json& request)
      : before_(std::move(before)), after_(std::move(after)), request_(request) {
    for (const Json& line : request.value("defs", Json::array())) define(line.get<std::string>());
    if (!request.contains("ctx")) return;
    for (const Json& line : request["ctx"]) context(parsed(line.get<std::string>()));
  }

  ModuleRef run(const std::string& text) {
    Expression e = parsed(text);
    return module(e, true);
  }
  ModuleRef module_of(const Expression& e) { return module(e, true); }
  /// Whether the outermost pass has begun.
  bool began_last = false;
  bool checks_needs = false;  ///< modules that are not as a pass needs them are refused
  /// Why default schedules were not taken.
  std::string notes;

 private:
  static Expression parsed(std::string written) {
    for (const char* name : {"before", "after", "s0"}) {
      for (size_t at; (at = written.find(text("$", name))) != written.npos;) written.replace(at, 1, "case_");
    }
    if (written.find('<') != written.npos) throw Unsupported{"scripts that the case captured"};
    try {
      script::Program program = script::parse("value = " + written + "\n");
      return program.body.at(0).value;
    } catch (const Error&) {
      throw Unsupported{"expressions of Python in place of passes"};
    }
  }

  /// The constants that options are made of.
  static int64_t number(const Expression& e) {
    if (e.is(ExpressionKind::integer) || e.is(ExpressionKind::boolean)) return e.integer;
    if (e.is(ExpressionKind::attribute) && e.text == "value") return number(e.items[0]);
    if (e.is(ExpressionKind::unary) && e.text == "~") return ~number(e.items[0]);
    if (e.is(ExpressionKind::binary) && e.text == "&") return number(e.items[0]) & number(e.items[1]);
    if (e.is(ExpressionKind::binary) && e.text == "|") return number(e.items[0]) | number(e.items[1]);
    // The bits of the two enumerations of HoistExpression.
    static const std::map<std::string, int64_t> kNames = {{"HoistedConditionals.Never", 0},
                                                          {"HoistedConditionals.IfElseStmt", 1},
                                                          {"HoistedConditionals.IfElseExpr", 2},
                                                          {"HoistedConditionals.BooleanExpression", 4},
                                                          {"HoistedConditionals.UsingBlockVar", 8},
                                                          {"HoistedConditionals.All", 15},
                                                          {"HoistedLetBindings.Never", 0},
                                                          {"HoistedLetBindings.RequiredByConditional", 1},
                                                          {"HoistedLetBindings.LetStmt", 2},
                                                          {"HoistedLetBindings.LetExpr", 4},
                                                          {"HoistedLetBindings.All", 7}};
    std::string name = dotted(e);
    if (name.starts_with("tir.transform.")) name = name.substr(14);
    if (auto at = kNames.find(name); at != kNames.end()) return at->second;
    throw Unsupported{"a pass's option " + e.text};
  }

  /// {"tir.Simplify": {"a": True}} gives tir.Simplify.a.
  void options(const std::string& prefix, const Expression& value) {
    if (!value.is(ExpressionKind::dict)) {
      config_[prefix] = int_imm(number(value), i64);
      return;
    }
    for (size_t i = 0; i + 1 < value.items.size(); i += 2)
      options((prefix.empty() ? "" : prefix + ".") + value.items[i].text, value.items[i + 1]);
  }

  void context(const Expression& e) {
    std::string name = e.is(ExpressionKind::call) ? dotted(e.items[0]) : "";
    if (name == "tvm.target.Target") {
      if (e.items.size() > 1 && e.items[1].is(ExpressionKind::string)) target_ = e.items[1].text;
      return;
    }
    if (name != "tvm.transform.PassContext" && name != "tvm.ir.transform.PassContext")
      throw Unsupported{"contexts around a pass: " + name};
    for (const script::Keyword& k : e.keywords) {
      if (k.name == "config") options("", k.value);
    }
  }

  /// `relax.transform.LegalizeOps()`, or a sequence of passes.
  std::vector<Step> steps(const Expression& e) {
    std::string name = e.is(ExpressionKind::call) ? dotted(e.items[0]) : "";
    if (name.ends_with("transform.Sequential")) {
      std::vector<Step> out;
      if (e.items.size() != 2 || !e.items[1].is(ExpressionKind::list)) throw Unsupported{"a sequence of passes"};
      for (const Expression& item : e.items[1].items) {
        for (Step& s : steps(item)) out.push_back(std::move(s));
      }
      return out;
    }
    if (name.find("transform.") == name.npos && !name.starts_with("relax.backend."))
      throw Unsupported{"expressions in place of passes"};
    name = name.substr(name.rfind('.') + 1);
    // A visitor that keeps every node, with what a builder makes normal on the way.
    if (name == "ApplyEmptyCppMutator") name = "Normalize";
    auto at = std::ranges::find(passes::passes(), name, &passes::Pass::name);
    static const std::vector<passes::Pass> refused = passes::refused_passes();
    if (at == passes::passes().end() || std::ranges::find(refused, name, &passes::Pass::name) != refused.end())
      throw Unsupported{"pass " + name};
    Step step{&*at, config_};
    if (name == "LegalizeOps") {
      // What the pass replaces is asked for in the form of TVM's operator library.
      if (e.items.size() > 1) throw Unsupported{"pass LegalizeOps with rules of Python"};
      step.config["LegalizeOps.form"] = string_imm("topi");
    }
    if (name == "StaticPlanBlockMemory") step.config["StaticPlanBlockMemory.same_dtype"] = int_imm(1);
    if (name == "VMShapeLower") step.config["VMShapeLower.trust_weights"] = int_imm(1);
    // TVM has no vector conditions.
    if (name == "FlattenBuffer") step.config["FlattenBuffer.keep_axis_separators"] = int_imm(1);
    if (name == "VectorizeLoop") step.config["VectorizeLoop.serial_conditions"] = int_imm(1);
    for (size_t i = 1; i < e.items.size(); ++i) {
      if (i > at->parameters.size()) throw Unsupported{"pass " + name + " with options"};
      argument(step, at->parameters[i - 1], e.items[i]);
    }
    for (const script::Keyword& k : e.keywords) {
      if (std::ranges::find(at->parameters, k.name) == at->parameters.end())
        throw Unsupported{"pass " + name + " with options"};
      argument(step, k.name, k.value);
    }
    return {step};
  }

  /// tvm.target.Target("cuda", host="llvm")
  static TargetConfigRef target(const Expression& e) {
    if (e.is(ExpressionKind::string)) return target_from_text(e.text);
    if (!e.is(ExpressionKind::call) || dotted(e.items[0]) != "tvm.target.Target" || e.items.size() < 2)
      throw Unsupported{"a target of this form"};
    TargetConfigRef out = target(e.items[1]);
    for (const script::Keyword& k : e.keywords) {
      if (k.name == "host") out = with_host(out, target(k.value));
    }
    return out;
  }

  /// A value of an option; a program of the case stands for its one function.
  NodeRef option(const Expression& value) {
    if (!value.is(ExpressionKind::name) || !value.text.starts_with("case_")) return PythonValues(request_).node(value);
    const ModuleRef given = module(value);
    if (given->functions.size() != 1) throw Unsupported{"a module as a program"};
    return given->functions.begin()->second;
  }

  void argument(Step& step, const std::string& parameter, const Expression& value) {
    const std::string key = text(step.pass->name, ".", parameter);
    if (value.is(ExpressionKind::none)) {
      if (parameter == "fset_item")
        step.config[key] = string_imm("");
      else
        step.config.erase(key);
    } else if (value.is(ExpressionKind::call) && dotted(value.items[0]) == "tvm.target.Target") {
      step.config[key] = target(value);
    } else if (value.is(ExpressionKind::dict)) {
      std::vector<NodeRef> pairs;
      for (size_t i = 0; i + 1 < value.items.size(); i += 2)
        pairs.push_back(make<Array>(std::vector<NodeRef>{option(value.items[i]), option(value.items[i + 1])}));
      step.config[key] = make<Array>(std::move(pairs));
    } else if (value.is(ExpressionKind::list)) {
      step.config[key] = PythonValues(request_).node(value);
    } else {
      step.config[key] =
          value.is(ExpressionKind::string) ? NodeRef(string_imm(value.text)) : NodeRef(int_imm(number(value), i64));
    }
  }

  static ModuleRef with_attribute(const ModuleRef& module, const std::string& key, const Expression& value) {
    ModuleRef out = module;
    for (const auto& [name, func] : module->functions) {
      const auto* f = func.as<tir::PrimFunc>();
      if (!f) throw Unsupported{"attributes of graphs"};
      Attrs attrs = f->attrs;
      attrs[key] = int_imm(value.integer, value.is(ExpressionKind::boolean) ? boolean : i32);
      out = with_function(out, name, with(*f, &tir::PrimFunc::attrs, std::move(attrs)));
    }
    return out;
  }

  /// $before.params[2] as an index; nothing for anything else.
  static std::optional<size_t> parameter(const Expression& e) {
    if (!e.is(ExpressionKind::subscript) || !e.items[0].is(ExpressionKind::attribute) || e.items[0].text != "params")
      return {};
    return static_cast<size_t>(e.items[1].integer);
  }

  /// {$before.params[0]: x, ...}, where x is a number, another parameter, or a buffer of the definitions.
  ModuleRef specialized(const ModuleRef& module, const Expression& given) {
    const std::string name = module->functions.begin()->first;
    tir::PrimFuncRef f = cast<tir::PrimFunc>(module->functions.begin()->second);
    if (!f || module->functions.size() != 1 || !given.is(ExpressionKind::dict))
      throw Unsupported{"specialize of this form"};
    VarMap values;
    std::unordered_map<VarRef, BufferRef> buffers;
    for (size_t i = 0; i + 1 < given.items.size(); i += 2) {
      auto which = parameter(given.items[i]);
      if (!which) throw Unsupported{"specialize of this form"};
      const VarRef& param = f->params.at(*which);
      const Expression& value = given.items[i + 1];
      if (value.is(ExpressionKind::integer)) {
        values[param] = int_imm(value.integer);
      } else if (auto other = parameter(value)) {
        values[param] = f->params.at(*other);
      } else if (value.is(ExpressionKind::call) && value.items.size() == 2 &&
                 value.items[1].is(ExpressionKind::integer)) {
        values[param] = int_imm(value.items[1].integer);  // T.int32(16)
      } else if (auto at = buffers_.find(value.text); value.is(ExpressionKind::name) && at != buffers_.end()) {
        buffers[param] = at->second;
      } else {
        throw Unsupported{"specialize with such a value"};
      }
    }
    tir::PrimFuncRef out = tir::specialize(f, values, buffers);
    return out == f ? module : with_function(module, name, out);
  }

  /// tir.PrimFunc(params=[], body=tir.stmt_functor.substitute(F.body, {F.params[0]: 16}))
  ModuleRef with_values_put_in(const Expression& e) {
    const Expression* body = nullptr;
    for (const script::Keyword& k : e.keywords) {
      if (k.name == "body") body = &k.value;
      if (k.name == "params" && !k.value.items.empty()) throw Unsupported{"a function made of parts"};
    }
    if (!body || !body->is(ExpressionKind::call) || dotted(body->items[0]) != "tir.stmt_functor.substitute" ||
        !body->items[1].is(ExpressionKind::attribute) || !body->items[2].is(ExpressionKind::dict))
      throw Unsupported{"a function made of parts"};
    ModuleRef out = module(body->items[1].items[0]);
    tir::PrimFuncRef f = cast<tir::PrimFunc>(out->functions.begin()->second);
    const std::vector<Expression>& given = body->items[2].items;
    VarMap values;
    for (size_t i = 0; i + 1 < given.size(); i += 2) {
      auto which = parameter(given[i]);
      if (!which || !given[i + 1].is(ExpressionKind::integer)) throw Unsupported{"a substitution of this form"};
      const VarRef& param = f->params.at(*which);
      values[param] = int_imm(given[i + 1].integer, param->dtype);
    }
    f = with(replaced(f, substitutions(values)), &tir::PrimFunc::params, std::vector<VarRef>());
    return with_function(out, out->functions.begin()->first, f);
  }

  /// x = tir.decl_buffer((128, 64), dtype='float32', strides=[8, 1], elem_offset=4)
  void define(const std::string& line) {
    if (line.find("decl_buffer") == line.npos || line.find('$') != line.npos) return;
    script::Program program = script::parse(line + "\n");
    const script::Statement& s = program.body.at(0);
    if (s.targets.empty() || !s.value.is(ExpressionKind::call) || !dotted(s.value.items[0]).ends_with("decl_buffer"))
      return;
    auto numbers = [](const Expression& e) {
      std::vector<Expr> out;
      for (const Expression& item : e.items) {
        if (!item.is(ExpressionKind::integer)) throw Unsupported{"buffers of symbolic sizes"};
        out.push_back(int_imm(item.integer));
      }
      return out;
    };
    Buffer b = *make_buffer(s.targets[0].text, numbers(s.value.items.at(1)), f32);
    for (const script::Keyword& k : s.value.keywords) {
      if (k.name == "dtype") b.dtype = DType::parse(k.value.text).value_or(f32);
      if (k.name == "strides") b.strides = numbers(k.value);
      if (k.name == "elem_offset") b.elem_offset = int_imm(k.value.integer);
    }
    buffers_[s.targets[0].text] = BufferRef(new Buffer(std::move(b)));
  }

  ModuleRef module(const Expression& e, bool outermost = false) {
    if (e.is(ExpressionKind::name) && e.text == "case_before") return before_;
    if (e.is(ExpressionKind::name) && e.text == "case_after" && after_) return after_;
    if (e.is(ExpressionKind::name) && e.text == "case_s0" && request_.contains("scripts"))
      return parse_program(request_["scripts"].at("$s0"));
    if (e.is(ExpressionKind::attribute) && e.text == "body") return module(e.items[0], outermost);
    if (e.is(ExpressionKind::subscript) && e.items[1].is(ExpressionKind::string)) {
      ModuleRef all = module(e.items[0], outermost);
      auto at = all->functions.find(e.items[1].text);
      if (at == all->functions.end() && all->functions.size() == 1) at = all->functions.begin();
      if (at == all->functions.end()) throw Failed{"no function " + e.items[1].text};
      std::map<std::string, Func> one = {*at};
      return with(all, &Module::functions, decltype(all->functions)(one.begin(), one.end()));
    }
    if (!e.is(ExpressionKind::call)) throw Unsupported{"expressions in place of passes"};
    began_last = false;
    auto operand = [&](const Expression& inner) {
      ModuleRef out = module(inner);
      began_last = outermost;
      return out;
    };
    if (auto out = graph_method(request_, e, operand)) return *out;
    const Expression& callee = e.items[0];
    std::string name = dotted(callee);
    // Names that functions go by are not compared.
    if (callee.is(ExpressionKind::attribute) && (callee.text == "with_attr" || callee.text == "without_attr") &&
        e.items[1].text == "global_symbol")
      return module(callee.items[0], outermost);
    if (callee.is(ExpressionKind::attribute) && callee.text == "with_attr" && e.items.size() == 2 &&
        e.items[1].is(ExpressionKind::dict) && e.items[1].items.size() == 2 &&
        e.items[1].items[0].text == "global_symbol")
      return module(callee.items[0], outermost);
    if (callee.is(ExpressionKind::attribute) && callee.text == "with_attr" && e.items.size() == 3 &&
        (e.items[2].is(ExpressionKind::integer) || e.items[2].is(ExpressionKind::boolean)))
      return with_attribute(module(callee.items[0], outermost), e.items[1].text, e.items[2]);
    if (callee.is(ExpressionKind::attribute) && callee.text == "specialize" && e.items.size() == 2)
      return specialized(module(callee.items[0], outermost), e.items[1]);
    if (e.items.size() == 2 && (name == "tir.stmt_functor.renew_defs" || name == "tir.analysis.verify_well_formed" ||
                                name == "tir.analysis.assert_pure_function")) {
      ModuleRef out = module(e.items[1]);
      began_last = outermost;
      for (const auto& [symbol, func] : ModuleRef(out)->functions) {
        tir::PrimFuncRef f = cast<tir::PrimFunc>(func);
        if (!f) throw Unsupported{name + " of a graph"};
        if (name == "tir.stmt_functor.renew_defs")
          out = with_function(out, symbol, tir::fresh_function(f));
        else if (name == "tir.analysis.verify_well_formed")
          tir::require_well_formed(*f);
        else if (auto reason = tir::not_pure(*f))
          fail(std::move(*reason));
      }
      return out;
    }
    if ((name == "tvm.IRModule.from_expr" || name == "tvm.ir.module.IRModule.from_expr") && e.items.size() == 2)
      return module(e.items[1], outermost);
    if ((name == "tvm.IRModule" || name == "tvm.ir.IRModule") && e.items.size() == 2 &&
        e.items[1].is(ExpressionKind::dict)) {
      const std::vector<Expression>& entries = e.items[1].items;
      if (entries.size() == 2) return renamed(module(entries[1], outermost), entries[0].text);
      std::map<std::string, Func> functions;
      for (size_t i = 0; i + 1 < entries.size(); i += 2) {
        ModuleRef one = module(entries[i + 1], outermost);
        if (one->functions.size() != 1) throw Unsupported{"a module of modules"};
        functions.emplace(entries[i].text, one->functions.begin()->second);
      }
      return make<Module>(std::move(functions), Attrs(), Attrs());
    }
    // A program is written and read again: the text cases try that.
    if ((name == "tvm.ir.load_json" || name == "tvm.ir.save_json") && e.items.size() == 2)
      return module(e.items[1], outermost);
    if (name == "tir.PrimFunc") return with_values_put_in(e);
    if (!callee.is(ExpressionKind::call) || e.items.size() != 2) throw Unsupported{"expressions in place of passes"};
    if (dotted(callee.items[0]).ends_with("ApplyPassToFunction")) return applied_to(callee, module(e.items[1]));
    if (dotted(callee.items[0]).ends_with("ApplyDefaultSchedule")) return scheduled(callee, module(e.items[1]));
    std::vector<Step> list = steps(callee);
    ModuleRef out = module(e.items[1]);
    const std::optional<Target> target = target_.empty() ? std::nullopt : std::optional(Target::parse(target_));
    for (const Step& step : list) {
      began_last = outermost && &step == &list.back();
      const passes::PassContext ctx{.target = target, .config = step.config};
      // What a pass needs is asked for where an error is what the case expects: elsewhere TVM's own tests leave it out.
      out = checks_needs ? passes::run_pass(*step.pass, out, ctx) : step.pass->run(out, ctx);
    }
    return out;
  }

  /// The module of one function under another name.
  static ModuleRef renamed(const ModuleRef& module, const std::string& name) {
    if (module->functions.size() != 1 || name.empty()) return module;
    const Func& f = module->functions.begin()->second;
    const auto* graph = f.as<relax::Function>();
    if (!graph || !has_attr(f->attrs, "global_symbol")) return module;
    Attrs attrs = f->attrs;
    attrs["global_symbol"] = string_imm(name);
    return with(module,
                &Module::functions,
                std::map<std::string, Func>{{name, with(*graph, &relax::Function::attrs, std::move(attrs))}});
  }

  /// tvm.ir.transform.ApplyPassToFunction(pass, "f|g")(module): functions of other names stay as they are.
  ModuleRef applied_to(const Expression& callee, const ModuleRef& before) {
    if (callee.items.size() < 3 || !callee.items[2].is(ExpressionKind::string))
      throw Unsupported{"ApplyPassToFunction of this form"};
    const std::regex names(callee.items[2].text);
    std::map<std::string, Func> chosen, functions = before->functions;
    for (const auto& [name, func] : before->functions)
      if (std::regex_match(name, names)) chosen.emplace(name, func);
    ModuleRef after = before;
    for (const Step& step : steps(callee.items[1])) after = step.pass->run(after, {.config = step.config});
    for (const auto& [name, func] : chosen) {
      auto at = after->functions.find(name);
      if (at == after->functions.end()) throw Unsupported{"ApplyPassToFunction of a pass that takes functions out"};
      functions[name] = at->second;
    }
    return with(before, &Module::functions, std::move(functions));
  }

  /// dl.ApplyDefaultSchedule(dl.gpu.GEMV(), dl.gpu.LowBatchGEMV(4)), on NVIDIA's targets.
  ModuleRef scheduled(const Expression& pass, const ModuleRef& before) {
    if (target_.empty() || !target::nvidia_gpu(target_from_text(target_)))
      throw Unsupported{"default schedules for " + (target_.empty() ? "no target" : target_)};
    std::vector<std::string> names;
    int64_t bucket = 4;
    for (size_t i = 1; i < pass.items.size(); ++i) {
      const Expression& rule = pass.items[i];
      const std::string name = rule.is(ExpressionKind::call) ? dotted(rule.items[0]) : "";
      if (name.find(".gpu.") == name.npos) throw Unsupported{"a rule of this form"};
      names.push_back(name.substr(name.rfind('.') + 1));
      // TVM's rule for products tries those for tensor cores first.
      if (names.back() == "Matmul") names.insert(names.end() - 1, {"MatmulInt8Tensorization", "MatmulTensorization"});
      if (rule.items.size() > 1) bucket = number(rule.items[1]);
    }
    auto log = [&](const rules::AppliedSchedule& applied) {
      for (const auto& d : applied.declined)
        notes += text("\nnot ", d.rule, ": ", d.why.what, "; it needs ", d.why.needs);
    };
    return rules::schedule_for_gpu(before, target_from_text(target_), rules::gpu_rules_named(names), bucket, log);
  }

  ModuleRef before_, after_;
  const Json& request_;
  Attrs config_;
  std::string target_;                        ///< of the surroundings
  std::map<std::string, BufferRef> buffers_;  ///< of the definitions
};

/// Without what StaticPlanBlockMemory notes of its plan, beyond TVM.
ModuleRef without_plan(const ModuleRef& module) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const auto* f = func.as<relax::Function>();
    if (!f) continue;
    Attrs attrs = f->attrs;
    std::erase_if(attrs, [](const auto& a) { return a.first.starts_with("memory."); });
    out = with_function(out, name, with(*f, &relax::Function::attrs, std::move(attrs)));
  }
  return out;
}

/// Flat programs in one form: where a buffer is declared says nothing, nor does the dtype of an allocation's constant size.
ModuleRef without_declarations(const ModuleRef& module) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const auto* f = func.as<tir::PrimFunc>();
    if (!f) continue;
    tir::Stmt body = transform(
        f->body,
        [](const tir::DeclBuffer& n) -> tir::Stmt { return n.body; },
        [](const tir::Allocate& n) -> tir::Stmt {
          std::vector<Expr> extents = n.extents;
          for (Expr& e : extents) {
            if (const IntImm* size = e.as<IntImm>(); size && size->value <= INT32_MAX) e = int_imm(size->value);
          }
          return with(n, &tir::Allocate::extents, std::move(extents));
        });
    out = with_function(out, name, with(*f, &tir::PrimFunc::body, std::move(body)));
  }
  return out;
}

void require_plain(const Json& request) {
  if (request.contains("opaque")) throw Unsupported{"values of Python that the case captured"};
  if (request.contains("before_deps") || request.contains("after_deps"))
    throw Unsupported{"scripts that the case captured"};
  if (!request.contains("expr") || !request.contains("before")) throw Unsupported{"a case without passes"};
}

bool names_dropped(const std::string& expr) {
  return expr.find("global_symbol") != expr.npos || expr.find("from_expr") != expr.npos ||
         expr.find("tvm.IRModule") != expr.npos || expr.find("']") != expr.npos;
}

}  // namespace

ModuleRef transformed(const Json& request, const ModuleRef& before, const Expression& e) {
  return Transformer(before, nullptr, request).module_of(e);
}

namespace {

/// The program of a text, where calls of `topi` are made into TVM's functions.
ModuleRef expected_program(const std::string& text) {
  ModuleRef out = parse_program(text);
  if (text.find("emit_te(topi.") == text.npos) return out;
  for (const auto& [name, func] : ModuleRef(out)->functions)
    if (const tir::PrimFuncRef f = cast<tir::PrimFunc>(func))
      out = with_function(std::move(out), name, passes::in_library_form(f));
  return out;
}

}  // namespace

void run_transform(const Json& request) {
  require_plain(request);
  // What the result is compared with must be readable before anything counts as a failure.
  bool unchanged = request.value("unchanged", false);
  if (!unchanged && !request.contains("after")) throw Unsupported{"a case without a result"};
  ModuleRef before = parse_program(request.at("before"));
  ModuleRef expected = unchanged ? before : expected_program(request.at("after"));
  std::string expr = request.at("expr");
  // Two parts of graphs.
  if (request.contains("after_expr") && expr.find(".bindings[") != expr.npos) {
    const NodeRef part = part_of_graph(request, before, expr);
    const NodeRef other = part_of_graph(request, before, request["after_expr"]);
    if (!part || !other) throw Unsupported{"parts of a graph of this form"};
    if (!equal(part, other)) throw Failed{"the parts differ"};
    return;
  }
  Transformer transformer(before, expected, request);
  ModuleRef got = without_plan(transformer.run(expr));
  if (request.contains("after_expr")) expected = transformer.run(request["after_expr"]);
  // f(module)['main'] against a module: its function of that name.
  if (got->functions.size() == 1 && expected->functions.size() > 1 && expr.find("']") != expr.npos) {
    auto at = expected->functions.find(got->functions.begin()->first);
    if (at != expected->functions.end())
      expected = with(expected, &Module::functions, std::map<std::string, Func>{*at});
  }
  // A function alone was given one name with the other before they were compared.
  if (expr.find("FlattenBuffer") != expr.npos) {
    got = without_declarations(got);
    expected = without_declarations(expected);
  }
  bool ignore = names_dropped(expr) ||
                request["before"].get_ref<const std::string&>().find("class ") == std::string::npos ||
                (request.contains("check") && request["check"].value("ignore_global_symbol", false));
  if (!same_program(expected, got, ignore))
    throw Failed{"the result differs\n" + difference(print_program(expected), print_program(got)) + transformer.notes};
}

void run_transform_error(const Json& request) {
  require_plain(request);
  Transformer transformer(parse_program(request.at("before")), nullptr, request);
  transformer.checks_needs = true;
  try {
    transformer.run(request.at("expr"));
  } catch (const Error& e) {
    if (transformer.began_last) return;
    throw Failed{text("refused too early\n", e.what())};
  }
  throw Failed{"accepted"};
}

}  // namespace sator::conformance
