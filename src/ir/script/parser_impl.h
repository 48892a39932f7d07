// The recursive descent behind parser.h: tokens and errors here, expressions in parse_expressions.cc, statements in
// parse_statements.cc.
#pragma once

#include "ir/script/ast.h"
#include "ir/script/lexer.h"

namespace sator::script {

class Parser {
 public:
  Parser(const Source& source, std::vector<Token> tokens) : source_(source), tokens_(std::move(tokens)) {}

  std::vector<Statement> file();
  /// An expression and nothing after it.
  Expression whole_expression();

 private:
  // Expressions, by Python's precedence.
  Expression expressions();  ///< a, b, ... is a tuple
  Expression expression();
  Expression lambda();
  Expression logical_or();
  Expression logical_and();
  Expression logical_not();
  Expression comparison();
  Expression binary(int level);
  Expression unary();
  Expression power();
  Expression primary();
  Expression atom();
  Expression parenthesised();
  Expression list();
  Expression dict();
  Expression call(Expression callee);
  Expression subscript(Expression value);
  Expression index();
  Expression star_or_expression();
  /// At `for`: the comprehension of these elements within brackets, which closes before `close`; that is not taken.
  Expression comprehension(std::vector<Expression> elements, char open, std::string_view close);
  Expression string();

  // Statements.
  void statement(std::vector<Statement>& out);
  void simple_statements(std::vector<Statement>& out);
  Statement simple_statement();
  Statement expression_statement();
  Statement import();
  Statement if_statement();
  Statement for_statement();
  Statement while_statement();
  Statement with_statement();
  Statement function(std::vector<Expression> decorators);
  Statement class_statement(std::vector<Expression> decorators);
  std::vector<Statement> suite();
  Expression target_list(std::string_view before);
  void need_target(const Expression& e) const;
  std::string dotted();

  // Tokens.
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& t = peek();
    if (next_ < tokens_.size()) ++next_;
    last_end_ = t.place.end;
    return t;
  }
  bool take_op(std::string_view op);
  bool take_name(std::string_view name);
  void need_op(std::string_view op, std::string_view after);
  std::string need_identifier(std::string_view what);
  bool is_keyword(const Token& t) const;
  [[noreturn]] void unexpected(std::string_view wanted) const;
  [[noreturn]] void fail(Place place, Reason reason) const { source_.fail(place, std::move(reason)); }

  /// A node over `items`; its depth follows from theirs.
  Expression node(ExpressionKind kind, uint32_t begin, std::vector<Expression> items = {}, std::string text = {});
  Place since(uint32_t begin) const { return {begin, last_end_}; }
  /// Counts open constructs while it lives, and refuses too many.
  struct Level {
    explicit Level(Parser& parser);
    ~Level() { --parser.levels_; }
    Parser& parser;
  };

  const Source& source_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  uint32_t last_end_ = 0;
  int levels_ = 0;
  bool for_target_ = false;  ///< reading the targets of a `for`, where `in` ends them
};

}  // namespace sator::script
