// Which temporary tensors may share memory: a walk over each function's bindings that hands out storages and takes them
// back after the last use. Source: TVM's StaticPlanBlockMemory (greedy reuse within a factor of 16 in size).
#include <algorithm>
#include <set>

#include "passes/attach.h"
#include "passes/to_vm.h"
#include "relax/outline.h"
#include "relax/rebind.h"
#include "tir/nodes.h"

namespace sator::passes {

using namespace relax;

namespace {

constexpr int64_t kReuseFactor = 16;
/// Asks that results are planned too; the pass has done so when it goes.
constexpr const char* kPlansOutputs = "relax.memory_plan_dynamic_func_output";

/// A piece of memory and what is known of its size.
struct Storage {
  std::optional<int64_t> bytes;  ///< at the upper bounds
  Expr size;                     ///< in bytes, where there is no bound
  DType dtype;
  RVarRef var;
  int tensors = 0;
};

class Planner {
 public:
  Planner(const ModuleRef& module, const FuncRef& func, const PassContext& ctx) : module_(module), func_(func) {
    bounds_ = ctx.bounds;
    same_dtype_ = int_attr(ctx.config, "StaticPlanBlockMemory.same_dtype").value_or(0) != 0;
    for (const auto& [name, bound] : noted_bounds(*func)) bounds_[name] = bound;
  }

  FuncRef run() {
    const SeqExpr* body = func_->body.as<SeqExpr>();
    if (!body) return func_;
    find_aliases(*body);
    find_last_uses(*body);
    FuncRef planned = emit(*body);
    Attrs attrs = planned->attrs;
    attrs.erase(kPlansOutputs);
    attrs["memory.unplanned_bytes"] = int_imm(plan_.unplanned_bytes, i64);
    attrs["memory.planned_bytes"] = int_imm(plan_.planned_bytes, i64);
    attrs["memory.unbounded"] = int_imm(plan_.unbounded, i64);
    return with(planned, &Function::attrs, std::move(attrs));
  }

 private:
  /// An allocation whose shape is still known: VMShapeLower leaves others.
  static bool is_alloc(const Binding& b) {
    const TensorInfo* info = bound_var(b)->sinfo.as<TensorInfo>();
    return is_op(bound_value(b), "builtin.alloc_tensor") && info && shape_of(*info);
  }

  /// What stands behind a value: an allocation, or the parts of a tuple.
  struct Places {
    RVarRef tensor;
    std::vector<Places> items;
  };

  /// The allocations reached through renaming, tuples and views; none for what something else made.
  Places places_of(const RExpr& value) const {
    if (RVarRef v = cast<RVar>(value)) {
      auto at = aliases_.find(v);
      return at == aliases_.end() ? Places{} : at->second;
    }
    if (const relax::Tuple* t = value.as<relax::Tuple>()) {
      Places places;
      for (const RExpr& item : t->items) places.items.push_back(places_of(item));
      return places;
    }
    if (const TupleGetItem* get = value.as<TupleGetItem>()) {
      const Places whole = places_of(get->tuple);
      const auto index = static_cast<size_t>(get->index);
      return index < whole.items.size() ? whole.items[index] : Places{};
    }
    if (is_op(value, "reshape") || is_op(value, "memory.view")) return places_of(value.as<RCall>()->args[0]);
    return {};
  }

  static void append_tensors(const Places& places, std::vector<RVarRef>& out) {
    if (places.tensor) out.push_back(places.tensor);
    for (const Places& item : places.items) append_tensors(item, out);
  }

  /// The allocations that a value uses.
  std::vector<RVarRef> roots_of(const RExpr& value) const {
    std::vector<RVarRef> roots;
    if (passes_through(value)) {
      append_tensors(places_of(value), roots);
      return roots;
    }
    for (const RVarRef& v : rvars_in(value)) append_tensors(places_of(v), roots);
    return roots;
  }

  void find_aliases(const SeqExpr& body) {
    for (const BindingBlockRef& block : body.blocks) {
      for (const Binding& b : block->bindings) {
        RVarRef var = bound_var(b);
        RExpr value = bound_value(b);
        if (is_alloc(b)) {
          aliases_[var] = {var, {}};
        } else if (passes_through(value)) {
          aliases_[var] = places_of(value);
        } else if (!only_reads(value)) {
          // Whoever this is may keep what it was given.
          for (const RVarRef& r : roots_of(value)) kept_.insert(r);
        }
      }
    }
    for (const RVarRef& r : roots_of(body.body)) returned_.insert(r);
  }

