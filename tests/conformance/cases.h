// The program behind `./dev conformance`: tools/conformance.md is its protocol.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/module.h"

namespace sator::script {
struct Expression;
}

namespace sator::conformance {

using Json = nlohmann::json;

/// The case needs something that is not built: `reason` names it.
struct Unsupported {
  std::string reason;
};
/// The case does not hold: first line the gist, then as much as helps.
struct Failed {
  std::string detail;
};

/// The case counts as passed though the result is not TVM's: the interpreter shows that TVM's is wrong.
struct Counterexample {
  std::string detail;
};

/// How a kind of case is run: it returns if the case holds, throws Counterexample, Failed or Unsupported if not. Errors of
/// the product count as Failed.
struct Handler {
  std::string kind;
  std::function<void(const Json& request)> run;
};

/// All handlers: the table in main.cc.
const std::vector<Handler>& handlers();

// ---- Programs ----

/// The text as a module; a function alone is a module of it. `verify` also asks the verifier: cases whose text was marked
/// as ill formed in its test have lost that mark. Unsupported: macros, graphs.
ModuleRef parse_program(const std::string& text, bool verify = false);
/// Before comparing: without the names that a module or function goes by.
ModuleRef without_global_symbols(const ModuleRef& module);
std::string print_program(const ModuleRef& module);
/// Whether both state the same programs; `ignore_global_symbol` compares single functions whatever their names are.
bool same_program(const ModuleRef& a, const ModuleRef& b, bool ignore_global_symbol);
/// Where a program that a schedule made of `before` computes something else: on random arguments; where each block touches
/// what it declares and nothing else; or where a loop of symbolic extent exceeds its dtype. Nothing where none is found.
std::optional<std::string> counterexample(const ModuleRef& before, const ModuleRef& expected);
/// The lines of `expected` and `got` that differ.
std::string difference(const std::string& expected, const std::string& got);

// ---- Kinds (text_cases.cc) ----
void run_parse(const Json& request);
void run_roundtrip(const Json& request);
void run_equiv(const Json& request);
void run_print(const Json& request);
void run_script_error(const Json& request);
// ---- Kinds (graph_cases.cc) ----
void run_infer(const Json& request);
void run_expr_error(const Json& request);
void run_expr_query(const Json& request);
void run_expr_equal(const Json& request);
void run_expr_print(const Json& request);
void run_construct(const Json& request);
// ---- Kinds (arith_cases.cc) ----
void run_arith_query(const Json& request);
// ---- Kinds (transform_cases.cc) ----
void run_transform(const Json& request);
void run_transform_error(const Json& request);

/// Values that Python builds for passes of graphs: numbers, texts, lists, dictionaries (lists of pairs), and nodes of graphs.
class PythonValues {
 public:
  explicit PythonValues(const Json& request);  ///< with the case's definitions
  ~PythonValues();
  NodeRef node(const script::Expression& e);
  /// relax.dpl.rewrite_call(pattern, lambda call, matches: ..., module).
  /// Unsupported: a lambda whose patterns cannot be told apart.
  ModuleRef rewritten(const script::Expression& pattern, const script::Expression& rewrite, const ModuleRef& module);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A method or function of Python that rewrites the graphs of a module: f.bind_params({...}), remove_all_unused(f).
/// Nothing where the call is another one. `module` evaluates an operand, `$before` as case_before.
std::optional<ModuleRef> graph_method(const Json& request, const script::Expression& call,
                                      const std::function<ModuleRef(const script::Expression&)>& module);

/// The module that an expression makes of `before`, which it calls case_before.
ModuleRef transformed(const Json& request, const ModuleRef& before, const script::Expression& e);
// ---- Kinds (function_cases.cc) ----
void run_query(const Json& request);
/// The part of a graph function that an expression over `$before` names; null where it names none.
NodeRef part_of_graph(const Json& request, const ModuleRef& before, std::string source);
/// Throws Failed where the expression over `case_before` is not what the case says.
void ask(const Json& request, const ModuleRef& before, const std::string& source);

// ---- Kinds (schedule_cases.cc) ----
void run_schedule(const Json& request);
void run_schedule_error(const Json& request);
void run_schedule_query(const Json& request);

}  // namespace sator::conformance
