#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>

#include "base/error.h"
#include "engine/jinja/syntax.h"

namespace sator::jinja {

namespace {

constexpr int kMaxNesting = 200, kDepthOfLevel = 3;  // an expression in brackets passes three counted places
constexpr int kMaxHeight = 500;

class Parser {
 public:
  Parser(const std::string& source, const std::string& name) : name_(name), tokens_(tokens_of(source, name)) {}

  Stmt::Body run() { return body({}); }

 private:
  struct Deeper {
    explicit Deeper(Parser& p) : parser(p) {
      if (++p.depth_ > kMaxNesting * kDepthOfLevel)
        fail_at(p.name_, p.here().place, "the template nests too deeply", text("at most ", kMaxNesting, " levels"));
    }
    ~Deeper() { --parser.depth_; }
    Parser& parser;
  };

  const Token& here() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is_mark(std::string_view mark) const { return here().kind == TokenKind::mark && here().text == mark; }
  bool is_name(std::string_view name) const { return here().kind == TokenKind::name && here().text == name; }
  bool take_mark(std::string_view mark) { return is_mark(mark) && ++at_; }
  bool take_name(std::string_view name) { return is_name(name) && ++at_; }

  [[noreturn]] void fail_here(std::string what, std::string needs, std::string hint = "") const {
    fail_at(name_, here().place, std::move(what), std::move(needs), std::move(hint));
  }
  std::string found() const {
    switch (here().kind) {
      case TokenKind::statement_end:
      case TokenKind::output_end: return "the end of the statement";
      case TokenKind::end: return "the end of the template";
      default: return string_literal(here().text);
    }
  }
  void expect_mark(std::string_view mark) {
    if (!take_mark(mark)) fail_here(text("unexpected ", found()), std::string(mark));
  }
  std::string expect_name() {
    if (here().kind != TokenKind::name) fail_here(text("unexpected ", found()), "a name");
    return tokens_[at_++].text;
  }
  void expect(TokenKind kind, const char* what) {
    if (here().kind != kind) fail_here(text("unexpected ", found()), what);
    ++at_;
  }

  /// Statements up to one of these words, whose statement is entered; without words up to the end.
  Stmt::Body body(std::initializer_list<std::string_view> ends) {
    const Deeper deeper(*this);
    const Place begun = here().place;
    Stmt::Body out;
    while (true) {
      const Token& t = here();
      if (t.kind == TokenKind::end) {
        if (ends.size() == 0) return out;
        fail_at(name_, begun, text("a statement before here has no end"), text("{% ", *(ends.end() - 1), " %}"));
      }
      ++at_;
      if (t.kind == TokenKind::text) {
        out.push_back({.kind = StmtKind::text, .place = t.place, .text = t.text});
      } else if (t.kind == TokenKind::output_begin) {
        out.push_back({.kind = StmtKind::output, .place = t.place, .exprs = {expression_or_tuple()}});
        expect(TokenKind::output_end, "}}");
      } else if (std::ranges::any_of(ends, [&](std::string_view word) { return is_name(word); })) {
        return out;
      } else {
        statement(out, t.place);
      }
    }
  }
  /// The rest of a statement, and the word behind which a body ends, is read.
  Stmt::Body block(std::string_view end) {
    end_statement();
    Stmt::Body out = body({end});
    ++at_;
    end_statement();
    return out;
  }
  void end_statement() { expect(TokenKind::statement_end, "%}"); }

