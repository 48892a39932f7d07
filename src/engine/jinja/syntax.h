// The tree of a template.
#pragma once

#include "engine/jinja/lexer.h"

namespace sator::jinja {

enum class ExprKind {
  constant,  ///< value
  name,      ///< name
  list,
  tuple,        ///< parts
  dict,         ///< parts: key, value, key, value, ...
  attribute,    ///< parts[0].name
  item,         ///< parts[0][parts[1]]
  slice,        ///< parts[0][parts[1]:parts[2]:parts[3]]; an absent bound is the constant None
  call,         ///< parts[0](arguments)
  filter,       ///< parts[0] | name(arguments)
  test,         ///< parts[0] is name(arguments)
  unary,        ///< name parts[0]: "-", "+", "not"
  binary,       ///< parts[0] name parts[1]: operators, "and", "or"
  comparison,   ///< parts[0] names[0] parts[1] names[1] parts[2] ...
  conditional,  ///< parts[0] if parts[1] else parts[2], which may be absent
};

struct Expr {
  struct Argument {
    std::string name;  ///< empty: by its position; "*", "**": from a list, from a dictionary
    std::shared_ptr<const Expr> value;
  };
  ExprKind kind = ExprKind::constant;
  Place place;
  Value value;
  std::string name;
  std::vector<std::string> names;
  std::vector<Expr> parts;
  std::vector<Argument> arguments;
  int height = 1;  ///< of the tree below, itself included
};

enum class StmtKind {
  text,      ///< text
  output,    ///< exprs
  branch,    ///< if exprs[i]: bodies[i]; else the body behind them, if there is one
  loop,      ///< for target in exprs[0] if exprs[1]: bodies[0], else bodies[1]; `recursive`
  assign,    ///< target = exprs[0]
  capture,   ///< target = the text of bodies[0], through the filters of exprs[0] applied to `kCaptured`
  macro,     ///< name, parameters, bodies[0]
  call,      ///< exprs[0] is called with bodies[0] as `caller`, of `parameters`
  filtered,  ///< the text of bodies[0] through the filters of exprs[0]
  scope,     ///< bodies[0] with names[i] = exprs[i]
  leave,     ///< name: "break" or "continue"
};

struct Stmt {
  struct Parameter {
    std::string name;
    std::shared_ptr<const Expr> otherwise;  ///< null: undefined
  };
  /// A name, a member of a namespace ("ns.x"), or one for each part of a value.
  struct Target {
    std::string name;  ///< empty: parts
    std::vector<Target> parts;
  };
  using Body = std::vector<Stmt>;

  StmtKind kind = StmtKind::text;
  Place place;
  std::string text, name;
  Target target;
  std::vector<std::string> names;
  std::vector<Expr> exprs;
  std::vector<Body> bodies;
  std::vector<Parameter> parameters;
  bool recursive = false;
  // Of a macro: what it takes beside its parameters.
  bool reads_varargs = false, reads_kwargs = false, reads_caller = false;
};

/// What the filters of a captured text are applied to.
inline constexpr const char* kCaptured = " captured";

/// Errors: what is no template, or uses parts of Jinja that texts of a conversation do not need (inheritance, imports), by their
/// place; nesting deeper than 200, chains longer than 500.
Stmt::Body parse(const std::string& source, const std::string& name);

}  // namespace sator::jinja
