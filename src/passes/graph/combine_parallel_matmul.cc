// Products of one tensor with several weights, as one product with the weights side by side.
#include <algorithm>

#include "passes/dead_code_elimination.h"
#include "passes/graph/graph.h"
#include "passes/graph/rewrite_calls.h"
#include "relax/ops/table.h"
#include "relax/outline.h"

namespace sator::passes {

using namespace relax;

namespace {

/// A product of a weight, with what is done to its result.
struct Branch {
  RVarRef result;          ///< of the product, of the bias, or of the activation
  RVarRef weight, bias;    ///< no bias: null
  std::string activation;  ///< none: ""
  std::vector<Expr> weight_shape, bias_shape;
  DType dtype;
  size_t place;  ///< of the result in its block

  const Expr& width() const { return weight_shape.back(); }
  bool has_known_width() const { return width().as<IntImm>() != nullptr; }
};

/// Branches that become one product, in the order in which their parts lie in it.
struct Combined {
  RVarRef input;
  std::vector<Branch> branches;
};

std::optional<std::vector<Expr>> extents_of(const RVarRef& v) {
  const TensorInfo* t = v->sinfo.as<TensorInfo>();
  return t ? shape_of(*t) : std::nullopt;
}

bool same_extents(const std::vector<Expr>& a, const std::vector<Expr>& b, size_t count, arith::Analyzer& arith) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < count; ++i)
    if (!arith.prove(eq(a[i], b[i]))) return false;
  return true;
}

/// The bindings of a dataflow block by what they read.
class BlockUses {
 public:
  BlockUses(const BindingBlock& block, const std::map<RVarRef, size_t>& uses) : uses_(uses) {
    for (size_t i = 0; i < block.bindings.size(); ++i) {
      RVarRef var = bound_var(block.bindings[i]);
      places_[var] = i;
      for (const RVarRef& v : rvars_in(bound_value(block.bindings[i]))) users_[v].push_back(block.bindings[i]);
    }
  }

  size_t place(const RVarRef& var) const { return places_.at(var); }
  /// Whether the value is there before the binding of that place.
  bool is_there(const RVarRef& var, size_t place) const {
    auto at = places_.find(var);
    return at == places_.end() || at->second < place;
  }
  /// The one call that reads the variable; null where there are others, or none in the block.
  const RCall* only_user(const RVarRef& var, RVarRef* result) const {
    auto at = users_.find(var);
    if (uses_.at(var) != 1 || at == users_.end()) return nullptr;
    *result = bound_var(at->second.front());
    return bound_value(at->second.front()).as<RCall>();
  }

 private:
  const std::map<RVarRef, size_t>& uses_;
  std::map<RVarRef, size_t> places_;
  std::map<RVarRef, std::vector<Binding>> users_;
};

/// How often each variable occurs in the expression, where it is bound too.
void count_occurrences(const NodeRef& e, std::map<RVarRef, size_t>& out) {
  if (const RVar* v = e.as<RVar>()) {
    ++out[ref(*v)];
    return;
  }
  e->info().each_child(*e, [&](const NodeRef& child) { count_occurrences(child, out); });
}

/// How often each variable of the function is read.
std::map<RVarRef, size_t> uses_of(const Function& f) {
  std::map<RVarRef, size_t> out;
  count_occurrences(f.body, out);
  walk(f.body, [&](const BindingBlock& block) {
    for (const Binding& b : block.bindings) --out[bound_var(b)];
  });
  return out;
}

/// A product of a variable with a weight whose shape is known.
std::optional<Branch> product_of(const Binding& b, const BlockUses& uses) {
  RExpr value = bound_value(b);
  const RCall* call = value.as<RCall>();
  if (!call || !is_op(value, "matmul") || !call->args[0].as<RVar>()) return {};
  RVarRef weight = sator::cast<RVar>(call->args[1]);
  const TensorInfo* out = call->sinfo.as<TensorInfo>();
  auto shape = weight ? extents_of(weight) : std::nullopt;
  if (!shape || shape->size() < 2 || !out || out->ndim < 0) return {};
  return Branch{.result = bound_var(b),
                .weight = weight,
                .bias = nullptr,
                .activation = "",
                .weight_shape = *shape,
                .bias_shape = {},
                .dtype = out->dtype,
                .place = uses.place(bound_var(b))};
}

