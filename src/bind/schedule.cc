// Schedules: one method per row of the table of primitives.
#include "schedule/schedule.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "arith/analyzer.h"
#include "bind/node.h"
#include "bind/parts.h"
#include "relax/nodes.h"
#include "schedule/analysis.h"
#include "schedule/buffers.h"
#include "schedule/primitive.h"
#include "schedule/script.h"
#include "schedule/tensor_intrin.h"

namespace sator::bind {

namespace {

using schedule::List;
using schedule::Schedule;
using schedule::Value;

/// Handles of loops and blocks, equal if they name the same.
struct LoopHandle {
  schedule::Loop loop;
};
struct BlockHandleObject {
  schedule::BlockHandle block;
};

/// The map that a Python function computes: `lambda i, j: (i // 4, j, i % 4)`. `rank`: of a function with `*indices`.
arith::IndexMapRef index_map_of(nb::handle function, std::optional<int64_t> rank, DType dtype = i32) {
  if (!PyCallable_Check(function.ptr()) || PyType_Check(function.ptr())) wrong_type(function, "a function of indices");
  nb::object inspect = nb::module_::import_("inspect");
  nb::object parameters = inspect.attr("signature")(function).attr("parameters").attr("values")();
  std::vector<VarRef> inputs;
  for (nb::handle p : nb::iter(parameters)) {
    if (p.attr("kind").equal(inspect.attr("Parameter").attr("VAR_POSITIONAL"))) {
      if (!rank)
        throw nb::value_error(
            "an index map with *indices\n  needs: a known number of indices\n  hint:  tir.IndexMap.from_func(f, "
            "ndim=2)");
      for (int64_t i = static_cast<int64_t>(inputs.size()); i < *rank; ++i)
        inputs.push_back(make_var(text("i", i), dtype));
    } else {
      inputs.push_back(make_var(nb::cast<std::string>(p.attr("name")), dtype));
    }
  }
  nb::list arguments;
  for (const VarRef& v : inputs) arguments.append(bind::to_python(NodeRef(v)));
  nb::object result = function(*arguments);
  std::vector<Expr> outputs;
  if (PyList_Check(result.ptr()) || PyTuple_Check(result.ptr())) {
    for (nb::handle item : nb::iter(result)) outputs.push_back(expr_of(item));
  } else {
    outputs.push_back(expr_of(result));
  }
  return make<arith::IndexMap>(std::move(inputs), std::move(outputs), nullptr);
}

Value step_value(nb::handle o) {
  if (o.is_none()) return {};
  if (nb::isinstance<LoopHandle>(o)) return nb::cast<const LoopHandle&>(o).loop;
  if (nb::isinstance<BlockHandleObject>(o)) return nb::cast<const BlockHandleObject&>(o).block;
  if (PyBool_Check(o.ptr())) return o.ptr() == Py_True;
  if (PyLong_Check(o.ptr())) return expr_of(o).as<IntImm>()->value;  // which looks at the size
  if (PyFloat_Check(o.ptr())) return nb::cast<double>(o);
  if (PyUnicode_Check(o.ptr())) return nb::cast<std::string>(o);
  if (PyList_Check(o.ptr()) || PyTuple_Check(o.ptr())) {
    const NestedList nested;
    List list;
    for (nb::handle item : nb::iter(o)) list.push_back(step_value(item));
    return list;
  }
  if (nb::isinstance<Handle>(o) || nb::hasattr(o, "_node")) {
    const NodeRef node = node_of(o);
    if (const auto* map = node.as<arith::IndexMap>()) return arith::IndexMapRef(map);
    if (const IntImm* i = node.as<IntImm>()) return i->value;
    if (const auto* axis = node.as<tir::ThreadAxis>()) return axis->tag;
    if (const ExprNode* e = node.as<ExprNode>()) return Expr(e);
    return node;
  }
  if (PyDict_Check(o.ptr())) return attribute_of(o);
  if (PyIndex_Check(o.ptr())) return nb::cast<int64_t>(nb::int_(o));
  if (PyCallable_Check(o.ptr()) && !PyType_Check(o.ptr())) return index_map_of(o, {});
  wrong_type(o, "an argument of a schedule's step: a number, a text, a loop, a block, a list, an index map");
}

nb::object from_step(const Value& v) {
  struct Convert {
    nb::object operator()(std::monostate) { return nb::none(); }
    nb::object operator()(bool b) { return nb::bool_(b); }
    nb::object operator()(int64_t i) { return nb::int_(i); }
    nb::object operator()(double d) { return nb::float_(d); }
    nb::object operator()(const std::string& s) { return nb::str(s.c_str()); }
    nb::object operator()(const schedule::Loop& l) { return nb::cast(LoopHandle{l}); }
    nb::object operator()(const schedule::BlockHandle& b) { return nb::cast(BlockHandleObject{b}); }
    nb::object operator()(const Expr& e) { return bind::to_python(NodeRef(e)); }
    nb::object operator()(const List& list) {
      nb::list out;
      for (const Value& item : list) out.append(from_step(item));
      return out;
    }
    nb::object operator()(const arith::IndexMapRef& m) { return bind::to_python(NodeRef(m)); }
    nb::object operator()(const NodeRef& n) { return bind::to_python(n); }
  };
  return std::visit(Convert(), static_cast<const Value::Base&>(v));
}

/// Runs `step`, whose errors are those of a schedule.
template <class F>
auto as_step(F step) {
  try {
    return step();
  } catch (const Error& e) {
    throw StepError(e.reason);
  }
}

/// Errors: an option that no schedule has, or with a value that it does not take. Steps are always checked, and errors always told
/// in full.
void need_option(const std::string& name, nb::handle value) {
  auto is = [&](std::initializer_list<const char*> names) {
    return nb::isinstance<nb::str>(value) && std::ranges::find(names, nb::cast<std::string>(value)) != names.end();
  };
  const bool is_integer = PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr());
  bool is_right = true;
  const char* needs = "";
  if (name == "seed") {
    is_right = value.is_none() || (PyIndex_Check(value.ptr()) && !PyBool_Check(value.ptr()));
    needs = "an integer, or None for one of the system's";
  } else if (name == "debug_mask") {
    is_right = is_integer || PyBool_Check(value.ptr()) || is({"none", "all"});
    needs = "\"none\", \"all\" or an integer";
  } else if (name == "error_render_level") {
    is_right = is({"detail", "fast", "none"}), needs = "\"detail\", \"fast\" or \"none\"";
  } else if (name == "enable_check") {
    is_right = PyBool_Check(value.ptr()), needs = "True or False";
  } else if (name != "mod") {
    throw nb::type_error(
        text("Schedule has no option ", name, "\n  needs: seed, debug_mask, error_render_level, enable_check").c_str());
  }
  if (!is_right)
    throw nb::value_error(
        text("Schedule: ", name, " = ", nb::cast<std::string>(nb::repr(value)), "\n  needs: ", needs).c_str());
}

/// From 1 on, as a seed is.
int64_t fork_seed(Schedule& s) { return 1 + s.random_below((int64_t{1} << 31) - 1); }

std::string python_of(const Value& v) {
  if (v.is_none()) return "None";
  return text(v);
}

/// "loop", "preserve_unit_iters=True"; "*loops" where the loops begin the arguments. `fallback`: what stands for the value.
std::string shown(const schedule::AnyPrimitive& of, const schedule::Parameter& p, const std::string& fallback) {
  if (!p.required) return p.name + "=" + fallback;
  return p.takes == schedule::Takes::handles && &p == &of.parameters.front() ? "*" + p.name : p.name;
}

/// "(self, loop, factors, preserve_unit_iters=...)".
std::string signature_of(const schedule::AnyPrimitive& p) {
  std::string out = "(self";
  for (const schedule::Parameter& parameter : p.parameters) out += ", " + shown(p, parameter, "...");
  return out + ")";
}

void add_primitives(nb::class_<Schedule>& c) {
  for (const schedule::AnyPrimitive* p : schedule::primitives()) {
    std::string words = p->does + "\n\n" + p->name + "(";
    for (const schedule::Parameter& parameter : p->parameters) {
      if (&parameter != &p->parameters.front()) words += ", ";
      words += shown(*p, parameter, python_of(parameter.fallback));
    }
    words += ")";
    nb::object method = nb::cpp_function(
        [p](Schedule& s, nb::args args, nb::kwargs kwargs) {
          // None is what an argument that may be left out stands for.
          List positional;
          for (nb::handle a : args) {
            const size_t i = positional.size();
            const bool is_left_out = a.is_none() && i < p->parameters.size() && !p->parameters[i].required;
            positional.push_back(is_left_out ? p->parameters[i].fallback : step_value(a));
          }
          std::vector<std::pair<std::string, Value>> keywords;
          for (auto [key, value] : kwargs) {
            const auto name = nb::cast<std::string>(key);
            const auto at = std::ranges::find(p->parameters, name, &schedule::Parameter::name);
            if (!value.is_none() || at == p->parameters.end() || at->required)
              keywords.emplace_back(name, step_value(value));
          }
          return as_step(
              [&] { return from_step(schedule::Script(s).call(p->name, std::move(positional), std::move(keywords))); });
        },
        nb::is_method(),
        nb::scope(c),
        nb::name(p->name.c_str()),
        nb::sig(("def " + p->name + signature_of(*p)).c_str()),
        words.c_str());
    c.attr(p->name.c_str()) = method;
  }
}

std::vector<Expr> exprs_of(nb::handle list) {
  std::vector<Expr> out;
  for (nb::handle item : nb::iter(list)) out.push_back(expr_of(item));
  return out;
}

nb::list list_of(const std::vector<Expr>& exprs) {
  nb::list out;
  for (const Expr& e : exprs) out.append(bind::to_python(NodeRef(e)));
  return out;
}

arith::Region box_of(const std::vector<Expr>& shape);

template <class T>
const T& node_as(const Handle& h, const char* needs) {
  const T* node = h.node.as<T>();
  if (!node) throw nb::type_error(text("a ", h.node->info().name, "\n  needs: ", needs).c_str());
  return *node;
}

void add_index_maps(nb::module_& m) {
  m.def(
      "index_map",
      [](nb::object f, std::optional<int64_t> rank, const std::string& dtype) {
        const std::optional<DType> d = DType::parse(dtype);
        if (!d || !d->is_int()) throw nb::value_error("the dtype of indices is int32 or int64");
        return bind::to_python(NodeRef(index_map_of(f, rank, *d)));
      },
      nb::arg("function"),
      nb::arg("rank").none(),
      nb::arg("dtype") = "int32");
  m.def("map_indices", [](const Handle& map, nb::object indices) {
    arith::Analyzer analyzer;
    return list_of(arith::map_indices(node_as<arith::IndexMap>(map, "an IndexMap"), exprs_of(indices), analyzer));
  });
  m.def("map_shape", [](const Handle& map, nb::object shape) {
    arith::Analyzer analyzer;
    return list_of(arith::map_shape(node_as<arith::IndexMap>(map, "an IndexMap"), exprs_of(shape), analyzer));
  });
  m.def("inverse_map", [](const Handle& map, nb::object shape, bool is_bijective) {
    arith::Analyzer analyzer;
    const auto& given = node_as<arith::IndexMap>(map, "an IndexMap");
    const arith::Region box = box_of(exprs_of(shape));
    const arith::InverseMap inverse =
        is_bijective ? arith::inverse(given, box, analyzer) : arith::non_surjective_inverse(given, box, analyzer);
    if (!inverse.ok())
      fail({.what = text("the index map has no inverse: ", inverse.error),
            .needs = "a map that takes no two points to one",
            .hint = "keep every index in the result"});
    return nb::make_tuple(bind::to_python(NodeRef(inverse.map)), bind::to_python(NodeRef(inverse.padding_predicate)));
  });
}

}  // namespace

