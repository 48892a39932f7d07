#include "passes/lift_transform_params.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "passes/graph/graph.h"
#include "relax/builder.h"
#include "relax/outline.h"

namespace sator::passes {

using namespace relax;

namespace {

/// Functions that take the parameter tuple, and where.
struct User {
  std::string name;
  FuncRef func;
  RVarRef params;
};

/// A number that equal expressions over the tuple share. It looks at ops and fields alone: the tuple's own type, which each
/// expression reaches, is as long as the model has parameters.
uint64_t sketch_of(const RExpr& e) {
  auto mix = [](uint64_t a, uint64_t b) { return (a ^ b) * 0x9e3779b97f4a7c15ULL; };
  if (const TupleGetItem* get = e.as<TupleGetItem>()) return mix(static_cast<uint64_t>(get->index), 1);
  if (const GlobalVar* gv = e.as<GlobalVar>()) return std::hash<std::string>()(gv->name);
  if (const relax::Tuple* tuple = e.as<relax::Tuple>()) {
    uint64_t all = 2;
    for (const RExpr& item : tuple->items) all = mix(all, sketch_of(item));
    return all;
  }
  const RCall* call = e.as<RCall>();
  if (!call) return 3;
  uint64_t all = std::hash<std::string>()(op_name(e));
  for (const RExpr& arg : call->args) all = mix(all, sketch_of(arg));
  return all;
}

class Lifter {
 public:
  explicit Lifter(const ModuleRef& module) : module_(module) {}

  ModuleRef run() {
    std::vector<User> users;
    for (const auto& [name, func] : module_->functions) {
      FuncRef f = cast<Function>(func);
      auto inputs = f ? int_attr(f->attrs, "num_input") : std::nullopt;
      if (!inputs || *inputs >= static_cast<int64_t>(f->params.size())) continue;
      const RVarRef& params = f->params[static_cast<size_t>(*inputs)];
      if (params->sinfo.as<TupleInfo>()) users.push_back({name, f, params});
    }
    if (users.empty()) return module_;
    params_ = make_rvar("params", users.front().params->sinfo);
    for (const User& u : users) {
      if (!equal(u.params->sinfo, params_->sinfo))
        fail({.what = text("LiftTransformParams: ", u.name, " takes other parameters than ", users.front().name),
              .needs = "functions of one model: the same tuple of parameters, behind num_input others",
              .hint = "give them one struct info, or lift one at a time"});
    }
    for (const User& u : users) find_lifted(u);
    ModuleRef out = module_;
    for (const User& u : users) out = with_function(std::move(out), u.name, rewritten(u));
    return with_function(out, "transform_params", transform_function());
  }

 private:
  bool is_dequantize(const Binding& b) const {
    auto callee = called_prim_func(b);
    if (!callee) return false;
    auto role = string_attr(module_->functions.at(*callee)->attrs, "role");
    return role == "dequantize";
  }

  /// A binding that can move, as an expression over the common tuple; null if it cannot.
  RExpr over_params(const Binding& b, const User& user, const std::map<RVarRef, RExpr>& known) const {
    if (b.as<MatchCast>() || is_dequantize(b)) return nullptr;
    RExpr value = bound_value(b);
    if (const TupleGetItem* get = value.as<TupleGetItem>(); get && get->tuple == user.params)
      return with_sinfo(tuple_get(params_, get->index), bound_var(b)->sinfo);
    const RCall* call = value.as<RCall>();
    if (!call || is_impure_call(value)) return nullptr;
    if (call->op.as<ExternFunc>() || !vars_in(value->sinfo).empty()) return nullptr;
    if (is_op(value, "call_dps_packed") || is_op(value, "call_pure_packed")) return nullptr;
    bool movable = true, any = false;
    NodeMap map;
    for (const RVarRef& v : rvars_in(value)) {
      auto at = known.find(v);
      movable &= at != known.end();
      any = true;
      if (at != known.end()) map.emplace(v, at->second);
    }
    return movable && any ? with_sinfo(replaced(value, map), bound_var(b)->sinfo) : nullptr;
  }