/// The branch with the bias that is added to it next; as it is where there is none of its width.
Branch with_bias(Branch b, const BlockUses& uses, arith::Analyzer& arith) {
  RVarRef sum;
  const RCall* add = uses.only_user(b.result, &sum);
  if (!add || !is_op(ref(*add), "add") || add->args[0] != b.result) return b;
  RVarRef bias = sator::cast<RVar>(add->args[1]);
  auto shape = bias ? extents_of(bias) : std::nullopt;
  const int rank = b.result->sinfo.as<TensorInfo>()->ndim;
  if (!shape || shape->empty() || static_cast<int>(shape->size()) > rank || !arith.prove(eq(shape->back(), b.width())))
    return b;
  b.bias = bias;
  b.bias_shape = *shape;
  b.result = sum;
  b.place = uses.place(sum);
  return b;
}

Branch with_activation(Branch b, const BlockUses& uses) {
  RVarRef result;
  const RCall* call = uses.only_user(b.result, &result);
  for (const char* op : {"nn.relu", "nn.gelu", "nn.gelu_tanh", "nn.silu"}) {
    if (!call || !is_op(ref(*call), op)) continue;
    b.activation = op;
    b.result = result;
    b.place = uses.place(result);
  }
  return b;
}

/// The longest form that all branches have: with bias and activation, with one of them, or the products alone.
std::vector<Branch> in_one_form(const std::vector<Branch>& products, const BlockUses& uses, arith::Analyzer& arith) {
  std::vector<Branch> biased, whole, activated;
  for (const Branch& b : products) {
    biased.push_back(with_bias(b, uses, arith));
    whole.push_back(with_activation(biased.back(), uses));
    activated.push_back(with_activation(b, uses));
  }
  auto all_biased = [&](const std::vector<Branch>& list) {
    return std::ranges::all_of(list, [&](const Branch& b) {
      return b.bias && same_extents(b.bias_shape, list[0].bias_shape, b.bias_shape.size() - 1, arith);
    });
  };
  auto all_activated = [](const std::vector<Branch>& list) {
    return std::ranges::all_of(
        list, [&](const Branch& b) { return !b.activation.empty() && b.activation == list[0].activation; });
  };
  if (all_biased(whole) && all_activated(whole)) return whole;
  if (all_biased(biased)) return biased;
  return all_activated(activated) ? activated : products;
}

/// Those whose weights and biases are there when the first of them is computed. One symbolic width at most, at the end: the
/// others say where the parts lie.
std::vector<Branch> that_can_be_combined(std::vector<Branch> branches, const BlockUses& uses) {
  const size_t first = std::ranges::min(branches, {}, &Branch::place).place;
  std::erase_if(branches, [&](const Branch& b) {
    return !uses.is_there(b.weight, first) || (b.bias && !uses.is_there(b.bias, first));
  });
  std::ranges::stable_partition(branches, &Branch::has_known_width);
  auto symbolic = std::ranges::find_if_not(branches, &Branch::has_known_width);
  if (symbolic != branches.end()) branches.erase(symbolic + 1, branches.end());
  return branches;
}

std::vector<Combined> combinations_of(const BindingBlock& block, const std::map<RVarRef, size_t>& uses_in_function,
                                      arith::Analyzer& arith) {
  const BlockUses uses(block, uses_in_function);
  std::vector<Combined> by_input;
  for (const Binding& b : block.bindings) {
    auto branch = product_of(b, uses);
    if (!branch) continue;
    RVarRef input = sator::cast<RVar>(bound_value(b).as<RCall>()->args[0]);
    auto at = std::ranges::find(by_input, input, &Combined::input);
    if (at == by_input.end()) at = by_input.insert(at, {input, {}});
    at->branches.push_back(*branch);
  }
  std::vector<Combined> out;
  for (const Combined& group : by_input) {
    const std::vector<Branch> branches = in_one_form(group.branches, uses, arith);
    std::map<size_t, std::vector<Branch>> by_rank;
    for (const Branch& b : branches) by_rank[b.weight_shape.size()].push_back(b);
    for (const auto& [rank, list] : by_rank) {
      const bool alike = std::ranges::all_of(list, [&](const Branch& b) {
        return b.dtype == list[0].dtype &&
               b.weight->sinfo.as<TensorInfo>()->dtype == list[0].weight->sinfo.as<TensorInfo>()->dtype &&
               same_extents(b.weight_shape, list[0].weight_shape, rank - 2, arith);
      });
      if (!alike) continue;
      Combined combined{group.input, that_can_be_combined(list, uses)};
      if (combined.branches.size() > 1) out.push_back(std::move(combined));
    }
  }
  return out;
}

