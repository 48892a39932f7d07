// Graphs as TVMScript, in the spelling of TVM v0.17.
#pragma once

#include "ir/script/printer.h"
#include "relax/nodes.h"

namespace sator::relax {

struct ScriptOptions : script::PrintOptions {
  bool show_meta = true;             ///< tensors are written out before the program; else it does not parse back
  bool show_all_struct_info = true;  ///< also of variables whose value tells it
};

/// A module of graphs, tensor programs and external functions. No end of line after the last line.
std::string to_script(const Module& module, const ScriptOptions& options = {});
std::string to_script(const Function& func, const ScriptOptions& options = {});
/// An expression, binding, block or struct info; what it uses but does not define is declared before it.
std::string to_script(const NodeRef& part, const ScriptOptions& options = {});

/// The reason with its `program` made from its `at`.
Reason with_program(Reason reason, const Function& func);

void append_text(std::string& out, const RelaxExprNode& e);
inline void append_text(std::string& out, const RExpr& e) { append_text(out, *e); }

}  // namespace sator::relax
