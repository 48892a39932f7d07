#include "fuzz/graphs/cases.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "base/error.h"
#include "fuzz/graphs/calls.h"
#include "passes/lower/lower.h"
#include "passes/run.h"
#include "relax/parse.h"
#include "relax/print.h"
#include "support/arrays.h"
#include "support/graphs.h"

namespace sator::fuzz {

namespace {

using runtime::Tensor;
using runtime::Value;

/// Not so by purpose: statistics that are given in place of the batch's, half precision, and functions that are called otherwise.
bool keeps_results(const passes::Pass& p) {
  static const std::set<std::string> kOthers = {
      "DecomposeOpsForInference", "ToMixedPrecision", "BundleModelParams", "LazyGetInput", "LazySetOutput"};
  return !kOthers.contains(p.name);
}

/// The passes on graphs, without those that the interpreter cannot run behind.
const std::vector<const passes::Pass*>& graph_passes() {
  static const std::vector<const passes::Pass*> all = [] {
    std::vector<const passes::Pass*> out;
    for (const passes::Pass& p : passes::passes()) {
      auto is_p = [&](const auto& l) { return l.name == p.name; };
      bool lowers =
          std::ranges::any_of(passes::lower_passes(), is_p) || std::ranges::any_of(passes::more_lower_passes(), is_p);
      if (!lowers && keeps_results(p)) out.push_back(&p);
    }
    return out;
  }();
  return all;
}

bool is_runnable(const Module& module) {
  bool runs = true;
  for (const auto& [name, func] : module.functions) {
    walk(
        func,
        [&](const relax::ExternFunc& f) { runs &= f.name == "vm.builtin.tensor_to_shape"; },
        [&](const relax::Op& op) { runs &= !op.name.starts_with("vm."); });
  }
  return runs;
}

/// Whether the pipeline may still begin with it: memory and calls of the virtual machine are its own work.
bool is_graph(const Module& module) {
  bool is = is_runnable(module);
  for (const auto& [name, func] : module.functions)
    walk(func, [&](const relax::Op& op) {
      is &= !op.name.starts_with("memory.") && !op.name.starts_with("builtin.alloc") &&
            !op.name.starts_with("call_builtin");
    });
  return is;
}

/// Multiples of 1/4 from -2 to 2, which sums and comparisons treat exactly; now and then a NaN.
void simplify_floats(std::vector<Value>& args, std::mt19937_64& random, bool with_nan) {
  for (Value& v : args) {
    const Tensor& t = *v.as<Tensor>();
    for (int64_t i = 0; t.dtype().is_float() && i < t.num_elements(); ++i)
      test::set_element(t, i, with_nan && random() % 16 == 0 ? NAN : static_cast<double>(random() % 17) / 4 - 2);
  }
}

std::string lines_of(const relax::Function& f, const std::vector<Value>& args) {
  std::string out;
  for (size_t i = 0; i < args.size(); ++i) out += f.params[i]->name + " " + test::as_lines(args[i]);
  return out;
}

/// A graph with its arguments and what the interpreter makes of them.
class Subject {
 public:
  Subject(ModuleRef module, uint64_t seed) : module_(std::move(module)) {
    std::mt19937_64 random(seed);
    const relax::Function& f = *test::graph_of(*module_);
    auto args = test::arguments_for(f, random, [&](size_t) { return static_cast<int64_t>(random() % 5) + 1; });
    if (!args) return;
    args_ = std::move(*args);
    simplify_floats(args_, random, random() % 4 == 0);
    arrays = lines_of(f, args_);
    try {
      expected_ = relax::GraphInterpreter(module_).call("main", test::copies(args_));
      is_ready = true;
    } catch (const Error&) {
    }
  }

  std::vector<Value> args() const { return test::copies(args_); }

  /// How `got` differs from the expected result by more than rounding explains: elements that change when the arguments do
  /// in their last places may differ by as much.
  std::string difference(const Value& got) {
    if (!test::difference(expected_, got)) return "";
    if (neighbours_.empty()) {
      // Each pattern and its opposite: what depends on the arguments moves both ways.
      for (const auto& [pattern, relative] : {std::pair{1, 3e-7}, {1, -5e-7}, {2, 2e-6}, {2, -2e-6}})
        neighbours_.push_back(near(static_cast<uint64_t>(pattern), relative));
    }
    std::vector<const Value*> others;
    for (const Value& v : neighbours_) others.push_back(&v);
    return beyond_rounding(expected_, got, others);
  }

