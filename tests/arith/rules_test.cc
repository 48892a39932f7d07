// Every rewrite rule against the meaning of the expressions: random values for the holes, both sides evaluated.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>
#include <set>

#include "arith/analyzer.h"
#include "arith/eval.h"
#include "arith/numbers.h"
#include "arith/rewrite.h"
#include "arith/rules/tables.h"
#include "arith/text_form.h"

namespace sator::arith {
namespace {

class Draw {
 public:
  explicit Draw(uint64_t seed) : engine_(seed) {}
  int64_t from(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  /// Small values meet guards often, a few larger ones look further.
  int64_t value() { return from(0, 3) ? from(-6, 10) : from(-50, 50); }

 private:
  std::mt19937_64 engine_;
};

/// Holes that stand for conditions.
std::set<VarRef> condition_holes(const Expr& pattern) {
  std::set<VarRef> out;
  auto note = [&](const Expr& e) {
    if (VarRef v = sator::cast<Var>(e)) out.insert(v);
  };
  walk(
      pattern,
      [&](const And& n) { note(n.a), note(n.b); },
      [&](const Or& n) { note(n.a), note(n.b); },
      [&](const Not& n) {
        note(n.a);
        if (const Broadcast* b = n.a.as<Broadcast>()) note(b->value);
      },
      [&](const Select& n) { note(n.condition); });
  // broadcast(x) and broadcast(y)
  auto inside = [&](const Expr& e) {
    if (const Broadcast* b = e.as<Broadcast>()) note(b->value);
  };
  walk(pattern, [&](const And& n) { inside(n.a), inside(n.b); }, [&](const Or& n) { inside(n.a), inside(n.b); });
  return out;
}

TEST(Rules, AreSound) {
  for (const RuleTable* table : rules::all()) {
    for (const RuleSet::Compiled& row : table->set.rows()) {
      const Rule& rule = *row.rule;
      if (rule.compute) continue;
      SCOPED_TRACE(std::string(table->name) + ": " + std::string(rule.name));
      std::vector<VarRef> holes = vars_in(row.source->e);
      std::set<VarRef> conditions = condition_holes(row.source->e);
      Draw draw(std::hash<std::string_view>()(rule.name));
      int compared = 0;
      for (int i = 0; i < 60000 && compared < 400; ++i) {
        Values values;
        for (const VarRef& h : holes) values[h] = conditions.count(h) ? draw.from(0, 1) : draw.value();
        bool holds = true;
        for (const P& guard : rule.when) holds = holds && evaluate(guard.e, values).value_or(0) != 0;
        if (!holds) continue;
        int lanes = row.source->e->dtype.lanes;
        for (int lane = 0; lane < lanes; ++lane) {
          auto before = evaluate(row.source->e, values, lane);
          if (!before) continue;  // the program divides by zero
          auto after = evaluate(rule.to.e, values, lane);
          ASSERT_TRUE(after) << "the result is undefined where the pattern is not";
          std::string at;
          for (const auto& [v, value] : values) at += text(v->name, "=", value, " ");
          ASSERT_EQ(*before, *after) << "at " << at << "lane " << lane;
          ++compared;
        }
      }
      EXPECT_GE(compared, 20) << "the guard is (almost) never true";
    }
  }
}

// A row must not be hidden wholly by the rows before it, nor loop on its own result: applied to its own pattern with
// fresh variables it gives something that is no longer the pattern.
TEST(Rules, MakeProgress) {
  for (const RuleTable* table : rules::all()) {
    for (const RuleSet::Compiled& row : table->set.rows()) {
      if (row.rule->compute) continue;
      SCOPED_TRACE(std::string(table->name) + ": " + std::string(row.rule->name));
      EXPECT_FALSE(same(row.source->e, row.rule->to.e));
    }
  }
}

TEST(Rules, NamesAreUniqueInATable) {
  for (const RuleTable* table : rules::all()) {
    std::set<std::string_view> names;
    for (const Rule& rule : table->rules)
      EXPECT_TRUE(names.insert(rule.name).second) << table->name << ": " << rule.name;
  }
}

// ---- Whole simplification of random expressions, with bounds and residues known, against evaluation.

struct Generator {
  Draw draw;
  std::vector<VarRef> vars;
  bool vectors = false;

