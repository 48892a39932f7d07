// Queries of TVM's arithmetic tests, as tools/arith_queries.py makes them.
#include <map>
#include <nlohmann/json.hpp>
#include <variant>

#include "arith/analyzer.h"
#include "arith/deduce_bound.h"
#include "arith/fold.h"
#include "arith/intset.h"
#include "arith/iter_map.h"
#include "arith/kind.h"
#include "arith/linear.h"
#include "arith/text_form.h"
#include "cases.h"

namespace sator::conformance {
namespace {

using namespace arith;

using Value = std::variant<Expr, bool, int64_t, IntSet, Bounds, Modular, std::vector<Expr>>;

class Query {
 public:
  explicit Query(const Json& c) {
    for (const auto& [name, info] : c["vars"].items()) {
      auto dtype = DType::parse(info[0].get<std::string>() == "uint1" ? "bool" : info[0].get<std::string>());
      if (!dtype) throw std::runtime_error("dtype");
      names_.add(name, *dtype, info[1].get<bool>());
    }
    for (const Json& s : c["setup"]) {
      if (s.contains("assume")) {
        scopes_.push_back(analyzer_.with_constraint(expr(s["assume"])));
      } else {
        VarRef v = names_[s["bind"]];
        if (s.contains("bounds"))
          analyzer_.bind(v, Bounds{number(s["bounds"][0]), number(s["bounds"][1])});
        else if (s.contains("value"))
          analyzer_.bind(v, of_dtype(expr(s["value"]), v->dtype));
        else
          analyzer_.bind(v, range(s["range"], v->dtype));
      }
    }
  }
  ~Query() {
    while (!scopes_.empty()) scopes_.pop_back();
  }
  /// "" if the query is true, else what came out.
  std::string check(const Json& q) {
    if (q["fn"] == "equal") {
      // What Python wrote as 50 <= x was recorded as x >= 50.
      Value a = without_greater(value(q["a"])), b = without_greater(value(q["b"]));
      return text_of(a) == text_of(b) && alike(a, b) ? "" : text(text_of(a), "   expected ", text_of(b));
    }
    return std::get<bool>(value(q)) ? "" : "false";
  }

