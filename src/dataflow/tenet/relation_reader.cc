#include "dataflow/tenet/relation_reader.h"

#include <cctype>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/counts/boxes.h"

namespace sator::dataflow {

namespace {

constexpr int64_t kLargestLiteral = int64_t{1} << 50;  // sums and products stay inside of 64 bits while reading
constexpr int kDeepest = 64;
// Far beyond what people write; they keep hostile files from taking minutes.
constexpr size_t kMostIterators = 64, kMostTerms = 512, kMostConstraints = 1024, kMostPieces = 1024;

bool starts_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continues_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '\''; }

}  // namespace

void Source::fail_at(size_t column, std::string what, std::string needs, std::string hint) const {
  std::string shown(content.substr(0, 200)), mark(std::min(column, size_t{200}), ' ');
  fail({.what = std::move(what),
        .needs = std::move(needs),
        .hint = std::move(hint),
        .program = text(shown, "\n", mark, "^"),
        .where = text(file, " line ", line, ", column ", column + 1)});
}

void RelationReader::fail_here(std::string what, std::string needs) const {
  source_.fail_at(at_, std::move(what), std::move(needs), "");
}

void RelationReader::skip_spaces() {
  while (!at_end() && std::isspace(static_cast<unsigned char>(source_.content[at_]))) ++at_;
}

bool RelationReader::accept(std::string_view token) {
  if (source_.content.substr(at_, token.size()) != token) return false;
  at_ += token.size();
  skip_spaces();
  return true;
}

bool RelationReader::accept_word(std::string_view wanted) {
  size_t end = at_ + wanted.size();
  if (source_.content.substr(at_, wanted.size()) != wanted) return false;
  if (end < source_.content.size() && continues_word(source_.content[end])) return false;
  at_ = end;
  skip_spaces();
  return true;
}

void RelationReader::expect(std::string_view token, std::string_view where) {
  if (accept(token)) return;
  fail_here(at_end() ? text("the line ends where ", string_literal(token), " should stand")
                     : text("unexpected ", string_literal(text(peek()))),
            text(string_literal(token), " ", where));
}

std::string_view RelationReader::word() {
  size_t from = at_;
  if (!starts_word(peek()))
    fail_here(at_end() ? "the line ends where a name should stand" : text("unexpected ", string_literal(text(peek()))),
              "a name");
  while (!at_end() && continues_word(peek())) ++at_;
  std::string_view name = source_.content.substr(from, at_ - from);
  skip_spaces();
  return name;
}

int64_t RelationReader::literal() {
  size_t from = at_;
  int64_t value = 0;
  while (!at_end() && std::isdigit(static_cast<unsigned char>(peek()))) {
    value = value * 10 + (peek() - '0');
    if (value > kLargestLiteral)
      source_.fail_at(from, "the number is too large", text("numbers up to ", kLargestLiteral), "");
    ++at_;
  }
  if (from == at_)
    fail_here(
        at_end() ? "the line ends where a number should stand" : text("unexpected ", string_literal(text(peek()))),
        "a number");
  skip_spaces();
  return value;
}

int64_t RelationReader::integer() {
  bool negative = accept("-");
  int64_t value = literal();
  return negative ? -value : value;
}

RelationReader::Ratio RelationReader::checked(Ratio ratio, size_t column) const {
  if (ratio.numerator.terms.size() > kMostTerms)
    source_.fail_at(column, "the expression has too many terms", text("at most ", kMostTerms, " terms"), "");
  bool small = std::abs(ratio.numerator.constant) <= kLargestLiteral && ratio.denominator <= kLargestLiteral;
  for (const Term& t : ratio.numerator.terms) small &= std::abs(t.coefficient) <= kLargestLiteral;
  if (!small) source_.fail_at(column, "a coefficient is too large", text("coefficients up to ", kLargestLiteral), "");
  return ratio;
}

QuasiAffine RelationReader::whole(const Ratio& ratio, size_t column) const {
  if (ratio.denominator != 1)
    source_.fail_at(column, "the quotient is not rounded", "floor(e/c)", "write floor( ) around the division");
  return ratio.numerator;
}

