#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/abi.h"
#include "runtime/args.h"
#include "runtime/bytecode.h"
#include "runtime/call_record.h"
#include "runtime/storage.h"
#include "runtime/thread_pool.h"

namespace sator::runtime {

struct Builtin;

/// The kernels of a program by name: functions of a model library, or host functions (tests, other
/// languages).
class KernelTable {
 public:
  using HostKernel = std::function<int32_t(void* const* buffers, const int64_t* values, SatorContext* ctx)>;
  struct Entry {
    SatorKernel run = nullptr;
    HostKernel host;
  };

  void add(std::string name, SatorKernel run) { entries_[std::move(name)] = {.run = run}; }
  void add_host(std::string name, HostKernel host) { entries_[std::move(name)] = {.host = std::move(host)}; }
  const Entry* find(const std::string& name) const;
  std::vector<std::string> names() const;

  Ref<Object> keep_alive;  ///< what must outlive the functions, such as the library they are in

 private:
  std::unordered_map<std::string, Entry> entries_;
};

/// Runs one executable on one thread pool. One thread at a time calls into a machine; machines share nothing
/// unless they are given the same pool, which then serves one of them at a time.
class VirtualMachine {
 public:
  /// `pool`: null for a pool of its own with default_num_threads(); `extra`: builtins beside those of the
  /// table. Errors: a kernel or builtin that the executable names is missing, or is called with a number of
  /// arguments it does not take. A function that programs register may be missing until it is called.
  VirtualMachine(Ref<Executable> executable, KernelTable kernels, Ref<ThreadPool> pool = {},
                 std::span<const Builtin> extra = {});
  ~VirtualMachine();
  VirtualMachine(const VirtualMachine&) = delete;
  VirtualMachine& operator=(const VirtualMachine&) = delete;

  bool has_function(std::string_view name) const { return index_of_.contains(name); }
  /// Runs a VM function and returns its value, or a kernel with its outputs among the arguments and returns
  /// nothing. Errors: no such function; a wrong number of arguments; whatever the function checks (shapes,
  /// dtypes).
  Value call(std::string_view function, std::span<const Value> args);
  Value call(std::string_view function, std::initializer_list<Value> args) {
    return call(function, std::span(args.begin(), args.size()));
  }

  /// Called after each call of a kernel, and of a builtin that has a tensor argument; null to stop. Costs
  /// nothing when off.
  void set_instrument(std::function<void(const CallRecord&)> instrument) { instrument_ = std::move(instrument); }

  /// Called before each call that a VM function makes, with no result, and after it. `false` before leaves the call out: its
  /// result is null. Null to stop.
  using CallHook = std::function<bool(const Args& args, const Value* result)>;
  void set_call_hook(CallHook hook) { call_hook_ = std::move(hook); }

  const Executable& executable() const { return *executable_; }
  ThreadPool& pool() { return *pool_; }
  /// Where the tensors of the program come from.
  StoragePool& memory() { return *memory_; }

  // For builtins.

  bool is_profiled() const { return instrument_ != nullptr; }
  /// What the record of the builtin's call that now runs is called.
  void name_record(std::string name) { record_name_ = std::move(name); }

  /// Calls a function of any kind with the closure's captured values behind the arguments.
  Value invoke(const Closure& closure, const Args& args);
  /// A value to put into the record of a kernel call beside its symbolic sizes.
  struct Extra {
    const char* name;
    int64_t value;
  };
  /// Calls a kernel: checks the arguments against its signature, gathers pointers and sizes, runs and records
  /// it. `annotation` is for calls made where the bytecode has none. Errors: a mismatch (function, parameter,
  /// expected, got); the kernel's own.
  void call_kernel(int32_t function, std::span<const Value* const> args, std::span<const Extra> extra = {},
                   std::string_view annotation = {});

 private:
  struct LoadedFunction {
    const Builtin* builtin = nullptr;  ///< null: a kernel or VM function, or a registered function that is not there
    KernelTable::Entry kernel;
  };
  // Where the machine is, for records and messages.
  struct Site {
    int32_t function = -1;
    int32_t annotation = -1;
  };

  Value dispatch(int32_t function, std::span<const Value* const> args);
  Value run_builtin(int32_t function, const Args& args);
  /// A call that is running: of one VM function by another on the heap, so that recursion takes none of the C++ stack.
  struct Frame {
    const FunctionInfo* function = nullptr;
    const Instruction* at = nullptr;
    std::vector<Value> registers;
    Site outer;
  };
  /// The values of an instruction's arguments; no memory is taken for a few.
  class CallArgs {
   public:
    CallArgs(const VirtualMachine& vm, const Instruction& i, std::vector<Value>& registers);
    std::span<const Value* const> values() const { return {many_.empty() ? few_.data() : many_.data(), count_}; }

   private:
    std::array<const Value*, 16> few_;
    std::vector<const Value*> many_;
    size_t count_;
  };

  Value run_vm(const FunctionInfo& f, const Args& args);
  void enter(const FunctionInfo& f, const Args& args);
  void leave();
  /// Whether the instruction calls a VM function, whose frame has been entered.
  bool enter_call(const Instruction& i, std::vector<Value>& registers);
  Value run_call(const Instruction& i, std::vector<Value>& registers);
  void gather_arguments(const FunctionInfo& f, std::span<const Value* const> args);
  CallRecord begin_record(const FunctionInfo& f, std::span<const Value* const> args) const;

  Ref<Executable> executable_;
  Ref<ThreadPool> pool_;
  Ref<StoragePool> memory_;
  KernelTable kernels_;
  std::unordered_map<std::string_view, int32_t> index_of_;  // by name, in the executable
  std::vector<LoadedFunction> loaded_;                      // by function index
  std::vector<Value> arg_values_;                           // beside Executable::args: what is not in a register
  std::deque<Frame> frames_;                                // by call depth; the memory stays
  size_t depth_ = 0;
  size_t nested_ = 0;  // runs of run_vm within each other
  Site site_;

  // Of the kernel call being prepared; kernels do not call back into the machine.
  std::vector<void*> buffers_;
  std::vector<int64_t> values_;

  std::function<void(const CallRecord&)> instrument_;
  CallHook call_hook_;
  std::string record_name_;  ///< of the builtin that now runs; empty: its own name
  double recorded_us_ = 0;   // of the calls recorded so far inside the builtin that is running
};

}  // namespace sator::runtime
