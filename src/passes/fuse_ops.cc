#include "passes/fuse_ops.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/file.h"
#include "passes/op_pattern.h"
#include "relax/outline.h"
#include "relax/shared_memory.h"

namespace sator::passes {

using namespace relax;

namespace {

constexpr int kMaxGroup = 256;  // TVM's relax.FuseOps.max_depth

struct Edge {
  int user;
  OpPattern pattern;
};
/// One binding of a dataflow block.
struct CallNode {
  OpPattern pattern = OpPattern::opaque;
  bool leaves = false;  ///< used after the block, or by something that cannot be fused
  std::vector<Edge> users;
};

bool same_shape(const StructInfo& a, const StructInfo& b) {
  const TensorInfo *x = a.as<TensorInfo>(), *y = b.as<TensorInfo>();
  if (!x || !y || !x->shape || !y->shape) return false;
  return equal(x->shape, y->shape);
}

OpPattern pattern_attr(const ModuleRef& module, const std::string& name) {
  auto at = module->functions.find(name);
  if (at == module->functions.end()) return OpPattern::opaque;
  return static_cast<OpPattern>(int_attr(at->second->attrs, "op_pattern").value_or(8));
}

/// What a call_tir_inplace overwrites, null for what is no variable; none of another value.
std::vector<RVarRef> overwritten_by(const RExpr& value) {
  const RCall* call = is_op(value, "call_tir_inplace") ? value.as<RCall>() : nullptr;
  if (!call) return {};
  const std::vector<RExpr> inputs = call_tir_inputs(*call);
  const TupleInfo* results = call->sinfo_args.front().as<TupleInfo>();
  std::vector<RVarRef> out;
  for (int64_t i : overwritten_inputs(*call, results ? results->items.size() : 1))
    if (i >= 0) out.push_back(cast<RVar>(inputs.at(static_cast<size_t>(i))));
  return out;
}

/// The tensor function that a binding of the block calls, also one that overwrites arguments: those are then bound in the
/// block and read by nothing else, so that no order but that of the group counts.
std::optional<std::string> called_in_group(const BindingBlock& block, size_t at, const std::vector<RVarRef>& live_out) {
  const Binding& binding = block.bindings[at];
  if (auto callee = called_prim_func(binding)) return callee;
  const RExpr value = bound_value(binding);
  const RCall* call = is_op(value, "call_tir_inplace") ? value.as<RCall>() : nullptr;
  const GlobalVar* callee = call ? call->args[0].as<GlobalVar>() : nullptr;
  if (!callee) return {};
  for (const RVarRef& given : overwritten_by(value)) {
    bool is_bound = false;
    int reads = 0;
    for (const Binding& other : block.bindings) {
      is_bound |=
          bound_var(other) == given && !bound_value(other).as<RVar>();  // another's name for it would be read too
      for (const RVarRef& v : rvars_in(bound_value(other))) reads += v == given;
    }
    if (!given || !is_bound || reads != 1 || std::ranges::find(live_out, given) != live_out.end()) return {};
  }
  return callee->name;
}

/// Who uses whom in a block, and how; the bindings `alone` belong to no group.
std::vector<CallNode> graph_of(const ModuleRef& module, const BindingBlockRef& block,
                               const std::vector<RVarRef>& live_out, const SharedMemory& memory,
                               const std::set<size_t>& alone) {
  const size_t n = block->bindings.size();
  std::vector<CallNode> graph(n);
  std::map<RVarRef, size_t> binder;
  for (size_t b = 0; b < n; ++b) {
    const Binding& binding = block->bindings[b];
    RExpr value = bound_value(binding);
    auto uses = [&](const NodeRef& e, OpPattern pattern, bool by_shape) {
      for (const RVarRef& v : rvars_in(e)) {
        auto at = binder.find(v);
        if (at == binder.end()) continue;
        // Which of the inputs repeat, their shapes tell.
        OpPattern p = pattern;
        if (by_shape && pattern <= OpPattern::broadcast)
          p = same_shape(v->sinfo, bound_var(binding)->sinfo) ? OpPattern::elementwise : OpPattern::broadcast;
        graph[at->second].users.push_back({static_cast<int>(b), p});
        if (p == OpPattern::opaque) graph[at->second].leaves = true;
      }
    };
    if (auto callee = alone.contains(b) ? std::nullopt : called_in_group(*block, b, live_out)) {
      graph[b].pattern = pattern_attr(module, *callee);
      for (const RExpr& arg : call_tir_inputs(*value.as<RCall>())) uses(arg, graph[b].pattern, true);
    } else if (value.as<relax::Tuple>()) {
      graph[b].pattern = OpPattern::tuple;
      uses(value, OpPattern::injective, false);
    } else if (const TupleGetItem* get = value.as<TupleGetItem>()) {
      // An item of a parameter tuple is an input, not a computation.
      RVarRef tuple = cast<RVar>(get->tuple);
      if (tuple && binder.count(tuple)) {
        graph[b].pattern = OpPattern::injective;
        uses(value, OpPattern::injective, false);
      }
    } else {
      uses(value, OpPattern::opaque, false);
    }
    binder[bound_var(binding)] = b;
  }
  for (const RVarRef& v : live_out) {
    if (auto at = binder.find(v); at != binder.end()) graph[at->second].leaves = true;
  }
  // Groups run where their last call stands: what has to come earlier ends one.
  const std::vector<bool> early = memory.read_before_overwritten(*block);
  for (size_t b = 0; b < n; ++b) graph[b].leaves |= early[b];
  return graph;
}

/// The tree of post-dominators: `parent` is where all ways from a node meet again.
struct Dominator {
  int parent = -1;
  int depth = 1;
  OpPattern pattern = OpPattern::opaque;  ///< the most complex edge on the ways to the parent
};

std::vector<Dominator> post_dominators(const std::vector<CallNode>& graph) {
  std::vector<Dominator> tree(graph.size());
  for (size_t i = graph.size(); i-- > 0;) {
    if (graph[i].leaves || graph[i].users.empty()) continue;
    OpPattern pattern = OpPattern::elementwise;
    int meet = graph[i].users.front().user;
    for (const Edge& e : graph[i].users) {
      pattern = std::max(pattern, e.pattern);
      for (int other = e.user; meet != other;) {
        if (meet < 0 || other < 0) {
          meet = other = -1;
          break;
        }
        Dominator& m = tree[static_cast<size_t>(meet)];
        Dominator& o = tree[static_cast<size_t>(other)];
        if (m.depth >= o.depth) {
          pattern = std::max(pattern, m.pattern);
          meet = m.parent;
        } else {
          pattern = std::max(pattern, o.pattern);
          other = o.parent;
        }
      }
      if (meet < 0) break;
    }
    if (meet < 0) continue;
    tree[i] = {meet, tree[static_cast<size_t>(meet)].depth + 1, pattern};
  }
  return tree;
}

class Fuser {
 public:
  Fuser(const std::vector<CallNode>& graph) : graph_(graph), tree_(post_dominators(graph)), parent_(graph.size()) {
    for (size_t i = 0; i < graph.size(); ++i) {
      parent_[i] = static_cast<int>(i);
      pattern_.push_back(graph[i].pattern);
      size_.push_back(1);
    }
  }

