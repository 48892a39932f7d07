// Programs built and run in this process. Python's lock is given up while code is compiled or runs, and taken for callbacks.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/trust.h"
#include "bind/gil.h"
#include "bind/node.h"
#include "bind/parts.h"
#include "bind/tensor.h"
#include "dataflow/cost/described_chip.h"
#include "driver/program.h"
#include "passes/lower/lower.h"
#include "runtime/builtins/table.h"
#include "runtime/executable_builder.h"
#include "runtime/profiler.h"
#include "runtime/vm.h"
#include "study/program_cost.h"
#include "tir/nodes.h"

namespace sator::bind {

namespace {

using runtime::Value;

/// Functions of Python's that programs call by name.
std::map<std::string, nb::object, std::less<>>& python_functions() {
  static auto* all = new std::map<std::string, nb::object, std::less<>>;
  return *all;
}

class Machine;

/// A machine that knows its object in Python.
struct OwnedMachine final : runtime::VirtualMachine {
  using VirtualMachine::VirtualMachine;
  nb::handle object() const;
  Machine* owner = nullptr;
};

/// What the machine calls for each of them.
Value call_python(runtime::VirtualMachine& vm, const runtime::Args& args) {
  WithGil gil;
  const auto at = python_functions().find(args.callee());
  if (at == python_functions().end())
    fail({.what = text("the program calls the function ", string_literal(args.callee()), ", which is not registered"),
          .needs = "a function of this name while programs call it",
          .hint = text("@sator.register_func(", string_literal(args.callee()), ")")});
  const nb::object function = at->second;  // it may take its own name away
  const nb::handle machine = static_cast<OwnedMachine&>(vm).object();
  nb::list given;
  for (size_t i = 0; i < args.size(); ++i) given.append(value_to_python(args[i], machine));
  return value_of(function(*given), machine);
}

/// Builtins for the functions that are registered, and for the names that the executable calls and nobody has: each call looks its name up.
std::vector<runtime::Builtin> python_builtins(const runtime::Executable& executable) {
  std::vector<runtime::Builtin> out;
  auto add = [&](std::string_view name) {
    out.push_back({.name = name, .min_args = 0, .max_args = -1, .run = call_python, .does = "a function of Python's"});
  };
  for (const auto& [name, function] : python_functions()) add(name);
  for (const auto& f : executable.functions) {
    const bool is_own =
        f.name.starts_with("vm.builtin.") ||
        std::ranges::any_of(runtime::builtins(), [&](const runtime::Builtin& b) { return b.name == f.name; });
    if (f.kind == runtime::FunctionKind::builtin && !is_own && !python_functions().contains(f.name)) add(f.name);
  }
  return out;
}

constexpr size_t kMostWords = 24;

/// Calls by this thread's kernel that raised, since its last check.
thread_local int32_t failures = 0;

/// What a function returned to a kernel, as a word: an integer, or the bits of a float64. Errors: TypeError for what is no number;
/// ValueError for an integer that the dtype of the call does not hold.
int64_t word_of(nb::handle value, const std::string& name, DType dtype) {
  const nb::object number =
      nb::steal(dtype.is_float() ? PyNumber_Float(value.ptr()) : PyNumber_Index(value.ptr()));  // NOLINT: an exception
  if (!number.is_valid()) {
    PyErr_Clear();
    wrong_type(value, text(dtype.name(), ", as the call of ", name, " in a kernel has it").c_str());
  }
  if (dtype.is_float()) return std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(number.ptr()));
  return bits_of(nb::borrow<nb::int_>(number), dtype);
}

/// A call of such a function inside of a kernel. `call` is JSON, as python/sator/packed.py writes it: the function's name; a list of
/// [dtype, rank] of each tensor, ["int", -1] or ["float", -1] of a number, any other value itself; the dtype of its value.
int64_t call_in_kernel(const char* call, const int64_t* words) {
  static auto* read = new std::map<std::string, nb::object, std::less<>>;
  auto at = read->find(std::string_view(call));
  if (at == read->end()) at = read->emplace(call, nb::module_::import_("json").attr("loads")(call)).first;
  const auto name = nb::cast<std::string>(at->second[0]);
  nb::list given;
  for (nb::handle arg : at->second[1]) {
    if (!nb::isinstance<nb::list>(arg)) {
      given.append(arg);
      continue;
    }
    const auto rank = nb::cast<int>(arg[1]);
    if (rank < 0) {
      const int64_t word = *words++;
      if (nb::cast<std::string>(arg[0]) == "float")
        given.append(nb::float_(std::bit_cast<double>(word)));
      else
        given.append(nb::int_(word));
      continue;
    }
    const DType dtype = dtype_named(nb::cast<std::string>(arg[0]));
    runtime::Dims shape;
    shape.resize(static_cast<size_t>(rank));
    auto* data = reinterpret_cast<char*>(words[0]) +
                 words[1] * dtype.element_bytes();  // NOLINT: the kernel passes pointers as words
    words += 2;
    for (size_t i = 0; i < shape.size(); ++i) shape[i] = *words++;
    const int64_t bytes = runtime::Tensor::bytes_of(shape, dtype).value_or(0);
    given.append(
        tensor_to_python(runtime::Tensor::view(runtime::Storage::borrow(data, bytes, nullptr), 0, shape, dtype)));
  }
  const auto function = python_functions().find(name);
  if (function == python_functions().end())
    fail({.what = text("a kernel calls the function ", string_literal(name), ", which is not registered"),
          .needs = "a function of that name before the kernel runs",
          .hint = text("@sator.register_func(", string_literal(name), ")")});
  const nb::object registered = function->second;  // it may register another one of its name
  const nb::object value = registered(*given);
  const auto dtype = nb::cast<std::string>(at->second[2]);
  return dtype == "void" ? 0 : word_of(value, name, dtype_named(dtype));
}

/// A program that was built or opened.
struct Program {
  driver::OpenProgram open;
};

/// Code that was written instruction by instruction.
struct Code {
  Ref<runtime::Executable> executable;
};

/// A kernel-less program from functions of instructions, as python/sator/relax/exec_builder.py lists them:
///   functions   [(name, parameters, registers, [(operation, ...)])] with the operations
///               ("call", function, is_own, [operand], register or -1, text), ("ret", register), ("goto", target), ("if", register, target)
///   operand     ("r", register), ("c", value), ("f", function, is_own); targets are instructions of the function
Code code_of(nb::list functions) {
  runtime::ExecutableBuilder b;
  auto callee = [&](nb::handle name, nb::handle is_own) {
    const auto text = nb::cast<std::string>(name);
    return nb::cast<bool>(is_own) ? b.vm_function(text) : b.builtin(text);
  };
  auto operand = [&](nb::handle o) {
    const auto kind = nb::cast<std::string>(o[0]);
    if (kind == "r") return runtime::Arg::reg(nb::cast<int32_t>(o[1]));
    if (kind == "f") return runtime::Arg::function(callee(o[1], o[2]));
    return b.constant(value_of(o[1]));
  };
  for (nb::handle f : functions) {
    const auto params = nb::cast<std::vector<std::string>>(f[1]);
    b.begin_function(nb::cast<std::string>(f[0]), params);
    for (auto r = static_cast<int>(params.size()); r < nb::cast<int>(f[2]); ++r) b.new_register();
    std::vector<int32_t> begins;           // of each instruction of the list, its place in the code
    std::multimap<int64_t, int32_t> open;  // jumps to instructions that are not written yet
    auto jump = [&](int64_t target, int32_t at) { open.emplace(target, at); };
    int64_t number = 0;
    for (nb::handle i : nb::borrow<nb::list>(f[3])) {
      begins.push_back(b.here());
      for (auto [at, end] = open.equal_range(number); at != end; ++at) b.patch(at->second);
      open.erase(number++);
      const auto kind = nb::cast<std::string>(i[0]);
      if (kind == "call") {
        std::vector<runtime::Arg> args;
        for (nb::handle a : nb::borrow<nb::list>(i[3])) args.push_back(operand(a));
        const auto result = nb::cast<int32_t>(i[4]);
        b.call(callee(i[1], i[2]), args, result < 0 ? std::nullopt : std::optional(runtime::Arg::reg(result)));
      } else if (kind == "ret") {
        b.ret(runtime::Arg::reg(nb::cast<int32_t>(i[1])));
      } else if (kind == "if") {
        jump(nb::cast<int64_t>(i[2]), b.if_(runtime::Arg::reg(nb::cast<int32_t>(i[1]))));
      } else if (const auto target = nb::cast<int64_t>(i[1]); target < number) {
        b.goto_(begins[static_cast<size_t>(target)]);
      } else {
        jump(target, b.goto_());
      }
    }
    b.end_function();
  }
  return {b.finish()};
}

class Machine {
 public:
  Machine(const Code& code, int num_threads)
      : extra_(python_builtins(*code.executable)),
        vm_(code.executable, runtime::KernelTable(),
            num_threads > 0 ? runtime::ThreadPool::create(num_threads) : Ref<runtime::ThreadPool>(), extra_) {
    vm_.owner = this;
  }
  Machine(const Program& program, int num_threads)
      : program_(program.open),
        extra_(python_builtins(*program_.compiled->executable())),
        vm_(program_.compiled->executable(), program_.compiled->kernels(),
            num_threads > 0 ? runtime::ThreadPool::create(num_threads) : Ref<runtime::ThreadPool>(), extra_) {
    vm_.owner = this;
  }

