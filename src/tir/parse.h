// TVMScript to tensor programs. The spellings of 2024 (TVM v0.17), older ones (T.Buffer[128, "float32"],
// tvm.script.ir_module) and newer ones (T.sblock, tirx) are all read.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/script/ast.h"
#include "tir/nodes.h"

namespace sator::tir {

/// The code around a text: it knows names that the text does not define (parse_value.h).
class Surroundings;

struct ParseOptions {
  bool verify = true;  ///< check that functions are well formed, unless they are decorated with check_well_formed=False
  std::map<std::string, std::string, std::less<>> languages = {};  ///< names of T, R and I beyond the usual ones
  std::shared_ptr<const Surroundings> around = {};                 ///< null: the text stands alone
  int32_t indent = 0;  ///< characters that were taken away before each line, for the columns of messages
};

/// What a function sees of the text around it.
struct ParseContext {
  std::map<std::string, std::string, std::less<>> languages;  ///< those of the options, and of the text's imports
  std::vector<std::string> modules;                           ///< names of the module around: its class, "cls"
  std::map<std::string, DType, std::less<>> functions;        ///< functions of the module and what they return
  std::set<std::string, std::less<>> sizes;                   ///< symbolic sizes: `n = TypeVar("n")` around the module
  std::map<std::string, const script::Statement*, std::less<>> macros;  ///< @T.macro, @R.macro: read where called
  std::vector<const script::Statement*> constants;  ///< `N = 37` outside of functions: evaluated where it is used
  ParseOptions options;
};

/// One decorated function, `@T.prim_func def f(...)`. `name` is the file's, for messages.
/// Errors: SourceError with line, column and the line of the text.
PrimFuncRef parse_function(std::string text, std::string name = "", ParseOptions options = {});
/// A class of tensor programs, or functions alone. Errors: as above; a function of graphs (relax/ parses those).
ModuleRef parse_module(std::string text, std::string name = "", ParseOptions options = {});
/// An expression over named values.
Expr parse_expr(std::string text, const std::map<std::string, NodeRef>& names = {});

/// Every name that T has, but those of dtypes: "exp", "block", "axis.spatial".
std::vector<std::string> language_names();

// For the parser of mixed modules.
PrimFuncRef parse_function(const script::Source& source, const script::Statement& def, const ParseContext& context);
/// Whether a function is decorated as a tensor program.
bool is_prim_func(const script::Statement& def, const ParseContext& context);
/// The language and name of a decorator, "T.prim_func"; empty if it is none of ours.
std::string decorator_name(const script::Expression& decorator, const ParseContext& context);
/// Adds what an import statement binds: `from tvm.script import tir as T`.
void read_import(const script::Statement& import, ParseContext& context);
/// Adds what `n = TypeVar("n")` declares, a symbolic size of all functions; false of any other statement.
bool read_size(const script::Statement& s, ParseContext& context);
/// Adds a statement `name = value`, `a, b = values` or `name: type = value` to the constants; false of any other.
bool read_constant(const script::Statement& s, ParseContext& context);
/// The value of a keyword of a decorator, as Python's truth.
bool decorator_flag(const script::Statement& def, std::string_view name, bool otherwise);
/// Whether a function is decorated as a macro, `@T.macro`, `@T.inline` or `@R.macro`.
bool is_macro(const script::Statement& def, const ParseContext& context);
/// Adds the macros among the statements.
void declare_macros(const std::vector<script::Statement>& body, ParseContext& context);
/// The name, return dtype of every function of a class body, so that they may call each other.
void declare_functions(const std::vector<script::Statement>& body, ParseContext& context);

}  // namespace sator::tir