RelationReader::Ratio RelationReader::factor(RelationPiece& piece) {
  const size_t column = at_;
  Ratio result;
  if (accept("(")) {
    result = sum(piece);
    expect(")", "closing the parenthesis");
  } else if (std::isdigit(static_cast<unsigned char>(peek()))) {
    result.numerator = number(literal());
  } else if (accept_word("floor")) {
    expect("(", "after floor");
    Ratio inside = sum(piece);
    expect(")", "closing floor(");
    result.numerator = floor_div(inside.numerator, inside.denominator);
  } else {
    std::string name(word());
    for (std::string_view reserved : {"exists", "or", "not", "mod", "and", "true", "false", "implies"})
      if (name == reserved)
        source_.fail_at(column, text("`", name, "` cannot be read here"), "sums of iterators, floor(e/c) and e%c", "");
    for (std::string_view function : {"ceil", "floord", "ceild", "min", "max", "abs"})
      if (name == function && peek() == '(')
        source_.fail_at(
            column,
            text("the function ", name, " cannot be read"),
            "floor(e/c) and e%c",
            function.starts_with("ceil") ? "write ceil(e/c) as floor((e + c - 1)/c)" : "write it with floor and %");
    size_t v = 0;
    while (v < piece.variables.size() && piece.variables[v] != name) ++v;
    if (v == piece.variables.size()) {
      if (!free_allowed_)
        source_.fail_at(column,
                        text("no iterator is called ", name),
                        text("one of ", join(piece.variables, ", ")),
                        "check the tuple on the left");
      if (piece.variables.size() == kMostIterators)
        source_.fail_at(column, "there are too many variables", text("at most ", kMostIterators, " of them"), "");
      piece.variables.push_back(name);
      ++piece.free_variables;
    }
    result.numerator = variable(static_cast<int>(v));
  }
  return checked(std::move(result), column);
}

bool RelationReader::at_keyword() const {
  for (std::string_view k : {"and", "or", "mod"}) {
    size_t end = at_ + k.size();
    if (source_.content.substr(at_, k.size()) == k &&
        (end >= source_.content.size() || !continues_word(source_.content[end])))
      return true;
  }
  return false;
}

RelationReader::Ratio RelationReader::scaled(Ratio ratio, int64_t by, size_t column) const {
  auto grows = [&](int64_t v) { return by != 0 && std::abs(v) > kLargestLiteral / std::abs(by); };
  bool too_large = grows(ratio.numerator.constant);
  for (const Term& t : ratio.numerator.terms) too_large |= grows(t.coefficient);
  if (too_large)
    source_.fail_at(column, "a coefficient is too large", text("coefficients up to ", kLargestLiteral), "");
  ratio.numerator = ratio.numerator * by;
  return ratio;
}

/// As in isl, a sign and a leading number bind weaker than what follows: 3*c%2 is 3*(c%2), -j%4 is -(j%4).
RelationReader::Ratio RelationReader::product(RelationPiece& piece) {
  struct Depth {
    int& depth;
    ~Depth() { --depth; }
  } depth{++depth_};
  if (depth_ > kDeepest) fail_here("the expression is nested too deeply", text("at most ", kDeepest, " levels"));
  const size_t column = at_;
  if (accept("-")) return scaled(product(piece), -1, column);
  Ratio left = factor(piece);
  // 2i means 2*i.
  if (left.numerator.is_constant() && left.denominator == 1 && ((starts_word(peek()) && !at_keyword()) || accept("*")))
    return scaled(product(piece), left.numerator.constant, column);
  for (int operators = 0;; ++operators) {
    const size_t at = at_;
    if (operators == kDeepest) fail_here("the product is too long", text("at most ", kDeepest, " operators"));
    if (accept("*")) {
      Ratio right = factor(piece);
      if (!right.numerator.is_constant() || right.denominator != 1)
        source_.fail_at(at, "two iterators are multiplied", "products with an integer constant", "keep indices linear");
      left = scaled(std::move(left), right.numerator.constant, at);
    } else if (accept("%") || accept_word("mod")) {
      Ratio right = factor(piece);
      QuasiAffine of = whole(left, column);
      if (!right.numerator.is_constant() || right.denominator != 1 || right.numerator.constant <= 0)
        source_.fail_at(at, "the modulus is no positive constant", "e % c with an integer c > 0", "");
      left = {mod(of, right.numerator.constant), 1};
    } else if (accept("/")) {
      Ratio right = factor(piece);
      if (!right.numerator.is_constant() || right.denominator != 1 || right.numerator.constant <= 0)
        source_.fail_at(at, "the divisor is no positive constant", "floor(e/c) with an integer c > 0", "");
      if (static_cast<Wide>(left.denominator) * right.numerator.constant > kLargestLiteral)
        source_.fail_at(at, "a divisor is too large", text("divisors up to ", kLargestLiteral), "");
      left.denominator *= right.numerator.constant;
    } else {
      return checked(std::move(left), column);
    }
  }
}

