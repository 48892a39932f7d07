// What a program in the Python subset of TVMScript consists of. Plain trees; their meaning is given by the parsers of
// tir/ and relax/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/script/source.h"

namespace sator::script {

enum class ExpressionKind : uint8_t {
  absent,       ///< a part that may be left out, and is
  name,         ///< text
  integer,      ///< integer; text as written
  real,         ///< real
  string,       ///< text, unescaped
  formatted,    ///< f"a{b}": items, texts and fields
  none,         ///< None
  boolean,      ///< integer 0 or 1
  ellipsis,     ///< ...
  tuple,        ///< items
  list,         ///< items
  dict,         ///< items: key, value, key, value, ...
  attribute,    ///< items[0] . text
  subscript,    ///< items[0] [ items[1] ]; items[1] is a tuple for several indices
  slice,        ///< items: start, stop, step, each possibly absent
  call,         ///< items[0] ( items[1], ... , keywords )
  unary,        ///< text: - + ~ not
  binary,       ///< text: + - * / // % ** @ << >> & | ^
  compare,      ///< items[0] names[0] items[1] names[1] items[2] ...
  logical,      ///< text: and or; two or more items
  conditional,  ///< items: condition, value if true, value if false
  lambda,       ///< names: parameters; items[0]: body
  star,         ///< *items[0]
  comprehension,  ///< text: [x for x in y] as it is written, in its brackets; integer: how many items are elements; names: for, if;
  ///< items: elements, then target and list of each for, the condition of each if; none if they are more of Python
};

struct Keyword;

struct Expression {
  ExpressionKind kind = ExpressionKind::absent;
  uint16_t depth = 1;  ///< levels of the tree; bounded, so that recursion over it is safe
  Place place;
  std::string text;
  int64_t integer = 0;
  bool is_unsigned = false;  ///< an integer above 2^63 - 1: `integer` holds its 64 bits
  double real = 0;
  std::vector<Expression> items;
  std::vector<std::string> names;
  std::vector<Keyword> keywords;

  bool is(ExpressionKind k) const { return kind == k; }
  bool present() const { return kind != ExpressionKind::absent; }
};

struct Keyword {
  std::string name;  ///< empty for **value
  Place place;
  Expression value;
};

enum class StatementKind : uint8_t {
  expression,  ///< value
  assign,      ///< targets = value
  annotated,   ///< targets[0] : annotation [= value]
  augmented,   ///< targets[0] text= value; text is the operator without '='
  for_,        ///< for targets[0] in value: body
  while_,      ///< while value: body
  if_,         ///< if value: body else: orelse (elif is an if in orelse)
  with,        ///< with items: body
  return_,     ///< return value (possibly absent)
  assert_,     ///< assert value, message
  pass,
  break_,
  continue_,
  function,  ///< decorators, text: name, params, annotation: what it returns, body
  class_,    ///< decorators, text: name, body
  import,    ///< text: module; params: the names bound, each with what it stands for in `annotation` (a string)
};

struct Parameter {
  std::string name;
  Place place;
  Expression annotation;
  Expression default_value;
  bool is_star = false;         ///< *name or **name; a * alone has the name "*"
  bool is_double_star = false;  ///< **name
};

/// One `expression as target` of a with statement.
struct WithItem {
  Expression context;
  Expression target;
};

struct Statement {
  StatementKind kind = StatementKind::pass;
  Place place;  ///< the first line of a compound statement
  std::string text;
  std::vector<Expression> targets;
  Expression value, annotation, message;
  std::vector<WithItem> items;
  std::vector<Parameter> params;
  std::vector<Expression> decorators;
  std::vector<Statement> body, orelse;
};

/// A parsed text.
struct Program {
  SourceRef source;
  std::vector<Statement> body;
};

/// Dotted names as they are written: "T.axis.spatial"; empty if the expression is not one.
std::string dotted_name(const Expression& e);

}  // namespace sator::script