bool is_wanted(const FuncRef& f, const Combined& group, const CombineCheck& check) {
  std::vector<RVarRef> weights, biases;
  for (const Branch& b : group.branches) {
    weights.push_back(b.weight);
    if (b.bias) biases.push_back(b.bias);
  }
  return check(f, group.input, weights, biases);
}

class MatmulCombiner final : public GraphRewriter {
 public:
  MatmulCombiner(BlockBuilder& builder, std::vector<Combined> groups)
      : GraphRewriter(builder), groups_(std::move(groups)), parts_(groups_.size()) {
    for (size_t g = 0; g < groups_.size(); ++g)
      for (size_t i = 0; i < groups_[g].branches.size(); ++i) places_[groups_[g].branches[i].result] = {g, i};
  }

 private:
  RExpr value(const RVarRef& var, const RExpr& value) override {
    auto at = places_.find(var);
    if (at == places_.end()) return value;
    const auto& [g, i] = at->second;
    if (!parts_[g]) parts_[g] = builder().emit(parts(groups_[g]));
    return tuple_get(parts_[g], static_cast<int>(i));
  }

  /// The split result of the product with all weights.
  RExpr parts(const Combined& group) {
    const std::vector<Branch>& branches = group.branches;
    auto joined = [&](RVarRef Branch::* which, size_t rank) -> RExpr {
      std::vector<RExpr> list;
      for (const Branch& b : branches) list.push_back(current(b.*which));
      return builder().emit(
          make_call("concat", {relax::tuple(std::move(list))}, {{"axis", static_cast<int64_t>(rank) - 1}}));
    };
    RExpr weights = joined(&Branch::weight, branches[0].weight_shape.size());
    RVarRef out =
        builder().emit(make_call("matmul", {current(group.input), weights}, {{"out_dtype", branches[0].dtype.name()}}));
    if (branches[0].bias)
      out = builder().emit(make_call("add", {RExpr(out), joined(&Branch::bias, branches[0].bias_shape.size())}));
    if (!branches[0].activation.empty()) out = builder().emit(make_call(branches[0].activation, {RExpr(out)}));
    std::vector<Value> ends;
    int64_t end = 0;
    for (size_t i = 0; i + 1 < branches.size(); ++i) ends.emplace_back(end += branches[i].width().as<IntImm>()->value);
    const int64_t axis = out->sinfo.as<TensorInfo>()->ndim - 1;
    return make_call("split", {RExpr(out), ends}, {{"axis", axis}});
  }

  std::vector<Combined> groups_;
  std::vector<RExpr> parts_;  ///< of each group, once they are computed
  std::map<RVarRef, std::pair<size_t, size_t>> places_;
};

}  // namespace

ModuleRef combine_parallel_matmul(const ModuleRef& module, const PassContext&, const CombineCheck& check) {
  return rewrite_functions(module, [&](const FuncRef& f, BlockBuilder& builder) {
    const std::map<RVarRef, size_t> uses = uses_of(*f);
    std::vector<Combined> groups;
    walk(f->body, [&](const BindingBlock& block) {
      if (!block.is_dataflow) return;
      for (Combined& c : combinations_of(block, uses, builder.arith()))
        if (!check || is_wanted(f, c, check)) groups.push_back(std::move(c));
    });
    return groups.empty() ? f : without_unused(MatmulCombiner(builder, std::move(groups)).function(*f));
  });
}

}  // namespace sator::passes