RelationReader::Ratio RelationReader::sum(RelationPiece& piece) {
  const size_t column = at_;
  Ratio total = product(piece);
  while (true) {
    bool minus = false;
    if (accept("+")) {
    } else if (peek() == '-' && source_.content.substr(at_, 2) != "->" && accept("-")) {
      minus = true;
    } else {
      return total;
    }
    Ratio next = product(piece);
    if (minus) next.numerator = next.numerator * -1;
    const Wide multiple =
        static_cast<Wide>(total.denominator) / std::gcd(total.denominator, next.denominator) * next.denominator;
    if (multiple > kLargestLiteral)
      source_.fail_at(column, "a divisor is too large", text("divisors up to ", kLargestLiteral), "");
    const int64_t common = static_cast<int64_t>(multiple);
    QuasiAffine both = scaled(total, common / total.denominator, column).numerator +
                       scaled(next, common / next.denominator, column).numerator;
    total = checked({std::move(both), common}, column);
  }
}

bool RelationReader::comparison(Compare& op) {
  if (accept("<="))
    op = Compare::less_equal;
  else if (accept(">="))
    op = Compare::greater_equal;
  else if (accept("<"))
    op = Compare::less;
  else if (accept(">"))
    op = Compare::greater;
  else if (accept("==") || accept("="))
    op = Compare::equal;
  else
    return false;
  return true;
}

/// a <= b, c < d: every expression of a list compares with every one of the next list.
void RelationReader::chain(RelationPiece& piece) {
  auto list = [&] {
    std::vector<QuasiAffine> items;
    do {
      const size_t column = at_;
      items.push_back(whole(sum(piece), column));
      if (items.size() > kMostIterators) fail_here("the list is too long", text("at most ", kMostIterators, " parts"));
    } while (accept(","));
    return items;
  };
  std::vector<QuasiAffine> left = list();
  Compare op;
  if (!comparison(op)) {
    if (peek() == '!')
      fail_here("`!=` cannot be read: it leaves a set in two parts",
                "conditions of <=, <, >=, > and = joined by `and`");
    if (accept_word("or"))
      source_.fail_at(at_, "`or` cannot be read", "conditions joined by `and`", "write the parts of a union with `;`");
    source_.fail_at(at_, "a comparison is missing", "<=, <, >=, > or =", "");
  }
  do {
    std::vector<QuasiAffine> right = list();
    for (const QuasiAffine& a : left)
      for (const QuasiAffine& b : right) switch (op) {
          case Compare::less_equal: piece.constraints.push_back(b - a); break;
          case Compare::less: piece.constraints.push_back(b - a - 1); break;
          case Compare::greater_equal: piece.constraints.push_back(a - b); break;
          case Compare::greater: piece.constraints.push_back(a - b - 1); break;
          case Compare::equal:
            piece.constraints.push_back(a - b);
            piece.constraints.push_back(b - a);
            break;
        }
    if (piece.constraints.size() > kMostConstraints)
      fail_here("there are too many conditions", text("at most ", kMostConstraints, " of them"));
    left = std::move(right);
  } while (comparison(op));
}

void RelationReader::constraints(RelationPiece& piece) {
  do chain(piece);
  while (accept_word("and") || accept("&&"));
  if (accept_word("or") || accept("||"))
    fail_here("`or` cannot be read", "conditions joined by `and`; parts of a union are written with `;`");
}

Tuple RelationReader::tuple(RelationPiece& piece, bool defines) {
  Tuple result;
  result.column = at_;
  result.name = word();
  expect("[", "after the tuple's name");
  if (accept("]")) return result;
  do {
    const size_t column = at_;
    if (result.elements.size() == kMostIterators)
      fail_here("the tuple is too long", text("at most ", kMostIterators, " coordinates"));
    if (defines) {
      std::string name(word());
      for (const std::string& known : piece.variables)
        if (known == name)
          source_.fail_at(column, text("iterator ", name, " stands twice in the tuple"), "distinct names", "");
      result.elements.push_back(variable(static_cast<int>(piece.variables.size())));
      piece.variables.push_back(std::move(name));
    } else {
      result.elements.push_back(whole(sum(piece), column));
    }
  } while (accept(","));
  expect("]", "closing the tuple");
  return result;
}

