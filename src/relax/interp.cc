#include "relax/interp.h"

#include <cstring>
#include <unordered_map>

#include "arith/eval.h"
#include "ir/visit.h"
#include "relax/interp_machine.h"
#include "relax/ops/table.h"
#include "relax/struct_info.h"

namespace sator::relax {

// ---- Values against struct info ----

int64_t Environment::size(const Expr& e) const {
  if (auto v = arith::evaluate(e, sizes)) return *v;
  fail({.what = text("the size ", e, " has no value here"),
        .needs = "sizes that an argument or R.match_cast binds",
        .hint = "let it stand alone in the struct info of a parameter"});
}

runtime::Dims Environment::dims(const std::vector<Expr>& extents) const {
  std::vector<int64_t> out;
  for (const Expr& e : extents) out.push_back(size(e));
  return runtime::Dims(std::span<const int64_t>(out));
}

namespace {

[[noreturn]] void mismatch(const runtime::Value& v, const StructInfo& info, const std::string& what) {
  fail({.what = text(what, " is ", v.describe(), ", its struct info is ", info),
        .needs = "a value that its struct info holds for",
        .hint = "check the shapes and dtypes"});
}

}  // namespace

bool Environment::fits(const Expr& extent, int64_t actual, bool binds) {
  if (const Var* v = extent.as<Var>(); v && binds) {
    auto [at, is_new] = sizes.emplace(ref(*v), actual);
    return is_new || at->second == actual;
  }
  auto expected = arith::evaluate(extent, sizes);
  return !expected || *expected == actual;
}

void Environment::check(const runtime::Value& v, const StructInfo& info, bool binds, const std::string& what) {
  auto need = [&](bool ok) {
    if (!ok) mismatch(v, info, what);
  };
  auto check_dims = [&](const std::vector<Expr>& extents, const runtime::Dims& dims) {
    need(extents.size() == dims.size());
    for (size_t i = 0; i < extents.size(); ++i) need(fits(extents[i], dims[i], binds));
  };
  match(
      info,
      [](const ObjectInfo&) {},
      [&](const PrimInfo& p) {
        need(p.dtype.is_float() ? v.as_float() || v.as_int() : v.as_int() != nullptr);
        if (p.value && v.as_int()) need(fits(p.value, *v.as_int(), binds));
      },
      [&](const ShapeInfo& s) {
        const runtime::Shape* shape = v.as<runtime::Shape>();
        need(shape != nullptr);
        need(s.ndim < 0 || static_cast<size_t>(s.ndim) == shape->dims.size());
        if (s.values) check_dims(*s.values, shape->dims);
      },
      [&](const TensorInfo& t) {
        const runtime::Tensor* tensor = v.as<runtime::Tensor>();
        need(tensor != nullptr);
        need(t.dtype.is_void() || t.dtype == tensor->dtype());
        need(t.ndim < 0 || t.ndim == tensor->rank());
        if (const RVar* shape = t.shape.as<RVar>()) {
          auto at = vars.find(shape);
          const runtime::Shape* dims = at == vars.end() ? nullptr : at->second.as<runtime::Shape>();
          if (dims) need(dims->dims == tensor->shape());
        } else if (auto extents = shape_of(t)) {
          check_dims(*extents, tensor->shape());
        }
      },
      [&](const TupleInfo& t) {
        const runtime::Tuple* tuple = v.as<runtime::Tuple>();
        // A call without a result gives nothing.
        if (!tuple && t.items.empty() && v.is_null()) return;
        need(tuple && tuple->fields.size() == t.items.size());
        for (size_t i = 0; i < t.items.size(); ++i)
          check(tuple->fields[i], t.items[i], binds, text("item ", i, " of ", what));
      },
      [&](const DTensorInfo&) {
        fail({.what = text(what, " lies on several devices"),
              .needs = "tensors of one device",
              .hint = "declare it as R.Tensor and leave out the ops of R.dist"});
      },
      [&](const FuncInfo&) {});
}

// ---- Functions ----

GraphInterpreter::GraphInterpreter(ModuleRef module, GraphOptions options)
    : machine_(std::make_unique<Machine>(std::move(module), std::move(options))) {}
GraphInterpreter::~GraphInterpreter() = default;

runtime::Value GraphInterpreter::call(const std::string& function, std::span<const runtime::Value> args) {
  const auto& functions = machine_->module->functions;
  auto at = functions.find(function);
  if (at == functions.end() || !at->second.as<Function>()) {
    std::vector<std::string> names;
    for (const auto& [name, f] : functions) {
      if (f.as<Function>()) names.push_back(name);
    }
    fail({.what = text("the module has no graph ", function),
          .needs = text("one of ", join(names, ", ")),
          .hint = "check the name"});
  }
  return machine_->function(*at->second.as<Function>(), function, {args.begin(), args.end()}, nullptr);
}

runtime::Value GraphInterpreter::Machine::function(const Function& f, const std::string& name,
                                                   std::vector<runtime::Value> args, const Environment* around) {
  if (args.size() != f.params.size())
    fail({.what = text(name, " called with ", args.size(), " arguments"),
          .needs = text(f.params.size(), " arguments"),
          .hint = "pass one per parameter"});
  struct Level {
    int& depth;
    explicit Level(int& d) : depth(d) { ++depth; }
    ~Level() { --depth; }
  } level(depth_);
  if (depth_ > options.max_depth)
    fail({.what = text("more than ", options.max_depth, " calls inside each other"),
          .needs = text("at most ", options.max_depth, " in the interpreter; compiled programs go deeper"),
          .hint = "check that the recursion ends, or build the program and run it"});
  Environment env;
  if (around) env = *around;
  if (!env.module) env.module = module.get();
  // Variables that are a shape first, so that tensors can be held against them.
  for (size_t i = 0; i < args.size(); ++i) env.vars[f.params[i].get()] = args[i];
  for (bool binds : {true, false}) {
    for (size_t i = 0; i < args.size(); ++i)
      env.check(args[i], f.params[i]->sinfo, binds, text("argument ", f.params[i]->name, " of ", name));
  }
  runtime::Value out = sequence(*f.body.as<SeqExpr>(), env);
  if (f.ret) env.check(out, f.ret, false, text("the result of ", name));
  return out;
}

runtime::Value GraphInterpreter::Machine::sequence(const SeqExpr& s, Environment& env) {
  for (const BindingBlockRef& block : s.blocks) {
    for (const Binding& b : block->bindings) bind(*b, env);
  }
  return eval(s.body, env);
}

void GraphInterpreter::Machine::bind(const BindingNode& b, Environment& env) {
  if (const MatchCast* m = b.as<MatchCast>()) {
    runtime::Value v = eval(m->value, env);
    env.check(v, m->sinfo, true, text("the value of ", m->var->name));
    env.check(v, m->sinfo, false, text("the value of ", m->var->name));
    env.vars[m->var.get()] = std::move(v);
    return;
  }
  const VarBinding& v = *b.as<VarBinding>();
  if (const LocalFunction* f = v.value.as<LocalFunction>()) {
    env.vars[v.var.get()] = Ref<GraphClosure>(new GraphClosure(f->function, v.var, env));
    return;
  }
  runtime::Value value = eval(v.value, env);
  if (v.var->sinfo) env.check(value, v.var->sinfo, false, text("the value of ", v.var->name));
  env.vars[v.var.get()] = std::move(value);
}

// ---- Expressions ----

namespace {

/// A condition: a number, or a tensor of one element.
bool is_true(const runtime::Value& v) {
  if (v.as_int()) return *v.as_int() != 0;
  const runtime::Tensor* t = v.as<runtime::Tensor>();
  if (!t || t->num_elements() != 1)
    fail({.what = text("a condition is ", v.describe()), .needs = "a bool scalar", .hint = "reduce it first"});
  const char* bytes = t->data_as<char>();
  return std::any_of(bytes, bytes + t->dtype().bytes(), [](char c) { return c != 0; });
}

}  // namespace

runtime::Value GraphInterpreter::Machine::eval(const RExpr& e, Environment& env) {
  return match(
      e,
      [&](const RVar& v) -> runtime::Value {
        auto at = env.vars.find(&v);
        if (at == env.vars.end())
          fail({.what = text("the variable ", v.name, " has no value here"),
                .needs = "a binding before the use",
                .hint = "verify the module"});
        return at->second;
      },
      [&](const GlobalVar& g) -> runtime::Value { return Ref<GraphClosure>(new GraphClosure(g.name)); },
      [&](const Constant& c) -> runtime::Value { return Ref<runtime::Tensor>(c.data.tensor); },
      [&](const Tuple& t) -> runtime::Value {
        std::vector<runtime::Value> items;
        for (const RExpr& item : t.items) items.push_back(eval(item, env));
        return runtime::Tuple::of(std::move(items));
      },
      [&](const TupleGetItem& t) -> runtime::Value {
        runtime::Value v = eval(t.tuple, env);
        const runtime::Tuple* tuple = v.as<runtime::Tuple>();
        if (!tuple || static_cast<size_t>(t.index) >= tuple->fields.size())
          fail({.what = text("item ", t.index, " of ", v.describe()),
                .needs = "a tuple that long",
                .hint = "check the index"});
        return tuple->fields[static_cast<size_t>(t.index)];
      },
      [&](const ShapeExpr& s) -> runtime::Value { return runtime::Shape::of(env.dims(s.values)); },
      [&](const PrimValue& p) -> runtime::Value {
        if (const FloatImm* f = p.value.as<FloatImm>()) return f->value;
        if (const StringImm* s = p.value.as<StringImm>()) return s->value;
        return env.size(p.value);
      },
      [&](const RString& s) -> runtime::Value { return s.value; },
      [&](const DTypeImm& d) -> runtime::Value { return d.value; },
      [&](const Op& o) -> runtime::Value {
        fail({.what = text("the op ", o.name, " as a value"),
              .needs = "a call of it",
              .hint = "write a function that calls it"});
      },
      [&](const ExternFunc& f) -> runtime::Value { return Ref<GraphClosure>(new GraphClosure(f.name)); },
      [&](const RCall& c) -> runtime::Value { return call(c, env); },
      [&](const SeqExpr& s) -> runtime::Value { return sequence(s, env); },
      [&](const If& n) -> runtime::Value {
        const RExpr& side = is_true(eval(n.condition, env)) ? n.true_branch : n.false_branch;
        Environment inner = env;
        return sequence(*side.as<SeqExpr>(), inner);
      },
      [&](const LocalFunction& f) -> runtime::Value {
        return Ref<GraphClosure>(new GraphClosure(f.function, nullptr, env));
      });
}

}  // namespace sator::relax
