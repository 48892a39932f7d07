#include "passes/graph/graph.h"
#include "relax/outline.h"
#include "relax/rewrite.h"
#include "relax/shared_memory.h"

namespace sator::passes {

using namespace relax;

namespace {

/// A call that makes a new object each time.
bool is_allocation(const RExpr& e) { return op_name(e).find("alloc_") != std::string::npos; }

class CommonSubexprs final : public GraphRewriter {
 public:
  CommonSubexprs(BlockBuilder& builder, bool call_only, const SharedMemory& memory)
      : GraphRewriter(builder), call_only_(call_only), memory_(memory) {}

 private:
  struct Known {
    RExpr value;
    StructInfo cast;  ///< of a match_cast
    RVarRef var;
  };
  using Table = std::unordered_map<uint64_t, std::vector<Known>>;

  RExpr value(const RVarRef& var, const RExpr& value) override {
    RVarRef same = known_or_new(var, value, nullptr);
    return same ? RExpr(same) : value;
  }
  Binding match_cast(const RVarRef& var, const RExpr& from, const StructInfo& sinfo) override {
    RVarRef same = known_or_new(var, from, sinfo);
    return same ? bind_value(var, same) : bind_match_cast(var, from, sinfo);
  }

  /// The variable that has this value already; null after noting that `var` has it.
  RVarRef known_or_new(const RVarRef& var, const RExpr& value, const StructInfo& cast) {
    if (call_only_ && !value.as<RCall>()) return nullptr;
    if (contains_impure_call(value) || is_allocation(value) || memory_.is_overwritten(*var)) return nullptr;
    if (std::ranges::any_of(rvars_in(value), [&](const RVarRef& v) { return memory_.is_overwritten(*v); }))
      return nullptr;
    const uint64_t hash = structural_hash(value);
    std::vector<Known>& those = known_[hash];
    for (const Known& k : those) {
      // A match_cast defines the sizes of its struct info: only the same ones are the same.
      if (!equal(k.value, value) || !k.cast != !cast || (cast && !same_uses(k.cast, cast))) continue;
      RVarRef first_var = k.var;
      replace(var, first_var);
      in_block_.push_back(var);
      those.push_back({value, cast, var});
      return first_var;
    }
    those.push_back({value, cast, var});
    return nullptr;
  }
  static bool same_uses(const StructInfo& a, const StructInfo& b) { return equal(a, b) && vars_in(a) == vars_in(b); }

  void begin_block(const BindingBlock&) override { in_block_.clear(); }
  void end_block(const BindingBlock& block) override {
    if (!block.is_dataflow) return;
    // What is visible in the block alone stands for nothing outside of it.
    for (auto& [hash, those] : known_) std::erase_if(those, [](const Known& k) { return k.var->is_dataflow; });
    for (const RVarRef& v : in_block_) replacements().erase(v);
  }
  void begin_inner(bool is_function) override {
    outer_.push_back({known_, in_block_});
    if (is_function) known_.clear();
  }
  void end_inner() override {
    known_ = std::move(outer_.back().first);
    in_block_ = std::move(outer_.back().second);
    outer_.pop_back();
  }

  bool call_only_;
  const SharedMemory& memory_;  ///< of the function as it was
  Table known_;
  std::vector<RVarRef> in_block_;  ///< replaced in the present block
  std::vector<std::pair<Table, std::vector<RVarRef>>> outer_;
};

}  // namespace

FuncRef eliminate_common_subexpr(const FuncRef& func, BlockBuilder& builder, bool call_only) {
  return CommonSubexprs(builder, call_only, SharedMemory(*func, builder.module().get(), reshaped)).function(*func);
}

ModuleRef eliminate_common_subexpr(const ModuleRef& module, const PassContext& ctx) {
  const bool call_only = flag_option(ctx, "EliminateCommonSubexpr.call_only", false);
  return rewrite_functions(
      module, [&](const FuncRef& f, BlockBuilder& builder) { return eliminate_common_subexpr(f, builder, call_only); });
}

}  // namespace sator::passes