  void statement(Stmt::Body& out, Place place) {
    const std::string word = expect_name();
    Stmt s{.place = place};
    if (word == "if")
      branch(s);
    else if (word == "for")
      loop(s);
    else if (word == "set")
      assignment(s);
    else if (word == "macro")
      macro(s);
    else if (word == "call")
      call_block(s);
    else if (word == "filter") {
      s.kind = StmtKind::filtered;
      s.exprs = {filter_chain(captured(), true)};
      s.bodies = {block("endfilter")};
    } else if (word == "with") {
      s.kind = StmtKind::scope;
      while (here().kind != TokenKind::statement_end) {
        if (!s.names.empty()) expect_mark(",");
        s.names.push_back(expect_name());
        expect_mark("=");
        s.exprs.push_back(expression());
      }
      s.bodies = {block("endwith")};
    } else if (word == "generation") {  // marks what the assistant says, for training
      s.kind = StmtKind::scope;
      s.bodies = {block("endgeneration")};
    } else if (word == "break" || word == "continue") {
      if (loops_ == 0) fail_at(name_, place, text(word, " outside of a loop"), "a place in a loop");
      s.kind = StmtKind::leave;
      s.name = word;
      end_statement();
    } else {
      fail_at(name_,
              place,
              text("the statement ", string_literal(word), " is not supported"),
              "if, for, set, macro, call, filter, with, raw, break or continue");
    }
    out.push_back(std::move(s));
  }

  void branch(Stmt& s) {
    s.kind = StmtKind::branch;
    s.exprs.push_back(condition());
    while (true) {
      end_statement();
      s.bodies.push_back(body({"elif", "else", "endif"}));
      if (take_name("elif")) {
        s.exprs.push_back(condition());
      } else if (take_name("else")) {
        s.bodies.push_back(block("endif"));
        return;
      } else {
        ++at_;
        return end_statement();
      }
    }
  }

  /// a, or a tuple of such: a, (b, c).
  Stmt::Target targets() {
    const Deeper deeper(*this);
    Stmt::Target out = target();
    if (!is_mark(",")) return out;
    out = {.name = "", .parts = {std::move(out)}};
    while (take_mark(",") && (here().kind == TokenKind::name ? !is_name("in") : is_mark("(")))
      out.parts.push_back(target());
    return out;
  }
  Stmt::Target target() {
    if (!take_mark("(")) return {.name = expect_name(), .parts = {}};
    Stmt::Target out = targets();
    expect_mark(")");
    return out;
  }

  /// Without `if` and `else`, which are statements there.
  Expr condition() {
    return tuple_of([&] { return binary_or(); });
  }
  void loop(Stmt& s) {
    s.kind = StmtKind::loop;
    s.target = targets();
    if (!take_name("in")) fail_here(text("unexpected ", found()), "in");
    s.exprs.push_back(condition());
    if (take_name("if")) s.exprs.push_back(expression());
    s.recursive = take_name("recursive");
    end_statement();
    ++loops_;
    s.bodies.push_back(body({"else", "endfor"}));
    --loops_;
    if (take_name("else")) {
      s.bodies.push_back(block("endfor"));
      return;
    }
    ++at_;
    end_statement();
  }

  void assignment(Stmt& s) {
    s.target = targets();
    if (!s.target.name.empty() && take_mark(".")) s.target.name += "." + expect_name();
    if (take_mark("=")) {
      s.kind = StmtKind::assign;
      s.exprs = {expression_or_tuple()};
      return end_statement();
    }
    s.kind = StmtKind::capture;
    if (s.target.name.empty()) fail_here("several names for one text", "one name");
    s.exprs = {filter_chain(captured(), false)};
    s.bodies = {block("endset")};
  }

  std::vector<Stmt::Parameter> parameters() {
    std::vector<Stmt::Parameter> out;
    expect_mark("(");
    while (!is_mark(")")) {
      if (!out.empty()) expect_mark(",");
      if (is_mark(")")) break;
      Stmt::Parameter p{.name = expect_name(), .otherwise = nullptr};
      if (take_mark("=")) p.otherwise = std::make_shared<const Expr>(expression());
      if (p.name == "caller" && !p.otherwise) fail_here("the parameter caller has no default", "caller=none");
      out.push_back(std::move(p));
    }
    expect_mark(")");
    return out;
  }

  void macro(Stmt& s) {
    s.kind = StmtKind::macro;
    s.name = expect_name();
    s.parameters = parameters();
    called_body(s, "endmacro");
  }

