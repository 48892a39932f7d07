// Expressions of TVMScript: names, arithmetic, subscripts and calls. The parsers of tensor programs and of graphs derive
// from it.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <unordered_map>

#include "arith/index_map.h"
#include "base/function_ref.h"
#include "tir/parse_value.h"

namespace sator::tir {

class Evaluator;

/// The arguments of one call, by position and by name.
class Arguments {
 public:
  /// Evaluates the arguments; `names` are the parameters in order, "*name" takes the rest.
  /// Errors: too many arguments, an unknown or repeated keyword.
  Arguments(Evaluator& evaluator, const script::Expression& call, std::vector<std::string_view> names);

  /// The value of a parameter, or null if it was not given (or is None).
  const Value* find(std::string_view name) const;
  const Value& need(std::string_view name) const;
  const std::vector<Value>& rest() const { return rest_; }

  // The value as a type; errors name the parameter.
  Expr expr(std::string_view name) const;
  Expr expr_or(std::string_view name, Expr otherwise) const;
  std::vector<Expr> exprs(std::string_view name) const;  ///< a list, a tuple, or one expression
  DType dtype(std::string_view name, std::optional<DType> otherwise = {}) const;
  std::string str(std::string_view name, std::optional<std::string> otherwise = {}) const;
  int64_t integer(std::string_view name, std::optional<int64_t> otherwise = {}) const;
  bool boolean(std::string_view name, bool otherwise) const;
  std::vector<Expr> rest_exprs() const;

  [[noreturn]] void fail(Reason reason) const;
  script::Place place_of(std::string_view name) const;
  const script::Expression& call;
  Evaluator& evaluator;

 private:
  std::vector<std::string_view> names_;
  std::vector<Value> values_;
  std::vector<script::Place> places_;
  std::vector<bool> given_;
  std::vector<Value> rest_;
};

/// Errors: a number that no integer of the dtype is; other dtypes take any.
void require_in_range(const Arguments& a, const Integer& number, DType dtype);

class Evaluator {
 public:
  explicit Evaluator(const script::Source& source) : source(source) {}
  virtual ~Evaluator() = default;

  Value eval(const script::Expression& e);
  Expr eval_expr(const script::Expression& e) { return to_expr(eval(e), e.place); }

  // Scopes of names.
  void push_scope() { scopes_.emplace_back(); }
  void pop_scope() { scopes_.pop_back(); }
  /// Errors: the innermost scope has the name already, unless `may_replace`.
  void define(const std::string& name, Value value, script::Place place, bool may_replace = false);
  const Value* find(const std::string& name) const;

  /// See ParseOptions.
  std::shared_ptr<const Surroundings> around;
  /// Statements `name = value` around the functions; null: none.
  const std::vector<const script::Statement*>* constants = nullptr;

  /// Names by which imports refer to languages: "T" -> "T", "tir" -> "T", ...
  std::map<std::string, std::string, std::less<>> languages = {
      {"T", "T"}, {"tir", "T"}, {"tirx", "T"}, {"R", "R"}, {"relax", "R"}, {"I", "I"}, {"ir", "I"}, {"tvm", "tvm"}};

  // Conversions; errors point at `place`.
  Expr to_expr(const Value& v, script::Place place);
  /// An integer, real or bool takes the dtype of what it meets.
  Expr to_expr_like(const Value& v, DType dtype, script::Place place);
  std::vector<Expr> to_exprs(const Value& v, script::Place place);
  DType to_dtype(const Value& v, script::Place place);
  /// The value of an attribute.
  NodeRef to_attribute(const Value& v, script::Place place);
  Attrs to_attrs(const Value& v, script::Place place);
  BufferRegionRef to_region(const Subscript& s, script::Place place);
  Expr to_load(const Subscript& s, script::Place place);
  /// Indices of an element or a vector; slices become Ramps.
  std::vector<Expr> to_indices(const Subscript& s, script::Place place);
  std::vector<SubscriptIndex> eval_indices(const script::Expression& index, const Buffer* buffer);

  Value binary(std::string_view op, const Value& a, const Value& b, script::Place place);
  /// Python's truth of a plain value.
  bool is_true(const Value& v) const;

  [[noreturn]] void fail(script::Place place, Reason reason) const { source.fail(place, std::move(reason)); }
  /// Runs `build`, whose errors then point at `place`; the surroundings hear of what else it throws.
  template <class Fn>
  auto located(script::Place place, Fn build) {
    try {
      return build();
    } catch (const script::SourceError&) {
      throw;
    } catch (const Error& e) {
      fail(place, e.reason);
    } catch (...) {
      if (around) around->raised(source.located(place, {.what = "raised where a program is read"}));
      throw;
    }
  }

  const script::Source& source;

