#include <algorithm>
#include <deque>
#include <set>

#include "passes/graph/graph.h"
#include "relax/outline.h"
#include "relax/rewrite.h"
#include "relax/shared_memory.h"

namespace sator::passes {

using namespace relax;

namespace {

/// A place of the graph: a variable, where all begins (its inputs), or where all ends (its result).
using Place = const RVar*;
const RVar kInput, kOutput;

/// Variables that occur, as often as they do, in order.
void uses_in(const NodeRef& e, std::vector<Place>& out) {
  if (const RVar* v = e.as<RVar>()) {
    out.push_back(v);
    return;
  }
  e->info().each_child(*e, [&](const NodeRef& child) { uses_in(child, out); });
}

/// Who reads what, for the whole function.
struct Dependences {
  std::vector<Place> bound;  ///< in order
  std::map<Place, std::vector<Place>> users, needs;

  Dependences(const Function& f, const SharedMemory& memory) : memory_(memory) {
    for (const RVarRef& p : f.params) edge(&kInput, p.get());
    sequence(f.body);
    // Where nothing is read the search begins; where nobody reads it ends.
    std::vector<Place> unused;
    for (Place v : bound) {
      if (!needs.contains(v)) edge(&kInput, v);
      if (!users.contains(v)) unused.push_back(v);
    }
    for (Place v : unused) users[v].push_back(&kOutput);
    needs[&kOutput].insert(needs[&kOutput].begin(), unused.begin(), unused.end());
  }

 private:
  void edge(Place from, Place to) {
    users[from].push_back(to);
    needs[to].push_back(from);
  }
  void sequence(const RExpr& e) {
    const SeqExpr* seq = e.as<SeqExpr>();
    for (const BindingBlockRef& block : seq->blocks) {
      for (const Binding& b : block->bindings) {
        Place var = bound_var(b).get();
        bound.push_back(var);
        std::vector<Place> uses;
        uses_in(bound_value(b), uses);
        for (Place used : uses) edge(used, var);
      }
      // Who reads memory comes before the call that overwrites it.
      for (size_t b = 0; b < block->bindings.size(); ++b)
        for (size_t reader : memory_.readers_before(*block, b))
          edge(bound_var(block->bindings[reader]).get(), bound_var(block->bindings[b]).get());
    }
    std::vector<Place> uses;
    uses_in(seq->body, uses);
    for (Place used : uses) edge(used, &kOutput);
  }

  const SharedMemory& memory_;
};

}  // namespace

ModuleRef topological_sort(const ModuleRef& module, const PassContext& ctx) {
  const bool depth_first =
      choice_option(ctx, "TopologicalSort.order", {"depth-first", "breadth-first"}) == "depth-first";
  const bool from_inputs =
      choice_option(ctx, "TopologicalSort.direction", {"from-inputs", "from-outputs"}) == "from-inputs";

  const SharedMemory memory(*module, reshaped);
  return rewrite_functions(module, [&](const FuncRef& f, BlockBuilder&) {
    Dependences all(*f, memory);
    // A stack gives its last entry first: users are put on it from the last one.
    if (depth_first)
      for (auto& [place, users] : all.users) std::ranges::reverse(users);
    const auto& forward = from_inputs ? all.users : all.needs;
    const auto& backward = from_inputs ? all.needs : all.users;
    auto sorted = [&](const BindingBlock& block) {
      std::map<Place, Binding> waiting;
      for (const Binding& b : block.bindings) waiting.emplace(bound_var(b).get(), b);
      std::vector<Binding> out;
      std::set<Place> visited;
      std::deque<Place> next = {from_inputs ? &kInput : &kOutput};
      while (!next.empty()) {
        Place place = depth_first ? next.back() : next.front();
        depth_first ? next.pop_back() : next.pop_front();
        if (auto at = waiting.find(place); at != waiting.end()) {
          out.push_back(at->second);
          waiting.erase(at);
        }
        visited.insert(place);
        auto at = forward.find(place);
        if (at == forward.end()) continue;
        for (Place neighbour : at->second) {
          if (visited.contains(neighbour)) continue;
          auto before = backward.find(neighbour);
          if (before == backward.end() ||
              std::ranges::all_of(before->second, [&](Place p) { return visited.contains(p); }))
            next.push_back(neighbour);
        }
      }
      if (!from_inputs) std::ranges::reverse(out);
      // What the search does not reach keeps the order of all.
      return waiting.empty() ? out : block.bindings;
    };
    return transform(f, [&](const BindingBlock& block) -> NodeRef {
      if (!block.is_dataflow) return ref(block);
      std::vector<Binding> out = sorted(block);
      return out == block.bindings ? ref(block) : with(block, &BindingBlock::bindings, std::move(out));
    });
  });
}

}  // namespace sator::passes