  /// As difference, of a call on these arguments, which it leaves as they were.
  std::string difference_of(const std::function<Value(std::span<const Value>)>& call) {
    const std::vector<Value> before = args(), given = args();
    std::string found = difference(call(given));
    for (size_t i = 0; i < given.size() && found.empty(); ++i)
      if (test::difference(before[i], given[i])) found = text("argument ", i, " is overwritten");
    return found;
  }

  bool is_ready = false;
  std::string arrays;

 private:
  /// The result for arguments that are moved by `relative` of themselves, most by as much of 1 too, each up or down as the signs of
  /// `pattern` say: both moves in one direction, so that no number stays where it is.
  Value near(uint64_t pattern, double relative) {
    std::mt19937_64 signs(pattern);
    std::vector<Value> moved = args();
    int64_t k = 0;
    for (Value& v : moved) {
      const Tensor& t = *v.as<Tensor>();
      double step = t.dtype().is_float() && t.dtype().bits == 16 ? relative * 4000 : relative;
      for (int64_t i = 0; t.dtype().is_float() && i < t.num_elements(); ++i, ++k) {
        const double x = test::element(t, i), up = signs() % 2 ? 1 : -1;
        test::set_element(t, i, x + up * step * (std::abs(x) + (k % 3 ? 1 : 0)));
      }
    }
    try {
      return relax::GraphInterpreter(module_).call("main", moved);
    } catch (const Error&) {
      return expected_;
    }
  }

  static std::string beyond_rounding(const Value& expected, const Value& got, const std::vector<const Value*>& near) {
    if (const auto* t = expected.as<runtime::Tuple>()) {
      const auto* u = got.as<runtime::Tuple>();
      if (!u || u->fields.size() != t->fields.size()) return *test::difference(expected, got);
      for (size_t i = 0; i < t->fields.size(); ++i) {
        std::vector<const Value*> items;
        for (const Value* v : near) items.push_back(&v->as<runtime::Tuple>()->fields[i]);
        std::string found = beyond_rounding(t->fields[i], u->fields[i], items);
        if (!found.empty()) return text("item ", i, ": ", found);
      }
      return "";
    }
    const Tensor *t = expected.as<Tensor>(), *u = got.as<Tensor>();
    if (!t || !u || t->shape() != u->shape() || t->dtype() != u->dtype())
      return test::difference(expected, got).value_or("");
    DType d = t->dtype();
    double relative = !d.is_float() ? 0 : d.is_bfloat() ? 3e-2 : d.bits == 16 ? 1e-2 : 2e-5;
    for (int64_t i = 0; i < t->num_elements(); ++i) {
      double x = test::element(*t, i), y = test::element(*u, i), spread = 0;
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      bool jumps = false;
      for (const Value* v : near) {
        const Tensor* n = v->as<Tensor>();
        double z = n && n->shape() == t->shape() ? test::element(*n, i) : NAN;
        jumps |= std::isfinite(z) != std::isfinite(x) || (!std::isfinite(x) && z != x);
        spread = std::max(spread, std::abs(z - x));
      }
      if (jumps || (std::isfinite(x) && std::abs(y - x) <= relative * (1 + std::abs(x)) + 300 * spread)) continue;
      return text("element ", i, " was ", x, " and is ", y);
    }
    return "";
  }