  void run() {
    for (int phase = 0; phase < 3; ++phase) {
      for (size_t i = 0; i < graph_.size(); ++i) consider(static_cast<int>(i), phase);
    }
  }
  int root(int i) const {
    while (parent_[static_cast<size_t>(i)] != i) i = parent_[static_cast<size_t>(i)];
    return i;
  }

 private:
  static bool simple(OpPattern p) { return p <= OpPattern::injective; }

  void consider(int i, int phase) {
    OpPattern group = pattern_of(i);
    const Dominator& dom = tree_[static_cast<size_t>(i)];
    if (group == OpPattern::opaque || dom.parent < 0) return;
    int sink = dom.parent;
    if (phase == 2) {  // injective functions into a tuple between them
      if (!simple(group) || pattern_of(sink) == OpPattern::tuple) return;
      if (graph_[static_cast<size_t>(sink)].pattern == OpPattern::tuple && simple(pattern_of(sink)))
        try_fuse(i, sink, [](OpPattern p, bool) { return simple(p); });
      return;
    }
    if (root(i) == root(sink) || graph_[static_cast<size_t>(sink)].pattern == OpPattern::tuple) return;
    if (group == OpPattern::out_fusable) {  // a matmul takes in what follows element by element
      if (phase == 0 && dom.pattern == OpPattern::elementwise)
        try_fuse(i, sink, [](OpPattern p, bool) { return p <= OpPattern::broadcast; });
    } else if (group <= OpPattern::broadcast) {
      if (simple(dom.pattern) || dom.pattern == OpPattern::reduction)
        try_fuse(i, sink, [](OpPattern p, bool is_sink) { return is_sink ? p <= OpPattern::out_fusable : simple(p); });
    } else if (group == OpPattern::injective || group == OpPattern::tuple) {
      if (phase == 1) try_fuse(i, sink, [](OpPattern p, bool) { return simple(p); });
    }
  }

