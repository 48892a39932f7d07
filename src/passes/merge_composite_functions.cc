#include <algorithm>

#include "passes/byoc.h"
#include "passes/described_target.h"
#include "relax/outline.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The bindings of a block, and which reads which.
class Order {
 public:
  explicit Order(const BindingBlockRef& block) : reads_(block->bindings.size()), readers_(block->bindings.size()) {
    std::map<RVarRef, size_t> binder;
    for (size_t b = 0; b < reads_.size(); ++b) {
      for (const RVarRef& v : rvars_in(bound_value(block->bindings[b])))
        if (auto at = binder.find(v); at != binder.end()) {
          reads_[b].push_back(at->second);
          readers_[at->second].push_back(b);
        }
      binder[bound_var(block->bindings[b])] = b;
    }
  }

  const std::vector<size_t>& read_by(size_t b) const { return reads_[b]; }
  const std::vector<size_t>& readers_of(size_t b) const { return readers_[b]; }

  /// Whether a value leaves the set and what is made from it comes back.
  bool comes_back(const std::set<size_t>& set) const {
    std::set<size_t> outside;
    std::vector<size_t> open;
    auto follow = [&](size_t b) {
      for (size_t reader : readers_[b])
        if (!set.contains(reader) && outside.insert(reader).second) open.push_back(reader);
    };
    for (size_t b : set) follow(b);
    while (!open.empty()) {
      const size_t b = open.back();
      open.pop_back();
      for (size_t reader : readers_[b])
        if (set.contains(reader)) return true;
      follow(b);
    }
    return false;
  }

 private:
  std::vector<std::vector<size_t>> reads_, readers_;
};

/// The group that a binding calls; null if it calls none.
const Function* composite_of(const ModuleRef& module, const Binding& binding) {
  const RExpr value = bound_value(binding);
  const RCall* call = value.as<RCall>();
  const GlobalVar* callee = call ? call->op.as<GlobalVar>() : nullptr;
  const auto at = callee ? module->functions.find(callee->name) : module->functions.end();
  const Function* func = at == module->functions.end() ? nullptr : at->second.as<Function>();
  return func && has_attr(func->attrs, "Composite") && has_attr(func->attrs, "Codegen") ? func : nullptr;
}

/// Bytes of the values of the set that others of the set read; nothing where one's size has no bound.
std::optional<int64_t> bytes_between(const std::set<size_t>& set, const BindingBlockRef& block, const Order& order,
                                     const PassContext& ctx) {
  int64_t bytes = 0;
  for (size_t b : set) {
    if (std::ranges::none_of(order.readers_of(b), [&](size_t reader) { return set.contains(reader); })) continue;
    const TensorInfo* info = bound_var(block->bindings[b])->sinfo.as<TensorInfo>();
    const auto shape = info ? relax::shape_of(*info) : std::nullopt;
    const auto elements = shape ? elements_at_most(*shape, ctx) : std::nullopt;
    if (!elements) return {};
    bytes += *elements * info->dtype.bytes();
  }
  return bytes;
}

}  // namespace

ModuleRef merge_composite_functions(const ModuleRef& module, const PassContext& ctx,
                                    std::optional<int64_t> most_bytes_between) {
  Outliner outliner(module);
  return rewrite_dataflow_blocks(
      module,
      [&](const BindingBlockRef& block, const std::vector<RVarRef>& live_out) {
        const Order order(block);
        const size_t n = block->bindings.size();
        std::vector<std::string> backend(n), name(n);
        std::vector<std::set<size_t>> sets;  // of calls that become one
        std::vector<size_t> set_of(n);
        for (size_t b = 0; b < n; ++b) {
          const Function* group = composite_of(outliner.module(), block->bindings[b]);
          if (!group) continue;
          backend[b] = *string_attr(group->attrs, "Codegen");
          name[b] = bound_value(block->bindings[b]).as<RCall>()->op.as<GlobalVar>()->name;
          set_of[b] = sets.size();
          sets.push_back({b});
          for (size_t from : order.read_by(b)) {
            if (backend[from] != backend[b] || set_of[from] == set_of[b]) continue;
            std::set<size_t> joined = sets[set_of[from]];
            joined.insert(sets[set_of[b]].begin(), sets[set_of[b]].end());
            auto refuse = [&](const std::string& why) {
              ctx.say("MergeCompositeFunctions",
                      text(name[b], " is not joined to ", name[from], ", whose result it reads: ", why));
            };
            if (order.comes_back(joined)) {
              refuse("a value would leave the function and come back");
              continue;
            }
            if (most_bytes_between) {
              const auto bytes = bytes_between(joined, block, order, ctx);
              if (!bytes || *bytes > *most_bytes_between) {
                refuse(bytes ? text(*bytes, " bytes lie between them, and there is room for ", *most_bytes_between)
                             : "what lies between them has no bound");
                continue;
              }
            }
            const size_t old = set_of[from], kept = set_of[b];
            for (size_t member : sets[old]) set_of[member] = kept;
            sets[old].clear();
            sets[kept] = std::move(joined);
          }
        }
        std::vector<Group> groups;
        for (const std::set<size_t>& set : sets) {
          if (set.size() < 2) continue;
          std::string joined_name = "fused";
          for (size_t b : set) {
            // "fused_A_BACKEND" and "fused_B_BACKEND" are "fused_A_B_BACKEND".
            std::string part = name[b];
            const size_t end = part.rfind("_" + backend[b]);
            if (end != std::string::npos) part.resize(end);
            joined_name += "_" + (part.starts_with("fused_") ? part.substr(6) : part);
          }
          const std::string& of = backend[*set.begin()];
          groups.push_back({{set.begin(), set.end()},
                            text(joined_name, "_", of),
                            {{"Codegen", string_imm(of)}, {"Primitive", int_imm(1)}}});
        }
        std::ranges::sort(groups, {}, &Group::bindings);
        return outliner.outline(block, groups, live_out);
      },
      &outliner);
}

std::optional<int64_t> room_between(const Chip& chip) {
  const Memory* keeps = chip.memory(chip.keeps_between);
  return keeps && keeps->capacity_bytes ? std::optional(*keeps->capacity_bytes / 2) : std::nullopt;
}

ModuleRef merge_composite_functions(const ModuleRef& module, const PassContext& ctx) {
  if (has_plain_composites(module)) return merge_plain_composites(module);
  const std::optional<Chip> chip = described_target(ctx);
  return merge_composite_functions(module, ctx, chip ? room_between(*chip) : std::nullopt);
}

}  // namespace sator::passes
