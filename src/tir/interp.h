// The meaning of tensor programs: runs a function on memory. Whatever is faster is compared with it.
//
// Loops of every kind run in order; `detect_races` tells where parallel, vectorized and bound ones may not. A block runs its init where all reduction iterators are at their first value, and not
// at all where its predicate is false. Integers wrap at the width of their dtype; float16 and bfloat16 are rounded after
// every operation, float32 too; // and % round down.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <variant>

#include "tir/nodes.h"

namespace sator::runtime {
class Tensor;
}

namespace sator::tir {

/// Memory as an argument: the element [0, 0, ...] is at `data`. Sub-byte integers and bool take one byte.
struct ArrayView {
  void* data = nullptr;
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  ///< in elements; empty: row-major and compact
  bool is_initialised = true;    ///< false: with detect_uninitialised, reading before writing is an error
};
ArrayView view(const runtime::Tensor& tensor);

/// What a parameter receives: memory for a buffer, a number for a scalar.
using Argument = std::variant<ArrayView, int64_t, double>;

/// What a function returns by T.ret.
using Scalar = std::variant<int64_t, double>;

/// How often a block ran, and how many of its stores were of the form x = x + a * b.
struct BlockCount {
  int64_t instances = 0;
  int64_t multiply_adds = 0;
};
/// By the name of the block; stores outside of blocks count under "".
using BlockCounts = std::map<std::string, BlockCount>;

/// A value that crosses to a function outside of the program.
struct ExternValue {
  DType dtype;
  int64_t integer = 0;
  double real = 0;
  void* pointer = nullptr;
  std::string text;
};
using ExternFunction = std::function<ExternValue(std::span<const ExternValue>)>;

struct RunOptions {
  bool detect_uninitialised = false;  ///< reading an element that nothing has written is an error
  /// That an iteration of a parallel or vectorized loop, or of one bound to blockIdx.*, changes an element which another
  /// one reads or changes is an error. Which memory an iteration has for itself, allocations inside of the loop tell.
  bool detect_races = false;
  BlockCounts* counts = nullptr;         ///< filled if given
  int64_t max_iterations = 0;            ///< of all loops together; more is an error; 0: no limit
  int64_t max_bytes = int64_t{4} << 30;  ///< of one allocation
  /// What T.call_extern and T.call_packed call, by name.
  std::map<std::string, ExternFunction, std::less<>> externs;
};

/// A function made ready to run. Cost: some 10 ns per operation of the program.
class Interpreter {
 public:
  /// Errors: an operation that has no meaning here (most intrinsics of GPUs).
  explicit Interpreter(PrimFuncRef func);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;

  /// The value that the function returns, if it does. One argument per parameter. Symbolic sizes take their values from the shapes.
  /// Errors: arguments that do not fit; an index out of bounds (with buffer, index and block); an iterator outside of its
  /// domain; a division by zero; a failed assertion; a limit of the options.
  std::optional<Scalar> run(std::span<const Argument> args, const RunOptions& options = {}) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

/// Compiles and runs once, on tensors.
void run(const PrimFunc& func, std::span<const Ref<runtime::Tensor>> args, const RunOptions& options = {});

}  // namespace sator::tir
