#include <algorithm>

#include "passes/graph/graph.h"
#include "passes/graph/layouts.h"
#include "relax/ops/table.h"
#include "relax/outline.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

namespace {

class LayoutConverter final : public GraphRewriter {
 public:
  LayoutConverter(BlockBuilder& builder, const WishedLayouts& wished) : GraphRewriter(builder), wished_(wished) {}

 private:
  /// Arguments lie in another order before the call is looked at again.
  RExpr reinferred_value(const RExpr& value) override { return value; }
  void begin_block(const BindingBlock& block) override { dataflow_ = block.is_dataflow; }
  void end_block(const BindingBlock&) override { dataflow_ = false; }

  RExpr value(const RVarRef& var, const RExpr& value) override {
    if (value.as<If>() || value.as<LocalFunction>()) return value;
    if (!dataflow_) return GraphRewriter::reinferred_value(value);
    if (const RCall* call = value.as<RCall>()) return call_value(var, *call);
    if (const Tuple* t = value.as<Tuple>()) {
      std::vector<RExpr> items;
      AxisOrders orders;
      for (const RExpr& item : t->items) {
        AxisOrders its = var->is_dataflow ? orders_of(item) : original_orders(item);
        items.push_back(converted(item, its));
        orders.insert(orders.end(), its.begin(), its.end());
      }
      note(var, orders);
      return relax::tuple(std::move(items));
    }
    if (const TupleGetItem* item = value.as<TupleGetItem>()) {
      AxisOrders all = var->is_dataflow ? orders_of(item->tuple) : original_orders(item->tuple);
      const TupleInfo* t = item->tuple->sinfo.as<TupleInfo>();
      size_t first = 0;
      for (int i = 0; i < item->index; ++i) first += plain_orders(t->items[static_cast<size_t>(i)]).size();
      const size_t count = plain_orders(t->items[static_cast<size_t>(item->index)]).size();
      note(var,
           AxisOrders(all.begin() + static_cast<std::ptrdiff_t>(first),
                      all.begin() + static_cast<std::ptrdiff_t>(first + count)));
      return tuple_get(converted(item->tuple, all), item->index);
    }
    if (value.as<RVar>()) {
      AxisOrders its = var->is_dataflow ? orders_of(value) : original_orders(value);
      note(var, its);
      return converted(value, its);
    }
    return value;
  }

  Binding match_cast(const RVarRef& var, const RExpr& from, const StructInfo& sinfo) override {
    const AxisOrders have = orders_of(from);
    const TensorInfo* t = sinfo.as<TensorInfo>();
    auto shape = t ? explicit_shape(*t) : std::nullopt;
    if (!var->is_dataflow || !shape || !have[0] || have[0] == plain_order(t->ndim))
      return bind_match_cast(var, converted(from, original_orders(from)), sinfo);
    std::vector<Expr> ordered;
    for (int axis : *have[0]) ordered.push_back((*shape)[static_cast<size_t>(axis)]);
    StructInfo info = tensor_info(ordered, t->dtype, t->vdevice);
    RVarRef other = with(var, &RVar::sinfo, info);
    replace(var, other);
    orders_[other] = have;
    return bind_match_cast(other, from, info);
  }

  RExpr call_value(const RVarRef& var, const RCall& call) {
    std::vector<AxisOrders> have;
    for (const RExpr& a : call.args) have.push_back(orders_of(a));
    auto ordered = ordered_call(*original(call), have, wished_);
    std::vector<RExpr> args = call.args;
    if (!ordered) {
      for (RExpr& a : args) a = converted(a, original_orders(a));
      return remade(call, std::move(args), call.attrs);
    }
    for (size_t i = 0; i < ordered->inputs.size(); ++i) args[i] = converted(args[i], ordered->inputs[i]);
    for (const auto& [i, arg] : ordered->args) args[i] = arg;
    RExpr out = remade(call, std::move(args), ordered->attrs);
    if (var->is_dataflow) {
      note(var, ordered->outputs);
      return out;
    }
    // What leaves the block lies as the graph has it.
    if (ordered->outputs == plain_orders(call.sinfo)) return out;
    RVarRef inside = builder().emit(out);
    orders_[inside] = ordered->outputs;
    return converted(inside, plain_orders(call.sinfo));
  }