  nb::object call(const std::string& function, const nb::args& args) {
    return called(values_of(args, function), [&](std::span<const Value> values) { return vm_.call(function, values); });
  }

  /// Calls a function that the program gave, or one of its own.
  nb::object invoke(nb::object function, const nb::args& args) {
    if (nb::hasattr(function, "_closure")) function = function.attr("_closure")();
    if (!nb::isinstance<Closure>(function)) wrong_type(function, "a function that a program returned");
    const Ref<runtime::Closure> closure = value_of(function, vm_.object()).ref<runtime::Closure>();
    return called(values_of(args, name_of(*closure)), [&](std::span<const Value> values) {
      std::vector<const Value*> pointers;
      for (const Value& v : values) pointers.push_back(&v);
      const runtime::ThreadPool::Caller caller(vm_.pool());
      return vm_.invoke(*closure, runtime::Args("invoke_closure", pointers));
    });
  }

  /// A function of the program as a value. Errors: there is none of that name.
  nb::object closure_of(const std::string& name) {
    const std::vector<runtime::FunctionInfo>& functions = vm_.executable().functions;
    const auto at = std::ranges::find(functions, name, &runtime::FunctionInfo::name);
    if (at == functions.end()) fail({.what = text("the program has no function ", string_literal(name))});
    return value_to_python(runtime::Closure::of(static_cast<int32_t>(at - functions.begin())), vm_.object());
  }

