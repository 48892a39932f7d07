// Calls: of tensor programs, of functions, and of ops. Ops that no formula describes are rows of a table.
#include "relax/builder.h"
#include "relax/interp_machine.h"
#include "relax/ops/table.h"
#include "relax/struct_info.h"
#include "runtime/nonzero.h"
#include "runtime/printing.h"
#include "runtime/tensor_property.h"
#include "runtime/tensor_view.h"
#include "runtime/unique.h"

namespace sator::relax {

using runtime::Tensor;

namespace {

/// The function of the runtime that ops with results of computed shape become calls of.
constexpr std::string_view kTensorToShape = "vm.builtin.tensor_to_shape";

Ref<Tensor> tensor_of(const runtime::Value& v, const char* op) {
  Ref<Tensor> t = v.ref<Tensor>();
  if (!t) fail({.what = text(op, " of ", v.describe()), .needs = "a tensor", .hint = "check the argument"});
  return t;
}

runtime::Value shape_from(const runtime::Value& v) {
  Ref<Tensor> t = tensor_of(v, "tensor_to_shape");
  if (t->dtype() != i64)
    fail({.what = text("a shape from a tensor of ", t->dtype()), .needs = "int64", .hint = "use R.astype"});
  return runtime::Shape::of(runtime::Dims(std::span<const int64_t>(t->data_as<int64_t>(), t->num_elements())));
}

/// unique(x, sorted, index, inverse, counts, [axis]).
runtime::Value unique_of(std::span<const runtime::Value> args) {
  auto integer = [&](size_t i) {
    const int64_t* v = args[i].as_int();
    if (!v) fail({.what = text("unique of ", args[i].describe()), .needs = "constants", .hint = "check the arguments"});
    return *v;
  };
  runtime::UniqueOptions options{integer(1) != 0, integer(2) != 0, integer(3) != 0, integer(4) != 0};
  if (args.size() > 5) options.axis = integer(5);
  return runtime::unique(*tensor_of(args[0], "unique"), options);
}

}  // namespace

std::vector<runtime::Value> GraphInterpreter::Machine::eval_all(std::span<const RExpr> args, Environment& env) {
  std::vector<runtime::Value> out;
  for (const RExpr& a : args) out.push_back(eval(a, env));
  return out;
}

runtime::Value GraphInterpreter::Machine::host(const std::string& name, std::span<const runtime::Value> args) {
  auto at = options.functions.find(name);
  if (at == options.functions.end() && name == kTensorToShape) return shape_from(args[0]);
  if (at == options.functions.end() && name == "vm.builtin.unique") return unique_of(args);
  if (at == options.functions.end() && name == "vm.builtin.nonzero" && args.size() == 1)
    return runtime::nonzero(*tensor_of(args[0], "nonzero"));
  if (at == options.functions.end() && name == "vm.builtin.view" && args.size() == 4)
    return runtime::view_of(*tensor_of(args[0], "a view"), args[1], args[2], args[3]);
  if (at == options.functions.end()) {
    std::vector<std::string> names;
    for (const auto& [known, f] : options.functions) names.push_back(known);
    std::vector<std::string> near = nearest_names(name, names);
    fail({.what = text("the function ", name, " is not registered"),
          .needs = "a function of the module or of GraphOptions::functions",
          .hint = near.empty() ? std::string("register it") : text("did you mean ", join(near, " or "), "?")});
  }
  return at->second(args);
}

runtime::Value GraphInterpreter::Machine::invoke(const runtime::Value& callee, std::vector<runtime::Value> args,
                                                 const Environment& env) {
  const GraphClosure* closure = callee.as<GraphClosure>();
  if (!closure)
    fail({.what = text("a call of ", callee.describe()), .needs = "a function", .hint = "check what is called"});
  args.insert(args.end(), closure->captured.begin(), closure->captured.end());
  if (closure->function) {
    Environment around = closure->around;
    if (closure->self) around.vars[closure->self.get()] = callee;
    return function(*closure->function, closure->name, std::move(args), &around);
  }
  auto at = env.module->functions.find(closure->name);
  // What a library computes is what the kernel beside it computes, its first argument.
  if (closure->name == "vm.builtin.dnnl" && args.size() > 2)
    return invoke(runtime::Value(args[0]), {args.begin() + 2, args.end()}, env);
  if (at == env.module->functions.end()) return host(closure->name, args);
  if (const Function* f = at->second.as<Function>()) return function(*f, closure->name, std::move(args), nullptr);
  if (const ExternDecl* e = at->second.as<ExternDecl>()) return host(e->name, args);
  return program(cast<tir::PrimFunc>(at->second), closure->name, args);
}

// ---- Tensor programs ----

runtime::Value GraphInterpreter::Machine::program(const tir::PrimFuncRef& f, const std::string& name,
                                                  std::span<const runtime::Value> args) {
  std::vector<tir::Argument> ready;
  for (const runtime::Value& v : args) {
    if (const Tensor* t = v.as<Tensor>())
      ready.emplace_back(tir::view(*t));
    else if (const int64_t* i = v.as_int())
      ready.emplace_back(*i);
    else if (const double* d = v.as_float())
      ready.emplace_back(*d);
    else
      fail({.what = text(v.describe(), " as an argument of the tensor program ", name),
            .needs = "tensors and numbers",
            .hint = "unpack it first"});
  }
  auto at = compiled_.find(f.get());
  if (at == compiled_.end()) at = compiled_.emplace(f.get(), std::pair(f, tir::Interpreter(f))).first;
  const auto result = at->second.second.run(ready, options.programs);
  if (!result) return {};
  return std::visit([](auto number) { return runtime::Value(number); }, *result);
}

runtime::Value GraphInterpreter::Machine::allocate(const StructInfo& info, const Environment& env,
                                                   std::vector<runtime::Value>& leaves) {
  if (const TupleInfo* t = info.as<TupleInfo>()) {
    std::vector<runtime::Value> items;
    for (const StructInfo& item : t->items) items.push_back(allocate(item, env, leaves));
    return runtime::Tuple::of(std::move(items));
  }
  const TensorInfo* t = info.as<TensorInfo>();
  auto extents = t ? shape_of(*t) : std::nullopt;
  if (!extents || t->dtype.is_void())
    fail({.what = text("a result that is ", info),
          .needs = "the shape and dtype of the result",
          .hint = "declare it as R.Tensor((...), \"float32\")"});
  leaves.push_back(Tensor::empty(env.dims(*extents), t->dtype));
  return leaves.back();
}

namespace {

/// The items of a tuple, or a single value.
std::vector<runtime::Value> items_of(const runtime::Value& v) {
  const runtime::Tuple* t = v.as<runtime::Tuple>();
  return t ? t->fields : std::vector{v};
}

std::vector<const runtime::Value*> behind_first(const std::vector<runtime::Value>& values, size_t first) {
  std::vector<const runtime::Value*> out;
  for (size_t i = first; i < values.size(); ++i) out.push_back(&values[i]);
  return out;
}

std::string_view string_of(const runtime::Value& v) {
  return v.as_string() ? std::string_view(*v.as_string()) : std::string_view();
}

}  // namespace

// ---- Ops ----

namespace {

/// Errors: sizes that the op needs to be equal differ in this run, where the struct info of its arguments leaves that open.
void require_assumed_sizes(const RCall& c, const Environment& env) {
  arith::Analyzer arith;
  const auto shown = [](const Expr& e) { return as_int(e) ? text(*as_int(e)) : text(e); };
  for (const SizePair& pair : assumed_sizes(c, arith)) {
    const auto x = arith::evaluate(pair.a, env.sizes), y = arith::evaluate(pair.b, env.sizes);
    if (x && y && *x != *y)
      fail({.what = text(
                "R.", op_name(ref(c)), ": ", shown(pair.a), " == ", shown(pair.b), " does not hold: ", *x, " and ", *y),
            .needs = "sizes that fit one another in every run",
            .hint = "pass arguments whose sizes fit, or declare one symbol for both"});
  }
}

}  // namespace

runtime::Value GraphInterpreter::Machine::call(const RCall& c, Environment& env) {
  const Op* op = c.op.as<Op>();
  if (!op) return invoke(eval(c.op, env), eval_all(c.args, env), env);
  const std::string& name = op->name;
  if (name == "call_tir" || name == "call_tir_inplace" || name == "call_tir_with_grad" || name == "call_dps_packed") {
    std::vector<runtime::Value> args = items_of(eval(c.args[1], env)), outputs;
    runtime::Value result = allocate(c.sinfo_args.at(0), env, outputs);
    if (name == "call_tir_inplace") {
      // An output that takes an argument's memory is that argument; the program has no parameter for it.
      std::vector<int64_t> indices = AttrType<Axes>::load(c.attrs.at("inplace_indices"));
      std::vector<runtime::Value> fresh;
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (indices.at(i) < 0)
          fresh.push_back(outputs[i]);
        else
          outputs[i] = args.at(static_cast<size_t>(indices[i]));
      }
      result = result.as<runtime::Tuple>() ? runtime::Value(runtime::Tuple::of(outputs)) : outputs.at(0);
      outputs = std::move(fresh);
    }
    args.insert(args.end(), outputs.begin(), outputs.end());
    if (c.args.size() > 2) {
      const runtime::Value vars = eval(c.args[2], env);
      for (int64_t v : vars.as<runtime::Shape>()->dims) args.emplace_back(v);
    }
    invoke(eval(c.args[0], env), std::move(args), env);
    return result;
  }
  std::vector<runtime::Value> args = eval_all(c.args, env);
  using Row = runtime::Value (*)(Machine&, const RCall&, std::vector<runtime::Value>&, Environment&);
  static const std::unordered_map<std::string_view, Row> table = {
      {"call_pure_packed",
       [](Machine& m, const RCall&, std::vector<runtime::Value>& a, Environment& env) {
         return m.invoke(a[0], {a.begin() + 1, a.end()}, env);
       }},
      {"call_inplace_packed",
       [](Machine& m, const RCall&, std::vector<runtime::Value>& a, Environment& env) {
         return m.invoke(a[0], {a.begin() + 1, a.end()}, env);
       }},
      {"call_builtin_with_ctx",
       [](Machine& m, const RCall&, std::vector<runtime::Value>& a, Environment& env) {
         return m.invoke(a[0], items_of(a[1]), env);
       }},
      {"invoke_closure",
       [](Machine& m, const RCall&, std::vector<runtime::Value>& a, Environment& env) {
         return m.invoke(a[0], items_of(a[1]), env);
       }},
      {"invoke_pure_closure",
       [](Machine& m, const RCall&, std::vector<runtime::Value>& a, Environment& env) {
         return m.invoke(a[0], items_of(a[1]), env);
       }},
      {"make_closure",
       [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) -> runtime::Value {
         const GraphClosure* f = a[0].as<GraphClosure>();
         auto out = Ref<GraphClosure>(f && f->function ? new GraphClosure(f->function, f->self, f->around)
                                                       : new GraphClosure(f ? f->name : ""));
         out->captured = items_of(a[1]);
         return out;
       }},
      {"print",
       [](Machine& m, const RCall&, std::vector<runtime::Value>& a, Environment&) -> runtime::Value {
         if (m.options.print) m.options.print(runtime::formatted(string_of(a.at(0)), behind_first(a, 1)));
         return runtime::Tuple::of({});
       }},
      {"assert_op",
       [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) -> runtime::Value {
         runtime::require_assertion(a.at(0), string_of(a.at(1)), behind_first(a, 2));
         return runtime::Tuple::of({});
       }},
      {"null_value",
       [](Machine&, const RCall&, std::vector<runtime::Value>&, Environment&) { return runtime::Value(); }},
      {"shape_of",
       [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) -> runtime::Value {
         return runtime::Shape::of(tensor_of(a[0], "shape_of")->shape());
       }},
      {"tensor_to_shape",
       [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) -> runtime::Value {
         return shape_from(a[0]);
       }},
      {"shape_to_tensor",
       [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) -> runtime::Value {
         const runtime::Dims& dims = a[0].as<runtime::Shape>()->dims;
         return Tensor::of(std::vector<int64_t>(dims.begin(), dims.end()), {static_cast<int64_t>(dims.size())}, i64);
       }},
      {"unique", [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) { return unique_of(a); }},
      {"nonzero",
       [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) -> runtime::Value {
         return runtime::nonzero(*tensor_of(a[0], "nonzero"));
       }},
      {"memory.view",
       [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) -> runtime::Value {
         return runtime::view_of(*tensor_of(a[0], "memory.view"), a[1], a[2], a[3]);
       }},
      {"to_vdevice", [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) { return a[0]; }},
      {"hint_on_device", [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) { return a[0]; }},
      {"builtin.stop_lift_params",
       [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) { return a[0]; }},
      {"builtin.alloc_tensor",
       [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) -> runtime::Value {
         return Tensor::empty(a[0].as<runtime::Shape>()->dims, *a[1].as_dtype());
       }},
      // Memory planning says where a tensor lies; its value is the same in memory of its own.
      {"memory.alloc_storage",
       [](Machine&, const RCall&, std::vector<runtime::Value>&, Environment&) { return runtime::Value(); }},
      {"memory.alloc_tensor",
       [](Machine&, const RCall&, std::vector<runtime::Value>& a, Environment&) -> runtime::Value {
         return Tensor::empty(a[2].as<runtime::Shape>()->dims, *a[3].as_dtype());
       }},
      {"memory.kill_storage",
       [](Machine&, const RCall&, std::vector<runtime::Value>&, Environment&) -> runtime::Value {
         return runtime::Tuple::of({});
       }},
      {"memory.kill_tensor",
       [](Machine&, const RCall&, std::vector<runtime::Value>&, Environment&) -> runtime::Value {
         return runtime::Tuple::of({});
       }},
      {"vm.kill_object",
       [](Machine&, const RCall&, std::vector<runtime::Value>&, Environment&) -> runtime::Value {
         return runtime::Tuple::of({});
       }},
  };
  if (auto at = table.find(name); at != table.end()) return at->second(*this, c, args, env);
  constexpr std::string_view kInspect = "inspect.tensor_";
  if (std::string_view(name).starts_with(kInspect)) {
    const int64_t* axis = args.size() > 1 ? args[1].as_int() : nullptr;
    return runtime::tensor_property(
        *tensor_of(args[0], "a property"), std::string_view(name).substr(kInspect.size()), axis ? *axis : 0);
  }
  require_assumed_sizes(c, env);
  return op_by_formula(c, std::move(args));
}