  Expr index(int depth) {
    if (depth == 0 || draw.from(0, 5) == 0) {
      if (draw.from(0, 2) == 0) return int_imm(draw.from(-4, 12));
      return vars[static_cast<size_t>(draw.from(0, static_cast<int64_t>(vars.size()) - 1))];
    }
    Expr a = index(depth - 1);
    auto divisor = [&] { return int_imm(draw.from(0, 6) == 0 ? -draw.from(1, 5) : draw.from(1, 12)); };
    switch (draw.from(0, 11)) {
      case 0:
      case 1: return make<Add>(a, index(depth - 1));
      case 2: return make<Sub>(a, index(depth - 1));
      case 3:
      case 4: return make<Mul>(a, int_imm(draw.from(-3, 8)));
      case 5:
      case 6: return make<FloorDiv>(a, divisor());
      case 7:
      case 8: return make<FloorMod>(a, divisor());
      case 9: return draw.from(0, 1) ? Expr(make<Min>(a, index(depth - 1))) : Expr(make<Max>(a, index(depth - 1)));
      case 10: return draw.from(0, 1) ? Expr(make<Div>(a, divisor())) : Expr(make<Mod>(a, divisor()));
      default: return make<Select>(condition(depth - 1), a, index(depth - 1));
    }
  }
  Expr condition(int depth) {
    if (depth > 0 && draw.from(0, 3) == 0) {
      Expr a = condition(depth - 1);
      switch (draw.from(0, 2)) {
        case 0: return make<And>(a, condition(depth - 1));
        case 1: return make<Or>(a, condition(depth - 1));
        default: return make<Not>(a);
      }
    }
    Expr a = index(depth), b = index(depth);
    switch (draw.from(0, 5)) {
      case 0: return make<LT>(a, b);
      case 1: return make<LE>(a, b);
      case 2: return make<GT>(a, b);
      case 3: return make<GE>(a, b);
      case 4: return make<EQ>(a, b);
      default: return make<NE>(a, b);
    }
  }
};

void check_simplification(uint64_t seed, uint64_t count, bool constrain) {
  for (uint64_t i = 0; i < count; ++i) {
    Generator g{Draw(seed + i), {make_var("x"), make_var("y"), make_var("z")}};
    Analyzer analyzer;
    analyzer.chain_inequalities = analyzer.constrain_branches = constrain;
    Values values;
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (const VarRef& v : g.vars) {
      int64_t min = g.draw.from(0, 2) ? 0 : g.draw.from(-8, 8), extent = g.draw.from(1, 12);
      ranges.emplace_back(min, extent);
      analyzer.bind(v, make<Range>(int_imm(min), int_imm(extent)));
    }
    Expr e = g.draw.from(0, 1) ? g.index(4) : g.condition(3);
    std::optional<Analyzer::Scope> scope;
    Expr assumed = bool_imm(true);
    if (constrain && g.draw.from(0, 1)) {
      assumed = g.condition(1);
      scope.emplace(analyzer.with_constraint(assumed));
    }
    Expr simple = analyzer.simplify(e);
    Bounds bounds = analyzer.bounds(e);
    Modular modular = analyzer.modular(e);
    for (int k = 0; k < 30; ++k) {
      for (size_t j = 0; j < g.vars.size(); ++j)
        values[g.vars[j]] = ranges[j].first + g.draw.from(0, ranges[j].second - 1);
      if (!evaluate(assumed, values).value_or(0)) continue;
      auto before = evaluate(e, values);
      if (!before) continue;
      auto after = evaluate(simple, values);
      std::string where = text("seed ",
                               seed + i,
                               " x=",
                               values[g.vars[0]],
                               " y=",
                               values[g.vars[1]],
                               " z=",
                               values[g.vars[2]],
                               "\n  ",
                               show(e),
                               "\n  ",
                               show(simple));
      ASSERT_TRUE(after) << where;
      ASSERT_EQ(*before, *after) << where;
      ASSERT_TRUE(bounds.contains(*before))
          << where << " value " << *before << " bounds " << bounds.min << ".." << bounds.max;
      if (modular.is_constant()) {
        ASSERT_EQ(*before, modular.base) << where;
      } else {
        ASSERT_EQ(floor_mod(*before - modular.base, modular.coeff), 0) << where;
      }
    }
  }
}

// Constants near the ends of int32: what wraps nowhere wraps nowhere once it is simplified.
TEST(Simplify, WrapsNowhere) {
  constexpr std::array<int64_t, 12> kConstants{
      INT32_MAX, 2147483640, 2000000000, 1000000007, 998244353, 1 << 30, 268435455, 65536, 8, 7, 1, 2};
  const VarRef i = make_var("i"), j = make_var("j");
  int compared = 0;
  for (uint64_t seed = 0; seed < fuzz_cases(20000); ++seed) {
    Draw draw(seed);
    Analyzer analyzer;
    for (const VarRef& v : {i, j}) analyzer.bind(v, range_of(int_imm(8)));
    auto constant = [&] { return int_imm(kConstants[static_cast<size_t>(draw.from(0, 11))]); };
    std::function<Expr(int)> index = [&](int depth) -> Expr {
      if (depth == 0) return draw.from(0, 2) == 0 ? Expr(constant()) : Expr(draw.from(0, 1) ? i : j);
      const Expr a = index(depth - 1);
      switch (draw.from(0, 6)) {
        case 0: return make<Add>(a, index(depth - 1));
        case 1:
        case 2: return make<Sub>(a, index(depth - 1));
        case 3: return make<Mul>(a, constant());
        case 4: return make<FloorDiv>(a, constant());
        case 5: return make<FloorMod>(a, constant());
        default: return draw.from(0, 1) ? Expr(make<Div>(a, constant())) : Expr(make<Mod>(a, constant()));
      }
    };
    Expr e = index(3);
    if (draw.from(0, 3) == 0) e = make<LT>(e, index(2));
    std::vector<std::pair<Values, int64_t>> want;
    bool wraps = false;
    for (int64_t at = 0; at < 64 && !wraps; ++at) {
      const Values values{{i, at / 8}, {j, at % 8}};
      walk(e, [&](const ExprNode& part) {
        const auto v = evaluate(ref(part), values);
        wraps |= !v || (part.dtype == i32 && !fits(*v, i32));
      });
      if (!wraps) want.emplace_back(values, *evaluate(e, values));
    }
    if (wraps) continue;
    ++compared;
    const Expr simple = analyzer.simplify(e);
    for (const auto& [values, value] : want)
      ASSERT_EQ(wrapped(simple, values), value) << "seed " << seed << " i=" << values.at(i) << " j=" << values.at(j)
                                                << "\n  " << show(e) << "\n  " << show(simple);
  }
  EXPECT_GE(compared, 5000);
}

TEST(Simplify, KeepsTheValue) { check_simplification(1000, fuzz_cases(6000), false); }
TEST(Simplify, KeepsTheValueUnderConditions) { check_simplification(900000, fuzz_cases(3000), true); }

}  // namespace
}  // namespace sator::arith
