// Expressions and attribute values as documents. The printers of tir/ and relax/ derive from it to say how undefined
// variables come into being.
#pragma once

#include "ir/expr.h"
#include "ir/script/printer.h"

namespace sator::script {

class ExprPrinter {
 public:
  explicit ExprPrinter(Printer& printer) : printer(printer) {}
  virtual ~ExprPrinter() = default;

  Doc print(const Expr& e);
  /// An attribute's value, or any part of a program that may stand as one.
  Doc value(const NodeRef& node);
  Doc dict(const Attrs& attrs);
  /// buffer[i, j, ...]; vectors of consecutive elements are slices.
  Doc access(const Buffer& buffer, const std::vector<Expr>& indices);
  /// buffer.vload([i], predicate=p), or buffer.vstore([i], value, predicate=p) where there is a value.
  Doc predicated(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& value, const Expr& predicate);
  /// buffer[i, lo:hi, ...]
  Doc region(const Buffer& buffer, const std::vector<RangeRef>& ranges);
  std::vector<Doc> list(const std::vector<Expr>& items);
  /// The type of a variable as an annotation: T.int32, T.handle("float32", "global").
  Doc type(const Var& v);
  /// The expression that creates such a variable: T.int32(), T.handle("float32", "global").
  Doc creation(const Var& v);

  Printer& printer;
  bool plain_integers = false;  ///< integers of every width are bare, as in the shapes of graphs

 protected:
  /// A variable or buffer that no frame defines yet.
  virtual Doc undefined(const Var& v);
  virtual Doc undefined(const Buffer& buffer);
  /// A function of the module as a callee.
  virtual Doc function(const std::string& name);
  virtual Doc other(const NodeRef& node);

 private:
  Doc print_unmarked(const Expr& e);
  Doc variable(const Var& v);
  Doc buffer_name(const Buffer& b);
  Doc immediate(const IntImm& i);
  Doc call(const Call& c);
};

/// `"float32"`
Doc dtype_doc(DType dtype);

}  // namespace sator::script
