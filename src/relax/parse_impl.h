// The parsers of graphs: expressions with R (parse_expr.cc, parse_calls.cc), functions (parse_function.cc), modules
// (parse.cc).
#pragma once

#include <unordered_map>

#include "relax/builder.h"
#include "relax/parse.h"
#include "relax/value.h"
#include "tir/parse.h"
#include "tir/parse_eval.h"

namespace sator::relax {

/// What a function sees of the module around it.
struct ModuleScope {
  tir::ParseContext context;
  std::map<std::string, StructInfo> functions;
  bool has_devices = false;
  std::vector<Ref<const VDevice>> devices;
  Attrs global_infos;
  std::shared_ptr<BlockBuilder>
      programs;         ///< the module's names, and the tensor programs that R.emit_te makes; may be null
  tir::Value metadata;  ///< the dictionary of constants that stand before the program, or None
};

/// Expressions of a graph. Calls are made without struct info; who binds them infers it.
class GraphEvaluator : public tir::Evaluator {
 public:
  GraphEvaluator(const script::Source& source, const ModuleScope& scope);

  // Conversions; errors point at `place`.
  /// A graph expression: numbers become PrimValue, strings RString, tuples and lists Tuple.
  RExpr to_graph(const tir::Value& v, script::Place place);
  /// The argument of an op.
  Value to_argument(const tir::Value& v, script::Place place);
  StructInfo to_sinfo(const tir::Value& v, script::Place place);
  std::vector<StructInfo> to_sinfos(const tir::Value& v, script::Place place);
  /// An extent; a string is an expression where a signature is read.
  Expr to_extent(const tir::Value& v, script::Place place);
  std::vector<Expr> to_extents(const tir::Value& v, script::Place place);
  /// The device of the module that "cuda:1", "llvm" or "vdevice:3" names, as "kind:index".
  std::string device_name(const std::string& written, script::Place place) const;
  /// The same of VDevice(target, index, scope), which a module that lists devices has to list.
  std::string device_name(const VDevice& device, script::Place place) const;
  /// The entry "mesh[0]" of the module's global infos, null where there is none.
  NodeRef global_info(const std::string& written) const;
  /// Whether the program has to be well formed.
  bool is_checked() const { return scope_.context.options.verify; }
  /// Where R.emit_te puts its programs; null outside of a module.
  BlockBuilder* programs() const { return scope_.programs.get(); }
  /// The struct info that an annotation states; `-> None` is the empty tuple.
  StructInfo annotation(const script::Expression& e, bool in_signature);

 protected:
  tir::Value unknown_name(const script::Expression& name) override;
  tir::Value call_language(const std::string& name, const script::Expression& call) override;
  tir::Value call_other(const tir::Value& callee, const script::Expression& call) override;
  tir::Value for_host(const tir::Value& v, script::Place place) override;
  std::optional<tir::Value> property(const tir::Value& object, const std::string& name, script::Place place);
  std::optional<tir::Value> other_attribute(const tir::Value& object, const std::string& name,
                                            const script::Expression& e) override;
  tir::Value subscript_other(const tir::Value& object, const script::Expression& e) override;
  std::optional<tir::Value> other_operator(std::string_view op, const tir::Value& a, const tir::Value* b,
                                           script::Place place) override;

  const ModuleScope& scope_;

 private:
  tir::Value op_call(const std::string& name, const script::Expression& call);
  bool in_signature_ = false;
};

/// R.<name>(...) that is more than a row of the table of ops; null where there is none.
using GraphFunction = tir::Value (*)(GraphEvaluator&, const script::Expression& call);
GraphFunction find_graph_function(std::string_view name);
/// The rows for tensors on several devices (parse_distributed.cc).
const std::unordered_map<std::string_view, GraphFunction>& distributed_functions();

class FunctionParser final : public GraphEvaluator {
 public:
  FunctionParser(const script::Source& source, const ModuleScope& scope);
  FuncRef parse(const script::Statement& def);
  /// The struct info of a function as its header states it: a missing result is an Object.
  StructInfo signature(const script::Statement& def);

 protected:
  tir::Value call_language(const std::string& name, const script::Expression& call) override;

 private:
  /// A function whose statements are being read.
  struct Frame {
    BlockBuilder builder;
    std::vector<BindingBlockRef> blocks;
    std::vector<RVarRef> params;
    Attrs attrs;
    RExpr result;
    std::map<std::string, VarRef> sizes;  ///< that the parameters define
    bool is_private = false;
    int depth = 0;                                        ///< of branches and dataflow blocks around the statement
    bool has_output = false;                              ///< the dataflow block has named its outputs
    std::vector<std::pair<std::string, RVarRef>> output;  ///< ... these
  };

  FuncRef function(const script::Statement& def, bool is_inner);
  std::map<std::string, VarRef> define_sizes(const script::Statement& def);
  void body(const std::vector<script::Statement>& stmts);
  void statement(const script::Statement& s);
  void expression_statement(const script::Statement& s);
  void assign(const script::Statement& s);
  void bind(const script::Expression& target, tir::Value value, StructInfo annotation);
  tir::Value bind_name(const script::Expression& name, const tir::Value& value, StructInfo annotation);
  VarRef bind_size(const std::string& name, const VarRef& value, script::Place place);
  RVarRef emit(const RExpr& value, const std::string& name, StructInfo annotation, script::Place place);
  void dataflow(const script::Statement& s);
  void output(const script::Expression& call);
  void branch(const script::Statement& s);
  RExpr branch_body(const std::vector<script::Statement>& stmts, const char* suffix, std::string& name,
                    script::Place place);
  void local_function(const script::Statement& def);
  void func_attr(const script::Expression& call);

  Frame* frame_ = nullptr;
};

}  // namespace sator::relax