  /// What a macro does, or a call block. It takes further arguments if it, or what is defined in it, names them.
  void called_body(Stmt& s, const char* end) {
    const int loops = std::exchange(loops_, 0);
    const std::set<std::string> around = std::exchange(read_, {});
    s.bodies = {block(end)};
    s.reads_varargs = read_.contains("varargs"), s.reads_kwargs = read_.contains("kwargs");
    s.reads_caller = read_.contains("caller") &&
                     std::ranges::find(s.parameters, "caller", &Stmt::Parameter::name) == s.parameters.end();
    loops_ = loops;
    read_.insert(around.begin(), around.end());
  }

  void call_block(Stmt& s) {
    s.kind = StmtKind::call;
    if (is_mark("(")) s.parameters = parameters();
    s.exprs = {expression()};
    if (s.exprs[0].kind != ExprKind::call)
      fail_at(name_, s.exprs[0].place, "a call block without a call", "{% call macro() %}");
    called_body(s, "endcall");
  }

  Expr captured() const { return {.kind = ExprKind::name, .place = here().place, .name = kCaptured}; }

  Expr make(ExprKind kind, Place place, std::vector<Expr> parts, std::string name = "") const {
    return {.kind = kind, .place = place, .name = std::move(name), .parts = std::move(parts)};
  }

  /// An expression all of whose parts are there. Errors: the tree is too high to be walked.
  Expr done(Expr e) const {
    for (const Expr& part : e.parts) e.height = std::max(e.height, 1 + part.height);
    for (const Expr::Argument& a : e.arguments) e.height = std::max(e.height, 1 + a.value->height);
    if (e.height > kMaxHeight)
      fail_at(name_, e.place, "the expression is too long", text("at most ", kMaxHeight, " operations in a row"));
    return e;
  }

  template <class Element>
  Expr tuple_of(Element element) {
    const Place place = here().place;
    Expr first = element();
    if (!is_mark(",")) return first;
    Expr out = make(ExprKind::tuple, place, {});
    out.parts.push_back(std::move(first));
    while (take_mark(",")) {
      if (here().kind == TokenKind::statement_end || here().kind == TokenKind::output_end || is_mark(")") ||
          is_mark("="))
        break;
      out.parts.push_back(element());
    }
    return done(std::move(out));
  }
  Expr expression_or_tuple() {
    return tuple_of([&] { return expression(); });
  }

  Expr expression() {
    const Deeper deeper(*this);
    Expr out = binary_or();
    while (is_name("if")) {
      const Place place = here().place;
      ++at_;
      std::vector<Expr> parts;
      parts.push_back(std::move(out));
      parts.push_back(binary_or());
      if (take_name("else")) parts.push_back(expression());
      out = done(make(ExprKind::conditional, place, std::move(parts)));
    }
    return out;
  }

  /// left (operator right)*, where `take` reads an operator's name or nothing.
  template <class Operand, class Take>
  Expr left_to_right(Operand operand, Take take) {
    Expr left = operand();
    while (true) {
      const Place place = here().place;
      const std::string op = take();
      if (op.empty()) return left;
      std::vector<Expr> parts;
      parts.push_back(std::move(left));
      parts.push_back(operand());
      left = done(make(ExprKind::binary, place, std::move(parts), op));
    }
  }
  auto one_of(std::initializer_list<std::string_view> marks) {
    return [this, all = std::vector<std::string_view>(marks)]() -> std::string {
      for (std::string_view mark : all)
        if (take_mark(mark)) return std::string(mark);
      return "";
    };
  }
  auto word(const char* w) {
    return [this, w]() -> std::string { return take_name(w) ? w : ""; };
  }