  const std::string& name_of(const runtime::Closure& closure) const {
    return vm_.executable().functions[static_cast<size_t>(closure.function)].name;
  }

  // Python's collector of cycles: the hook may hold what holds the machine.
  int traverse(visitproc visit, void* arg) {
    if (hook_) Py_VISIT(hook_->object.ptr());
    return 0;
  }
  void clear() {
    vm_.set_call_hook(nullptr);
    hook_ = nullptr;
  }

  /// Seconds per call: `repeat` measurements of `number` calls each, more calls where they take less than `min_repeat_ms`.
  std::vector<double> time(const std::string& function, const nb::args& args, int number, int repeat,
                           double min_repeat_ms) {
    const std::vector<Value> values = values_of(args, function);
    std::vector<double> out;
    const WithoutGil released;
    const auto lock = alone();
    vm_.call(function, values);  // the first one warms up
    for (int r = 0; r < repeat; ++r) {
      int64_t calls = std::max(number, 1);
      for (;;) {
        const auto begin = std::chrono::steady_clock::now();
        for (int64_t i = 0; i < calls; ++i) {
          vm_.call(function, values);
          check_interrupt();
        }
        const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (s * 1e3 >= min_repeat_ms) {
          out.push_back(s / static_cast<double>(calls));
          break;
        }
        calls = std::max(calls * 2,
                         static_cast<int64_t>(static_cast<double>(calls) * min_repeat_ms / 1e3 / std::max(s, 1e-9)));
      }
    }
    return out;
  }

