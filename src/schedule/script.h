// Schedules as text: `b = get_block("C")`, `i, j = get_loops(b)`, `split(i, factors=[None, 32])`. A small part of Python's
// syntax; names are results of earlier lines, or loops of the program by their own name.
#pragma once

#include "ir/script/parser.h"
#include "schedule/primitive.h"

namespace sator::schedule {

class Script {
 public:
  explicit Script(Schedule& s) : s_(s) {}
  /// Runs the lines in order, those of a function `def apply_trace(sch):` too; `sch.work_on(name)` turns to another function.
  /// Errors: as of the primitives; a name that is neither a result nor a loop.
  void run(const script::Program& program);
  void run(const std::string& text);
  /// The value of one expression; primitives in it are applied.
  Value evaluate(const script::Expression& e);
  /// Applies a primitive: `fuse` and `reorder` take their loops one by one or as a list.
  Value call(const std::string& primitive, List positional, std::vector<std::pair<std::string, Value>> keywords);
  void define(const std::string& name, Value value) { names_[name] = std::move(value); }
  const std::map<std::string, Value>& names() const { return names_; }

 private:
  void require_own(const script::Statement& import) const;
  void run_lines(const std::vector<script::Statement>& lines);
  Value look_up(const script::Expression& e);
  Value apply(const script::Expression& call);
  /// Errors name the line of a script that has a name.
  Value apply_in_place(const script::Expression& call);
  Value arithmetic(const std::string& op, const Value& a, const Value& b);
  Value element(const Value& of, const script::Expression& index);
  Value index_map(const script::Expression& lambda);
  void assign(const script::Expression& target, const Value& value);

  [[noreturn]] void refuse(const script::Expression& e, std::string what, std::string hint) const;

  Schedule& s_;
  script::SourceRef source_;  ///< of the text being run, for messages
  std::map<std::string, Value> names_;
};

}  // namespace sator::schedule
