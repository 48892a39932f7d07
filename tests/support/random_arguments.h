// The arguments of a tensor function with random contents, to run it by the interpreter and as machine code.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/abi.h"
#include "tir/interp.h"

namespace sator::test {

/// Memory between a guard in front, whose bytes are compared, and a page behind that cannot be touched: an access behind
/// the end faults.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  uint8_t* data() const { return data_; }
  /// Nothing was written in front.
  bool is_intact() const;

 private:
  uint8_t *pages_ = nullptr, *data_ = nullptr;
  size_t mapped_ = 0, guard_ = 0;
};

/// How numbers are drawn.
///   whole      small whole numbers, so that sums of any order are exact
///   fractions  floats from 0.5 to 1.5, so that nothing cancels; integers as above
enum class Values { whole, fractions };

/// The relative difference that floats of the buffer of that name may have.
using Allowed = std::function<double(const std::string& name, DType)>;

class RandomArguments {
 public:
  ///   sizes         values of symbolic sizes by name; others are drawn, from 3 to 7
  ///   max_elements  of one buffer; larger ones are not usable
  RandomArguments(const tir::PrimFunc& func, uint64_t seed, Values values = Values::whole,
                  const std::map<std::string, int64_t>& sizes = {}, int64_t max_elements = 1 << 20);
  RandomArguments(const RandomArguments&) = delete;

  /// False where a shape cannot be told, or is too large to run.
  bool usable() const { return usable_; }

  /// Errors: those of the interpreter.
  void interpret(const tir::PrimFuncRef& func, int64_t max_iterations, bool detect_races = false);
  /// Calls machine code of a function with these parameters. What is wrong, in words: it fails, touches memory beyond its
  /// buffers; empty if nothing is.
  std::string call(SatorKernel kernel, const tir::PrimFunc& func);

  /// The first element that differs by more than the buffer allows, in words; empty if none does.
  std::string difference(const RandomArguments& other, const Allowed& allowed) const;

 private:
  struct Array {
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;
    int64_t count = 1;
    std::unique_ptr<GuardedMemory> memory;

    void set(int64_t i, double v);
    double get(int64_t i) const;
    bool equal_bits(const Array& other, int64_t i) const;
  };
  std::vector<Array> arrays_;
  std::vector<tir::Argument> args_;
  VarMap sizes_;
  bool usable_ = false;
};

}  // namespace sator::test
