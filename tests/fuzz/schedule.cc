// ./dev fuzz schedule: random programs, random schedules. Each primitive must refuse with an Error, or leave a program that
// is well formed, reads back from its text, and computes the same in the interpreter. A finding is shrunk and printed as a
// text test.

#include <iostream>

#include "cli/app.h"
#include "schedule/primitives.h"
#include "schedule/same_results.h"
#include "schedule/script.h"

namespace sator {
namespace {

using schedule::AnyPrimitive;
using schedule::Schedule;

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int64_t below(int64_t n) { return n <= 0 ? 0 : static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t from(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool one_in(int64_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

 private:
  std::mt19937_64 random_;
};

// ---- Programs: a chain of steps, each a block that reads what earlier ones wrote.

struct Array {
  std::string name;
  std::vector<int64_t> shape;
};

class ProgramText {
 public:
  explicit ProgramText(Draw& draw) : draw_(draw), dtype_(draw.one_in(4) ? "int32" : "float32") {
    last_ = input({draw.from(1, 9), draw.from(1, 9)});
    int64_t steps = draw.from(1, 3);
    for (int64_t i = 0; i < steps; ++i) step(i + 1 == steps);
  }

  std::string text() const {
    std::string params;
    for (const Array& a : params_) params += (params.empty() ? "" : ", ") + declared(a, ": T.Buffer(");
    std::string out = "@T.prim_func\ndef f(" + params + "):\n";
    for (const Array& a : buffers_) out += "    " + declared(a, " = T.alloc_buffer(") + "\n";
    return out + body_;
  }

 private:
  std::string declared(const Array& a, const char* how) const {
    std::string shape;
    for (int64_t n : a.shape) shape += sator::text(n) + ", ";
    return a.name + how + "(" + shape + "), \"" + dtype_ + "\")";
  }
  Array input(std::vector<int64_t> shape) {
    params_.push_back({sator::text("A", static_cast<int64_t>(params_.size())), std::move(shape)});
    return params_.back();
  }
  std::string number(int64_t n) const { return "T." + dtype_ + "(" + sator::text(n) + ")"; }

  /// One block under loops over `extents`; the axes named in `kinds` by S and R are v0, v1, ...
  void block(const Array& out, const std::vector<int64_t>& extents, const std::string& kinds, const std::string& at,
             const std::string& init, const std::string& value) {
    std::string n = sator::text(number_++), loops, grid, axes;
    for (size_t i = 0; i < extents.size(); ++i) {
      const char* comma = i == 0 ? "" : ", ";
      loops += comma + sator::text("i", n, "_", static_cast<int64_t>(i));
      grid += comma + sator::text(extents[i]);
      axes += sator::text("            v",
                          static_cast<int64_t>(i),
                          " = T.axis.",
                          kinds[i] == 'S' ? "spatial" : "reduce",
                          "(",
                          extents[i],
                          ", i",
                          n,
                          "_",
                          static_cast<int64_t>(i),
                          ")\n");
    }
    body_ += "    for " + loops + " in T.grid(" + grid + "):\n        with T.block(\"" + out.name + "\"):\n" + axes;
    std::string target = out.name + "[" + at + "]";
    if (!init.empty()) body_ += "            with T.init():\n                " + target + " = " + init + "\n";
    body_ += "            " + target + " = " + value + "\n";
  }

  void step(bool is_output) {
    Array in = last_;
    int64_t m = in.shape[0], n = in.shape[1];
    Array out{sator::text("B", number_), in.shape};
    std::string x = in.name + "[v0, v1]";
    switch (draw_.below(8)) {
      case 0: block(out, {m, n}, "SS", "v0, v1", "", x + " * " + number(2)); break;
      case 1:
        out.shape = {n, m};
        block(out, {n, m}, "SS", "v0, v1", "", in.name + "[v1, v0] + " + number(1));
        break;
      case 2: {
        Array other = input(in.shape);
        block(out, {m, n}, "SS", "v0, v1", "", x + " + " + other.name + "[v0, v1]");
        break;
      }
      case 3: {
        int64_t k = draw_.from(1, 6);
        Array w = input({n, k});
        out.shape = {m, k};
        block(out,
              {m, k, n},
              "SSR",
              "v0, v1",
              number(0),
              out.name + "[v0, v1] + " + in.name + "[v0, v2] * " + w.name + "[v2, v1]");
        break;
      }
      case 4:
        out.shape = {m, 1};
        if (draw_.one_in(2))
          block(out, {m, n}, "SR", "v0, 0", number(0), out.name + "[v0, 0] + " + x);
        else
          block(out,
                {m, n},
                "SR",
                "v0, 0",
                "T.min_value(\"" + dtype_ + "\")",
                "T.max(" + out.name + "[v0, 0], " + x + ")");
        break;
      case 5: {
        int64_t window = draw_.from(1, std::min<int64_t>(3, n));
        out.shape = {m, n - window + 1};
        block(out,
              {m, n - window + 1, window},
              "SSR",
              "v0, v1",
              number(0),
              out.name + "[v0, v1] + " + in.name + "[v0, v1 + v2]");
        break;
      }
      case 6:
        out.shape = {m + 2, n};
        block(out,
              {m + 2, n},
              "SS",
              "v0, v1",
              "",
              sator::text("T.if_then_else(1 <= v0 and v0 < ", m + 1, ", ", in.name, "[v0 - 1, v1], ", number(0), ")"));
        break;
      default:
        out.shape = {1, m * n};
        block(out, {m * n}, "S", "0, v0", "", sator::text(in.name, "[v0 // ", n, ", v0 % ", n, "] * ", number(3)));
    }
    (is_output ? params_ : buffers_).push_back(out);
    last_ = out;
  }

  Draw& draw_;
  std::string dtype_, body_;
  std::vector<Array> params_, buffers_;
  Array last_;
  int64_t number_ = 0;
};

// ---- Schedules: one line of script per step, with handles by the names of blocks.

class Line {
 public:
  Line(Draw& draw, const Schedule& s) : draw_(draw), s_(s) {
    const schedule::Sites& sites = s.sites();
    for (int i = 1; i < sites.count(); ++i) {
      if (sites[i].realize()) blocks_.push_back(i);
    }
  }

  std::string text() {
    const AnyPrimitive& p = *draw_.of(schedule::primitives());
    if (p.name.starts_with("get_") || blocks_.empty()) return "";
    block_ = draw_.of(blocks_);
    std::vector<std::string> args;
    for (const schedule::Parameter& parameter : p.parameters) {
      if (!parameter.required && !draw_.one_in(4)) continue;
      args.push_back(parameter.name + "=" + argument(p, parameter.name));
    }
    if (p.parameters.front().name == "loops") args[0] = args[0].substr(sizeof "loops");  // given one by one
    return p.name + "(" + join(args, ", ") + ")";
  }

 private:
  using Drawn = std::string (Line::*)(const AnyPrimitive&);

  /// How a value for a parameter of this name is drawn. A primitive with a new name needs a row.
  std::string argument(const AnyPrimitive& p, const std::string& name) {
    static const std::map<std::string, Drawn> rows = {
        {"block", &Line::block},
        {"loop", &Line::loop},
        {"target", &Line::loop},
        {"loops", &Line::loops},
        {"block_or_loop", &Line::block_or_loop},
        {"factors", &Line::factors},
        {"buffer", &Line::buffer},
        {"buffer_index", &Line::index},
        {"read_buffer_index", &Line::index},
        {"write_buffer_index", &Line::index},
        {"storage_scope", &Line::scope},
        {"index_map", &Line::index_map},
        {"padding", &Line::padding},
        {"factor_axis", &Line::axis},
        {"axis", &Line::axis},
        {"factor", &Line::size},
        {"offset", &Line::size},
        {"axis_separators", &Line::separators},
        {"thread_axis", &Line::thread},
        {"ann_key", &Line::key},
        {"ann_val", &Line::size},
        {"index", &Line::axis},
        {"preserve_unit_iters", &Line::flag},
        {"preserve_unit_loops", &Line::flag},
        {"disable_predication", &Line::never},
        {"assume_injective_transform", &Line::never},
        {"consumer_blocks", &Line::consumers},
        {"pad_value", &Line::pad_value},
        {"tensor_intrin", &Line::intrin},
    };
    auto row = rows.find(name);
    if (row == rows.end()) internal_error(sator::text("the fuzzer has no draw for ", p.name, "(", name, ")"));
    return (this->*row->second)(p);
  }

  const tir::Block& chosen() const { return *s_.sites()[block_].realize()->block; }
  std::string block(const AnyPrimitive&) { return string_literal(chosen().name->text); }
  std::string loop(const AnyPrimitive&) {
    int block = draw_.one_in(2) ? block_ : draw_.of(blocks_);
    return loop_of(block, draw_.below(static_cast<int64_t>(s_.sites().loops_above(block).size())));
  }
  std::string loop_of(int block, int64_t k) const {
    return sator::text("get_loops(", string_literal(s_.sites()[block].realize()->block->name->text), ")[", k, "]");
  }
  std::string loops(const AnyPrimitive& p) {
    auto n = static_cast<int64_t>(s_.sites().loops_above(block_).size());
    std::vector<std::string> out;
    if (p.name == "fuse") {
      int64_t first = draw_.below(n);
      for (int64_t k = first; k <= std::min(n - 1, first + draw_.from(0, 2)); ++k) out.push_back(loop_of(block_, k));
    } else {
      std::vector<int64_t> order;
      for (int64_t k = 0; k < n; ++k) order.push_back(k);
      for (int64_t k = n; k > 1; --k)
        std::swap(order[static_cast<size_t>(k - 1)], order[static_cast<size_t>(draw_.below(k))]);
      order.resize(static_cast<size_t>(std::min(n, draw_.from(1, 4))));
      for (int64_t k : order) out.push_back(loop_of(block_, k));
    }
    return out.empty() ? "[]" : join(out, ", ");
  }
  std::string block_or_loop(const AnyPrimitive& p) { return draw_.one_in(2) ? block(p) : loop(p); }
  std::string factors(const AnyPrimitive&) {
    std::vector<std::string> out;
    int64_t n = draw_.from(1, 3), open = draw_.one_in(4) ? -1 : draw_.below(n);
    for (int64_t i = 0; i < n; ++i) out.push_back(i == open ? "None" : sator::text(draw_.from(1, 5)));
    return "[" + join(out, ", ") + "]";
  }
  std::string index(const AnyPrimitive&) { return sator::text(draw_.below(2)); }
  std::string buffer(const AnyPrimitive&) {
    is_write_ = draw_.one_in(2);
    const auto& regions = is_write_ ? chosen().writes : chosen().reads;
    at_ = draw_.below(static_cast<int64_t>(regions.size()));
    return sator::text("(", is_write_ ? "\"write\"" : "\"read\"", ", ", at_, ")");
  }
  std::string scope(const AnyPrimitive&) {
    return string_literal(draw_.of(std::vector<std::string>{"shared", "local", "shared.dyn"}));
  }
  std::string index_map(const AnyPrimitive& p) {
    int64_t rank = static_cast<int64_t>(chosen().iter_vars.size());
    if (p.name == "transform_layout") {
      const auto& regions = is_write_ ? chosen().writes : chosen().reads;
      if (at_ < static_cast<int64_t>(regions.size())) rank = regions[static_cast<size_t>(at_)]->buffer->rank();
    }
    std::vector<std::string> in, out;
    for (int64_t i = 0; i < rank; ++i) in.push_back(sator::text("x", i));
    out = in;
    if (rank > 0 && draw_.one_in(2)) {
      size_t k = static_cast<size_t>(draw_.below(rank));
      int64_t f = draw_.from(1, 4);
      out[k] = sator::text(in[k], " // ", f);
      out.push_back(sator::text(in[k], " % ", f));
    } else if (rank > 1 && draw_.one_in(2)) {
      out[0] = sator::text(in[0], " * ", draw_.from(1, 9), " + ", in[1]);
      out.erase(out.begin() + 1);
    }
    if (out.size() > 1 && draw_.one_in(2))
      std::swap(out[0], out[static_cast<size_t>(draw_.below(static_cast<int64_t>(out.size())))]);
    return "lambda " + join(in, ", ") + ": (" + join(out, ", ") + ",)";
  }
  std::string padding(const AnyPrimitive&) {
    std::vector<std::string> out;
    for (size_t i = 0; i < chosen().iter_vars.size(); ++i) out.push_back(sator::text(draw_.from(1, 4)));
    return "[" + join(out, ", ") + "]";
  }
  std::string axis(const AnyPrimitive&) { return sator::text(draw_.from(-3, 3)); }
  std::string separators(const AnyPrimitive&) { return sator::text("[", draw_.from(-1, 3), "]"); }
  std::string size(const AnyPrimitive&) { return sator::text(draw_.from(0, 8)); }
  /// Axes whose threads share no cache: the interpreter runs threads one after the other, without barriers.
  std::string thread(const AnyPrimitive&) {
    return string_literal(draw_.of(std::vector<std::string>{"blockIdx.x", "blockIdx.y"}));
  }
  std::string key(const AnyPrimitive&) { return "\"key\""; }
  std::string flag(const AnyPrimitive&) { return draw_.one_in(2) ? "True" : "False"; }
  std::string never(const AnyPrimitive&) { return "False"; }  // the caller answers for these
  std::string consumers(const AnyPrimitive& p) { return "[" + block(p) + "]"; }
  std::string pad_value(const AnyPrimitive&) { return draw_.one_in(2) ? "None" : "0"; }
  std::string intrin(const AnyPrimitive&) { return "\"none\""; }

  Draw& draw_;
  const Schedule& s_;
  std::vector<int> blocks_;
  int block_ = -1;
  bool is_write_ = false;
  int64_t at_ = 0;
};

// ---- One case.

/// What is wrong after the last of the lines; empty if nothing is, or if a line is refused.
std::string finding(const tir::PrimFuncRef& func, const std::vector<std::string>& lines, uint64_t seed) {
  Schedule s(func);
  schedule::Script script(s);
  for (const std::string& line : lines) {
    try {
      script.run(line);
    } catch (const Error&) {
      if (&line == &lines.back()) return "";
    } catch (const std::exception& e) {
      return e.what();
    }
  }
  return test::broken_step(func, s.func(), seed);
}

[[noreturn]] void report(const std::string& program, const tir::PrimFuncRef& func, std::vector<std::string> lines,
                         uint64_t seed) {
  for (size_t i = lines.size() - 1; i-- > 0;) {  // shrink: the last line is the one that breaks
    std::vector<std::string> fewer = lines;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (!finding(func, fewer, seed).empty()) lines = std::move(fewer);
  }
  internal_error(text(finding(func, lines, seed),
                      "\n\ncase seed_",
                      seed,
                      ": found by the fuzzer\n--- program\n",
                      program,
                      "--- script\n",
                      join(lines, "\n"),
                      "\n--- expect\n\n  repeat: --seed ",
                      seed,
                      " --count 1"));
}

struct Counts {
  int64_t applied = 0, refused = 0, compared = 0;
};

void one_case(uint64_t seed, Counts& counts) {
  Draw draw(seed);
  std::string program = ProgramText(draw).text();
  tir::PrimFuncRef func = tir::parse_function(program);
  Schedule s(func);
  schedule::Script script(s);
  std::vector<std::string> lines;
  for (int attempts = 0; attempts < 24 && lines.size() < 8; ++attempts) {
    std::string line = Line(draw, s).text();
    if (line.empty()) continue;
    tir::PrimFuncRef before = s.func();
    lines.push_back(line);
    try {
      script.run(line);
    } catch (const Error& e) {
      if (*e.what() == '\0') internal_error("an error has words");
      if (s.func() != before) internal_error(text("a refused step changed the program: ", line));
      lines.pop_back();
      ++counts.refused;
      continue;
    } catch (const std::exception&) {
      report(program, func, lines, seed);
    }
    ++counts.applied;
    bool ran = false;
    if (!test::broken_step(func, s.func(), seed, &ran).empty()) report(program, func, lines, seed);
    counts.compared += ran;
  }
}

cli::Command command() {
  static int64_t seed = 1, count = INT64_MAX;
  return {.name = "fuzz_schedule",
          .does = "schedules random programs at random until one computes something else",
          .options = {{"--seed N", "of the first case", &seed}, {"--count N", "how many cases", &count}},
          .run = [](cli::Streams& io) {
            Counts counts;
            for (int64_t i = 0; i < count; ++i) {
              one_case(static_cast<uint64_t>(seed + i), counts);
              if (i % 100 == 99)
                io.notes << text(i + 1,
                                 " cases, to seed ",
                                 seed + i,
                                 ": ",
                                 counts.applied,
                                 " steps applied, ",
                                 counts.compared,
                                 " of them compared, ",
                                 counts.refused,
                                 " refused\n")
                         << std::flush;
            }
          }};
}

}  // namespace
}  // namespace sator

int main(int argc, char** argv) {
  return sator::cli::run_single({argv + 1, argv + argc}, sator::command(), std::cin, std::cout, std::cerr);
}
