#include "fuzz/schedule/cases.h"

#include <chrono>

#include "fuzz/schedule/traces.h"
#include "schedule/same_results.h"
#include "schedule/script.h"
#include "support/machine_code.h"
#include "support/wide_indices.h"

namespace sator::fuzz {

namespace {

constexpr int kMaxLines = 8, kMaxAttempts = 24;

/// Of machine code and interpreter, or of two orders of a sum: each rounding is half an ulp off on either side, and a
/// product that is added is rounded once or twice. Four times the sum of all ulps along the steps bounds that.
test::Allowed allowed_in(const Program& program) {
  return [&program](const std::string& name, DType) {
    auto at = program.errors.find(name);
    return at == program.errors.end() ? 0 : 4 * at->second;
  };
}

std::string wrong_step(const Program& program, const tir::PrimFuncRef& before, const tir::PrimFuncRef& after,
                       uint64_t seed, bool* ran) {
  return test::broken_step(before, after, seed, ran, test::Values::fractions, allowed_in(program));
}

/// What is wrong with the program as machine code; counts what was compared.
std::string wrong_code(const Program& program, const tir::PrimFuncRef& func, uint64_t seed, Counts& counts) {
  try {
    bool ran = false;
    std::string what = test::machine_difference(func, seed, allowed_in(program), &ran);
    counts.compiled += ran;
    return what;
  } catch (const Error&) {
    ++counts.not_lowered;
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// What goes wrong at sizes that are too large to run: index arithmetic that leaves its dtype, or its buffer.
std::string wrong_indices(const tir::PrimFuncRef& before, const tir::PrimFuncRef& after, uint64_t seed,
                          Counts& counts) {
  bool ran = false;
  try {
    std::string what = test::new_index_mistake(*before, *after, seed, &ran);
    if (what.empty() && ran) what = test::new_index_mistake(*before, *passes::lower(after), seed);
    counts.wide += ran;
    return what.empty() ? "" : "at large sizes " + what;
  } catch (const Error&) {
    return "";  // refused by the lowering
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// Applies a line. What broke, in words; sets `refused` where the line is refused.
std::string apply(schedule::Schedule& s, schedule::Script& script, const std::string& line, bool& refused) {
  tir::PrimFuncRef before = s.func();
  refused = false;
  try {
    script.run(line);
  } catch (const Error& e) {
    refused = true;
    if (*e.what() == '\0') return "an error without words";
    if (s.func() != before) return "a refused step changed the program";
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace

Finding run_case(Draw& draw, uint64_t seed, Counts& counts, std::ostream* log) {
  Finding out{.program = draw_program(draw)};
  try {
    tir::PrimFuncRef func = tir::parse_function(out.program.text);
    schedule::Schedule s(func);
    schedule::Script script(s);
    bool ran = false;
    out.what = wrong_step(out.program, func, func, seed, &ran);
    if (out) return out;
    const int64_t wanted = draw.below(kMaxLines + 1);
    for (int attempts = 0; attempts < kMaxAttempts && static_cast<int64_t>(out.lines.size()) < wanted; ++attempts) {
      std::string line = draw_line(draw, s);
      if (line.empty()) continue;
      out.lines.push_back(line);
      bool refused = false;
      out.what = apply(s, script, line, refused);
      if (out) return out;
      if (refused) {
        out.lines.pop_back();
        ++counts.refused;
        continue;
      }
      ++counts.applied;
      out.what = wrong_step(out.program, func, s.func(), seed, &ran);
      if (out) return out;
      counts.compared += ran;
    }
    if (log) *log << as_test(out, seed) << std::endl;
    out.what = wrong_indices(func, s.func(), seed, counts);
    if (out) return out;
    out.what = wrong_code(out.program, s.func(), seed, counts);
    out.is_machine = !out.what.empty();
  } catch (const std::exception& e) {
    out.what = text("the fuzzer's own program is refused: ", e.what());
  }
  return out;
}

Finding check(const Program& program, const std::vector<std::string>& lines, uint64_t seed) {
  Finding out{.program = program, .lines = lines};
  Counts counts;
  try {
    tir::PrimFuncRef func = tir::parse_function(program.text);
    schedule::Schedule s(func);
    schedule::Script script(s);
    for (const std::string& line : lines) {
      bool refused = false;
      out.what = apply(s, script, line, refused);
      if (out) return out;
    }
    out.what = wrong_step(program, func, s.func(), seed, nullptr);
    if (out) return out;
    out.what = wrong_indices(func, s.func(), seed, counts);
    if (out) return out;
    out.what = wrong_code(program, s.func(), seed, counts);
    out.is_machine = !out.what.empty();
  } catch (const std::exception& e) {
    out.what = e.what();
  }
  return out;
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kShrinkTime = std::chrono::seconds(60);

/// Tries simpler choices while there is time.
class Shrinker {
 public:
  Shrinker(Finding finding, std::vector<int64_t> choices, uint64_t seed)
      : best_(std::move(finding)), choices_(std::move(choices)), seed_(seed), until_(Clock::now() + kShrinkTime) {}

  Finding run() {
    for (bool better = true; better && Clock::now() < until_;) {
      better = false;
      for (size_t length : {size_t{32}, size_t{16}, size_t{8}, size_t{4}, size_t{2}, size_t{1}}) {
        for (size_t at = 0; at + length <= choices_.size();) {
          std::vector<int64_t> fewer = choices_;
          fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at),
                      fewer.begin() + static_cast<std::ptrdiff_t>(at + length));
          if (accept(fewer))
            better = true;
          else
            ++at;
        }
      }
      for (size_t at = 0; at < choices_.size(); ++at) {
        for (int64_t smaller : {int64_t{0}, choices_[at] / 2, choices_[at] - 1}) {
          if (at >= choices_.size() || smaller < 0 || smaller >= choices_[at]) continue;
          std::vector<int64_t> simpler = choices_;
          simpler[at] = smaller;
          if (accept(simpler)) better = true;
        }
      }
    }
    return without_lines();
  }

 private:
  bool accept(const std::vector<int64_t>& choices) {
    if (Clock::now() > until_) return false;
    Draw draw(choices);
    Counts counts;
    Finding found = run_case(draw, seed_, counts);
    if (!found || found.is_machine != best_.is_machine) return false;
    // Fewer choices, or the same number of smaller ones.
    if (draw.taken.size() > choices_.size() || (draw.taken.size() == choices_.size() && !(draw.taken < choices_)))
      return false;
    best_ = std::move(found);
    choices_ = std::move(draw.taken);
    return true;
  }

  Finding without_lines() {
    for (size_t i = best_.lines.size(); i-- > 0;) {
      std::vector<std::string> fewer = best_.lines;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (Finding found = check(best_.program, fewer, seed_)) best_ = std::move(found);
    }
    return best_;
  }

  Finding best_;
  std::vector<int64_t> choices_;
  uint64_t seed_;
  Clock::time_point until_;
};

}  // namespace

Finding shrink(Finding finding, std::vector<int64_t> choices, uint64_t seed) {
  return Shrinker(std::move(finding), std::move(choices), seed).run();
}

std::string as_test(const Finding& f, uint64_t seed) {
  std::string out = text("case seed_", seed, ": found by the fuzzer\n--- program\n", f.program.text);
  if (!f.lines.empty()) out += "--- script\n" + join(f.lines, "\n") + "\n";
  out += f.is_machine ? "--- machine\n--- expect\nas the interpreter\n" : "--- expect\n";
  return out;
}

}  // namespace sator::fuzz
