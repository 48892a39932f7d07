// Random programs keep their meaning where passes use what buffers hold.
#include "passes/lower/contents.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "passes/lower/lower.h"
#include "support/random_arguments.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir/verify.h"

namespace sator::passes {
namespace {

/// Programs over two buffers of eight elements: loops, branches, stores, with indices that stay inside.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : engine_(seed) {}
  std::string text() {
    out_ = "@T.prim_func\ndef f(A: T.Buffer((8,), \"int32\"), B: T.Buffer((8,), \"int32\"), n: T.int32):\n";
    for (int i = draw(2, 5); i > 0; --i) statement(1);
    return out_;
  }

 private:
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  std::string pick(std::initializer_list<const char*> words) { return words.begin()[draw(0, int(words.size()) - 1)]; }
  std::string buffer() { return pick({"A", "A", "B"}); }
  std::string loop() { return loops_.empty() ? "3" : loops_[size_t(draw(0, int(loops_.size()) - 1))]; }
  std::string index() {
    switch (draw(0, 6)) {
      case 0: return sator::text(draw(0, 7));
      case 1: return "7 - " + loop();
      case 2: return "(" + loop() + " + 1) % 8";
      case 3: return "(" + loop() + " * 2) % 8";
      default: return loop();
    }
  }
  std::string element() { return buffer() + "[" + index() + "]"; }
  std::string value() {
    switch (draw(0, 4)) {
      case 0: return sator::text(draw(0, 2));
      case 1: return element() + " + " + sator::text(draw(0, 1));
      case 2: return element();
      case 3: return loop() + " + 1";
      default: return pick({"0", "1", "n"});
    }
  }
  std::string condition() {
    switch (draw(0, 4)) {
      case 0: return element() + " == " + value();
      case 1: return element() + " < 2";
      case 2: return loop() + " >= " + sator::text(draw(0, 8));
      case 3: return "n == " + sator::text(draw(0, 2)) + " or " + loop() + " != " + sator::text(draw(0, 3));
      default: return loop() + " < " + sator::text(draw(0, 8));
    }
  }
  void line(int depth, const std::string& words) { out_ += std::string(size_t(depth) * 4, ' ') + words + "\n"; }
  void body(int depth) {
    for (int i = draw(1, 3); i > 0; --i) statement(depth);
  }
  void statement(int depth) {
    int kind = depth > 3 ? 0 : draw(0, 5);
    if (kind <= 1) return line(depth, element() + " = " + value());
    if (kind <= 3) {
      std::string name = sator::text("i", count_++);
      line(depth, "for " + name + " in range(" + sator::text(draw(0, 3)) + ", " + sator::text(draw(4, 8)) + "):");
      loops_.push_back(name);
      body(depth + 1);
      loops_.pop_back();
      return;
    }
    line(depth, "if " + condition() + ":");
    body(depth + 1);
    if (draw(0, 1)) {
      line(depth, "else:");
      body(depth + 1);
    }
  }

  std::mt19937_64 engine_;
  std::string out_;
  std::vector<std::string> loops_;
  int count_ = 0;
};

TEST(Contents, PassesThatUseThemKeepTheMeaning) {
  const Attrs all = {{"tir.Simplify.propagate_knowns_to_prove_conditional", int_imm(1, i64)},
                     {"tir.Simplify.propagate_knowns_to_simplify_expressions", int_imm(1, i64)},
                     {"tir.Simplify.apply_constraints_to_boolean_branches", int_imm(1, i64)},
                     {"tir.RemoveNoOp.use_dataflow_analysis", int_imm(1, i64)},
                     {"tir.ReduceBranchingThroughOvercompute.use_dataflow_analysis", int_imm(1, i64)}};
  int changed[3] = {};
  const char* more = std::getenv("SATOR_FUZZ_CASES");
  const uint64_t cases = more ? std::strtoull(more, nullptr, 10) : 400;
  for (uint64_t seed = 0; seed < cases; ++seed) {
    std::string program = RandomProgram(seed).text();
    SCOPED_TRACE(text("seed ", seed, "\n", program));
    tir::PrimFuncRef f = tir::parse_function(program, "f");
    test::RandomArguments expected(*f, seed);
    expected.interpret(f, 1'000'000);
    int at = 0;
    for (auto pass : {simplify, remove_no_op, reduce_branching}) {
      tir::PrimFuncRef g = pass(f, {.config = all});
      ASSERT_TRUE(tir::verify(*g).empty()) << tir::to_script(*g);
      changed[at++] += !equal(f, g);
      test::RandomArguments got(*f, seed);
      got.interpret(g, 1'000'000);
      ASSERT_EQ(got.difference(expected, [](const std::string&, DType) { return 0.0; }), "") << tir::to_script(*g);
    }
  }
  // The programs say something about each pass.
  for (int count : changed) EXPECT_GT(count, 40);
}

}  // namespace
}  // namespace sator::passes