 private:
  static Value without_greater(Value v) {
    Expr* e = std::get_if<Expr>(&v);
    if (!e || !*e) return v;
    return transform(
        *e,
        [](const GE& n) -> Expr { return make<LE>(n.b, n.a); },
        [](const GT& n) -> Expr { return make<LT>(n.b, n.a); });
  }
  static int64_t number(const Json& n) { return n.get<int64_t>(); }
  static Expr of_dtype(Expr e, DType d) { return e.as<IntImm>() ? cast_to(d, e) : e; }
  RangeRef range(const Json& r, DType d) { return make<Range>(of_dtype(expr(r[0]), d), of_dtype(expr(r[1]), d)); }
  Expr expr(const Json& n) {
    Expr e = std::get<Expr>(value(n));
    if (!e) throw Failed{"an open end"};
    return e;
  }
  IntSet set(const Json& n) {
    if (n["fn"] == "interval") {
      IntSet s;
      if (!n["min"].is_null()) s.min = expr(n["min"]);
      if (!n["max"].is_null()) s.max = n["max"] == n["min"] ? s.min : expr(n["max"]);
      return s;
    }
    return std::get<IntSet>(value(n));
  }
  SetMap sets(const Json& n) {
    SetMap out;
    for (const auto& [name, s] : n.items()) out[names_[name]] = set(s);
    return out;
  }
  RangeMap ranges(const Json& n) {
    RangeMap out;
    for (const auto& [name, r] : n.items()) out[names_[name]] = range(r, names_[name]->dtype);
    return out;
  }
  std::vector<VarRef> vars(const Json& n) {
    std::vector<VarRef> out;
    for (const Json& name : n) out.push_back(names_[name.get<std::string>()]);
    return out;
  }
  static Expr operation(const std::string& op, const Expr& a, const Expr& b) {
    if (!a || !b) throw Failed{"an open end"};
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    if (op == "<") return lt(a, b);
    if (op == "<=") return le(a, b);
    return op == ">" ? gt(a, b) : ge(a, b);
  }
  static std::string text_of(const Value& v) {
    if (const Expr* e = std::get_if<Expr>(&v)) return show(*e);
    if (const bool* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
    if (const int64_t* i = std::get_if<int64_t>(&v)) return text(*i);
    return "?";
  }
  static bool alike(const Value& a, const Value& b) {
    const Expr *x = std::get_if<Expr>(&a), *y = std::get_if<Expr>(&b);
    return !x || !y || same(*x, *y);
  }
  Value get(const Value& v, const std::string& name) {
    if (const Bounds* b = std::get_if<Bounds>(&v)) return name == "min_value" ? b->min : b->max;
    if (const Modular* m = std::get_if<Modular>(&v)) return name == "coeff" ? m->coeff : m->base;
    if (const IntSet* s = std::get_if<IntSet>(&v)) return name == "min_value" ? s->min : s->max;
    throw std::runtime_error("get " + name);
  }
  Value value(const Json& n) {
    if (n.contains("expr")) {
      std::string s = n["expr"];
      return parse_expr(s, names_);
    }
    std::string fn = n["fn"];
    if (fn == "canonical") return analyzer_.canonical(expr(n["arg"]));
    if (fn == "rewrite") return analyzer_.rewrite(expr(n["arg"]));
    if (fn == "simplify") return analyzer_.simplify(expr(n["arg"]));
    if (fn == "bounds") return analyzer_.bounds(expr(n["arg"]));
    if (fn == "modular") return analyzer_.modular(expr(n["arg"]));
    if (fn == "prove")
      return analyzer_.prove(expr(n["arg"]), n["strength"] == 1 ? Strength::symbolic : Strength::simple);
    if (fn == "prove_equal") {
      Expr a = std::get<Expr>(value(n["a"])), b = std::get<Expr>(value(n["b"]));
      if (!a || !b) return !a && !b;
      if (a->dtype.is_bool() && b->dtype.is_bool()) return same(analyzer_.simplify(a), analyzer_.simplify(b));
      return analyzer_.prove_equal(a, b);
    }
    if (fn == "equal") return text_of(value(n["a"])) == text_of(value(n["b"]));
    if (fn == "not") return !std::get<bool>(value(n["arg"]));
    if (fn == "get") {
      Value v = get(value(n["arg"]), n["name"]);
      if (const int64_t* i = std::get_if<int64_t>(&v))
        return Expr(int_imm(*i, *i > INT32_MAX || *i < INT32_MIN ? i64 : i32));
      return v;
    }
    if (fn == "op") return operation(n["op"], expr(n["a"]), expr(n["b"]));
    if (fn == "open_end") return Expr();
    if (fn == "nothing") return IntSet::nothing();
    if (fn == "deduce_bound") return deduce_bound(names_[n["var"]], expr(n["arg"]), sets(n["hints"]), sets(n["relax"]));
    if (fn == "detect_clip_bound") {
      std::vector<Expr> ends;
      for (const IntSet& s : detect_clip_bound(expr(n["arg"]), vars(n["vars"]))) {
        ends.push_back(s.min);
        ends.push_back(s.max);
      }
      return ends;
    }
    if (fn == "detect_linear") {
      auto linear = detect_linear(expr(n["arg"]), vars(n["vars"]));
      if (!linear) return std::vector<Expr>();
      std::vector<Expr> out = linear->coefficients;
      out.push_back(linear->base);
      return out;
    }
    if (fn == "narrow_predicate") return narrow_predicate(expr(n["arg"]), ranges(n["free"]));
    if (fn == "interval") return set(n);
    if (fn == "set") {
      SetMap domains = sets(n["domains"]);
      return domains.empty() ? analyzer_.set(expr(n["arg"])) : analyzer_.set(expr(n["arg"]), domains);
    }
    if (fn == "is_nothing") return set(n["arg"]).empty;
    if (fn == "is_everything") return set(n["arg"]).is_everything();
    if (fn == "vector_set") return vector_set(expr(n["arg"]));
    if (fn == "unite_lower_bound") {
      std::vector<IntSet> sets;
      for (const Json& s : n["sets"]) sets.push_back(set(s));
      return unite_lower_bound(sets);
    }
    if (fn == "iter_map_simplify") {
      RangeMap iters = ranges(n["iters"]);
      std::vector<Expr> indices;
      for (const Json& i : n["indices"]) indices.push_back(expr(i));
      return iter_map_simplify(indices, iters, expr(n["predicate"]), IterMapLevel::surjective, analyzer_, n["trivial"]);
    }
    if (fn == "item") return std::get<std::vector<Expr>>(value(n["arg"])).at(n["i"].get<size_t>());
    throw std::runtime_error("query " + fn);
  }

  Names names_;
  Analyzer analyzer_;
  std::vector<Analyzer::Scope> scopes_;
};

}  // namespace

void run_arith_query(const Json& request) {
  if (request.contains("unsupported")) throw Unsupported{request["unsupported"]};
  if (std::string wrong = Query(request).check(request["query"]); !wrong.empty()) throw Failed{std::move(wrong)};
}

}  // namespace sator::conformance
