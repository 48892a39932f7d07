// Tensor programs as TVMScript, in the spelling of TVM v0.17.
#pragma once

#include "ir/script/printer.h"
#include "tir/nodes.h"

namespace sator::tir {

/// The function with its header of imports; parsed back it is equal. No end of line after the last line.
std::string to_script(const PrimFunc& func, script::PrintOptions options = {});
/// Adds the names by which callers know the parameters.
void add_parameters(const PrimFunc& func, std::set<std::string, std::less<>>& names);
/// A module of such functions. Errors: a function of another kind (relax/ prints those).
std::string to_script(const Module& module, script::PrintOptions options = {});
/// A statement alone; what it uses but does not define is declared before it.
std::string to_script(const Stmt& stmt, script::PrintOptions options = {});

/// What surrounds the given nodes of a function, each underlined and labelled. A loop is underlined at its head, or by
/// its variable where it stands in a T.grid; a block at its name; a variable or a buffer where it is defined.
std::string excerpt(const PrimFunc& func, const std::vector<At>& at);
/// The reason with its `program` made from its `at`.
Reason with_program(Reason reason, const PrimFunc& func);

/// For messages: a statement's first line.
void append_text(std::string& out, const StmtNode& stmt);
template <class T>
  requires(std::is_base_of_v<StmtNode, T>)
void append_text(std::string& out, const Ref<const T>& stmt) {
  append_text(out, static_cast<const StmtNode&>(*stmt));
}
void append_text(std::string& out, const BufferRegion& region);
inline void append_text(std::string& out, const BufferRegionRef& region) { append_text(out, *region); }
inline void append_text(std::string& out, const BlockNameRef& name) { out += "\"" + name->text + "\""; }

}  // namespace sator::tir