  RExpr remade(const RCall& call, std::vector<RExpr> args, Attrs attrs) {
    return builder().normalize(make<RCall>(call.op, std::move(args), std::move(attrs), call.sinfo_args, StructInfo()));
  }

  /// The call over the variables as the graph had them: rules read ranks and shapes.
  RCallRef original(const RCall& call) const {
    std::vector<RExpr> args;
    for (const RExpr& a : call.args) args.push_back(before(a));
    return sator::with(call, &RCall::args, std::move(args));
  }
  RExpr before(const RExpr& e) const {
    auto at = was_.find(sator::cast<RVar>(e));
    if (at != was_.end()) return at->second;
    if (const Tuple* t = e.as<Tuple>()) {
      std::vector<RExpr> items;
      for (const RExpr& item : t->items) items.push_back(before(item));
      return relax::tuple(std::move(items));
    }
    return e;
  }

  AxisOrders orders_of(const RExpr& e) const {
    if (const Tuple* t = e.as<Tuple>()) {
      AxisOrders out;
      for (const RExpr& item : t->items)
        for (const AxisOrder& o : orders_of(item)) out.push_back(o);
      return out;
    }
    auto at = orders_.find(sator::cast<RVar>(e));
    return at == orders_.end() ? plain_orders(e->sinfo) : at->second;
  }
  AxisOrders original_orders(const RExpr& e) const { return plain_orders(before(e)->sinfo); }

  /// The tensor, or the tensors of a tuple, in these orders.
  RExpr converted(const RExpr& e, const AxisOrders& to) {
    size_t next = 0;
    return converted(e, orders_of(e), to, next);
  }
  RExpr converted(const RExpr& e, const AxisOrders& from, const AxisOrders& to, size_t& next) {
    if (const TupleInfo* t = e->sinfo.as<TupleInfo>()) {
      std::vector<RExpr> items;
      bool changed = false;
      for (size_t i = 0; i < t->items.size(); ++i) {
        const Tuple* made = e.as<Tuple>();
        RExpr item = made ? made->items[i] : tuple_get(e, static_cast<int>(i));
        RExpr other = converted(item, from, to, next);
        changed = changed || other != item;
        items.push_back(other);
      }
      return changed || e.as<Tuple>() ? relax::tuple(std::move(items)) : e;
    }
    const size_t i = next++;
    if (i >= from.size() || i >= to.size() || !from[i] || !to[i] || from[i] == to[i]) return e;
    std::vector<Value> axes;
    for (int64_t a : axes_between(*from[i], *to[i])) axes.emplace_back(a);
    return make_call("permute_dims", {e}, {{"axes", axes}});
  }

  /// The orders of a variable that is about to be bound.
  void note(const RVarRef& var, AxisOrders orders) { pending_[var] = std::move(orders); }
  void after(const RVarRef& var) override {
    RVarRef now = sator::cast<RVar>(current(var));
    if (!now) return;
    was_.emplace(now, var);
    if (auto at = pending_.find(var); at != pending_.end()) orders_[now] = at->second;
  }

  const WishedLayouts& wished_;
  std::map<RVarRef, AxisOrders> orders_, pending_;
  std::map<RVarRef, RVarRef> was_;  ///< what stood in the place of a variable
  bool dataflow_ = false;
};

}  // namespace

ModuleRef convert_layout(const ModuleRef& module, const PassContext& ctx) {
  WishedLayouts wished;
  const std::string name = "ConvertLayout.desired_layouts";
  for (const auto& [key, value] : named_values_option(ctx, name)) {
    const StringImm* op = key.as<StringImm>();
    const Array* layouts = value ? value.as<Array>() : nullptr;
    auto is_text = [](const NodeRef& n) { return n && n.as<StringImm>(); };
    if (!op || !layouts || !std::ranges::all_of(layouts->items, is_text))
      refuse_option(ctx, name, "layouts by op", "as in {\"nn.conv2d\": [\"NHWC\", \"OHWI\"]}");
    std::vector<std::string>& mine = wished[op->value.starts_with("relax.") ? op->value.substr(6) : op->value];
    for (const NodeRef& l : layouts->items) mine.push_back(l.as<StringImm>()->value);
  }
  return rewrite_functions(
      module, [&](const FuncRef& f, BlockBuilder& builder) { return LayoutConverter(builder, wished).function(*f); });
}

}  // namespace sator::passes