  /// A profile of medians of `rounds` calls after one that warms up; the table and the JSON of what the call costs on a described
  /// chip, where one is named.
  std::pair<runtime::Profile, std::vector<std::string>> profile(const std::string& function,
                                                                const std::optional<std::string>& chip, int rounds,
                                                                const nb::args& args) {
    const std::vector<Value> values = values_of(args, function);
    const WithoutGil released;
    const auto lock = alone();
    std::optional<Chip> described;
    if (chip && !program_.phase3)
      fail({.what = "code that was written instruction by instruction has no program to cost",
            .needs = "a program that relax.build made",
            .hint = "profile it without chip"});
    if (chip) described = dataflow::described_chip(*chip, {});
    std::vector<runtime::Profile> runs;
    for (int i = 0; i < std::max(rounds, 1); ++i)
      runs.push_back(runtime::profile(vm_, function, values, i == 0 ? 1 : 0));
    runtime::Profile median = runtime::median_of(runs);
    std::ranges::sort(runs, {}, &runtime::Profile::total_us);
    median.total_us = runs[runs.size() / 2].total_us;
    std::vector<std::string> costs;
    if (described) {
      const study::PhaseResult cost = study::cost_of_run(median.records, *program_.phase3, *described);
      costs = {study::run_cost_table(cost, *described), study::run_cost_json(cost, *described).dump()};
    }
    return {std::move(median), std::move(costs)};
  }

  bool has(const std::string& function) const { return vm_.has_function(function); }

  /// The names of a graph function's parameters; nothing of another function.
  std::vector<std::string> parameters(const std::string& function) const {
    for (const runtime::FunctionInfo& f : vm_.executable().functions)
      if (f.name == function) return f.vm.params;
    return {};
  }

  /// hook(name, is_before, result, *args) around each call; it returns whether the call is made. None to stop.
  void set_call_hook(nb::object hook) {
    std::shared_ptr<PythonFunction> kept = hook.is_none() ? nullptr : std::make_shared<PythonFunction>(std::move(hook));
    {
      const WithoutGil released;
      const auto lock = alone();
      if (kept)
        vm_.set_call_hook([kept, this](const runtime::Args& args, const Value* result) {
          WithGil gil;
          const nb::handle machine = vm_.object();
          nb::list given;
          given.append(nb::str(args.callee().data(), args.callee().size()));
          given.append(result == nullptr);
          given.append(result == nullptr ? nb::none() : value_to_python(*result, machine));
          for (size_t i = 0; i < args.size(); ++i) given.append(value_to_python(args[i], machine));
          return nb::cast<bool>(kept->object(*given));
        });
      else
        vm_.set_call_hook(nullptr);
    }
    hook_ = std::move(kept);
  }

 private:
  /// The machine to this thread. Errors: it runs a loop whose callback this is, which would wait for itself.
  std::unique_lock<std::recursive_mutex> alone() {
    if (vm_.pool().is_in_loop_here())
      fail({.what = "a function that a parallel loop of a kernel calls calls the same program again",
            .needs = "a program that is not inside of a parallel loop",
            .hint = "call another VirtualMachine of the program, or return first"});
    return std::unique_lock(running_);
  }

  /// The arguments of a function. A graph's are read, so that they may be read-only; a tensor program's may be results.
  std::vector<Value> values_of(const nb::args& args, const std::string& function) const {
    const bool reads = std::ranges::any_of(vm_.executable().functions, [&](const runtime::FunctionInfo& f) {
      return f.name == function && f.kind == runtime::FunctionKind::vm;
    });
    std::vector<Value> out;
    for (nb::handle a : args) out.push_back(value_of(a, vm_.object(), reads));
    return out;
  }

  template <class Call>
  nb::object called(const std::vector<Value>& values, Call call) {
    Value result;
    {
      const WithoutGil released;
      const auto lock = alone();
      result = call(values);
    }
    return value_to_python(result, vm_.object());
  }

