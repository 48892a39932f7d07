// A module as a class: what is the same for every kind of function.
#pragma once

#include "ir/module.h"
#include "ir/script/print_expr.h"

namespace sator::script {

/// Prints one kind of function.
struct FunctionPrinter {
  /// Functions of a lower rank stand first: 1 tensor programs, 2 external functions, 3 graphs.
  std::function<int(const FuncNode&)> rank;
  /// The statements of a function with this name: its definition, with decorators.
  std::function<std::vector<StmtDoc>(const FuncNode&, const std::string& name)> print;
};

/// The class, without the header. `main` is the last function; the others stand in the order of rank and name.
std::vector<StmtDoc> print_module(const Module& module, ExprPrinter& exprs, const FunctionPrinter& functions);

}  // namespace sator::script
