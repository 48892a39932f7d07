// Elementwise calls that write their result over an argument that nobody reads any more.
#include <algorithm>
#include <set>

#include "passes/graph/graph.h"
#include "relax/ops/attrs.h"
#include "relax/ops/table.h"
#include "relax/outline.h"
#include "relax/rewrite.h"
#include "tir/nodes.h"

namespace sator::passes {

using namespace relax;

namespace {

/// Ops of which each element of the result needs the same element of an argument alone.
bool is_elementwise(const RExpr& value) {
  static const std::set<std::string> kOps = {"add", "subtract", "multiply", "divide", "nn.relu", "nn.silu"};
  return kOps.contains(op_name(value));
}

/// The values of a dataflow block that have memory of their own, and how long it is read.
class Lifetimes {
 public:
  explicit Lifetimes(const BindingBlock& block) {
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      RVarRef var = bound_var(block.bindings[i]);
      RExpr value = bound_value(block.bindings[i]);
      for (const RVarRef& v : rvars_in(value)) {
        last_use_[v] = i;
        // Another name of the memory would be read later without the variable.
        if (!makes_tensor(value)) owned_.erase(v);
      }
      if (makes_tensor(value) && var->is_dataflow && block.bindings[i].as<VarBinding>()) owned_.insert(var);
    }
  }
  /// Whether the binding of that place may write over the variable: it is the last to read its memory.
  bool ends(const RVarRef& var, size_t place) const { return owned_.contains(var) && last_use_.at(var) == place; }

 private:
  /// A call whose result lies in new memory: of an op or tensor program that gives one tensor. A reshape may be a view.
  static bool makes_tensor(const RExpr& value) {
    const RCall* call = value.as<RCall>();
    if (!call || !call->sinfo.as<TensorInfo>()) return false;
    static const std::set<std::string> kViews = {
        "reshape", "expand_dims", "squeeze", "flatten", "memory.view", "memory.ensure_zero_offset", "to_vdevice"};
    if (is_op(value, "call_tir")) return true;
    const Op* op = call->op.as<Op>();
    return op && op_named(op->name).compute && !kViews.contains(op->name);
  }

  std::set<RVarRef> owned_;
  std::map<RVarRef, size_t> last_use_;
};

/// The program that writes its result over parameter `input`. `aliased`: the same tensor is handed to another parameter too.
tir::PrimFuncRef in_place(const tir::PrimFuncRef& f, size_t input, bool aliased) {
  const VarRef target = f->params[input], output = f->params.back();
  NodeMap replaces = {{f->buffer_of(output), f->buffer_of(target)},
                      {f->buffer_of(output)->data, f->buffer_of(target)->data}};
  std::vector<VarRef> params(f->params.begin(), f->params.end() - 1);
  auto buffers = f->buffer_map;
  std::erase_if(buffers, [&](const auto& entry) { return entry.first == output; });
  Attrs attrs = f->attrs;
  if (aliased) attrs.erase("tir.noalias");
  return make<tir::PrimFunc>(
      std::move(params), std::move(buffers), DType(f->ret_dtype), std::move(attrs), replaced(f->body, replaces));
}

class InplaceCalls final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 private:
  void begin_block(const BindingBlock& block) override {
    lifetimes_.reset();
    if (block.is_dataflow) lifetimes_.emplace(block);
    place_ = 0;
  }
  void after(const RVarRef&) override { ++place_; }
  void begin_inner(bool) override { outer_.emplace_back(lifetimes_, place_); }
  void end_inner() override {
    std::tie(lifetimes_, place_) = outer_.back();
    outer_.pop_back();
  }

  RExpr value(const RVarRef& var, const RExpr& value) override {
    if (!lifetimes_ || !is_elementwise(value)) return value;
    const RCall& call = *value.as<RCall>();
    std::optional<size_t> input;
    for (size_t i = 0; i < call.args.size(); ++i) {
      RVarRef v = sator::cast<RVar>(call.args[i]);
      if (v && lifetimes_->ends(v, place_) && is_same_tensor(v->sinfo, var->sinfo)) input = i;
    }
    RExpr out = input ? in_place_call(ref(call), *input) : nullptr;
    return out ? out : value;
  }

  bool is_same_tensor(const StructInfo& a, const StructInfo& b) {
    const TensorInfo *t = a.as<TensorInfo>(), *u = b.as<TensorInfo>();
    auto s = t ? shape_of(*t) : std::nullopt, r = u ? shape_of(*u) : std::nullopt;
    if (!s || !r || s->size() != r->size() || t->dtype != u->dtype || t->dtype.is_void()) return false;
    for (size_t i = 0; i < s->size(); ++i)
      if (!builder().arith().prove(eq((*s)[i], (*r)[i]))) return false;
    return true;
  }

  /// The call of a program of the module that writes over argument `input`; null where the op has no program.
  RExpr in_place_call(const RCallRef& call, size_t input) {
    BlockBuilder apart;  // the program itself is not wanted in the module
    apart.begin_scope();
    apart.begin_block(true);
    RExpr legal = apart.legalize_by_formula(call);
    const RCall* made = legal ? legal.as<RCall>() : nullptr;
    if (!made || made->args.size() != 2) return nullptr;
    const std::vector<RExpr>& args = made->args[1].as<Tuple>()->items;
    auto at = std::ranges::find(args, call->args[input]);
    if (at == args.end()) return nullptr;
    size_t position = static_cast<size_t>(at - args.begin());
    const auto count = std::ranges::count(args, call->args[input]);
    for (size_t i = position; i < args.size(); ++i)
      if (args[i] == call->args[input]) position = i;
    const GlobalVar& name = *made->args[0].as<GlobalVar>();
    tir::PrimFuncRef program = sator::cast<tir::PrimFunc>(apart.module()->functions.at(name.name));
    RExpr callee = builder().add_function(in_place(program, position, count > 1), name.name + "_inplace");
    return relax::call(op_ref("call_tir_inplace"),
                       {callee, made->args[1]},
                       {{"inplace_indices", AttrType<Axes>::store({static_cast<int64_t>(position)})}},
                       {call->sinfo});
  }

  std::optional<Lifetimes> lifetimes_;
  size_t place_ = 0;  ///< of the binding in its block
  std::vector<std::pair<std::optional<Lifetimes>, size_t>> outer_;
};

}  // namespace

ModuleRef dataflow_use_inplace_calls(const ModuleRef& module, const PassContext&) {
  return rewrite_functions(module,
                           [](const FuncRef& f, BlockBuilder& builder) { return InplaceCalls(builder).function(*f); });
}

}  // namespace sator::passes