  Expr binary_or() {
    return left_to_right([&] { return binary_and(); }, word("or"));
  }
  Expr binary_and() {
    return left_to_right([&] { return negation(); }, word("and"));
  }
  Expr negation() {
    const Deeper deeper(*this);
    const Place place = here().place;
    if (!is_name("not") || (ahead().kind == TokenKind::name && ahead().text == "in")) return comparison();
    ++at_;
    return done(make(ExprKind::unary, place, {negation()}, "not"));
  }
  Expr comparison() {
    const Place place = here().place;
    Expr first = sum();
    Expr out = make(ExprKind::comparison, place, {});
    while (true) {
      std::string op = one_of({"==", "!=", "<=", ">=", "<", ">"})();
      if (op.empty() && is_name("not") && ahead().kind == TokenKind::name && ahead().text == "in")
        at_ += 2, op = "not in";
      else if (op.empty() && take_name("in"))
        op = "in";
      if (op.empty()) break;
      if (out.parts.empty()) out.parts.push_back(std::move(first));
      out.names.push_back(op);
      out.parts.push_back(sum());
    }
    return out.parts.empty() ? std::move(first) : done(std::move(out));
  }
  Expr sum() {
    return left_to_right([&] { return concatenation(); }, one_of({"+", "-"}));
  }
  Expr concatenation() {
    return left_to_right([&] { return product(); }, one_of({"~"}));
  }
  Expr product() {
    return left_to_right([&] { return power(); }, one_of({"*", "//", "/", "%"}));
  }
  Expr power() {
    return left_to_right([&] { return unary(true); }, one_of({"**"}));
  }
  Expr unary(bool with_filters) {
    const Deeper deeper(*this);
    const Place place = here().place;
    Expr out;
    if (is_mark("-") || is_mark("+")) {
      const std::string op = tokens_[at_++].text;
      out = done(make(ExprKind::unary, place, {unary(false)}, op));
    } else {
      out = postfix(primary());
    }
    return with_filters ? filters_and_tests(std::move(out)) : out;
  }

  Expr primary() {
    const Token t = here();
    Expr out{.place = t.place};
    if (t.kind == TokenKind::name) {
      ++at_;
      static const std::pair<std::string_view, Value> kConstants[] = {
          {"true", true}, {"True", true}, {"false", false}, {"False", false}, {"none", {}}, {"None", {}}};
      for (const auto& [name, value] : kConstants)
        if (t.text == name) {
          out.value = value;
          return out;
        }
      out.kind = ExprKind::name;
      out.name = t.text;
      read_.insert(t.text);
      return out;
    }
    if (t.kind == TokenKind::literal) {
      ++at_;
      out.value = t.value;
      // Texts that follow each other are one.
      while (out.value.string() && here().kind == TokenKind::literal && here().value.string())
        out.value = *out.value.string() + *tokens_[at_++].value.string();
      return out;
    }
    if (take_mark("(")) {
      if (take_mark(")")) return make(ExprKind::tuple, t.place, {});
      out = expression_or_tuple();
      expect_mark(")");
      return out;
    }
    if (take_mark("[")) {
      out.kind = ExprKind::list;
      while (!is_mark("]")) {
        if (!out.parts.empty()) expect_mark(",");
        if (is_mark("]")) break;
        out.parts.push_back(expression());
      }
      expect_mark("]");
      return done(std::move(out));
    }
    if (take_mark("{")) {
      out.kind = ExprKind::dict;
      while (!is_mark("}")) {
        if (!out.parts.empty()) expect_mark(",");
        if (is_mark("}")) break;
        out.parts.push_back(expression());
        expect_mark(":");
        out.parts.push_back(expression());
      }
      expect_mark("}");
      return done(std::move(out));
    }
    fail_here(text("unexpected ", found()), "a value");
  }

  Expr postfix(Expr of) {
    for (int links = 0;; ++links) {
      if (links > kMaxNesting) fail_here("too many members of members", text("at most ", kMaxNesting));
      const Place place = here().place;
      if (take_mark(".")) {
        if (here().kind == TokenKind::literal && here().value.is_int()) {
          Expr index{.place = here().place, .value = tokens_[at_++].value};
          of = pair(ExprKind::item, place, std::move(of), std::move(index));
          continue;
        }
        Expr out = make(ExprKind::attribute, place, {}, expect_name());
        out.parts.push_back(std::move(of));
        of = done(std::move(out));
      } else if (take_mark("[")) {
        of = subscript(std::move(of), place);
      } else if (is_mark("(")) {
        of = call(std::move(of), place);
      } else {
        return of;
      }
    }
  }

  Expr pair(ExprKind kind, Place place, Expr a, Expr b) const {
    Expr out = make(kind, place, {});
    out.parts.push_back(std::move(a));
    out.parts.push_back(std::move(b));
    return done(std::move(out));
  }

