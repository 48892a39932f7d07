// The parts of a graph as documents.
#pragma once

#include <functional>
#include <set>

#include "ir/script/print_expr.h"
#include "relax/nodes.h"
#include "relax/print.h"

namespace sator::relax {

using script::Doc;
using script::Frame;
using script::StmtDoc;

class GraphPrinter final : public script::ExprPrinter {
 public:
  GraphPrinter(script::Printer& printer, const ScriptOptions& options);

  std::vector<StmtDoc> print_function(const Function& func, const std::string& name, bool is_nested = false);
  Doc expr(const RExpr& e);
  Doc sinfo(const StructInfo& info);
  std::vector<StmtDoc> binding(const Binding& b);
  std::vector<StmtDoc> block(const BindingBlock& b);
  std::vector<StmtDoc> seq(const SeqExpr& s, bool returns);
  std::vector<StmtDoc> branch(const If& n, const RVar* var);
  /// The tensors that the text names by metadata[...][i], as an assignment; nothing if there are none.
  std::vector<StmtDoc> metadata_section() const;
  Doc mesh(const DeviceMesh& m);
  /// An attribute's value: integers and booleans are bare.
  Doc attribute(const NodeRef& value);

  std::string module_name;         ///< of the class around, empty without one
  const Module* module = nullptr;  ///< whose functions print as cls.name

 protected:
  Doc undefined(const Var& v) override;
  Doc other(const NodeRef& node) override;

 private:
  Doc call(const RCall& c);
  Doc call_tir(const RCall& c, const std::string& op);
  Doc callee(const RExpr& e);
  Doc variable(const RVar& v);
  Doc constant(const Constant& c);
  Doc global(const std::string& name);
  Doc extent(const Expr& e);
  Doc known_value(const Expr& e);
  std::vector<Doc> extents(const std::vector<Expr>& values);
  Doc attr_dict(const Attrs& attrs);
  std::vector<script::KeywordDoc> op_attrs(const RCall& c);
  std::optional<Doc> annotation(const RVar& v, const RExpr& value);
  Doc define(const RVar& v);

  bool show_all_struct_info_;
  Frame* function_frame_ = nullptr;  ///< of the outermost function
  bool alias_printed_ = false;
  std::set<const Var*>* signature_vars_ = nullptr;  ///< sizes first seen in the signature that is being printed
};

/// R.const([[...], ...], "float32"): a tensor with all its elements.
Doc constant_doc(script::Printer& printer, const Constant& c);

}  // namespace sator::relax