  void find_lifted(const User& user) {
    std::map<RVarRef, RExpr>& known = lifted_[user.name];
    const SeqExpr* seq = user.func->body.as<SeqExpr>();
    std::set<RVarRef> needed;
    std::vector<RVarRef> order;
    for (const BindingBlockRef& block : seq->blocks) {
      for (const Binding& b : block->bindings) {
        if (RExpr e = over_params(b, user, known)) {
          known.emplace(bound_var(b), e);
          continue;
        }
        for (const RVarRef& v : rvars_in(bound_value(b))) {
          if (known.count(v) && needed.insert(v).second) order.push_back(v);
        }
      }
    }
    for (const RVarRef& v : rvars_in(seq->body)) {
      if (known.count(v) && needed.insert(v).second) order.push_back(v);
    }
    for (const RVarRef& v : order) add_slot(known.at(v));
  }

  /// The number of an equal result; nothing if there is none.
  std::optional<int> find_slot(const RExpr& e) const {
    auto [begin, end] = slots_.equal_range(sketch_of(e));
    for (auto at = begin; at != end; ++at)
      if (equal(results_[static_cast<size_t>(at->second)], e)) return at->second;
    return {};
  }

  void add_slot(const RExpr& e) {
    if (find_slot(e)) return;
    slots_.emplace(sketch_of(e), static_cast<int>(results_.size()));
    results_.push_back(e);
  }

  std::vector<StructInfo> infos() const {
    std::vector<StructInfo> out;
    for (const RExpr& e : results_) out.push_back(e->sinfo);
    return out;
  }

  FuncRef rewritten(const User& user) {
    RVarRef params = make_rvar("params", tuple_info(infos()));
    const std::map<RVarRef, RExpr>& known = lifted_.at(user.name);
    FuncRef f = transform(user.func, [&](const BindingBlock& block) -> NodeRef {
      std::vector<Binding> kept;
      for (const Binding& b : block.bindings) {
        auto at = known.find(bound_var(b));
        if (at == known.end()) {
          kept.push_back(b);
          continue;
        }
        if (auto result = find_slot(at->second))
          kept.push_back(make<VarBinding>(with_sinfo(tuple_get(params, *result), at->second->sinfo), bound_var(b)));
      }
      return sator::with(block, &BindingBlock::bindings, std::move(kept));
    });
    return replaced(f, NodeMap{{user.params, params}});
  }

  FuncRef transform_function() {
    BlockBuilder b(module_);
    b.begin_scope({params_});
    b.begin_block(true);
    std::vector<RExpr> items;
    for (const RExpr& e : results_) items.push_back(b.emit(e));
    RVarRef out = b.emit_output(relax::tuple(items), "gv");
    BindingBlockRef block = b.end_block();
    // What is transformed need not be held twice: StreamParams.
    return b.end_function(
        {params_}, {block}, out, {{"global_symbol", string_imm("transform_params")}, {"streams_params", int_imm(1)}});
  }

  const ModuleRef& module_;
  RVarRef params_;
  std::map<std::string, std::map<RVarRef, RExpr>> lifted_;
  std::vector<RExpr> results_;
  std::unordered_multimap<uint64_t, int> slots_;  ///< of results, by their sketch
};

}  // namespace

ModuleRef lift_transform_params(const ModuleRef& module, const PassContext& ctx) {
  // A model's functions take their parameters as one tuple; those of others have parameters of their own.
  bool bundled = false, single = false;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<Function>(func);
    auto inputs = f ? int_attr(f->attrs, "num_input") : std::nullopt;
    if (!inputs) continue;
    const auto count = static_cast<int64_t>(f->params.size()) - *inputs;
    (count == 1 && f->params.back()->sinfo.as<TupleInfo>() ? bundled : single) = true;
  }
  return single && !bundled ? partition_transform_params(module, ctx) : Lifter(module).run();
}

}  // namespace sator::passes