  Expr subscript(Expr of, Place place) {
    std::array<Expr, 3> bounds;
    for (Expr& b : bounds) b.place = place;
    size_t colons = 0;
    while (!is_mark("]")) {
      if (take_mark(":")) {
        if (++colons > 2) fail_here("a slice of more than three parts", "[from:to:step]");
      } else {
        bounds[colons] = expression();
        if (!is_mark(":") && !is_mark("]")) fail_here(text("unexpected ", found()), "]");
      }
    }
    expect_mark("]");
    if (colons == 0) return pair(ExprKind::item, place, std::move(of), std::move(bounds[0]));
    Expr out = make(ExprKind::slice, place, {});
    out.parts.push_back(std::move(of));
    for (Expr& b : bounds) out.parts.push_back(std::move(b));
    return done(std::move(out));
  }

  std::vector<Expr::Argument> arguments() {
    std::vector<Expr::Argument> out;
    expect_mark("(");
    while (!is_mark(")")) {
      if (!out.empty()) expect_mark(",");
      if (is_mark(")")) break;
      std::string name = one_of({"**", "*"})();
      if (here().kind == TokenKind::name && ahead().kind == TokenKind::mark && ahead().text == "=")
        name = expect_name(), ++at_;
      auto has_name = [&](const Expr::Argument& a) { return a.name == name; };
      if (!name.empty() && std::ranges::any_of(out, has_name))
        fail_here(text("the argument ", name, " is given twice"), "one value for each");
      if (name.empty() && !out.empty() && !out.back().name.empty())
        fail_here("an argument without a name behind one with a name", "those without names first");
      out.push_back({std::move(name), std::make_shared<const Expr>(expression())});
    }
    expect_mark(")");
    return out;
  }

  Expr call(Expr of, Place place) {
    Expr out = make(ExprKind::call, place, {});
    out.parts.push_back(std::move(of));
    out.arguments = arguments();
    return done(std::move(out));
  }

  /// "| name(...)", of the first the mark may have been read.
  Expr filter_chain(Expr of, bool first_has_no_mark) {
    for (bool begun = first_has_no_mark; begun || take_mark("|"); begun = false) {
      const Place place = here().place;
      Expr out = make(ExprKind::filter, place, {}, expect_name());
      out.parts.push_back(std::move(of));
      if (is_mark("(")) out.arguments = arguments();
      of = done(std::move(out));
    }
    return of;
  }

  Expr filters_and_tests(Expr of) {
    for (int links = 0;; ++links) {
      if (links > kMaxNesting) fail_here("too many filters", text("at most ", kMaxNesting));
      if (is_mark("|")) {
        of = filter_chain(std::move(of), false);
      } else if (is_name("is")) {
        of = test(std::move(of));
      } else if (is_mark("(")) {
        of = call(std::move(of), here().place);
      } else {
        return of;
      }
    }
  }

  Expr test(Expr of) {
    const Place place = here().place;
    ++at_;
    const bool negated = take_name("not");
    Expr out = make(ExprKind::test, place, {}, expect_name());
    out.parts.push_back(std::move(of));
    const Token& t = here();
    const bool is_word = t.kind == TokenKind::name && t.text != "else" && t.text != "or" && t.text != "and" &&
                         t.text != "if" && t.text != "is" && t.text != "in" && t.text != "not" && t.text != "recursive";
    if (is_mark("("))
      out.arguments = arguments();
    else if (is_word || t.kind == TokenKind::literal || is_mark("[") || is_mark("{"))
      out.arguments.push_back({"", std::make_shared<const Expr>(postfix(primary()))});
    out = done(std::move(out));
    return negated ? done(make(ExprKind::unary, place, {std::move(out)}, "not")) : out;
  }

  const std::string& name_;
  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
  std::set<std::string> read_;  // names, since the macro began
};

}  // namespace

Stmt::Body parse(const std::string& source, const std::string& name) { return Parser(source, name).run(); }

}  // namespace sator::jinja
