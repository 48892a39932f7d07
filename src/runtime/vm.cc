#include "runtime/vm.h"

#include <algorithm>
#include <chrono>

#include "base/interrupt.h"
#include "runtime/builtins/functions.h"
#include "runtime/builtins/table.h"

namespace sator::runtime {

namespace {

constexpr size_t kMaxDepth = 100'000;  // calls within each other: their registers are on the heap
constexpr size_t kMaxNested = 500;     // of them those that a builtin makes: about 0.5 MB of the C++ stack
constexpr size_t kKeptFrames = 1000;   // stay for the next call
constexpr size_t kMaxWhere = 500;      // characters of a message that name the calls

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

const Builtin* find_builtin(std::string_view name, std::span<const Builtin> extra) {
  for (std::span<const Builtin> rows : {extra, builtins()})
    for (const Builtin& row : rows)
      if (row.name == name) return &row;
  return nullptr;
}

[[noreturn]] void fail_missing(const char* kind, const std::string& name, const std::vector<std::string>& among) {
  std::vector<std::string> near = nearest_names(name, among);
  fail({.what = text("the program calls the ", kind, ' ', string_literal(name), ", which is not there"),
        .needs = text("a runtime and a library made by the same compiler"),
        .hint = near.empty() ? "compile the model again" : text("nearest names: ", join(near, ", "))});
}

/// Whether the name is one of the runtime's own, which no program registers.
bool is_own_name(std::string_view name) { return name.starts_with("vm.builtin."); }

[[noreturn]] void fail_unregistered(const std::string& name) {
  fail({.what = text("the program calls the function ", string_literal(name), ", which is not registered"),
        .needs = "a function that is registered by that name when the program is opened",
        .hint = text("in Python, @sator.register_func(", string_literal(name), ") before the program is opened")});
}

void check_builtin_arity(const Builtin& b, size_t num_args) {
  int n = static_cast<int>(num_args);
  if (n >= b.min_args && (b.max_args < 0 || n <= b.max_args)) return;
  std::string expected = text(b.min_args);
  if (b.max_args < 0) expected += " or more";
  if (b.max_args > b.min_args) expected += text(" to ", b.max_args);
  fail({.what = text(b.name, " is called with ", n, " arguments"), .needs = expected + " arguments"});
}

}  // namespace

const KernelTable::Entry* KernelTable::find(const std::string& name) const {
  auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

std::vector<std::string> KernelTable::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

VirtualMachine::VirtualMachine(Ref<Executable> executable, KernelTable kernels, Ref<ThreadPool> pool,
                               std::span<const Builtin> extra)
    : executable_(std::move(executable)),
      pool_(pool ? std::move(pool) : ThreadPool::create()),
      memory_(new StoragePool()),
      kernels_(std::move(kernels)) {
  const Executable& e = *executable_;
  size_t max_params = 0, max_values = 0;
  for (const FunctionInfo& f : e.functions) {
    index_of_.emplace(f.name, static_cast<int32_t>(loaded_.size()));
    LoadedFunction& loaded = loaded_.emplace_back();
    if (f.kind == FunctionKind::builtin) {
      loaded.builtin = find_builtin(f.name, extra);
      if (loaded.builtin == nullptr && is_own_name(f.name)) {
        std::vector<std::string> names;
        for (const Builtin& row : builtins()) names.emplace_back(row.name);
        fail_missing("builtin", f.name, names);
      }
    }
    if (f.kind == FunctionKind::kernel) {
      const KernelTable::Entry* entry = kernels_.find(f.name);
      if (entry == nullptr) fail_missing("kernel", f.name, kernels_.names());
      loaded.kernel = *entry;
      max_params = std::max(max_params, f.kernel.params.size());
      max_values = std::max(max_values, f.kernel.values.size());
    }
  }
  buffers_.resize(max_params);
  values_.resize(max_values);
  for (const Instruction& i : e.code)
    if (i.op == Opcode::call && loaded_[static_cast<size_t>(i.function)].builtin)
      check_builtin_arity(*loaded_[static_cast<size_t>(i.function)].builtin, i.num_args);
  for (const Arg& arg : e.args) {
    Value& value = arg_values_.emplace_back();
    if (arg.kind == ArgKind::immediate) value = arg.value;
    if (arg.kind == ArgKind::constant) value = e.constants[static_cast<size_t>(arg.value)];
    if (arg.kind == ArgKind::function) value = Closure::of(static_cast<int32_t>(arg.value));
  }
}

VirtualMachine::~VirtualMachine() = default;

Value VirtualMachine::call(std::string_view function, std::span<const Value> args) {
  auto found = index_of_.find(function);
  if (found == index_of_.end()) {
    std::vector<std::string> names;
    for (const FunctionInfo& f : executable_->functions)
      if (f.kind != FunctionKind::builtin) names.push_back(f.name);
    fail({.what = text("the program has no function ", string_literal(function)),
          .needs = "a function of the compiled model",
          .hint = text("nearest names: ", join(nearest_names(function, names), ", "))});
  }
  std::vector<const Value*> pointers;
  for (const Value& arg : args) pointers.push_back(&arg);
  const ThreadPool::Caller caller(*pool_);
  return dispatch(found->second, pointers);
}

Value VirtualMachine::invoke(const Closure& closure, const Args& args) {
  std::vector<const Value*> all;
  all.insert(all.end(), args.values().begin(), args.values().end());
  for (const Value& value : closure.captured) all.push_back(&value);
  const FunctionInfo& f = executable_->functions[static_cast<size_t>(closure.function)];
  const size_t captured = closure.captured.size();
  if (const auto& params = f.vm.params;
      f.kind == FunctionKind::vm && captured > 0 && captured <= params.size() && all.size() != params.size()) {
    const std::vector<std::string> left(params.begin(), params.end() - static_cast<std::ptrdiff_t>(captured));
    fail({.what = text(f.name, ", with ", captured, " captured values, is called with ", args.size(), " arguments"),
          .needs = text(left.size(), " arguments: ", left.empty() ? "none" : join(left, ", "))});
  }
  return dispatch(closure.function, all);
}

Value VirtualMachine::dispatch(int32_t function, std::span<const Value* const> args) {
  const FunctionInfo& f = executable_->functions[static_cast<size_t>(function)];
  switch (f.kind) {
    case FunctionKind::vm: return run_vm(f, Args(f.name, args));
    case FunctionKind::kernel: call_kernel(function, args); return {};
    case FunctionKind::builtin: return run_builtin(function, Args(f.name, args));
  }
  internal_error("VirtualMachine: unknown kind of function");
}

Value VirtualMachine::run_builtin(int32_t function, const Args& args) {
  if (loaded_[static_cast<size_t>(function)].builtin == nullptr)
    fail_unregistered(executable_->functions[static_cast<size_t>(function)].name);
  const Builtin& builtin = *loaded_[static_cast<size_t>(function)].builtin;
  auto is_tensor = [](const Value* arg) { return arg->as<Tensor>() != nullptr; };
  if (!instrument_ || std::none_of(args.values().begin(), args.values().end(), is_tensor)) {
    check_builtin_arity(builtin, args.size());
    return builtin.run(*this, args);
  }
  check_builtin_arity(builtin, args.size());
  CallRecord record = begin_record(executable_->functions[static_cast<size_t>(function)], args.values());
  double outer_us = std::exchange(recorded_us_, 0);
  record_name_.clear();
  Clock::time_point start = Clock::now();
  Value result = builtin.run(*this, args);
  double total_us = us_since(start);
  record.duration_us = std::max(0.0, total_us - recorded_us_);
  recorded_us_ = outer_us + total_us;
  if (!record_name_.empty()) record.function = std::exchange(record_name_, {});
  instrument_(record);
  return result;
}

void VirtualMachine::enter(const FunctionInfo& f, const Args& args) {
  if (args.size() != f.vm.params.size())
    fail({.what = text(f.name, " is called with ", args.size(), " arguments"),
          .needs = text(f.vm.params.size(), " arguments: ", join(f.vm.params, ", "))});
  if (depth_ >= kMaxDepth || nested_ > kMaxNested)
    fail({.what = text("calls are nested more than ", depth_ >= kMaxDepth ? kMaxDepth : kMaxNested, " deep"),
          .needs = text(
              "at most ", kMaxDepth, " calls within each other, ", kMaxNested, " where hooks or builtins make them"),
          .hint = "see that the recursion ends, or make fewer steps in one call",
          .where = "in " + f.name});
  if (frames_.size() == depth_) frames_.emplace_back();
  Frame& frame = frames_[depth_++];
  frame.function = &f;
  frame.at = executable_->code.data() + f.vm.begin;
  frame.outer = site_;
  frame.registers.resize(static_cast<size_t>(f.vm.num_registers));
  for (size_t i = 0; i < args.size(); ++i) frame.registers[i] = args[i];
}

void VirtualMachine::leave() {
  Frame& frame = frames_[--depth_];
  frame.registers.clear();
  site_ = frame.outer;
}

Value VirtualMachine::run_vm(const FunctionInfo& f, const Args& args) {
  // Drops what the registers hold, also when an error passes.
  struct Run {
    VirtualMachine& vm;
    size_t base;
    explicit Run(VirtualMachine& machine) : vm(machine), base(machine.depth_) { ++vm.nested_; }
    ~Run() {
      while (vm.depth_ > base) vm.leave();
      --vm.nested_;
      if (base == 0 && vm.frames_.size() > kKeptFrames) vm.frames_.resize(kKeptFrames);
    }
  } run(*this);
  enter(f, args);
  try {
    while (true) {
      Frame& frame = frames_[depth_ - 1];
      const Instruction& i = *frame.at;
      std::vector<Value>& registers = frame.registers;
      switch (i.op) {
        case Opcode::call: {
          check_interrupt();
          site_ = {static_cast<int32_t>(frame.function - executable_->functions.data()), i.annotation};
          if (enter_call(i, registers)) break;
          Value result = run_call(i, registers);
          if (i.reg != kVoidRegister) registers[static_cast<size_t>(i.reg)] = std::move(result);
          ++frame.at;
          break;
        }
        case Opcode::ret: {
          Value result = i.reg == kVoidRegister ? Value() : std::move(registers[static_cast<size_t>(i.reg)]);
          if (depth_ - 1 == run.base) return result;
          leave();
          Frame& caller = frames_[depth_ - 1];
          if (caller.at->reg != kVoidRegister)
            caller.registers[static_cast<size_t>(caller.at->reg)] = std::move(result);
          ++caller.at;
          break;
        }
        case Opcode::goto_: frame.at += i.offset; break;
        case Opcode::if_: {
          const int64_t* condition = registers[static_cast<size_t>(i.reg)].as_int();
          if (condition == nullptr)
            fail({.what = text("the condition is ", registers[static_cast<size_t>(i.reg)].describe()),
                  .needs = "an integer"});
          frame.at += *condition != 0 ? 1 : i.offset;
          break;
        }
      }
    }
  } catch (const Error& e) {
    Reason reason = e.reason;
    // Of a deep recursion the innermost calls say enough.
    for (size_t d = depth_; d > run.base && reason.where.size() <= kMaxWhere; --d) {
      const Frame& frame = frames_[d - 1];
      const auto index = frame.at - (executable_->code.data() + frame.function->vm.begin);
      if (!reason.where.empty()) reason.where += ", called ";
      reason.where += text("in ", frame.function->name, " at instruction ", index);
      if (frame.at->op == Opcode::call && frame.at->annotation >= 0)
        reason.where += text(" (", *executable_->constants[static_cast<size_t>(frame.at->annotation)].as_string(), ')');
    }
    fail(std::move(reason));
  }
}

VirtualMachine::CallArgs::CallArgs(const VirtualMachine& vm, const Instruction& i, std::vector<Value>& registers)
    : count_(i.num_args) {
  const Value** pointers = few_.data();
  if (i.num_args > few_.size()) {
    many_.resize(i.num_args);
    pointers = many_.data();
  }
  for (uint32_t a = 0; a < i.num_args; ++a) {
    const Arg& arg = vm.executable_->args[i.first_arg + a];
    pointers[a] =
        arg.kind == ArgKind::register_ ? &registers[static_cast<size_t>(arg.value)] : &vm.arg_values_[i.first_arg + a];
  }
}

bool VirtualMachine::enter_call(const Instruction& i, std::vector<Value>& registers) {
  if (call_hook_) return false;
  const FunctionInfo& f = executable_->functions[static_cast<size_t>(i.function)];
  if (f.kind == FunctionKind::vm) {
    const CallArgs args(*this, i, registers);
    enter(f, Args(f.name, args.values()));
    return true;
  }
  // A closure's call is recorded as one.
  if (instrument_ || f.kind != FunctionKind::builtin || i.num_args == 0) return false;
  const Builtin* called_builtin = loaded_[static_cast<size_t>(i.function)].builtin;
  if (called_builtin == nullptr || called_builtin->run != builtin::invoke_closure) return false;
  const CallArgs args(*this, i, registers);
  const Closure* closure = args.values()[0]->as<Closure>();
  if (closure == nullptr) return false;
  const FunctionInfo& called = executable_->functions[static_cast<size_t>(closure->function)];
  if (called.kind != FunctionKind::vm) return false;
  std::vector<const Value*> all(args.values().begin() + 1, args.values().end());
  for (const Value& value : closure->captured) all.push_back(&value);
  enter(called, Args(called.name, all));
  return true;
}

Value VirtualMachine::run_call(const Instruction& i, std::vector<Value>& registers) {
  const CallArgs call_args(*this, i, registers);
  const std::span<const Value* const> given = call_args.values();
  if (!call_hook_) return dispatch(i.function, given);
  const CallHook hook = call_hook_;  // it may set another one
  const Args args(executable_->functions[static_cast<size_t>(i.function)].name, given);
  if (!hook(args, nullptr)) return {};
  Value result = dispatch(i.function, given);
  hook(args, &result);
  return result;
}

CallRecord VirtualMachine::begin_record(const FunctionInfo& f, std::span<const Value* const> args) const {
  CallRecord record;
  record.function = f.name;
  record.is_kernel = f.kind == FunctionKind::kernel;
  if (site_.function >= 0) record.caller = executable_->functions[static_cast<size_t>(site_.function)].name;
  if (site_.annotation >= 0)
    record.annotation = *executable_->constants[static_cast<size_t>(site_.annotation)].as_string();
  for (const Value* arg : args)
    if (const Tensor* tensor = arg->as<Tensor>()) record.arguments.push_back({tensor->dtype(), tensor->shape()});
  return record;
}

void VirtualMachine::call_kernel(int32_t function, std::span<const Value* const> args, std::span<const Extra> extra,
                                 std::string_view annotation) {
  const FunctionInfo& f = executable_->functions[static_cast<size_t>(function)];
  const KernelTable::Entry& kernel = loaded_[static_cast<size_t>(function)].kernel;
  gather_arguments(f, args);
  SatorContext* ctx = pool_->context();
  size_t mark = pool_->workspace_mark();
  Clock::time_point start = instrument_ ? Clock::now() : Clock::time_point();
  int32_t status =
      kernel.run ? kernel.run(buffers_.data(), values_.data(), ctx) : kernel.host(buffers_.data(), values_.data(), ctx);
  double duration_us = instrument_ ? us_since(start) : 0;
  pool_->workspace_release(mark);
  if (status != 0) {
    std::string why = pool_->take_error();
    fail({.what = text("kernel ", f.name, " failed: ", why.empty() ? "it did not say why" : why)});
  }
  if (!instrument_) return;
  CallRecord record = begin_record(f, args);
  for (size_t v = 0; v < f.kernel.values.size(); ++v) record.values.push_back({f.kernel.values[v].name, values_[v]});
  for (const Extra& e : extra) record.values.push_back({e.name, e.value});
  if (record.annotation.empty()) record.annotation = annotation;
  record.duration_us = duration_us;
  recorded_us_ += duration_us;
  instrument_(record);
}

}  // namespace sator::runtime