RelationPiece RelationReader::piece(bool is_map) {
  RelationPiece piece;
  piece.from = tuple(piece, true);
  if (is_map) {
    expect("->", "between the two tuples");
    free_allowed_ = true;
    piece.to = tuple(piece, false);
    free_allowed_ = false;
  }
  piece.constraint_column = at_;
  if (accept(":")) constraints(piece);
  return piece;
}

std::vector<RelationPiece> RelationReader::relation(bool is_map) {
  std::vector<RelationPiece> pieces;
  if (peek() == '[') fail_here("parameters cannot be read", "relations with integer constants, { S[...] ... }");
  expect("{", "at the start");
  while (!accept("}")) {
    if (pieces.size() == kMostPieces) fail_here("the union is too long", text("at most ", kMostPieces, " parts"));
    pieces.push_back(piece(is_map));
    if (!accept(";")) {
      expect("}", "or \";\" after a part");
      break;
    }
  }
  if (!at_end()) fail_here("there is text after the closing brace", "one relation on a line");
  return pieces;
}

std::vector<RelationPiece> read_relation(const Source& source, bool is_map) {
  return RelationReader(source).relation(is_map);
}

Domain to_domain(const Source& source, const RelationPiece& set) {
  const size_t rank = set.variables.size();
  std::vector<Interval> bounds(rank, {-kLargestLiteral - 1, kLargestLiteral + 1});
  auto known = [&](int64_t v) { return v >= -kLargestLiteral && v <= kLargestLiteral; };
  bool impossible = false;
  // c * x + rest >= 0 bounds x once the rest is bounded; a few rounds follow chains such as 0 <= j <= i < 8.
  for (size_t round = 0; round < rank + 1; ++round)
    for (const QuasiAffine& g : set.constraints) {
      bool linear = true;
      for (const Term& t : g.terms) linear &= !t.division;
      if (!linear) continue;
      if (g.is_constant()) impossible |= g.constant < 0;
      for (const Term& t : g.terms) {
        Wide most = g.constant;
        bool bounded = true;
        for (const Term& other : g.terms) {
          if (other.variable == t.variable) continue;
          const Interval& b = bounds[static_cast<size_t>(other.variable)];
          const int64_t end = other.coefficient > 0 ? b.hi : b.lo;
          bounded &= known(end);
          most += static_cast<Wide>(other.coefficient) * end;
        }
        if (!bounded) continue;
        Interval& mine = bounds[static_cast<size_t>(t.variable)];
        const Wide c = t.coefficient < 0 ? -static_cast<Wide>(t.coefficient) : t.coefficient;
        Wide quotient = most / c - (most % c < 0);  // floor(most / |c|)
        if (quotient > kLargestLiteral || quotient < -kLargestLiteral) continue;
        const int64_t limit = static_cast<int64_t>(quotient);
        if (t.coefficient < 0)
          mine.hi = std::min(mine.hi, limit);
        else
          mine.lo = std::max(mine.lo, -limit);
      }
    }
  Domain domain;
  for (size_t v = 0; v < rank; ++v) {
    if (!known(bounds[v].lo) || !known(bounds[v].hi))
      source.fail_at(set.from.column,
                     text("iterator ", set.variables[v], " has no ", known(bounds[v].lo) ? "upper" : "lower", " bound"),
                     "bounds such as 0<=i<8 for every iterator",
                     text("add a bound for ", set.variables[v]));
    domain.names.push_back(set.variables[v]);
    domain.lower.push_back(bounds[v].lo);
    domain.extent.push_back(impossible ? 0 : bounds[v].size());
  }
  // What the box does not say yet stays as a guard.
  Box box(bounds.begin(), bounds.end());
  for (const QuasiAffine& g : set.constraints) {
    std::vector<int64_t> row(rank, 0);
    bool linear = true;
    for (const Term& t : g.terms) {
      if (t.division)
        linear = false;
      else
        row[static_cast<size_t>(t.variable)] += t.coefficient;
    }
    if (!linear || range_of(row, g.constant, box).lo < 0) domain.guards.push_back(g);
  }
  return domain;
}

}  // namespace sator::dataflow