  OpPattern pattern_of(int i) const { return pattern_[static_cast<size_t>(root(i))]; }

  /// All nodes on ways from i to sink; false if one does not satisfy `allowed`.
  bool on_the_way(int i, int sink, FunctionRef<bool(OpPattern, bool)> allowed, std::vector<int>& way) const {
    for (const Edge& e : graph_[static_cast<size_t>(i)].users) {
      if (std::find(way.begin(), way.end(), e.user) != way.end()) continue;
      if (!allowed(pattern_of(e.user), e.user == sink)) return false;
      way.push_back(e.user);
      if (e.user != sink && !on_the_way(e.user, sink, allowed, way)) return false;
    }
    return true;
  }

  void try_fuse(int i, int sink, FunctionRef<bool(OpPattern, bool)> allowed) {
    std::vector<int> way;
    if (!on_the_way(i, sink, allowed, way)) return;
    way.push_back(i);
    int total = 0;
    std::vector<int> roots;
    for (int node : way) {
      int r = root(node);
      if (std::find(roots.begin(), roots.end(), r) != roots.end()) continue;
      roots.push_back(r);
      total += size_[static_cast<size_t>(r)];
    }
    if (total > kMaxGroup) return;
    int target = root(sink);
    for (int r : roots) {
      if (r == target) continue;
      parent_[static_cast<size_t>(r)] = target;
      OpPattern& p = pattern_[static_cast<size_t>(target)];
      p = std::max(p, pattern_[static_cast<size_t>(r)]);
      size_[static_cast<size_t>(target)] += size_[static_cast<size_t>(r)];
    }
  }

  const std::vector<CallNode>& graph_;
  std::vector<Dominator> tree_;
  std::vector<int> parent_;
  std::vector<OpPattern> pattern_;
  std::vector<int> size_;
};

/// fused_<a>_<b>...; a very long name ends in a hash, as TVM's do.
std::string group_name(const BindingBlockRef& block, const std::vector<size_t>& bindings,
                       const std::vector<RVarRef>& live_out) {
  std::string name = "fused";
  for (size_t b : bindings) {
    if (auto callee = called_in_group(*block, b, live_out)) name += "_" + *callee;
  }
  constexpr size_t kLongest = 80;
  if (name.size() > kLongest) name = name.substr(0, kLongest) + "_" + hex(hash_bytes(name));
  return name;
}

/// The groups by one of their calls.
std::map<int, std::vector<size_t>> joined_calls(const std::vector<CallNode>& graph) {
  Fuser fuser(graph);
  fuser.run();
  std::map<int, std::vector<size_t>> members;
  for (size_t i = 0; i < graph.size(); ++i) {
    if (graph[i].pattern != OpPattern::opaque) members[fuser.root(static_cast<int>(i))].push_back(i);
  }
  return members;
}

/// The calls of a group that overwrite what another group made.
std::set<size_t> calls_on_foreign_memory(const BindingBlock& block, const std::vector<size_t>& group) {
  std::set<size_t> calls;
  if (group.size() == 1) return calls;
  for (size_t b : group)
    for (const RVarRef& given : overwritten_by(bound_value(block.bindings[b])))
      if (std::ranges::none_of(group, [&](size_t o) { return bound_var(block.bindings[o]) == given; })) calls.insert(b);
  return calls;
}

}  // namespace

ModuleRef fuse_ops(const ModuleRef& module, const PassContext&) {
  const SharedMemory memory(*module);
  Outliner outliner(module);
  return rewrite_dataflow_blocks(
      module,
      [&](const BindingBlockRef& block, const std::vector<RVarRef>& live_out) {
        std::set<size_t> alone;
        std::map<int, std::vector<size_t>> members;
        size_t known = 0;
        do {
          known = alone.size();
          members = joined_calls(graph_of(outliner.module(), block, live_out, memory, alone));
          for (const auto& [root, group] : members) alone.merge(calls_on_foreign_memory(*block, group));
        } while (alone.size() > known);
        std::vector<Group> groups;
        for (auto& [root, bindings] : members) {
          int calls = 0;
          for (size_t b : bindings) calls += called_in_group(*block, b, live_out).has_value();
          if (bindings.size() < 2 || calls < 1) continue;
          groups.push_back({bindings, group_name(block, bindings, live_out), {{"Primitive", int_imm(1)}}});
        }
        std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.bindings < b.bindings; });
        return outliner.outline(block, groups, live_out);
      },
      &outliner);
}

}  // namespace sator::passes
