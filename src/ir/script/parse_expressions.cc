#include <algorithm>

#include "ir/script/parser.h"
#include "ir/script/parser_impl.h"

namespace sator::script {

namespace {

constexpr int kMaxLevels = 200;  // of constructs open at one place of the text
constexpr int kMaxDepth = 1500;  // of one expression's tree: a sum of as many terms

using Kind = ExpressionKind;

// Left-associative operators, weakest first.
constexpr std::string_view kBinaryOperators[][5] = {
    {"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"}};
constexpr int kBinaryLevels = 6;

constexpr std::string_view kKeywords[] = {
    "False",  "None",     "True", "and",    "as",   "assert", "async",   "await",  "break", "class",  "continue", "def",
    "del",    "elif",     "else", "except", "for",  "from",   "finally", "global", "if",    "import", "in",       "is",
    "lambda", "nonlocal", "not",  "or",     "pass", "raise",  "return",  "try",    "while", "with",   "yield"};

}  // namespace

Parser::Level::Level(Parser& p) : parser(p) {
  if (++parser.levels_ > kMaxLevels)
    parser.fail(parser.peek().place,
                {.what = text("more than ", kMaxLevels, " constructs are open here"),
                 .needs = text("at most ", kMaxLevels, " levels of nesting"),
                 .hint = "give inner parts names of their own"});
}

Expression Parser::node(Kind kind, uint32_t begin, std::vector<Expression> items, std::string text) {
  Expression e;
  e.kind = kind;
  e.place = since(begin);
  int depth = 0;
  for (const Expression& item : items) depth = std::max<int>(depth, item.depth);
  if (depth >= kMaxDepth)
    fail(e.place,
         {.what = sator::text("an expression of more than ", kMaxDepth, " levels"),
          .needs = sator::text("at most ", kMaxDepth, " operators applied one to another"),
          .hint = "give parts of it names of their own"});
  e.depth = static_cast<uint16_t>(depth + 1);
  e.items = std::move(items);
  e.text = std::move(text);
  return e;
}

bool Parser::is_keyword(const Token& t) const {
  return t.kind == TokenKind::name &&
         std::find(std::begin(kKeywords), std::end(kKeywords), t.text) != std::end(kKeywords);
}

bool Parser::take_op(std::string_view op) {
  if (!peek().is_op(op)) return false;
  take();
  return true;
}
bool Parser::take_name(std::string_view name) {
  if (!peek().is_name(name)) return false;
  take();
  return true;
}
void Parser::need_op(std::string_view op, std::string_view after) {
  if (!take_op(op)) unexpected(text("'", op, "' after ", after));
}
std::string Parser::need_identifier(std::string_view what) {
  if (peek().kind != TokenKind::name || is_keyword(peek())) unexpected(what);
  return take().text;
}

void Parser::unexpected(std::string_view wanted) const {
  const Token& t = peek();
  std::string found;
  switch (t.kind) {
    case TokenKind::end: found = "the end of the text"; break;
    case TokenKind::newline: found = "the end of the line"; break;
    case TokenKind::indent: found = "a deeper indentation"; break;
    case TokenKind::dedent: found = "the end of the block"; break;
    case TokenKind::string: found = "a string"; break;
    default: found = text("'", t.text, "'");
  }
  fail(t.place,
       {.what = text("expected ", wanted, ", found ", found), .needs = text(wanted), .hint = "correct the line"});
}

Expression Parser::whole_expression() {
  Expression e = expressions();
  while (peek().kind == TokenKind::newline) take();
  if (peek().kind != TokenKind::end) unexpected("the end of the expression");
  return e;
}

Expression Parser::expressions() {
  uint32_t begin = peek().place.begin;
  Expression first = star_or_expression();
  if (!peek().is_op(",")) return first;
  std::vector<Expression> items;
  items.push_back(std::move(first));
  while (take_op(",")) {
    const Token& t = peek();
    bool ends = t.kind == TokenKind::newline || t.kind == TokenKind::end || t.is_op("=") || t.is_op(")") ||
                t.is_op(":") || t.is_op("]") || t.is_op(";");
    if (ends || t.is_name("in")) break;
    items.push_back(star_or_expression());
  }
  return node(Kind::tuple, begin, std::move(items));
}

Expression Parser::star_or_expression() {
  uint32_t begin = peek().place.begin;
  if (!take_op("*")) return expression();
  Expression value = binary(0);
  std::vector<Expression> items;
  items.push_back(std::move(value));
  return node(Kind::star, begin, std::move(items));
}

Expression Parser::expression() {
  Level level(*this);
  uint32_t begin = peek().place.begin;
  if (peek().is_name("lambda")) return lambda();
  Expression value = logical_or();
  if (peek().is_op(":="))
    fail(peek().place,
         {.what = "':=' is not part of TVMScript", .needs = "an assignment of its own", .hint = "assign before"});
  if (!peek().is_name("if")) return value;
  take();
  Expression condition = logical_or();
  if (!take_name("else")) unexpected("'else' after the condition");
  Expression other = expression();
  std::vector<Expression> items;
  items.push_back(std::move(condition));
  items.push_back(std::move(value));
  items.push_back(std::move(other));
  return node(Kind::conditional, begin, std::move(items));
}

Expression Parser::lambda() {
  uint32_t begin = take().place.begin;
  std::vector<std::string> names;
  while (!peek().is_op(":")) {
    bool star = take_op("*");
    names.push_back((star ? "*" : "") + need_identifier("a parameter of the lambda"));
    if (!take_op(",")) break;
  }
  need_op(":", "the parameters of the lambda");
  std::vector<Expression> items;
  items.push_back(expression());
  Expression e = node(Kind::lambda, begin, std::move(items));
  e.names = std::move(names);
  return e;
}

Expression Parser::logical_or() {
  uint32_t begin = peek().place.begin;
  Expression first = logical_and();
  if (!peek().is_name("or")) return first;
  std::vector<Expression> items;
  items.push_back(std::move(first));
  while (take_name("or")) items.push_back(logical_and());
  return node(Kind::logical, begin, std::move(items), "or");
}

Expression Parser::logical_and() {
  uint32_t begin = peek().place.begin;
  Expression first = logical_not();
  if (!peek().is_name("and")) return first;
  std::vector<Expression> items;
  items.push_back(std::move(first));
  while (take_name("and")) items.push_back(logical_not());
  return node(Kind::logical, begin, std::move(items), "and");
}

Expression Parser::logical_not() {
  if (!peek().is_name("not")) return comparison();
  Level level(*this);
  uint32_t begin = take().place.begin;
  std::vector<Expression> items;
  items.push_back(logical_not());
  return node(Kind::unary, begin, std::move(items), "not");
}

Expression Parser::comparison() {
  uint32_t begin = peek().place.begin;
  Expression first = binary(0);
  std::vector<std::string> names;
  std::vector<Expression> items;
  while (true) {
    const Token& t = peek();
    std::string op;
    if (t.kind == TokenKind::op &&
        (t.text == "<" || t.text == ">" || t.text == "<=" || t.text == ">=" || t.text == "==" || t.text == "!=")) {
      op = take().text;
    } else if (t.is_name("in")) {
      if (for_target_) break;
      op = take().text;
    } else if (t.is_name("not") && peek(1).is_name("in")) {
      take();
      take();
      op = "not in";
    } else if (t.is_name("is")) {
      take();
      op = take_name("not") ? "is not" : "is";
    } else {
      break;
    }
    if (items.empty()) items.push_back(std::move(first));
    names.push_back(std::move(op));
    items.push_back(binary(0));
  }
  if (items.empty()) return first;
  Expression e = node(Kind::compare, begin, std::move(items));
  e.names = std::move(names);
  return e;
}

Expression Parser::binary(int level) {
  if (level == kBinaryLevels) return unary();
  uint32_t begin = peek().place.begin;
  Expression left = binary(level + 1);
  while (peek().kind == TokenKind::op) {
    const auto& ops = kBinaryOperators[level];
    if (std::find(std::begin(ops), std::end(ops), peek().text) == std::end(ops)) break;
    std::string op = take().text;
    Expression right = binary(level + 1);
    std::vector<Expression> items;
    items.push_back(std::move(left));
    items.push_back(std::move(right));
    left = node(Kind::binary, begin, std::move(items), std::move(op));
  }
  return left;
}

Expression Parser::unary() {
  const Token& t = peek();
  if (!t.is_op("-") && !t.is_op("+") && !t.is_op("~")) return power();
  Level level(*this);
  uint32_t begin = t.place.begin;
  std::string op = take().text;
  std::vector<Expression> items;
  items.push_back(unary());
  return node(Kind::unary, begin, std::move(items), std::move(op));
}

Expression Parser::power() {
  uint32_t begin = peek().place.begin;
  Expression base = primary();
  if (!peek().is_op("**")) return base;
  Level level(*this);
  take();
  std::vector<Expression> items;
  items.push_back(std::move(base));
  items.push_back(unary());
  return node(Kind::binary, begin, std::move(items), "**");
}

Expression Parser::primary() {
  uint32_t begin = peek().place.begin;
  Expression e = atom();
  while (true) {
    if (take_op(".")) {
      std::string name = need_identifier("a name after '.'");
      std::vector<Expression> items;
      items.push_back(std::move(e));
      e = node(Kind::attribute, begin, std::move(items), std::move(name));
    } else if (peek().is_op("(")) {
      e = call(std::move(e));
    } else if (peek().is_op("[")) {
      e = subscript(std::move(e));
    } else {
      return e;
    }
  }
}

Expression Parser::atom() {
  const Token& t = peek();
  uint32_t begin = t.place.begin;
  switch (t.kind) {
    case TokenKind::integer: {
      Token literal = take();
      Expression e = node(Kind::integer, begin, {}, literal.text);
      e.integer = literal.integer;
      e.is_unsigned = literal.is_unsigned;
      return e;
    }
    case TokenKind::real: {
      double value = take().real;
      Expression e = node(Kind::real, begin);
      e.real = value;
      return e;
    }
    case TokenKind::string: return string();
    case TokenKind::name: {
      if (take_name("None")) return node(Kind::none, begin);
      if (t.text == "True" || t.text == "False") {
        bool value = take().text == "True";
        Expression e = node(Kind::boolean, begin);
        e.integer = value;
        return e;
      }
      if (is_keyword(t)) unexpected("an expression");
      std::string name = take().text;
      return node(Kind::name, begin, {}, std::move(name));
    }
    default: break;
  }
  if (t.is_op("(")) return parenthesised();
  if (t.is_op("[")) return list();
  if (t.is_op("{")) return dict();
  if (take_op("...")) return node(Kind::ellipsis, begin);
  unexpected("an expression");
}

/// Strings beside each other: "a" f"{n}" is "a3" where n is 3.
Expression Parser::string() {
  const uint32_t begin = peek().place.begin;
  std::string value;
  std::vector<Expression> parts;
  while (peek().kind == TokenKind::string) {
    const Token t = take();
    if (!t.is_formatted) value += t.text;
    for (size_t i = 0; t.is_formatted && i < t.text.size(); ++i) {
      const char c = t.text[i];
      if ((c == '{' || c == '}') && i + 1 < t.text.size() && t.text[i + 1] == c)
        ++i;
      else if (c == '{') {
        const size_t first = i + 1;
        char quote = 0;
        for (int depth = 1; depth > 0;) {
          if (++i >= t.text.size())
            fail(t.place,
                 {.what = "a field of a formatted string that is never closed",
                  .needs = "fields such as {name}",
                  .hint = "write {{ for a brace"});
          const char d = t.text[i];
          if (quote || d == '"' || d == '\'')
            quote = !quote ? d : d == quote ? 0 : quote;
          else if (d == '{' || d == '[' || d == '(')
            ++depth;
          else if (d == '}' || d == ']' || d == ')')
            --depth;
        }
        Expression field = parse_expression(source_, t.place, t.text.substr(first, i - first));
        if (field.is(Kind::string)) {
          value += field.text;
        } else {
          parts.push_back(node(Kind::string, begin, {}, std::exchange(value, {})));
          parts.push_back(std::move(field));
        }
        continue;
      }
      value += c;
    }
  }
  Expression last = node(Kind::string, begin, {}, std::move(value));
  if (parts.empty()) return last;
  parts.push_back(std::move(last));
  return node(Kind::formatted, begin, std::move(parts));
}

Expression Parser::comprehension(std::vector<Expression> items, char open, std::string_view close) {
  const uint32_t begin = items[0].place.begin;
  const size_t first = next_, elements = items.size();
  const bool was_target = for_target_;
  std::vector<std::string> names;
  try {
    while (!peek().is_op(close)) {
      names.push_back(peek().text);
      if (take_name("for"))
        items.push_back(target_list("in"));
      else if (!take_name("if"))
        unexpected("for or if");
      items.push_back(logical_or());
    }
  } catch (const SourceError&) {  // more of Python, which Python may know
    items.clear();
    next_ = first;
    for_target_ = was_target;
  }
  int depth = 0;
  while (depth > 0 || !peek().is_op(close)) {
    const Token& t = peek();
    if (t.kind == TokenKind::end) unexpected("the end of the comprehension");
    if (t.is_op("(") || t.is_op("[") || t.is_op("{")) ++depth;
    if (t.is_op(")") || t.is_op("]") || t.is_op("}")) --depth;
    if (depth < 0) unexpected("the end of the comprehension");
    take();
  }
  const Place place = since(begin);
  Expression e =
      node(Kind::comprehension,
           begin,
           std::move(items),
           open + std::string(source_.text().substr(place.begin, place.end - place.begin)) + std::string(close));
  e.integer = static_cast<int64_t>(elements);
  e.names = std::move(names);
  return e;
}

Expression Parser::parenthesised() {
  Level level(*this);
  uint32_t begin = take().place.begin;
  bool was_target = std::exchange(for_target_, false);
  std::vector<Expression> items;
  bool is_tuple = peek().is_op(")");
  while (!peek().is_op(")")) {
    items.push_back(star_or_expression());
    if (peek().is_name("for")) items.back() = comprehension({std::move(items.back())}, '(', ")");
    if (!take_op(",")) break;
    is_tuple = true;
  }
  need_op(")", "the elements in parentheses");
  for_target_ = was_target;
  if (!is_tuple) {
    items[0].place = since(begin);
    return std::move(items[0]);
  }
  return node(Kind::tuple, begin, std::move(items));
}

Expression Parser::list() {
  Level level(*this);
  uint32_t begin = take().place.begin;
  bool was_target = std::exchange(for_target_, false);
  std::vector<Expression> items;
  while (!peek().is_op("]")) {
    items.push_back(star_or_expression());
    if (peek().is_name("for")) {
      Expression all = comprehension({std::move(items.back())}, '[', "]");
      need_op("]", "the elements of the list");
      for_target_ = was_target;
      return all;
    }
    if (!take_op(",")) break;
  }
  need_op("]", "the elements of the list");
  for_target_ = was_target;
  return node(Kind::list, begin, std::move(items));
}

Expression Parser::dict() {
  Level level(*this);
  uint32_t begin = take().place.begin;
  std::vector<Expression> items;
  while (!peek().is_op("}")) {
    if (peek().is_op("**"))
      fail(peek().place,
           {.what = "'**' inside a dictionary is not part of TVMScript",
            .needs = "the entries themselves",
            .hint = "write the entries out"});
    items.push_back(expression());
    need_op(":", "a key of the dictionary");
    items.push_back(expression());
    if (peek().is_name("for")) {
      Expression all = comprehension({std::move(items[items.size() - 2]), std::move(items.back())}, '{', "}");
      need_op("}", "the entries of the dictionary");
      return all;
    }
    if (!take_op(",")) break;
  }
  need_op("}", "the entries of the dictionary");
  return node(Kind::dict, begin, std::move(items));
}

Expression Parser::call(Expression callee) {
  Level level(*this);
  uint32_t begin = callee.place.begin;
  take();
  bool was_target = std::exchange(for_target_, false);
  std::vector<Expression> items;
  std::vector<Keyword> keywords;
  items.push_back(std::move(callee));
  int depth = 0;
  while (!peek().is_op(")")) {
    const Token& t = peek();
    uint32_t start = t.place.begin;
    if (t.is_op("**") || (t.kind == TokenKind::name && peek(1).is_op("="))) {
      std::string name;
      if (!take_op("**")) {
        name = need_identifier("a keyword");
        take();
      }
      Expression value = expression();
      depth = std::max<int>(depth, value.depth);
      keywords.push_back({std::move(name), since(start), std::move(value)});
    } else {
      items.push_back(star_or_expression());
      if (peek().is_name("for")) items.back() = comprehension({std::move(items.back())}, '(', ")");
      if (!keywords.empty() && !items.back().is(Kind::star))
        fail(items.back().place,
             {.what = "a positional argument follows a keyword argument",
              .needs = "positional arguments first",
              .hint = "reorder the arguments"});
    }
    if (!take_op(",")) break;
  }
  need_op(")", "the arguments");
  for_target_ = was_target;
  Expression e = node(Kind::call, begin, std::move(items));
  e.depth = static_cast<uint16_t>(std::max<int>(e.depth, depth + 1));
  if (e.depth > kMaxDepth) unexpected("an expression of less depth");
  e.keywords = std::move(keywords);
  return e;
}

Expression Parser::subscript(Expression value) {
  Level level(*this);
  uint32_t begin = value.place.begin;
  uint32_t inside = take().place.end;
  bool was_target = std::exchange(for_target_, false);
  std::vector<Expression> indices;
  bool is_tuple = false;
  while (!peek().is_op("]")) {
    indices.push_back(index());
    if (!take_op(",")) break;
    is_tuple = true;
  }
  if (indices.empty()) unexpected("an index");
  Expression inner =
      is_tuple || indices.size() > 1 ? node(Kind::tuple, inside, std::move(indices)) : std::move(indices[0]);
  need_op("]", "the indices");
  for_target_ = was_target;
  std::vector<Expression> items;
  items.push_back(std::move(value));
  items.push_back(std::move(inner));
  return node(Kind::subscript, begin, std::move(items));
}

Expression Parser::index() {
  uint32_t begin = peek().place.begin;
  auto part = [&] {
    const Token& t = peek();
    return t.is_op(":") || t.is_op(",") || t.is_op("]") ? Expression() : star_or_expression();
  };
  Expression start = part();
  if (!peek().is_op(":")) {
    if (!start.present()) unexpected("an index");
    return start;
  }
  std::vector<Expression> items;
  items.push_back(std::move(start));
  take();
  items.push_back(part());
  items.push_back(take_op(":") ? part() : Expression());
  return node(Kind::slice, begin, std::move(items));
}

}  // namespace sator::script