  static bool passes_through(const RExpr& value) {
    return value.as<RVar>() || value.as<relax::Tuple>() || value.as<TupleGetItem>() || is_op(value, "reshape") ||
           is_op(value, "memory.view");
  }
  /// Kernels, and external functions that return nothing, are done with their arguments when they return.
  bool only_reads(const RExpr& value) const {
    const RCall* call = value.as<RCall>();
    if (!call) return false;
    if (is_op(value, "vm.call_tir_dyn")) return true;
    if (const GlobalVar* gv = call->op.as<GlobalVar>()) {
      auto at = module_->functions.find(gv->name);
      return at != module_->functions.end() && at->second.as<tir::PrimFunc>();
    }
    if (call->op.as<ExternFunc>()) {
      const TupleInfo* t = value->sinfo.as<TupleInfo>();
      return t && t->items.empty();
    }
    return false;
  }

  void find_last_uses(const SeqExpr& body) {
    int64_t at = 0;
    for (const BindingBlockRef& block : body.blocks) {
      for (const Binding& b : block->bindings) {
        for (const RVarRef& r : roots_of(bound_value(b))) last_use_[r] = at;
        ++at;
      }
    }
  }

  /// Results, and tensors that somebody may keep, share no memory; they are planned only where the function asks for it.
  bool is_planned(const RVarRef& var) const {
    bool escapes = returned_.count(var) || kept_.count(var);
    return !escapes || int_attr(func_->attrs, kPlansOutputs).value_or(0) != 0;
  }

  static constexpr int64_t kLargestCeiling = int64_t{1} << 20;  ///< elements of a dimension

  std::optional<int64_t> bounded(const Expr& e) const {
    if (auto v = as_int(e)) return v;
    if (const Var* v = e.as<Var>()) {
      auto at = bounds_.find(v->name);
      return at == bounds_.end() ? std::nullopt : std::optional(at->second);
    }
    auto both = [&](const Expr& a, const Expr& b, auto op) -> std::optional<int64_t> {
      auto x = bounded(a), y = bounded(b);
      if (!x || !y) return {};
      return op(*x, *y);
    };
    // Bounds of the parts bound sums, and products of what is not negative: a size, not a constant such as -1.
    if (const Cast* n = e.as<Cast>()) return bounded(n->value);
    if (const Add* n = e.as<Add>()) return both(n->a, n->b, [](int64_t x, int64_t y) { return x + y; });
    if (const Mul* n = e.as<Mul>()) {
      if (as_int(n->a).value_or(0) < 0 || as_int(n->b).value_or(0) < 0) return {};
      return both(n->a, n->b, [](int64_t x, int64_t y) -> std::optional<int64_t> {
        int64_t product = 0;
        if (__builtin_mul_overflow(x, y, &product)) return {};
        return product;
      });
    }
    if (const Sub* n = e.as<Sub>(); n && n->b.as<Var>()) return bounded(n->a);
    if (const Sub* n = e.as<Sub>(); n && as_int(n->b))
      return both(n->a, n->b, [](int64_t x, int64_t y) { return x - y; });
    if (const FloorDiv* n = e.as<FloorDiv>(); n && as_int(n->b) && *as_int(n->b) > 0)
      return both(n->a, n->b, [](int64_t x, int64_t y) { return floor_div(x, y); });
    if (const Max* n = e.as<Max>()) return both(n->a, n->b, [](int64_t x, int64_t y) { return std::max(x, y); });
    if (const Min* n = e.as<Min>()) {
      auto x = bounded(n->a), y = bounded(n->b);
      if (x && y) return std::min(*x, *y);
      const auto ceiling = x ? x : y;
      // x[:2**31 - 1] says nothing of the size: what a slice "to the end" writes is no bound to allocate.
      return ceiling && *ceiling <= kLargestCeiling ? ceiling : std::nullopt;
    }
    return {};
  }

  /// The memory for a tensor; extents that have a bound count with it.
  ///   in_order   the size is written as the extents stand, as TVM does for results
  Storage request(const TensorInfo& info, bool in_order) const {
    int64_t known = info.dtype.bytes();
    Expr size;
    const std::vector<Expr> extents = *shape_of(info);
    for (const Expr& extent : extents) {
      const auto bound = bounded(extent);
      if (!bound) size = size ? size * cast_to(i64, extent) : cast_to(i64, extent);
      if (bound && __builtin_mul_overflow(known, *bound, &known))
        fail({.what = text("the bytes of a tensor of ", info.dtype, " exceed an int64"),
              .needs = "memory that can be counted in bytes",
              .hint = "give smaller upper bounds"});
    }
    if (size && in_order) {
      Expr product;
      for (const Expr& extent : extents) {
        const auto bound = bounded(extent);
        const Expr factor = bound ? Expr(int_imm(*bound, i64)) : cast_to(i64, extent);
        product = product ? product * factor : factor;
      }
      size = product * int_imm(info.dtype.bytes(), i64);
    } else {
      size = size ? int_imm(known, i64) * size : int_imm(known, i64);
    }
    return {as_int(size), size, info.dtype, nullptr, 0};
  }