  // Python's threads may call one machine at once, which runs one call at a time; a callback may call it again. Taken
  // without Python's lock, which callbacks take inside.
  std::recursive_mutex running_;
  driver::OpenProgram program_;
  std::vector<runtime::Builtin> extra_;
  std::shared_ptr<PythonFunction> hook_;
  OwnedMachine vm_;
};

nb::handle OwnedMachine::object() const { return nb::find(*owner); }

/// Tells Python's collector of cycles of an object's references.
template <class T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<T>(self)->traverse(visit, arg) : 0;
}
template <class T>
int clear(PyObject* self) {
  nb::inst_ptr<T>(self)->clear();
  return 0;
}
template <class T>
PyType_Slot kCollected[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse<T>)},  // NOLINT: as the table of slots has them
    {Py_tp_clear, reinterpret_cast<void*>(clear<T>)},        // NOLINT
    {0, nullptr}};

/// The tensor programs of a module as they are: no rule schedules them.
std::map<std::string, Func> as_written(const Module& module) {
  std::map<std::string, Func> out;
  for (const auto& [name, func] : module.functions)
    if (func.as<tir::PrimFunc>()) out.emplace(name, func);
  return out;
}

}  // namespace

/// What kernels call: the text of call_in_kernel() and its words. Its value; 0 where it raised, which the next check finds.
extern "C" __attribute__((visibility("default"))) int64_t
sator_call_python(const char* call, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g,
                  int64_t h, int64_t i, int64_t j, int64_t k, int64_t l, int64_t m, int64_t n, int64_t o, int64_t p,
                  int64_t q, int64_t r, int64_t s, int64_t t, int64_t u, int64_t v, int64_t w, int64_t x) {
  if (failures > 0) return 0;  // the first one is told
  const int64_t words[kMostWords] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x};
  WithGil gil;
  try {
    return call_in_kernel(call, words);
  } catch (...) {
    runtime::ThreadPool::keep_exception(std::current_exception());
    ++failures;
    return 0;
  }
}

/// What kernels check behind such calls: how many have raised since the last check.
extern "C" __attribute__((visibility("default"))) int32_t sator_python_failures() { return std::exchange(failures, 0); }