namespace {

/// The value as an argument of a call that is being expanded: tensors become variables, the rest is written out.
RExpr as_argument(const runtime::Value& v, const RExpr& original, std::vector<RVarRef>& inputs) {
  if (original && original.as<Constant>()) return original;
  if (const Tensor* t = v.as<Tensor>()) {
    std::vector<Expr> shape;
    for (int64_t extent : t->shape()) shape.push_back(int_imm(extent, i64));
    inputs.push_back(make_rvar(text("x", inputs.size()), tensor_info(std::move(shape), t->dtype())));
    return inputs.back();
  }
  if (const runtime::Shape* s = v.as<runtime::Shape>()) {
    std::vector<Expr> values;
    for (int64_t extent : s->dims) values.push_back(int_imm(extent, i64));
    return shape_expr(std::move(values));
  }
  if (const runtime::Tuple* t = v.as<runtime::Tuple>()) {
    const Tuple* written = original ? original.as<Tuple>() : nullptr;
    std::vector<RExpr> items;
    for (size_t i = 0; i < t->fields.size(); ++i)
      items.push_back(as_argument(t->fields[i], written ? written->items[i] : nullptr, inputs));
    return tuple(std::move(items));
  }
  const PrimInfo* info = original && original->sinfo ? original->sinfo.as<PrimInfo>() : nullptr;
  if (const int64_t* i = v.as_int()) return prim_value(int_imm(*i, info ? info->dtype : i64));
  if (const double* d = v.as_float()) return prim_value(float_imm(*d, info ? info->dtype : f32));
  if (const DType* d = v.as_dtype()) return dtype_value(*d);
  if (v.as_string()) return string_value(*v.as_string());
  fail({.what = text(v.describe(), " as an argument of an op"),
        .needs = "tensors, shapes and numbers",
        .hint = "check the argument"});
}

/// The tensors inside a value, in the order in which as_argument meets them.
void tensors_in(const runtime::Value& v, const RExpr& original, std::vector<runtime::Value>& out) {
  if (original && original.as<Constant>()) return;
  if (v.as<Tensor>()) out.push_back(v);
  if (const runtime::Tuple* t = v.as<runtime::Tuple>()) {
    const Tuple* written = original ? original.as<Tuple>() : nullptr;
    for (size_t i = 0; i < t->fields.size(); ++i) tensors_in(t->fields[i], written ? written->items[i] : nullptr, out);
  }
}

}  // namespace

