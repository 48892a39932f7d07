#include "passes/fold_constant.h"

#include <algorithm>

#include "passes/dead_code_elimination.h"
#include "relax/builder.h"
#include "relax/interp.h"
#include "relax/ops/table.h"
#include "relax/outline.h"
#include "relax/rebind.h"
#include "relax/shared_memory.h"

namespace sator::passes {

using namespace relax;

namespace {

/// What a call without arguments may give: more would only make the module larger.
constexpr int64_t kMaxCreated = 1024;
/// Loop iterations of the interpreter, about a second.
constexpr int64_t kMaxIterations = int64_t{1} << 26;

bool is_known(const Expr& e) { return as_int(e).has_value() || e.as<FloatImm>(); }
bool is_known(const RExpr& e) {
  if (const relax::Tuple* t = e.as<relax::Tuple>())
    return std::ranges::all_of(t->items, [](const RExpr& item) { return is_known(item); });
  if (const ShapeExpr* s = e.as<ShapeExpr>())
    return std::ranges::all_of(s->values, [](const Expr& extent) { return is_known(extent); });
  if (const PrimValue* p = e.as<PrimValue>()) return is_known(p->value);
  return e.as<Constant>() || e.as<RString>() || e.as<DTypeImm>();
}

bool has_tensor(const RExpr& e) {
  if (const relax::Tuple* t = e.as<relax::Tuple>()) return std::ranges::any_of(t->items, has_tensor);
  return e.as<Constant>() != nullptr;
}

/// The number of elements, where the result is one tensor of known shape.
std::optional<int64_t> elements_of(const StructInfo& info) {
  const TensorInfo* t = info.as<TensorInfo>();
  auto shape = t ? explicit_shape(*t) : std::nullopt;
  if (!shape || t->dtype.is_void()) return {};
  int64_t count = 1;
  for (const Expr& extent : *shape) {
    auto known = as_int(extent);
    if (!known || __builtin_mul_overflow(count, *known, &count)) return {};
  }
  return count;
}

}  // namespace

RExpr constant_of(const ModuleRef& module, const RCallRef& call) {
  if (!std::ranges::all_of(call->args, [](const RExpr& a) { return is_known(a) || a.as<GlobalVar>(); })) return nullptr;
  BlockBuilder builder(module);
  builder.begin_scope();
  builder.begin_block(false);
  RVarRef result = builder.emit(call);
  FuncRef func = builder.end_function({}, {builder.end_block()}, result);
  const std::string name = fresh_name(module, "folded");
  GraphOptions options;
  options.programs.max_iterations = kMaxIterations;
  runtime::Value value = GraphInterpreter(with_function(module, name, func), options).call(name, {});
  if (Ref<runtime::Tensor> tensor = value.ref<runtime::Tensor>()) return constant(tensor);
  if (const runtime::Shape* shape = value.as<runtime::Shape>()) {
    std::vector<Expr> extents;
    for (int64_t extent : shape->dims) extents.push_back(int_imm(extent, i64));
    return shape_expr(std::move(extents));
  }
  return nullptr;
}

namespace {

class Folder {
 public:
  Folder(const ModuleRef& module, const SharedMemory& memory, const PassContext& ctx)
      : module_(module), memory_(memory), ctx_(ctx) {}

  FuncRef run(const FuncRef& func) {
    FuncRef out = transform(func, [&](const BindingBlock& block) -> NodeRef {
      std::vector<Binding> bindings;
      for (const Binding& b : block.bindings) bindings.push_back(folded(b, block.is_dataflow));
      return bindings == block.bindings ? ref(block) : sator::with(block, &BindingBlock::bindings, std::move(bindings));
    });
    if (known_.empty()) return out;
    builder_.begin_scope(out->params);
    if (const SeqExpr* seq = out->body.as<SeqExpr>(); seq && replaced(seq->body, known_) != seq->body)
      out = builder_.end_function(
          out->params, seq->blocks, renewed(builder_, replaced(seq->body, known_)), out->attrs, out->is_pure, out->ret);
    else
      builder_.end_scope();
    return transform(out, [&](const SeqExpr& seq) -> NodeRef {
      RExpr body = renewed(builder_, replaced(seq.body, known_));
      return body == seq.body ? ref(seq) : sator::with(seq, &SeqExpr::body, body);
    });
  }