 protected:
  /// How a macro is named as part of a language: no name of a program begins so.
  inline static const std::string kMacro = "macro ";
  /// Reads a macro where `call` calls it: `body` sees the parameters, and the names around the call only if the macro
  /// says hygienic=False. Errors: arguments that do not fit the parameters, macros more than 64 deep in one another.
  void in_macro(const script::Statement& def, const script::Expression& call,
                FunctionRef<void(const script::Statement&)> body);
  /// A name that no scope defines. Errors: it is unknown.
  /// What a `name = value` above this place and outside of functions says; null where there is none.
  const Value* constant_named(const std::string& name, script::Place place);
  virtual Value unknown_name(const script::Expression& name);
  /// A call of a language's function, "T.block".
  virtual Value call_language(const std::string& name, const script::Expression& call);
  virtual Value call_other(const Value& callee, const script::Expression& call);
  Value call_host(const HostObject& callee, const script::Expression& call);
  /// An argument as the host's functions take it.
  virtual Value for_host(const Value& v, script::Place place);
  /// f(a, **kw): the items of the dictionary are keywords.
  Value call_spread(const script::Expression& call);
  /// An expression that has this value in the present scope; `name` is none that a program can write.
  script::Expression stand_in(const Value& v, script::Place place, std::string name);
  std::deque<script::Expression> spread_;  ///< such calls, written out
  /// What a noted call gives here.
  Value made(const NotedCall& call, script::Place place);
  /// What an object of the surroundings has under a dotted name, "relax.Call"; null where there is none.
  HostObjectRef host_member(std::string_view path) const;
  virtual std::optional<Value> other_attribute(const Value& object, const std::string& name,
                                               const script::Expression& e);
  virtual Value subscript_other(const Value& object, const script::Expression& e);
  /// An operator whose operands are parts of another language; nothing if it has no meaning for them. `b` is null for
  /// a prefix operator.
  virtual std::optional<Value> other_operator(std::string_view op, const Value& a, const Value* b, script::Place place);

  std::vector<std::string> names_in_scope() const;

 private:
  Value comprehension(const script::Expression& e);
  Value formatted(const script::Expression& e);
  Value part_of(const Values& list, const script::Expression& slice);
  /// The values that a list, a tuple, the keys of a dictionary or range(...) of constants hold.
  std::vector<Value> items_of(const script::Expression& e);
  std::vector<Value> range_items(const script::Expression& call);
  void bind_items(const script::Expression& target, const Value& value);
  Value call_python(std::string_view name, const script::Expression& call);
  void count_items(size_t n, script::Place place);
  Value attribute(const script::Expression& e);
  Value subscript(const script::Expression& e);
  Value unary(const script::Expression& e);
  /// The value of literals alone, which may leave 64 bits on the way; none where it does in the end, or for anything else.
  static std::optional<Value> wide_constant(const script::Expression& e);
  Value compare(const script::Expression& e);
  Value compare_pair(const std::string& op, const Value& a, const Value& b, script::Place place);
  Value logical(const script::Expression& e);
  Value conditional(const script::Expression& e);
  Value call(const script::Expression& e);
  Value call_method(const Method& method, const script::Expression& call);
  Value access_ptr(const Buffer& buffer, const script::Expression& call);
  Value conjunction(std::string_view op, const Value& a, const Value& b, script::Place place);
  std::optional<Value> plain_binary(std::string_view op, const Value& a, const Value& b, script::Place place);

  std::vector<std::unordered_map<std::string, Value>> scopes_;
  std::map<std::pair<const script::Statement*, std::string>, Value> constants_;
  int macros_open_ = 0, constants_open_ = 0;
  size_t items_made_ = 0;
};

/// A function of Python's that constants may be computed with: sum, enumerate, ... (parse_python.cc).
bool is_python_function(std::string_view name);

/// A function that scripts know as T.<name>, on values: conversions, arithmetic by name, calls of builtins.
/// Null where there is none.
using ScriptFunction = Value (*)(Evaluator&, const script::Expression& call);
ScriptFunction find_script_function(std::string_view name);
/// Every name of the language of tensor programs, for suggestions.
std::vector<std::string> script_function_names();

/// A builtin of two operands by its name in scripts, both brought to one dtype: "bitwise_and", "shift_left", "pow".
/// Constants are folded as TVM does.
Expr named_binary(std::string_view name, Expr a, Expr b);

/// The smallest extent expression with start + extent == stop.
Expr extent_between(const Expr& start, const Expr& stop);

/// The map of indices that a lambda writes, over variables of `dtype`: lambda i: (i // 16, i % 16).
arith::IndexMapRef index_map_of(Evaluator& ev, const LambdaValue& lambda, DType dtype);

}  // namespace sator::tir
