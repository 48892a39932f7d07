// Builds graphs: bindings in A-normal form with their struct info filled in.
//
//   BlockBuilder b(module);
//   b.begin_scope({x});
//   b.begin_block(/*is_dataflow=*/true);
//   RVarRef y = b.emit(make_call("nn.relu", {x}));
//   RVarRef out = b.emit_output(y);
//   FuncRef f = b.end_function({x}, {b.end_block()}, out);
#pragma once

#include <unordered_map>

#include "arith/analyzer.h"
#include "relax/nodes.h"

namespace sator::te {
class Tensor;
}

namespace sator::relax {

struct TeInputs;
/// The tensors that a formula gives for its inputs (ops/op.h).
using Formula = FunctionRef<std::vector<te::Tensor>(const TeInputs&)>;

class BlockBuilder {
 public:
  explicit BlockBuilder(ModuleRef module = nullptr);
  ~BlockBuilder();

  // ---- The module.
  const ModuleRef& module() const { return module_; }
  /// Adds a function under `name`, or name1, name2, ...; an equal function that is already there is shared.
  RExpr add_function(Func func, const std::string& name);
  void update_function(const std::string& name, Func func);
  /// The function of the module as a callee.
  RExpr function(const std::string& name) const;

  // ---- Scopes and blocks.
  /// Begins a function's scope: the sizes that its parameters define are known to be >= 0. Without parameters: a branch's,
  /// which sees the sizes of the scope around it.
  void begin_scope(const std::vector<RVarRef>& params = {});
  void end_scope();
  void begin_block(bool is_dataflow);
  BindingBlockRef end_block();
  bool in_dataflow() const;
  /// Ends the scope of the parameters: a function whose struct info is complete. `declared` is kept where the result is
  /// not known to be one. Errors: the result can never be what is declared.
  FuncRef end_function(const std::vector<RVarRef>& params, std::vector<BindingBlockRef> blocks, RExpr result,
                       Attrs attrs = {}, bool is_pure = true, StructInfo declared = nullptr);

  // ---- Bindings. Names that are left out are lv, lv1, ... in a dataflow block and gv, gv1, ... elsewhere.
  // Errors of each: there is no block that takes the binding; emit_output: it is no dataflow block.
  ///   layer  of the variable: RVar::layer
  RVarRef emit(RExpr value, const std::string& name = "", const std::string& layer = "");
  /// A variable that is visible after the dataflow block.
  RVarRef emit_output(RExpr value, const std::string& name = "", const std::string& layer = "");
  RVarRef emit_match_cast(RExpr value, StructInfo sinfo, const std::string& name = "");
  /// A binding that is complete already.
  void emit_binding(Binding binding);
  /// The value that a variable was bound to here, or null.
  RExpr bound_value(const RExpr& var) const;
  std::string fresh_name(const std::string& hint);

  /// The expression with struct info, arguments of calls bound to variables (in the current block) where they are not
  /// leaves. Errors: what struct info inference refuses.
  RExpr normalize(const RExpr& e);

  // ---- Tensor programs.
  /// A call_tir of a new function of the module: `formula` over the arguments. Null if a shape it needs is not known.
  ///   scalar_constants   constants of rank 0 become numbers of the function
  ///   keeps_unread       arguments that only their shape was asked of stay arguments
  RExpr call_te(const std::string& name, const std::vector<RExpr>& args, Formula formula, StructInfo out = nullptr,
                bool scalar_constants = false, bool keeps_unread = false);
  /// The op's formula as a call_tir; null where it has none, or a shape is not known.
  ///   name   of the function; that of the op's row where it is empty
  RExpr legalize_by_formula(const RCallRef& call, std::string name = {});

  arith::Analyzer& arith() { return *arith_; }

  /// Whether normalize() brings calls into the normal forms of their ops (OpDef::normalize); readers of texts do not.
  bool normal_forms = true;

 private:
  struct Block {
    bool is_dataflow;
    std::vector<Binding> bindings;
    std::unordered_map<NodeRef, RVarRef> bound;  ///< what an argument was bound to
  };

  /// Sizes that values are told in: `outside` where the scope's result is used, `known` in it, those of casts so far among them.
  struct Scope {
    VarMap outside, known;
  };

  RExpr argument(const RExpr& e);
  RExpr normalize_tuple(const Tuple& t);
  RExpr in_normal_form(const RCall& c);
  RExpr normalize_call(const RCall& given);
  RExpr normalize_if(const If& n);
  RExpr normalize_function(const LocalFunction& f);
  RExpr with_inline_arguments(const RCall& c);
  RExpr in_new_scope(const RExpr& e, const std::vector<RVarRef>& params);
  BindingBlockRef normalize_block(const BindingBlock& block);
  StructInfo infer(const RCall& c);
  StructInfo erased(const StructInfo& info, VarMap Scope::* sizes);
  void define_sizes(const StructInfo& info);
  void require_block(const char* step) const;
  RVarRef bind(RExpr value, bool is_dataflow, const std::string& name, const std::string& layer = "");

  ModuleRef module_;
  std::unique_ptr<arith::Analyzer> arith_;
  std::vector<Block> blocks_;
  std::vector<Scope> scopes_;
  std::unordered_map<const RVar*, RExpr> values_;
  std::unordered_map<std::string, int> names_;
  std::unordered_multimap<uint64_t, std::string> known_functions_;
};

/// Empty blocks dropped, neighbours of one kind joined, blocks inside values put before them.
std::vector<BindingBlockRef> joined_blocks(const std::vector<BindingBlockRef>& blocks);
/// Whether the expression may be an argument: a variable, constant, shape, scalar, text, dtype or function.
bool is_leaf(const RExpr& e);
/// Whether a call may have effects: of an impure op or function.
bool is_impure_call(const RExpr& e);

}  // namespace sator::relax
