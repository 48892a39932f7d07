#pragma once

#include <unordered_map>

#include "runtime/bytecode.h"

namespace sator::runtime {

/// Writes an Executable: functions of all three kinds by name, constants, and the code of one VM function at
/// a time.
///
///   ExecutableBuilder b;
///   b.begin_function("main", {"x", "out"});
///   b.call(b.kernel("relu", signature), {Arg::reg(0), Arg::reg(1)});
///   b.ret(Arg::reg(1));
///   b.end_function();
///   Ref<Executable> executable = b.finish();
///
/// Errors of all members: InternalError, for a misuse is a mistake of the compiler.
class ExecutableBuilder {
 public:
  ExecutableBuilder();

  // The function table. Each returns an index for `call` or `Arg::function`; the same name gives the same
  // index.
  int32_t builtin(std::string_view name);
  int32_t kernel(std::string_view name, KernelSignature signature);
  /// A VM function, which may be defined later.
  int32_t vm_function(std::string_view name);

  /// An entry of the constant pool; equal numbers, dtypes, strings and shapes, and the same tensor, share
  /// one.
  Arg constant(const Value& value);

  // The code of one VM function. Registers 0, 1, ... are its parameters.
  int32_t begin_function(std::string_view name, std::vector<std::string> params);
  Arg new_register();
  /// `result` is a register, or nothing for a call whose value nobody reads. The annotation says where in the
  /// model the call is, such as "layers.3.mlp"; records of the profiler carry it.
  void call(int32_t function, const std::vector<Arg>& args, std::optional<Arg> result = {},
            std::string_view annotation = {});
  /// Drops what a register holds, so that its storage can be used again.
  void kill(Arg reg);
  void ret(Arg reg);
  /// The index of the instruction about to be written, for `goto_`.
  int32_t here() const { return static_cast<int32_t>(executable_->code.size()); }
  /// Jumps to an instruction already written (a loop), or without a target to where `patch` is called with
  /// the result.
  int32_t goto_(std::optional<int32_t> target = {});
  /// Goes on when the register's integer is not 0; otherwise jumps to where `patch` is called with the
  /// result.
  int32_t if_(Arg condition);
  /// Makes the jump written as instruction `jump` lead here.
  void patch(int32_t jump);
  void end_function();

  /// The program, checked by `why_invalid`. The builder is empty afterwards.
  Ref<Executable> finish();

 private:
  int32_t add(FunctionKind kind, std::string_view name);
  Instruction& emit(Opcode op);
  int32_t require_register(Arg arg) const;

  Ref<Executable> executable_;
  std::unordered_map<std::string, int32_t> functions_;
  std::unordered_map<std::string, int64_t> constants_;  // by kind and content
  int32_t current_ = -1;                                // the VM function being written
};

}  // namespace sator::runtime
