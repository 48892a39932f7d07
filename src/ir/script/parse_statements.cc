#include "ir/script/parser.h"
#include "ir/script/parser_impl.h"

namespace sator::script {

using Kind = ExpressionKind;

std::string dotted_name(const Expression& e) {
  if (e.is(Kind::name)) return e.text;
  if (!e.is(Kind::attribute)) return {};
  std::string base = dotted_name(e.items[0]);
  return base.empty() ? base : base + "." + e.text;
}

Program parse(std::string text, std::string name, int32_t indent) {
  SourceRef source(new Source(std::move(text), std::move(name), indent));
  Parser parser(*source, tokenize(*source));
  std::vector<Statement> body = parser.file();
  return {std::move(source), std::move(body)};
}

namespace {

void set_places(Expression& e, Place place) {
  e.place = place;
  for (Expression& item : e.items) set_places(item, place);
  for (Keyword& k : e.keywords) {
    k.place = place;
    set_places(k.value, place);
  }
}

}  // namespace

Expression parse_expression(const Source& around, Place at, const std::string& text) {
  Source inner("(" + text + "\n)");
  try {
    Parser parser(inner, tokenize(inner));
    Expression e = parser.whole_expression();
    set_places(e, at);
    return e;
  } catch (const Error& error) {
    around.fail(at,
                {.what = sator::text("in the text ", string_literal(text), ": ", error.reason.what),
                 .needs = error.reason.needs,
                 .hint = error.reason.hint});
  }
}

std::vector<Statement> Parser::file() {
  std::vector<Statement> out;
  while (peek().kind != TokenKind::end) statement(out);
  return out;
}

void Parser::statement(std::vector<Statement>& out) {
  const Token& t = peek();
  if (t.kind == TokenKind::newline) {
    take();
    return;
  }
  if (t.kind == TokenKind::indent || t.kind == TokenKind::dedent) unexpected("a statement");
  if (t.is_op("@")) {
    std::vector<Expression> decorators;
    while (take_op("@")) {
      decorators.push_back(expression());
      if (peek().kind != TokenKind::newline) unexpected("the end of the line after a decorator");
      while (peek().kind == TokenKind::newline) take();
    }
    if (peek().is_name("def"))
      out.push_back(function(std::move(decorators)));
    else if (peek().is_name("class"))
      out.push_back(class_statement(std::move(decorators)));
    else
      unexpected("'def' or 'class' after a decorator");
    return;
  }
  if (t.is_name("def")) return out.push_back(function({}));
  if (t.is_name("class")) return out.push_back(class_statement({}));
  if (t.is_name("if")) return out.push_back(if_statement());
  if (t.is_name("for")) return out.push_back(for_statement());
  if (t.is_name("while")) return out.push_back(while_statement());
  if (t.is_name("with")) return out.push_back(with_statement());
  for (std::string_view word : {"try", "async", "raise", "del", "yield", "await"}) {
    if (t.is_name(word))
      fail(t.place,
           {.what = text("'", word, "' is not part of TVMScript"),
            .needs = "assignments, expressions, for, while, if, with, assert, return, pass, def or class",
            .hint = "compute such things before the program"});
  }
  simple_statements(out);
}

void Parser::simple_statements(std::vector<Statement>& out) {
  while (true) {
    out.push_back(simple_statement());
    if (take_op(";") && peek().kind != TokenKind::newline) continue;
    if (peek().kind != TokenKind::newline) unexpected("the end of the statement");
    take();
    return;
  }
}

Statement Parser::simple_statement() {
  uint32_t begin = peek().place.begin;
  Statement s;
  if (take_name("pass")) {
    s.kind = StatementKind::pass;
  } else if (take_name("nonlocal") || take_name("global")) {
    // Python's note on where a name comes from says nothing here.
    do {
      need_identifier("a name");
    } while (take_op(","));
    s.kind = StatementKind::pass;
  } else if (take_name("break")) {
    s.kind = StatementKind::break_;
  } else if (take_name("continue")) {
    s.kind = StatementKind::continue_;
  } else if (take_name("return")) {
    s.kind = StatementKind::return_;
    if (peek().kind != TokenKind::newline && !peek().is_op(";")) s.value = expressions();
  } else if (take_name("assert")) {
    s.kind = StatementKind::assert_;
    s.value = expression();
    if (take_op(",")) s.message = expression();
  } else if (peek().is_name("import") || peek().is_name("from")) {
    s = import();
  } else {
    s = expression_statement();
  }
  s.place = since(begin);
  return s;
}

std::string Parser::dotted() {
  std::string name;
  while (take_op(".")) name += '.';
  name += need_identifier("a module");
  while (take_op(".")) name += "." + need_identifier("a name after '.'");
  return name;
}

Statement Parser::import() {
  Statement s;
  s.kind = StatementKind::import;
  auto bind = [&](std::string name, std::string meaning) {
    Parameter p;
    p.place = peek().place;
    p.annotation.kind = Kind::string;
    p.annotation.text = std::move(meaning);
    p.name = take_name("as") ? need_identifier("a name after 'as'") : std::move(name);
    s.params.push_back(std::move(p));
  };
  if (take_name("import")) {
    do {
      std::string module = dotted();
      std::string first = module.substr(0, module.find('.'));
      bool is_renamed = peek().is_name("as");
      bind(first, is_renamed ? module : first);
    } while (take_op(","));
    return s;
  }
  take();
  s.text = dotted();
  if (!take_name("import")) unexpected("'import' after the module");
  bool has_parentheses = take_op("(");
  if (take_op("*")) return s;
  do {
    if (has_parentheses && peek().is_op(")")) break;
    std::string name = need_identifier("a name to import");
    bind(name, s.text + "." + name);
  } while (take_op(","));
  if (has_parentheses) need_op(")", "the imported names");
  return s;
}

void Parser::need_target(const Expression& e) const {
  switch (e.kind) {
    case Kind::name:
    case Kind::subscript:
    case Kind::attribute: return;
    case Kind::star: return need_target(e.items[0]);
    case Kind::tuple:
    case Kind::list:
      for (const Expression& item : e.items) need_target(item);
      return;
    default:
      fail(e.place,
           {.what = "this cannot be assigned to",
            .needs = "a name, an element of a buffer, or a tuple of those",
            .hint = "compare with '==' if that is what was meant"});
  }
}

Statement Parser::expression_statement() {
  Statement s;
  Expression first = expressions();
  if (take_op(":")) {
    need_target(first);
    s.kind = StatementKind::annotated;
    s.targets.push_back(std::move(first));
    s.annotation = expression();
    if (take_op("=")) s.value = expressions();
    return s;
  }
  const Token& t = peek();
  if (t.kind == TokenKind::op && t.text.size() >= 2 && t.text.back() == '=' && t.text != "==" && t.text != "<=" &&
      t.text != ">=" && t.text != "!=" && t.text != ":=") {
    need_target(first);
    s.kind = StatementKind::augmented;
    s.text = take().text;
    s.text.pop_back();
    s.targets.push_back(std::move(first));
    s.value = expressions();
    return s;
  }
  if (!t.is_op("=")) {
    s.kind = StatementKind::expression;
    s.value = std::move(first);
    return s;
  }
  s.kind = StatementKind::assign;
  s.value = std::move(first);
  while (take_op("=")) {
    need_target(s.value);
    s.targets.push_back(std::move(s.value));
    s.value = expressions();
  }
  return s;
}

std::vector<Statement> Parser::suite() {
  Level level(*this);
  need_op(":", "the head of the block");
  std::vector<Statement> out;
  if (peek().kind != TokenKind::newline) {
    simple_statements(out);
    return out;
  }
  while (peek().kind == TokenKind::newline) take();
  if (peek().kind != TokenKind::indent) unexpected("an indented block");
  take();
  while (peek().kind != TokenKind::dedent && peek().kind != TokenKind::end) statement(out);
  if (peek().kind == TokenKind::dedent) take();
  return out;
}

Statement Parser::if_statement() {
  Level level(*this);  // elif chains recurse
  uint32_t begin = take().place.begin;
  Statement s;
  s.kind = StatementKind::if_;
  s.value = expression();
  s.place = since(begin);
  s.body = suite();
  if (peek().is_name("elif")) {
    s.orelse.push_back(if_statement());
  } else if (take_name("else")) {
    s.orelse = suite();
  }
  return s;
}

Expression Parser::target_list(std::string_view before) {
  bool was_target = std::exchange(for_target_, true);
  Expression e = expressions();
  for_target_ = was_target;
  need_target(e);
  if (!take_name(before)) unexpected(text("'", before, "' after the targets"));
  return e;
}

Statement Parser::for_statement() {
  uint32_t begin = take().place.begin;
  Statement s;
  s.kind = StatementKind::for_;
  s.targets.push_back(target_list("in"));
  s.value = expressions();
  s.place = since(begin);
  s.body = suite();
  if (peek().is_name("else"))
    fail(peek().place,
         {.what = "a loop with 'else' is not part of TVMScript",
          .needs = "a loop alone",
          .hint = "move the statements after the loop"});
  return s;
}

Statement Parser::while_statement() {
  uint32_t begin = take().place.begin;
  Statement s;
  s.kind = StatementKind::while_;
  s.value = expression();
  s.place = since(begin);
  s.body = suite();
  return s;
}

Statement Parser::with_statement() {
  uint32_t begin = take().place.begin;
  Statement s;
  s.kind = StatementKind::with;
  do {
    WithItem item;
    item.context = expression();
    if (take_name("as")) {
      item.target = star_or_expression();
      need_target(item.target);
    }
    s.items.push_back(std::move(item));
  } while (take_op(","));
  s.place = since(begin);
  s.body = suite();
  return s;
}

Statement Parser::function(std::vector<Expression> decorators) {
  uint32_t begin = take().place.begin;
  Statement s;
  s.kind = StatementKind::function;
  s.text = need_identifier("the function's name");
  need_op("(", "the function's name");
  while (!peek().is_op(")")) {
    Parameter p;
    uint32_t start = peek().place.begin;
    if (take_op("/")) {  // what stands before it has no name for callers
      if (!take_op(",")) break;
      continue;
    }
    p.is_double_star = take_op("**");
    p.is_star = p.is_double_star || take_op("*");
    p.name = p.is_star && peek().is_op(",") ? "*" : need_identifier("a parameter");
    p.place = since(start);
    if (take_op(":")) p.annotation = expression();
    if (take_op("=")) p.default_value = expression();
    s.params.push_back(std::move(p));
    if (!take_op(",")) break;
  }
  need_op(")", "the parameters");
  if (take_op("->")) s.annotation = expressions();
  s.place = since(begin);
  s.decorators = std::move(decorators);
  s.body = suite();
  return s;
}

Statement Parser::class_statement(std::vector<Expression> decorators) {
  uint32_t begin = take().place.begin;
  Statement s;
  s.kind = StatementKind::class_;
  s.text = need_identifier("the class's name");
  if (take_op("(")) {
    while (!peek().is_op(")")) {
      expression();
      if (!take_op(",")) break;
    }
    need_op(")", "the base classes");
  }
  s.place = since(begin);
  s.decorators = std::move(decorators);
  s.body = suite();
  return s;
}

}  // namespace sator::script
