// TVMScript to graphs, and to modules of graphs and tensor programs. The spellings of 2024 (TVM v0.17) and newer ones
// (out_ty, R.Any, ...) are read.
#pragma once

#include <string>

#include "relax/nodes.h"
#include "tir/parse.h"

namespace sator::relax {

/// A class with @I.ir_module, or functions alone (of graphs and of tensor programs).
/// `name` is the file's, for messages.
/// Errors: SourceError with line, column and the line of the text; what struct info inference refuses.
ModuleRef parse_module(std::string text, std::string name = "", tir::ParseOptions options = {});
/// The same; calls of tensor programs have to fit them too (TVM's reader takes others), as verify(module) says.
ModuleRef parse_program(std::string text, std::string name = "");
/// One function, of graphs or of tensor programs. Errors: as above.
Func parse_function(std::string text, std::string name = "");
/// The value of an attribute: a number, True, False, a text, a list, a dictionary, or an expression of R or T; null for None.
/// Errors: as above.
NodeRef parse_attribute(std::string text, std::string name = "");
/// Every name that R has, in order: "Tensor", "add", "nn.relu".
std::vector<std::string> graph_names();

}  // namespace sator::relax