 private:
  Binding folded(const Binding& b, bool in_dataflow) {
    const VarBinding* v = b.as<VarBinding>();
    if (!v) return b;
    RExpr value = replaced(v->value, known_);
    if (value != v->value) value = renewed(builder_, value);
    if (RCallRef call = cast<RCall>(value); call && call->op.as<Op>()) {
      if (!is_op(value, "call_tir")) value = with_shapes(call);
      const bool is_written = memory_.is_overwritten(*v->var);  // each run needs memory of its own for it
      if (RExpr result = is_written ? nullptr : evaluated(cast<RCall>(value), in_dataflow)) value = result;
    }
    if (value.as<ShapeExpr>()) shapes_.emplace(v->var, value);
    if (value == v->value) {
      if (value.as<Constant>()) known_.emplace(v->var, value);
      return b;
    }
    RVarRef var = v->var;
    if (!equal(var->sinfo, value->sinfo)) {  // more is known of the value than before
      var = with(var, &RVar::sinfo, value->sinfo);
      if (value.as<ShapeExpr>()) shapes_.emplace(var, value);
    }
    known_.emplace(v->var, value.as<Constant>() ? value : RExpr(var));
    return make<VarBinding>(value, var);
  }

  /// The call with shapes written out where variables stand for them.
  RExpr with_shapes(const RCallRef& call) {
    std::vector<RExpr> args = call->args;
    for (RExpr& a : args) {
      if (auto at = shapes_.find(a); at != shapes_.end()) a = cast<RelaxExprNode>(at->second);
    }
    return args == call->args ? RExpr(call) : renewed(builder_, sator::with(call, &RCall::args, std::move(args)));
  }

  bool is_foldable(const RCallRef& call, bool in_dataflow) const {
    if (is_impure_call(call)) return false;
    const std::string& name = op_name(call);
    std::span<const RExpr> args = call->args;
    if (name == "call_tir") {
      const GlobalVar* callee = args[0].as<GlobalVar>();
      if (!callee || !module_->functions.count(callee->name)) return false;
      args = args.subspan(1);
    } else {
      const OpDef* def = find_op(name);
      bool has_meaning = def && (def->has_formula() || name == "tensor_to_shape" || name == "shape_to_tensor");
      if (!in_dataflow || !has_meaning) return false;
    }
    if (!std::ranges::all_of(args, [](const RExpr& a) { return is_known(a); })) return false;
    if (name == "tensor_to_shape") return true;
    auto elements = elements_of(call->sinfo);
    return elements && (*elements <= kMaxCreated || std::ranges::any_of(args, has_tensor));
  }

  /// The call's value as a constant or a shape; null where it stays.
  RExpr evaluated(const RCallRef& call, bool in_dataflow) {
    if (!is_foldable(call, in_dataflow)) return nullptr;
    try {
      return constant_of(module_, call);
    } catch (const Error& e) {
      ctx_.say("FoldConstant", text(op_name(call), " stays: ", e.reason.what));
    }
    return nullptr;
  }

  const ModuleRef& module_;
  const SharedMemory& memory_;
  const PassContext& ctx_;
  BlockBuilder builder_{module_};
  NodeMap known_;   ///< what takes the place of variables: constants, and variables of which more is known
  NodeMap shapes_;  ///< the shapes that variables stand for
};

}  // namespace

ModuleRef fold_constant(const ModuleRef& module, const PassContext& ctx) {
  ModuleRef out = module;
  const SharedMemory memory(*module, reshaped);
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<Function>(func);
    if (!f || has_attr(f->attrs, "Primitive")) continue;  // a group is a program to be, which computes its results
    if (FuncRef folded = Folder(module, memory, ctx).run(f); folded != f)
      out = with_function(std::move(out), name, without_unused(folded));
  }
  return out;
}

}  // namespace sator::passes
