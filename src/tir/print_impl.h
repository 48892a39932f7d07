// Statements and functions as documents; print_stmt.cc, print_block.cc and print_buffer.cc hold its parts. relax/ uses
// it for the functions of mixed modules.
#pragma once

#include "arith/index_map.h"
#include "ir/script/print_expr.h"
#include "tir/nodes.h"

namespace sator::tir {

using script::Doc;
using script::Frame;
using script::StmtDoc;

class ScriptPrinter : public script::ExprPrinter {
 public:
  explicit ScriptPrinter(script::Printer& printer) : ExprPrinter(printer) {}

  /// The definition with its decorator, as a function of the module that is being printed, or alone.
  std::vector<StmtDoc> print_function(const PrimFunc& func, const std::string& name);
  std::vector<StmtDoc> print_stmt(const Stmt& stmt);
  Doc print_region(const BufferRegion& region) { return ExprPrinter::region(*region.buffer, region.region); }

  std::string module_name;  ///< of the class around, where there is one

 protected:
  Doc undefined(const Var& v) override;
  Doc undefined(const Buffer& buffer) override;
  Doc function(const std::string& name) override;
  Doc other(const NodeRef& node) override;

 private:
  /// Which variables come into being together with a buffer: none (DeclBuffer), its pointer (alloc_buffer), or all that
  /// are not defined yet (match_buffer).
  enum class Defines { none, pointer, all };

  void print_body(const Stmt& stmt, Frame& frame);
  std::vector<StmtDoc> print_for(const For& loop);
  std::vector<StmtDoc> print_block(const Block& block, const BlockRealize* realize);
  void print_iter_vars(const Block& block, const BlockRealize* realize, Frame& frame);
  std::vector<StmtDoc> print_let(const LetStmt& let);
  std::vector<StmtDoc> print_allocate(const Allocate& allocate);
  std::vector<StmtDoc> print_allocate_in_head(const Allocate& allocate);
  std::vector<StmtDoc> print_allocate_const(const AllocateConst& allocate);
  std::vector<StmtDoc> print_decl_buffer(const DeclBuffer& decl, Defines defines);
  std::vector<StmtDoc> print_attr(const AttrStmt& attr);
  std::vector<StmtDoc> print_if(const IfThenElse& branch);
  Doc print_evaluate(const Evaluate& evaluate);
  bool is_sugared_root(const PrimFunc& func) const;
  void print_params(const PrimFunc& func, std::vector<Doc>& params, Frame& frame);

  /// `with head [as target]: body`, or the head as a line before the body where the rest of the scope is the body.
  std::vector<StmtDoc> scoped(const std::optional<Doc>& target, const Doc& head, std::vector<StmtDoc> body,
                              bool concise);
  /// Where a name that holds for the statements below is defined; the frame `inner` is the innermost one.
  Frame& frame_of_name(bool concise, Frame& inner);
  /// Errors: the style is the newest, which has no such statement.
  void not_in_head(std::string_view what) const;
  bool is_concise(const NodeBase& node) const;

  struct BufferArgs {
    Doc shape;
    std::optional<Doc> dtype;
    std::vector<script::KeywordDoc> keywords;
  };
  BufferArgs buffer_args(const Buffer& buffer, Frame& frame, Defines defines);
  Doc buffer_decl(const Buffer& buffer, std::string_view how, std::vector<Doc> args, Frame& frame, Defines defines);
  Doc define_buffer(const Buffer& buffer, Frame& frame);
  Doc define_var(const Var& v, Frame& frame);

  std::string function_name_;
  std::vector<BufferRef> kept_;  ///< made for the text alone; names are given to them, so they live as long
};

/// T.index_map(lambda i: (i // 16, i % 16)), in attributes of programs and of graphs.
Doc index_map_doc(script::ExprPrinter& to, const arith::IndexMap& map);

}  // namespace sator::tir
