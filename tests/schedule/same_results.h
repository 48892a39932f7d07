// Whether two programs compute the same, told by the interpreter on random data.
#pragma once

#include <cmath>
#include <cstring>
#include <random>

#include "arith/analyzer.h"
#include "base/float16.h"
#include "passes/lower/lower.h"
#include "tir/interp.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir/verify.h"

namespace sator::test {

/// The memory of a function's arguments: small whole numbers, so that sums of any order are exact.
class RandomArguments {
 public:
  RandomArguments(const tir::PrimFunc& func, uint64_t seed) {
    std::mt19937_64 random(seed);
    VarMap sizes;
    for (const auto& [param, buffer] : func.buffer_map) {
      for (const Expr& extent : buffer->shape) {
        for (const VarRef& v : vars_in(extent))
          sizes.emplace(v, int_imm(static_cast<int64_t>(random() % 5) + 3, v->dtype));
      }
    }
    arith::Analyzer a;
    for (const VarRef& param : func.params) {
      BufferRef buffer = func.buffer_of(param);
      if (!buffer) {
        int64_t value = sizes.count(param) ? *as_int(sizes.at(param)) : static_cast<int64_t>(random() % 5) + 3;
        args_.push_back(value);
        continue;
      }
      Memory& m = memory_.emplace_back();
      m.dtype = buffer->dtype;
      int64_t count = 1;
      for (const Expr& extent : buffer->shape) {
        auto n = as_int(a.simplify(substitute(extent, sizes)));
        if (!n || *n < 0 || *n > (1 << 20)) return;
        m.shape.push_back(*n);
        count *= *n;
      }
      if (count > (1 << 20)) return;
      m.bytes.resize(static_cast<size_t>(count * m.dtype.bytes()));
      for (int64_t i = 0; i < count; ++i) m.set(i, static_cast<double>(random() % 9) - (m.dtype.is_uint() ? 0 : 4));
    }
    usable_ = true;
    size_t next = 0;
    args_.clear();
    for (const VarRef& param : func.params) {
      if (func.buffer_of(param)) {
        Memory& m = memory_[next++];
        args_.emplace_back(tir::ArrayView{m.bytes.data(), m.dtype, m.shape, {}, true});
      } else {
        args_.emplace_back(sizes.count(param) ? *as_int(sizes.at(param)) : int64_t{3});
      }
    }
  }
  RandomArguments(const RandomArguments&) = delete;

  /// False where a shape cannot be told, or is too large to run.
  bool usable() const { return usable_; }

  void run(const tir::PrimFuncRef& func, int64_t max_iterations, bool detect_races = false) {
    tir::Interpreter(func).run(
        args_, {.detect_uninitialised = true, .detect_races = detect_races, .max_iterations = max_iterations});
  }

  /// The first element that differs, in words; empty if none does.
  std::string difference(const RandomArguments& other) const {
    for (size_t k = 0; k < memory_.size(); ++k) {
      const Memory &x = memory_[k], &y = other.memory_[k];
      auto count = static_cast<int64_t>(x.bytes.size()) / x.dtype.bytes();
      for (int64_t i = 0; i < count; ++i) {
        double p = x.get(i), q = y.get(i);
        if (std::isnan(p) && std::isnan(q)) continue;
        const double allowed = x.dtype.is_float() ? 1e-4 * std::max(1.0, std::abs(p)) : 0;
        if (!(std::abs(p - q) <= allowed))
          return text("argument ", static_cast<int64_t>(k), ", element ", i, ": ", p, " became ", q);
      }
    }
    return "";
  }

 private:
  struct Memory {
    DType dtype;
    std::vector<int64_t> shape;
    std::vector<uint8_t> bytes;

    void set(int64_t i, double v) {
      auto put = [&](auto x) { std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof x, &x, sizeof x); };
      if (dtype == f32)
        put(static_cast<float>(v));
      else if (dtype == f64)
        put(v);
      else if (dtype.is_bfloat())
        put(f32_to_bf16(static_cast<float>(v)));
      else if (dtype.is_float())
        put(f32_to_f16(static_cast<float>(v)));
      else if (dtype.bytes() == 1)
        put(static_cast<int8_t>(dtype.is_bool() ? v > 0 : v));
      else if (dtype.bytes() == 2)
        put(static_cast<int16_t>(v));
      else if (dtype.bytes() == 4)
        put(static_cast<int32_t>(v));
      else
        put(static_cast<int64_t>(v));
    }
    double get(int64_t i) const {
      auto as = [&]<class T>(T) {
        T v;
        std::memcpy(&v, bytes.data() + static_cast<size_t>(i) * sizeof v, sizeof v);
        return v;
      };
      if (dtype == f32) return as(float());
      if (dtype == f64) return as(double());
      if (dtype.is_bfloat()) return bf16_to_f32(as(uint16_t()));
      if (dtype.is_float()) return f16_to_f32(as(uint16_t()));
      if (dtype.bytes() == 1) return as(int8_t());
      if (dtype.bytes() == 2) return as(int16_t());
      if (dtype.bytes() == 4) return as(int32_t());
      return static_cast<double>(as(int64_t()));
    }
  };
  std::vector<Memory> memory_;
  std::vector<tir::Argument> args_;
  bool usable_ = false;
};

/// What the two functions compute differently, in words; empty if it is the same, or if `before` cannot be run: it is too
/// large, needs a GPU, takes its arguments in another layout, or is at fault itself. A fault of `after` counts as a
/// difference, and so does a race between iterations of its parallel loops.
///   ran  whether the results were compared
inline std::string different_results(const tir::PrimFuncRef& before, const tir::PrimFuncRef& after, uint64_t seed,
                                     bool* ran = nullptr) {
  constexpr int64_t kIterations = 300'000;
  if (ran) *ran = false;
  if (before->buffer_map != after->buffer_map) return "";  // a parameter is stored in another layout
  RandomArguments x(*before, seed), y(*after, seed);
  if (!x.usable() || !y.usable()) return "";
  try {
    x.run(before, kIterations);
  } catch (const Error&) {
    return "";
  }
  if (ran) *ran = true;
  try {
    // Where memory is allocated tells which of it an iteration of a parallel loop has for itself.
    y.run(passes::plan_buffer_allocation(after, {}), 100 * kIterations, true);
  } catch (const Error& e) {
    return e.what();
  }
  return x.difference(y);
}

/// What is wrong with a program that schedule steps made of `before`, in words; empty if nothing is: it is well formed, its
/// text parses to it and prints the same again, and it computes the same.
inline std::string broken_step(const tir::PrimFuncRef& before, const tir::PrimFuncRef& after, uint64_t seed,
                               bool* ran = nullptr) {
  if (std::vector<Reason> mistakes = tir::verify(*after, tir::Stage::scheduled); !mistakes.empty())
    return text("the program is not well formed: ", mistakes.front().what);
  std::string once = tir::to_script(*after);
  try {
    tir::PrimFuncRef again = tir::parse_function(once);
    if (!equal(after, again)) return "the program parses to another one: " + tir::to_script(*again);
    if (std::string twice = tir::to_script(*again); twice != once)
      return "the program prints differently when it is parsed again: " + twice;
  } catch (const Error& e) {
    return text("the program's text is refused: ", e.what());
  }
  std::string d = different_results(before, after, seed, ran);
  return d.empty() ? d : "the results differ: " + d;
}

}  // namespace sator::test