  /// The free storage that fits best: the smallest that is large enough, else the largest that is not.
  int find_free(const Storage& want) const {
    int best = -1;
    for (int i : free_) {
      const Storage& s = storages_[static_cast<size_t>(i)];
      if (same_dtype_ && s.dtype != want.dtype) continue;
      if (!want.bytes || !s.bytes) {
        if (!want.bytes && !s.bytes && equal(want.size, s.size)) return i;
        continue;
      }
      if (*s.bytes * kReuseFactor <= *want.bytes || *s.bytes >= *want.bytes * kReuseFactor) continue;
      if (best < 0) {
        best = i;
        continue;
      }
      int64_t have = *storages_[static_cast<size_t>(best)].bytes, other = *s.bytes, need = *want.bytes;
      bool better = have >= need ? other >= need && other < have : other > have;
      if (better) best = i;
    }
    return best;
  }

  FuncRef emit(const SeqExpr& body) {
    // First who sits where, so that a storage is made at its final size.
    int64_t at = 0;
    std::map<RVarRef, int> seat;
    for (const BindingBlockRef& block : body.blocks) {
      for (const Binding& b : block->bindings) {
        if (is_alloc(b) && is_planned(bound_var(b))) {
          RVarRef var = bound_var(b);
          const bool escapes = returned_.count(var) || kept_.count(var);
          Storage want = request(*var->sinfo.as<TensorInfo>(), escapes);
          want.bytes ? plan_.unplanned_bytes += *want.bytes : ++plan_.unbounded;
          int i = escapes ? -1 : find_free(want);
          if (i < 0) {
            i = static_cast<int>(storages_.size());
            storages_.push_back(want);
          } else {
            free_.erase(std::find(free_.begin(), free_.end(), i));
            Storage& s = storages_[static_cast<size_t>(i)];
            if (s.bytes && want.bytes) s.bytes = std::max(*s.bytes, *want.bytes);
          }
          ++storages_[static_cast<size_t>(i)].tensors;
          seat[var] = i;
        }
        for (const RVarRef& r : roots_of(bound_value(b))) release(r, at, seat);
        if (is_alloc(b) && !last_use_.count(bound_var(b))) release(bound_var(b), at, seat);
        ++at;
      }
    }
    for (const Storage& s : storages_) plan_.planned_bytes += s.bytes.value_or(0);

    return rewrite_bindings(func_, [&](const Binding& b, Bindings& out) {
      auto sits = is_alloc(b) ? seat.find(bound_var(b)) : seat.end();
      if (sits == seat.end()) {
        out.keep(b);
        return;
      }
      Storage& s = storages_[static_cast<size_t>(sits->second)];
      const RCall* alloc = bound_value(b).as<RCall>();
      if (!s.var) {
        Expr size = s.bytes ? int_imm(*s.bytes, i64) : s.size;
        s.var = out.emit("storage",
                         op_call("memory.alloc_storage",
                                 {shape_expr({size}), alloc->args[2], alloc->args[3], dtype_value(s.dtype)},
                                 object_info()));
      }
      out.bind(bound_var(b),
               op_call("memory.alloc_tensor",
                       {s.var, prim_value(int64_t{0}), alloc->args[0], alloc->args[1]},
                       bound_var(b)->sinfo));
    });
  }

  void release(const RVarRef& tensor, int64_t at, const std::map<RVarRef, int>& seat) {
    if (returned_.count(tensor) || kept_.count(tensor)) return;
    auto last = last_use_.find(tensor);
    if (last != last_use_.end() && last->second > at) return;
    auto sits = seat.find(tensor);
    if (sits == seat.end()) return;
    if (std::find(free_.begin(), free_.end(), sits->second) == free_.end()) free_.push_back(sits->second);
  }

  const ModuleRef& module_;
  const FuncRef& func_;
  std::map<std::string, int64_t> bounds_;
  bool same_dtype_ = false;
  std::map<RVarRef, Places> aliases_;
  std::set<RVarRef> returned_, kept_;
  std::map<RVarRef, int64_t> last_use_;
  std::vector<Storage> storages_;
  std::vector<int> free_;
  MemoryPlan plan_;
};

}  // namespace

ModuleRef static_plan_block_memory(const ModuleRef& module, const PassContext& ctx) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    FuncRef f = cast<Function>(func);
    if (!f) continue;
    Planner planner(module, f, ctx);
    bool allocates = false;
    walk(f, [&](const Op& op) { allocates |= op.name == "builtin.alloc_tensor"; });
    if (allocates) out = with_function(std::move(out), name, planner.run());
  }
  return out;
}

std::optional<MemoryPlan> memory_plan(const FuncNode& func) {
  auto planned = int_attr(func.attrs, "memory.planned_bytes");
  if (!planned) return {};
  return MemoryPlan{int_attr(func.attrs, "memory.unplanned_bytes").value_or(0),
                    *planned,
                    int_attr(func.attrs, "memory.unbounded").value_or(0)};
}

}  // namespace sator::passes
