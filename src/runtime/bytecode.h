#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "runtime/value.h"

// The program of the virtual machine: four instructions over registers, as TVM's Relax VM has them. A Relax
// function becomes one VM function; all arithmetic happens in kernels, everything else in builtins.
//
//   @decode(tokens, cache, params):
//     call  vm.builtin.tuple_getitem  in: %2, i0  dst: %3
//     call  gemm  in: %0, %3, %4  dst: %void  # layers.0.attn
//     ret  %4
namespace sator::runtime {

enum class Opcode : uint8_t { call, ret, goto_, if_ };

enum class ArgKind : uint8_t {
  register_,  ///< the register `value`: %3
  immediate,  ///< the integer `value`: i3
  constant,   ///< entry `value` of the constant pool: c[3]
  function,   ///< function `value`, as a closure: f[gemm]
};

struct Arg {
  ArgKind kind = ArgKind::immediate;
  int64_t value = 0;
  bool operator==(const Arg&) const = default;

  static Arg reg(int64_t index) { return {ArgKind::register_, index}; }
  static Arg imm(int64_t value) { return {ArgKind::immediate, value}; }
  static Arg constant(int64_t index) { return {ArgKind::constant, index}; }
  static Arg function(int64_t index) { return {ArgKind::function, index}; }
};

/// A call whose result nobody reads.
inline constexpr int32_t kVoidRegister = -1;

struct Instruction {
  Opcode op = Opcode::ret;
  int32_t reg = kVoidRegister;  ///< call: where the result goes; ret: what is returned; if: the condition, an integer
  int32_t function = 0;         ///< call: index in the function table
  uint32_t first_arg = 0;       ///< call: its arguments in Executable::args
  uint32_t num_args = 0;
  int32_t offset = 0;  ///< goto: to the target, counted from this instruction; if: the same when the condition is 0
  int32_t annotation = -1;  ///< call: a string constant that says where in the model it is ("layers.3.mlp"); -1: none
  bool operator==(const Instruction&) const = default;
};

/// One extent of a kernel's tensor parameter: a constant, a symbolic size (an index of `values`), or whatever
/// comes (derived sizes such as n * 4, which are not checked).
struct KernelDim {
  enum class Kind : uint8_t { constant, value, any };
  Kind kind = Kind::any;
  int64_t value = 0;
  bool operator==(const KernelDim&) const = default;

  static KernelDim constant(int64_t extent) { return {Kind::constant, extent}; }
  static KernelDim symbolic(int64_t index) { return {Kind::value, index}; }
  static KernelDim any() { return {Kind::any, 0}; }
};

/// One parameter of a kernel: a tensor, or a scalar that is passed in `values`.
struct KernelParam {
  std::string name;
  DType dtype;
  bool is_tensor = true;
  std::vector<KernelDim> dims;  ///< of a tensor
  int32_t value = -1;           ///< of a scalar: its index in `values`
  bool operator==(const KernelParam&) const = default;
};

/// One integer that a kernel receives: `dims[dim]` of tensor parameter `param`, or scalar parameter `param`
/// (dim = -1).
struct KernelValue {
  std::string name;
  int32_t param = 0;
  int32_t dim = -1;
  bool operator==(const KernelValue&) const = default;
};

/// How a kernel is called. Its tensor parameters become `buffers`, its `values` the integers of abi.h.
struct KernelSignature {
  std::vector<KernelParam> params;
  std::vector<KernelValue> values;
  bool operator==(const KernelSignature&) const = default;
};

/// A VM function: `num_registers` registers, the first of which are the parameters, and instructions [begin,
/// end).
struct VmCode {
  std::vector<std::string> params;
  int32_t num_registers = 0;
  int32_t begin = 0;
  int32_t end = 0;
  bool operator==(const VmCode&) const = default;
};

enum class FunctionKind : uint8_t { builtin, vm, kernel };

struct FunctionInfo {
  FunctionKind kind = FunctionKind::builtin;
  std::string name;
  VmCode vm;               ///< of a VM function
  KernelSignature kernel;  ///< of a kernel
};

/// A whole program: function table, constant pool, code. Made by ExecutableBuilder or read from bytes, then
/// fixed.
class Executable final : public Object {
 public:
  std::vector<FunctionInfo> functions;
  std::vector<Value> constants;  ///< tensors, shapes, strings, dtypes, integers, floats
  std::vector<Instruction> code;
  std::vector<Arg> args;

  /// The index of the function with that name; -1 if there is none.
  int32_t find(std::string_view name) const;
  /// The program in words, one function after the other; see the head of this file.
  std::string as_text() const;
  /// The bytes that `load` reads.
  std::string save() const;
  /// Errors: the bytes are no executable, of another version, damaged, or would not be safe to run; the
  /// message says where. Kernels and builtins are looked up later, when a VirtualMachine is made.
  static Ref<Executable> load(std::span<const std::byte> bytes);
};

/// Why an executable cannot be run safely: an index out of range, code that runs off its end, a signature
/// that reads what is not there. Nothing if all is well.
std::optional<Reason> why_invalid(const Executable& executable);

/// "gemm(a: float32[n, 768], b: float32[768, 768], scale: float32)"
std::string describe_signature(const FunctionInfo& kernel);

}  // namespace sator::runtime
