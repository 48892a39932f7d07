#include "runtime/vm.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/interrupt.h"
#include "runtime/builtins/table.h"

namespace sator::runtime {

namespace {

constexpr size_t kMaxDepth = 500;  // about 0.5 MB of the C++ stack
constexpr size_t kMaxWhere = 500;  // characters of a message that name the calls

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
      if (loaded.builtin == nullptr) {
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

Value VirtualMachine::run_vm(const FunctionInfo& f, const Args& args) {
  if (args.size() != f.vm.params.size())
    fail({.what = text(f.name, " is called with ", args.size(), " arguments"),
          .needs = text(f.vm.params.size(), " arguments: ", join(f.vm.params, ", "))});
  if (depth_ >= kMaxDepth)
    fail({.what = text("calls are nested more than ", kMaxDepth, " deep"),
          .needs = "functions that end",
          .where = "in " + f.name});
  if (frames_.size() == depth_) frames_.emplace_back();
  std::vector<Value>& registers = frames_[depth_];
  // Drops what the registers hold, also when an error passes.
  struct Frame {
    VirtualMachine& vm;
    std::vector<Value>& registers;
    Site outer;
    ~Frame() {
      registers.clear();
      --vm.depth_;
      vm.site_ = outer;
    }
  } frame{*this, registers, site_};
  ++depth_;
  registers.resize(static_cast<size_t>(f.vm.num_registers));
  for (size_t i = 0; i < args.size(); ++i) registers[i] = args[i];

  const auto function_index = static_cast<int32_t>(&f - executable_->functions.data());
  const Instruction* at = executable_->code.data() + f.vm.begin;
  try {
    while (true) {
      switch (at->op) {
        case Opcode::call: {
          check_interrupt();
          site_ = {function_index, at->annotation};
          Value result = run_call(*at, registers);
          if (at->reg != kVoidRegister) registers[static_cast<size_t>(at->reg)] = std::move(result);
          ++at;
          break;
        }
        case Opcode::ret:
          return at->reg == kVoidRegister ? Value() : std::move(registers[static_cast<size_t>(at->reg)]);
        case Opcode::goto_: at += at->offset; break;
        case Opcode::if_: {
          const int64_t* condition = registers[static_cast<size_t>(at->reg)].as_int();
          if (condition == nullptr)
            fail({.what = text("the condition is ", registers[static_cast<size_t>(at->reg)].describe()),
                  .needs = "an integer"});
          at += *condition != 0 ? 1 : at->offset;
          break;
        }
      }
    }
  } catch (const Error& e) {
    Reason reason = e.reason;
    auto index = at - (executable_->code.data() + f.vm.begin);
    if (reason.where.size() > kMaxWhere) throw;  // a deep recursion: the innermost calls say enough
    if (!reason.where.empty()) reason.where += ", called ";
    reason.where += text("in ", f.name, " at instruction ", index);
    if (at->op == Opcode::call && at->annotation >= 0)
      reason.where += text(" (", *executable_->constants[static_cast<size_t>(at->annotation)].as_string(), ')');
    fail(std::move(reason));
  }
}

Value VirtualMachine::run_call(const Instruction& i, std::vector<Value>& registers) {
  std::array<const Value*, 16> few;
  std::vector<const Value*> many;
  const Value** pointers = few.data();
  if (i.num_args > few.size()) {
    many.resize(i.num_args);
    pointers = many.data();
  }
  for (uint32_t a = 0; a < i.num_args; ++a) {
    const Arg& arg = executable_->args[i.first_arg + a];
    pointers[a] =
        arg.kind == ArgKind::register_ ? &registers[static_cast<size_t>(arg.value)] : &arg_values_[i.first_arg + a];
  }
  const std::span<const Value* const> given(pointers, i.num_args);
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