  ModuleRef module_;
  std::vector<Value> args_;
  Value expected_;
  std::vector<Value> neighbours_;
};

/// Runs `step`; what it says is wrong, or what it throws that is no Error.
template <class F>
std::string guarded(F&& step, int64_t* refused = nullptr) {
  try {
    return step();
  } catch (const Error& e) {
    if (e.reason.what.empty()) return "an error without words";
    if (refused) ++*refused;
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

Finding run_case(Draw& draw, uint64_t seed, Counts& counts) {
  GraphText graph(draw);
  counts.calls_refused += graph.refused;
  Finding out{.program = graph.text()};
  ModuleRef module;
  out.what = guarded([&] {
    module = relax::parse_module(out.program);
    return std::string();
  });
  if (!module) return out;
  std::unique_ptr<Subject> subject;
  out.what = guarded([&] {
    subject = std::make_unique<Subject>(module, seed);
    return std::string();
  });
  if (out) return out;
  if (!subject->is_ready) {
    ++counts.not_run;
    return out;
  }
  out.arrays = subject->arrays;

  // Passes in the table's order with some left out, or at random; often behind the one that overwrites memory.
  passes::PassContext ctx{.bounds = {{"n", 8}}, .target = Target::parse("llvm")};
  if (draw.one_in(2)) ctx.config["TopologicalSort.order"] = string_imm("breadth-first");
  if (draw.one_in(2)) ctx.config["TopologicalSort.direction"] = string_imm("from-outputs");
  ModuleRef now = module, rewritten = module;
  std::vector<std::string> behind;
  const auto& all = graph_passes();
  const auto total = static_cast<int64_t>(all.size());
  bool in_order = !draw.one_in(3);
  int64_t count = in_order ? draw.from(0, total) : draw.from(0, 12);
  for (int64_t k = draw.one_in(3) ? -1 : 0; k < count; ++k) {
    if (k >= 0 && in_order && draw.one_in(3)) continue;
    const passes::Pass& pass = k < 0 ? passes::pass_named("DataflowUseInplaceCalls")
                                     : *all[static_cast<size_t>(in_order ? k : draw.below(total))];
    out.passes.push_back(pass.name);
    int64_t refused = 0;
    out.what = guarded(
        [&]() -> std::string {
          ModuleRef after = passes::run_pass(pass, now, ctx);
          if (after == now) return "";
          now = after;
          ++counts.passes_applied;
          if (is_graph(*now)) {
            rewritten = now;
            behind = out.passes;
          }
          ModuleRef again = relax::parse_module(relax::to_script(*after));
          if (!equal(after, again)) return "the printed program parses to another one";
          const relax::Function* f = test::graph_of(*after);
          if (!is_runnable(*after) || !f || f->params.size() != test::graph_of(*module)->params.size()) return "";
          ++counts.compared;
          try {
            return subject->difference_of(
                [&](std::span<const Value> args) { return relax::GraphInterpreter(after).call("main", args); });
          } catch (const Error& e) {
            return text("the interpreter refuses it now: ", e.what());
          }
        },
        &refused);
    counts.passes_refused += refused;
    if (out) return out;
    if (refused) out.passes.pop_back();
  }
  // Machine code of the graph as it was, or as the passes left it.
  out.passes = draw.one_in(2) ? behind : std::vector<std::string>();
  int64_t refused = 0;
  out.what = guarded(
      [&] {
        test::CompiledGraph compiled(out.passes.empty() ? module : rewritten);
        ++counts.compiled;
        try {
          return subject->difference_of([&](std::span<const Value> args) { return compiled.call("main", args); });
        } catch (const Error& e) {
          return text("machine code refuses what the interpreter runs: ", e.what());
        }
      },
      &refused);
  counts.not_compiled += refused;
  out.is_machine = bool(out);
  return out;
}

namespace {

/// Findings are of one kind while their words begin alike.
bool is_same_kind(const Finding& a, const Finding& b) {
  return a.is_machine == b.is_machine && a.what.substr(0, 12) == b.what.substr(0, 12);
}

}  // namespace

Finding shrink(Finding finding, std::vector<int64_t> choices, uint64_t seed) {
  Counts ignored;
  int attempts = 0;
  constexpr int kMaxAttempts = 400;
  auto try_with = [&](std::vector<int64_t> fewer) {
    if (++attempts > kMaxAttempts) return false;
    Draw draw(fewer);
    Finding found = run_case(draw, seed, ignored);
    if (!found || !is_same_kind(found, finding)) return false;
    if (draw.taken.size() > choices.size() || (draw.taken.size() == choices.size() && draw.taken >= choices))
      return false;
    finding = std::move(found);
    choices = std::move(draw.taken);
    return true;
  };
  for (bool changed = true; changed && attempts < kMaxAttempts;) {
    changed = false;
    for (size_t span : {16, 8, 4, 2, 1}) {
      for (size_t at = choices.size(); at-- > 0 && attempts < kMaxAttempts;) {
        std::vector<int64_t> fewer = choices;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(std::min(at, fewer.size())),
                    fewer.begin() + static_cast<std::ptrdiff_t>(std::min(at + span, fewer.size())));
        changed |= try_with(std::move(fewer));
        at = std::min(at, choices.size());
      }
    }
    for (size_t at = 0; at < choices.size() && attempts < kMaxAttempts; ++at) {
      if (choices[at] == 0) continue;
      std::vector<int64_t> smaller = choices;
      smaller[at] = 0;
      changed |= try_with(std::move(smaller));
    }
  }
  return finding;
}

std::string as_test(const Finding& f, uint64_t seed) {
  std::string out = text("case seed_", seed, ": found by the fuzzer\n--- program\n", f.program);
  if (f.is_machine)
    return out + (f.passes.empty() ? "" : text("# behind the passes ", join(f.passes, ", "), "\n")) + "--- evaluate\n" +
           f.arrays + "--- expect\n";
  return out + "--- passes " + join(f.passes, ", ") + "\n--- bounds\nn=8\n--- expect\n";
}

}  // namespace sator::fuzz