runtime::Value GraphInterpreter::Machine::op_by_formula(const RCall& c, std::vector<runtime::Value> args) {
  const OpDef& def = op_named(op_name(ref(c)));
  Expansion made;
  std::vector<RExpr> written;
  std::vector<runtime::Value> tensors;
  for (size_t i = 0; i < args.size(); ++i) {
    written.push_back(as_argument(args[i], c.args[i], made.inputs));
    tensors_in(args[i], c.args[i], tensors);
  }
  made.call = cast<RCall>(relax::call(c.op, std::move(written), c.attrs, c.sinfo_args));
  uint64_t key = structural_hash(made.call);
  auto [first, last] = expansions_.equal_range(key);
  auto at = std::find_if(first, last, [&](const auto& known) { return equal(known.second.call, made.call, true); });
  if (at == last) {
    BlockBuilder builder;
    builder.begin_scope(made.inputs);
    builder.begin_block(false);
    RCallRef call = cast<RCall>(builder.normalize(made.call));
    RExpr value;
    if (def.has_formula()) value = def.legalize ? def.legalize(call, builder) : builder.legalize_by_formula(call);
    if (!value)
      fail({.what = text("the op ", def.name, " has no formula for these arguments"),
            .needs = "an op of the table with a formula, and known shapes",
            .hint = "replace it by other ops, or by R.call_packed of a registered function"});
    made.value = builder.normalize(value);
    made.block = builder.end_block();
    made.programs = builder.module();
    at = expansions_.emplace(key, std::move(made));
  }
  const Expansion& expansion = at->second;
  Environment inner;
  inner.module = expansion.programs.get();
  for (size_t i = 0; i < tensors.size(); ++i) inner.vars[expansion.inputs[i].get()] = tensors[i];
  for (const Binding& b : expansion.block->bindings) bind(*b, inner);
  return eval(expansion.value, inner);
}

}  // namespace sator::relax