void add_machine(nb::module_& m) {
  nb::class_<Program>(m, "Program", "A program compiled to machine code.")
      .def("signatures",
           [](const Program& p) {
             nb::dict out;
             for (const std::string& name : driver::public_functions(*p.open.phase3))
               out[name.c_str()] = driver::describe(driver::signature_of(*p.open.phase3, name));
             return out;
           })
      .def(
          "returned",
          [](const Program& p) {
            std::map<std::string, std::string> out;
            for (const auto& [name, func] : p.open.phase3->functions)
              if (const auto dtype = string_attr(func->attrs, passes::kReturnsByStore)) out[name] = *dtype;
            return out;
          },
          "The dtype of what a function stores in its last parameter and returns, by function.")
      .def(
          "marked_entries",
          [](const Program& p) {
            std::vector<std::string> out;
            for (const std::string& name : driver::public_functions(*p.open.phase3))
              if (int_attr(p.open.phase3->functions.at(name)->attrs, "tir.is_entry_func").value_or(0) != 0)
                out.push_back(name);
            return out;
          },
          "The functions that are marked as those that a call of the module runs.")
      .def_prop_ro("isa", [](const Program& p) { return p.open.compiled->isa(); })
      .def("as_text", [](const Program& p) { return p.open.compiled->executable()->as_text(); });
  m.def(
      "build",
      [](const Handle& module,
         const std::string& path,
         const std::string& target,
         bool keeps_schedules,
         const std::map<std::string, int64_t>& bounds,
         const std::string& debug_dump,
         const std::map<int, nb::object>& lower_passes) {
        const Module* given = module.node.as<Module>();
        if (!given) throw nb::type_error("build needs an IRModule");
        const WithoutGil released;
        driver::CompileOptions options{.target = Target::parse(target), .bounds = bounds, .debug_dump = debug_dump};
        if (keeps_schedules) options.scheduled = as_written(*given);
        for (const auto& phase : lower_passes)
          options.at_phases_of_lowering[phase.first] = [&run = phase.second](const ModuleRef& programs) {
            WithGil gil;
            return ModuleRef(node_of(run(to_python(NodeRef(programs)))).as<Module>());
          };
        const driver::Compiled compiled = driver::build_program(ModuleRef(given), {}, options, path);
        return Program{{.compiled = runtime::ModelLibrary::open(path), .phase3 = compiled.phase3}};
      },
      nb::arg("module"),
      nb::arg("path"),
      nb::arg("target"),
      nb::arg("keeps_schedules"),
      nb::arg("bounds"),
      nb::arg("debug_dump") = "",
      nb::arg("lower_passes") = std::map<int, nb::object>());
  m.def("open_program", [](const std::string& path) { return Program{driver::open_program(path)}; });
  m.def("need_private_file", [](int file, const std::string& what) {
    if (std::optional<Reason> why = exposed_to_others(file, what)) fail(std::move(*why));
  });
  nb::class_<Code>(m, "Code", "A program that was written instruction by instruction.")
      .def("signatures", [](const Code&) { return nb::dict(); })
      .def("returned", [](const Code&) { return nb::dict(); })
      .def("as_text", [](const Code& c) { return c.executable->as_text(); });
  m.def("code", code_of);
  nb::class_<runtime::Profile>(m, "Profile", "What a call spent where.")
      .def("table", &runtime::Profile::table)
      .def("json", &runtime::Profile::json)
      .def_ro("total_us", &runtime::Profile::total_us);
  nb::class_<Closure> closure(m,
                              "Closure",
                              nb::type_slots(kCollected<Closure>),
                              "A function that a program gave, with the values that it captured.");
  not_called(closure, "a function of a program that returns a function");
  closure.def_prop_ro("_machine", [](const Closure& c) { return c.machine; })
      .def_prop_ro(
          "name",
          [](const Closure& c) { return c.machine ? nb::cast<Machine&>(c.machine).name_of(*c.value) : std::string(); },
          "The function's name.");
  nb::class_<Machine>(m, "Machine", nb::type_slots(kCollected<Machine>), "Runs a program's functions.")
      .def(nb::init<const Program&, int>(), nb::arg("program"), nb::arg("num_threads") = 0)
      .def(nb::init<const Code&, int>(), nb::arg("code"), nb::arg("num_threads") = 0)
      .def("call", [](Machine& vm, const std::string& name, nb::args args) { return vm.call(name, args); })
      .def(
          "invoke",
          [](Machine& vm, nb::object closure, nb::args args) { return vm.invoke(closure, args); },
          nb::arg("closure").none(),
          nb::arg("args"))
      .def("closure_of", &Machine::closure_of)
      .def("time",
           [](Machine& vm, const std::string& name, int number, int repeat, double min_repeat_ms, nb::args args) {
             return vm.time(name, args, number, repeat, min_repeat_ms);
           })
      .def("profile",
           [](Machine& vm, const std::string& name, const std::optional<std::string>& chip, int rounds, nb::args args) {
             return vm.profile(name, chip, rounds, args);
           })
      .def("has", &Machine::has)
      .def("parameters", &Machine::parameters)
      .def("set_call_hook", &Machine::set_call_hook, nb::arg("hook").none());
  m.def("register_func", [](const std::string& name, nb::object function, bool override_) {
    if (!override_ && python_functions().contains(name))
      fail({.what = text("there is already a function ", name),
            .needs = "a name that no function has",
            .hint = "choose another name, or give override=True"});
    python_functions()[name] = std::move(function);
  });
  m.def("remove_func", [](const std::string& name) { return python_functions().erase(name) > 0; });
  m.def("registered_funcs", [] {
    std::vector<std::string> names;
    for (const auto& [name, function] : python_functions()) names.push_back(name);
    return names;
  });
  m.attr("most_kernel_words") = kMostWords;
  m.def("default_num_threads", runtime::default_num_threads);
  m.def("registered_func", [](const std::string& name) -> nb::object {
    const auto at = python_functions().find(name);
    return at == python_functions().end() ? nb::none() : at->second;
  });
}

}  // namespace sator::bind