void add_schedule(nb::module_& m) {
  nb::class_<LoopHandle> loop(m, "LoopRV", "A loop of a schedule; it stays the same while other loops are rewritten.");
  not_called(loop, "sch.get_loops(block)");
  loop.def(
          "__eq__",
          [](const LoopHandle& a, nb::object b) {
            return nb::isinstance<LoopHandle>(b) && nb::cast<const LoopHandle&>(b).loop == a.loop;
          },
          nb::arg().none())
      .def("__hash__", [](const LoopHandle& a) { return reinterpret_cast<Py_ssize_t>(a.loop.get()) >> 4; })
      .def("__repr__", [](const LoopHandle& a) { return a.loop->name; });
  nb::class_<BlockHandleObject> block(
      m, "BlockRV", "A block of a schedule; it stays the same while the block is rewritten.");
  not_called(block, "sch.get_block(name)");
  block
      .def(
          "__eq__",
          [](const BlockHandleObject& a, nb::object b) {
            return nb::isinstance<BlockHandleObject>(b) && nb::cast<const BlockHandleObject&>(b).block == a.block;
          },
          nb::arg().none())
      .def("__hash__", [](const BlockHandleObject& a) { return reinterpret_cast<Py_ssize_t>(a.block.get()) >> 4; })
      .def("__repr__", [](const BlockHandleObject& a) { return "\"" + a.block->text + "\""; });

  nb::class_<Schedule> c(
      m, "Schedule", "A module that steps rewrite and whose meaning they keep; each step is recorded.");
  c.def(
      "__init__",
      [](Schedule* self, nb::args given, nb::kwargs options) {
        if (given.size() > 1 || given.size() + options.contains("mod") != 1)
          throw nb::type_error("Schedule takes one program\n  needs: an IRModule or a PrimFunc, for a Schedule");
        const nb::object mod = given.size() == 1 ? nb::object(given[0]) : nb::object(options["mod"]);
        for (auto [key, value] : options) need_option(nb::cast<std::string>(key), value);
        const NodeRef node = nb::isinstance<Handle>(mod) ? node_of(mod) : nullptr;
        if (const auto* f = node.as<tir::PrimFunc>())
          new (self) Schedule(tir::PrimFuncRef(f));
        else if (const auto* module = node.as<Module>())
          new (self) Schedule(ModuleRef(module));
        else
          wrong_type(mod, "an IRModule or a PrimFunc, for a Schedule");
        if (options.contains("seed") && !options["seed"].is_none())
          if (const auto seed = nb::cast<int64_t>(options["seed"]); seed >= 0) self->seed(static_cast<uint64_t>(seed));
      },
      nb::sig(
          "def __init__(self, mod, *, seed=None, debug_mask='none', error_render_level='detail', enable_check=True)"));
  c.def_prop_ro("mod", [](const Schedule& s) { return bind::to_python(NodeRef(s.module())); });
  c.def_prop_ro(
      "func_working_on",
      [](const Schedule& s) {
        const std::string& name = s.worked_on();
        return name.empty() ? nb::none() : bind::to_python(NodeRef(make<relax::GlobalVar>(name, nullptr)));
      },
      "The function that steps without a func_name are about, a GlobalVar; None before work_on in a module of "
      "several.");
  c.def(
      "work_on",
      [](Schedule& s, const std::string& name) { as_step([&] { s.work_on(name); }); },
      nb::arg("func_name"),
      "Turns to another function of the module.");
  c.def(
      "copy",
      [](Schedule& s) {
        Schedule out(s);
        out.seed(static_cast<uint64_t>(fork_seed(s)));
        return out;
      },
      "Another schedule of the same program, with the same steps and handles; its sampling steps choose by a forked "
      "seed.");
  c.def("_alike", [](const Schedule& s) { return Schedule(s); });
  c.def(
      "get",
      [](Schedule& s, nb::object handle) {
        return as_step([&] {
          if (nb::isinstance<LoopHandle>(handle) || nb::isinstance<BlockHandleObject>(handle)) {
            Value named = step_value(handle);
            s.resolve(named);
            s.turn_to_function_of({named});
          }
          if (nb::isinstance<LoopHandle>(handle))
            return bind::to_python(NodeRef(&s.get(nb::cast<const LoopHandle&>(handle).loop)));
          if (nb::isinstance<BlockHandleObject>(handle)) {
            schedule::BlockHandle block = nb::cast<const BlockHandleObject&>(handle).block;
            s.resolve(block);
            return bind::to_python(NodeRef(&s.get(block)));
          }
          if (nb::hasattr(handle, "stmt")) return nb::object(handle.attr("stmt"));
          Expr e = expr_of(handle);
          s.evaluate(e);
          const IntImm* number = e.as<IntImm>();
          return number ? nb::object(nb::int_(number->value)) : bind::to_python(NodeRef(e));
        });
      },
      nb::arg("rand_var_or_sref"),
      "The statement behind a handle or a place; the number that was chosen for a variable of a sampling step.");
  c.def(
      "seed",
      [](Schedule& s, int64_t seed) { s.seed(static_cast<uint64_t>(seed)); },
      nb::arg("seed"),
      "What sampling steps choose from now on follows from this number.");
  c.def("fork_seed", fork_seed, "A number to seed another schedule with.");
  c.def_prop_ro("_trace", [](const Schedule& s) { return s.trace(); });
  c.def("_apply_json", [](Schedule& s, const std::string& json) {
    as_step([&] { schedule::Script(s).run(schedule::script_of_json({parse_json(json, "trace"), "trace"})); });
  });
  c.def("_replace",
        [](Schedule& s, const std::string& func_name, const Handle& old, const Handle& fresh, nb::list reused) {
          as_step([&] {
            s.turn_to(func_name);
            s.replace(tir::Stmt(old.node.as<tir::StmtNode>()), tir::Stmt(fresh.node.as<tir::StmtNode>()));
            for (nb::handle pair : reused) {
              const auto& before = node_as<tir::Block>(nb::cast<const Handle&>(pair[0]), "a tir.Block");
              const auto& after = node_as<tir::Block>(nb::cast<const Handle&>(pair[1]), "a tir.Block");
              if (before.name != after.name) s.forward(before.name, after.name);
            }
          });
        });
  c.def("_misses_values", [](Schedule& s, const BlockHandleObject& b) {
    s.turn_to_function_of({b.block});
    return schedule::misses_values(s, s.site(b.block));
  });
  nb::class_<schedule::Step>(m, "_Step")
      .def_prop_ro("name", [](const schedule::Step& s) { return s.primitive; })
      .def("text", &schedule::describe)
      .def_prop_ro("inputs",
                   [](const schedule::Step& s) {
                     nb::list out;
                     for (const Value& v : s.inputs) out.append(from_step(v));
                     return out;
                   })
      .def_prop_ro("output", [](const schedule::Step& s) { return from_step(s.output); })
      .def("parameters",
           [](const schedule::Step& s) {
             nb::list out;
             for (const schedule::Parameter& p : schedule::primitive_named(s.primitive).parameters)
               out.append(
                   nb::make_tuple(p.name, p.takes == schedule::Takes::handle || p.takes == schedule::Takes::handles));
             return out;
           })
      .def("with_input", [](const schedule::Step& s, size_t i, nb::object value) {
        schedule::Step out = s;
        out.inputs.at(i) = step_value(value);
        return out;
      });
  nb::class_<schedule::Trace>(m, "_Trace")
      .def("__init__",
           [](schedule::Trace* t, nb::list steps) {
             new (t) schedule::Trace;
             for (nb::handle step : steps) t->steps.push_back(nb::cast<schedule::Step>(step));
           })
      .def("text", &schedule::Trace::as_python)
      .def("steps",
           [](const schedule::Trace& t) {
             nb::list out;
             for (const schedule::Step& step : t.steps) out.append(nb::cast(step));
             return out;
           })
      .def("json", [](const schedule::Trace& t) { return t.as_json().dump(); })
      .def("simplified", &schedule::Trace::simplified)
      .def("apply_to", [](const schedule::Trace& t, Schedule& s) { as_step([&] { t.apply_to(s); }); });
  add_primitives(c);
  add_index_maps(m);

  m.def("with_buffer", [](const Handle& function, const Handle& parameter, const Handle& buffer) {
    const auto& func = node_as<tir::PrimFunc>(function, "a PrimFunc");
    const VarRef param(&node_as<Var>(parameter, "a parameter"));
    const BufferRef old = func.buffer_of(param), fresh(&node_as<Buffer>(buffer, "a tir.Buffer"));
    if (!old || old->dtype != fresh->dtype || old->shape.size() != fresh->shape.size())
      fail({.what = text("the buffer ",
                         fresh->name,
                         " of ",
                         fresh->dtype,
                         " and rank ",
                         fresh->shape.size(),
                         " for ",
                         param->name),
            .needs = old ? text(old->dtype, ", rank ", old->shape.size()) : "a parameter that is a buffer",
            .hint = "make it with tir.decl_buffer of the tensor's shape and dtype"});
    auto buffers = func.buffer_map;
    for (auto& [var, of] : buffers)
      if (var == param) of = fresh;
    const tir::PrimFuncRef with_map = with(tir::PrimFuncRef(&func), &tir::PrimFunc::buffer_map, std::move(buffers));
    return bind::to_python(
        NodeRef(with(with_map, &tir::PrimFunc::body, schedule::replace_buffer(func.body, old, fresh))));
  });
  m.def("register_tensor_intrin", [](const std::string& name, const Handle& desc, const Handle& impl) {
    schedule::register_tensor_intrin(name,
                                     tir::PrimFuncRef(&node_as<tir::PrimFunc>(desc, "a PrimFunc")),
                                     tir::PrimFuncRef(&node_as<tir::PrimFunc>(impl, "a PrimFunc")));
  });
  m.def("tensor_intrin", [](const std::string& name) {
    const schedule::TensorIntrin intrin = schedule::tensor_intrin(name);
    return nb::make_tuple(bind::to_python(NodeRef(intrin.desc)), bind::to_python(NodeRef(intrin.impl)));
  });
}

namespace {

arith::Region box_of(const std::vector<Expr>& shape) {
  arith::Region out;
  for (const Expr& extent : shape) out.push_back(range_of(extent));
  return out;
}

}  // namespace

}  // namespace sator::bind
