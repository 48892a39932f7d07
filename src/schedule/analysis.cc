#include "schedule/analysis.h"

#include <algorithm>

#include "arith/interval_eval.h"
#include "arith/intset.h"
#include "arith/iter_map.h"
#include "arith/kind.h"
#include "schedule/loops.h"

namespace sator::schedule {

using namespace tir;

VarMap bindings_of(const BlockRealize& realize) {
  VarMap map;
  for (size_t i = 0; i < realize.values.size(); ++i) map.emplace(realize.block->iter_vars[i]->var, realize.values[i]);
  return map;
}

std::vector<RangeRef> substitute_region(const std::vector<RangeRef>& region, const VarMap& map) {
  std::vector<RangeRef> out;
  for (const RangeRef& r : region) out.push_back(substitute(r, map));
  return out;
}

bool is_shared_among(const std::string& scope, const std::string& thread) {
  bool in_block = thread.starts_with("threadIdx.") || thread.starts_with("vthread");
  if (scope == "global" || scope.empty()) return in_block || thread.starts_with("blockIdx.");
  if (scope.starts_with("shared")) return in_block;
  if (scope == "warp") return thread == "threadIdx.x";
  if (scope == "sram") return thread.starts_with("pe.");
  return false;
}

arith::RangeMap loop_domain(const Sites& sites, int low, int high, const std::string& relax_scope) {
  arith::RangeMap domain;
  int i = low;
  for (; i >= 0 && i != high; i = sites[i].parent) {
    const For* loop = sites[i].loop();
    if (!loop) break;
    domain.emplace(loop->var, make<Range>(loop->min, loop->extent));
  }
  if (relax_scope.empty()) return domain;
  for (; i >= 0; i = sites[i].parent) {
    const For* loop = sites[i].loop();
    if (loop && loop->kind == LoopKind::thread_binding && is_shared_among(relax_scope, loop->thread))
      domain.emplace(loop->var, make<Range>(loop->min, loop->extent));
  }
  return domain;
}

bool lists(const std::vector<BufferRegionRef>& regions, const BufferRef& buffer) {
  return std::ranges::any_of(regions, [&](const BufferRegionRef& r) { return r->buffer == buffer; });
}

ScopeAnalysis::ScopeAnalysis(const Schedule& s, std::vector<int> blocks) : s_(s), blocks_(std::move(blocks)) {
  PooledMap<BufferRef, std::vector<int>> readers;
  for (int b : blocks_) {
    const Block& block = *s.sites()[b].realize()->block;
    for (const BufferRegionRef& read : block.reads) {
      for (int w : writers_[read->buffer]) dependencies_.push_back({w, b, DependencyKind::read_after_write});
    }
    for (const BufferRegionRef& write : block.writes) {
      for (int w : writers_[write->buffer]) dependencies_.push_back({w, b, DependencyKind::write_after_write});
      for (int r : readers[write->buffer]) dependencies_.push_back({r, b, DependencyKind::write_after_read});
    }
    for (const BufferRegionRef& read : block.reads) readers[read->buffer].push_back(b);
    for (const BufferRegionRef& write : block.writes) {
      std::vector<int>& w = writers_[write->buffer];
      if (w.empty() || w.back() != b) w.push_back(b);
    }
  }
}

std::vector<int> ScopeAnalysis::producers(int block) const {
  std::vector<int> out;
  for (const Dependency& d : dependencies_) {
    if (d.dst == block && d.kind != DependencyKind::write_after_read &&
        std::find(out.begin(), out.end(), d.src) == out.end())
      out.push_back(d.src);
  }
  return out;
}

std::vector<int> ScopeAnalysis::consumers(int block) const {
  std::vector<int> out;
  for (const Dependency& d : dependencies_) {
    if (d.src == block && d.kind != DependencyKind::write_after_read &&
        std::find(out.begin(), out.end(), d.dst) == out.end())
      out.push_back(d.dst);
  }
  return out;
}

const std::vector<int>& ScopeAnalysis::writers(const BufferRef& buffer) const {
  static const std::vector<int> kNone;
  auto at = writers_.find(buffer);
  return at == writers_.end() ? kNone : at->second;
}

bool ScopeAnalysis::is_dominant(int block) const {
  for (const BufferRegionRef& write : s_.sites()[block].realize()->block->writes) {
    if (writers(write->buffer).size() != 1) return false;
  }
  return true;
}

/// The map of the block's bindings from the loops around it, up to the site `high`, while the predicate holds.
static const arith::IterMap& binding_map(const Schedule& s, int block_site, int high, const Expr& predicate) {
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[block_site].realize();
  Findings<arith::IterMap>::Nodes read(realize.values.begin(), realize.values.end());
  read.insert(read.end(), {predicate, high < 0 ? NodeRef() : sites[high].handle()});
  s.add_ranges(read, sites[block_site].parent);
  return s.binding_maps().of(std::move(read), [&] {
    arith::Analyzer analyzer;
    s.bind_ranges(analyzer, high);
    return arith::detect_iter_map(realize.values,
                                  loop_domain(sites, sites[block_site].parent, high),
                                  predicate,
                                  arith::IterMapLevel::surjective,
                                  analyzer);
  });
}

/// Whether they are equal in the ranges at and above the site.
static bool are_equal(const Schedule& s, int site, const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (auto x = as_int(a), y = as_int(b); x && y) return *x == *y;
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, site);
  return analyzer.prove_equal(a, b);
}

/// The reduction axis that might not take its first value below the loops around the block; empty if all do.
static std::string begins_late(const Schedule& s, int site) {
  const BlockRealize& realize = *s.sites()[site].realize();
  const int scope = s.sites()[site].scope;
  const arith::IterMap& map = binding_map(s, site, scope, realize.predicate);
  for (size_t i = 0; map.ok() && i < map.indices.size(); ++i) {
    const IterVar& iter = *realize.block->iter_vars[i];
    if (iter.kind == IterKind::reduce && !are_equal(s, scope, map.indices[i].base, iter.dom->min))
      return iter.var->name;
  }
  return "";
}

/// What a statement of the scope that stands in none of its blocks does with a buffer that the block writes, or what it writes of those that
/// the block reads; empty if there is none: dependences are known of blocks alone.
static std::string used_outside_of_blocks(const Schedule& s, int site) {
  const Block& block = *s.sites()[site].realize()->block;
  const int scope = s.sites()[site].scope;
  if (scope < 0) return "";
  std::string found;
  auto used = [&](const BufferRef& buffer, bool writes) {
    if (found.empty() && (lists(block.writes, buffer) || (writes && lists(block.reads, buffer))))
      found = text("a statement outside of all blocks ", writes ? "writes " : "reads ", buffer->name);
  };
  auto passed_on = [&](const Var& data) {
    for (const auto* side : {&block.writes, &block.reads})
      for (const BufferRegionRef& r : *side)
        if (found.empty() && r->buffer->data.get() == &data)
          found = text("a statement outside of all blocks passes ", r->buffer->name, " on");
  };
  walk(
      s.sites()[scope].realize()->block->body,
      [](const BlockRealize&) { return false; },
      [&](const BufferStore& n) { used(n.buffer, true); },
      [&](const BufferLoad& n) { used(n.buffer, false); },
      passed_on);
  return found;
}

static std::string name_of(const Block& block) { return string_literal(block.name->text); }

MaybeReason ScopeAnalysis::not_complete(int site) const {
  const Block& block = *s_.sites()[site].realize()->block;
  auto refuse = [&](int condition, std::string what) -> MaybeReason {
    return Reason{
        .what = text("block ", name_of(block), " is not a complete block: ", what),
        .needs = text("a complete block (condition ",
                      condition,
                      "): 1. all axes are spatial; 2. it is dominant, the only writer of what it writes; 3. it "
                      "does not read what it writes"),
        .hint = "decompose its reduction, or choose another block",
        .at = {{s_.sites()[site].stmt, what}}};
  };
  for (const IterVarRef& iter : block.iter_vars) {
    if (iter->kind != IterKind::spatial) return refuse(1, text("axis ", iter->var->name, " is not spatial"));
  }
  if (!is_dominant(site)) return refuse(2, "another block writes the same buffer");
  if (std::string other = used_outside_of_blocks(s_, site); !other.empty()) return refuse(2, other);
  for (const BufferRegionRef& write : block.writes) {
    for (const BufferRegionRef& read : block.reads) {
      if (read->buffer == write->buffer) return refuse(3, text("it reads and writes ", read->buffer->name));
    }
  }
  return {};
}

MaybeReason ScopeAnalysis::not_reduction(int site) const {
  const Block& block = *s_.sites()[site].realize()->block;
  auto refuse = [&](int condition, std::string what) -> MaybeReason {
    return Reason{.what = text("block ", name_of(block), " is not a reduction block: ", what),
                  .needs = text("a reduction block (condition ",
                                condition,
                                "): 1. it has an init; 2. its bindings are quasi-affine; 3. its axes are spatial or "
                                "reduction; 4. it is dominant; 5. reduction axes do not index what it writes; 6. its "
                                "loops begin where its reduction axes do, so that the init runs"),
                  .hint = "choose the block that reduces",
                  .at = {{s_.sites()[site].stmt, what}}};
  };
  if (!block.init) return refuse(1, "it has no T.init()");
  if (!has_affine_binding(s_, site)) return refuse(2, "its bindings are not quasi-affine");
  std::vector<VarRef> reduction_vars;
  for (const IterVarRef& iter : block.iter_vars) {
    if (iter->kind != IterKind::spatial && iter->kind != IterKind::reduce)
      return refuse(3, text("axis ", iter->var->name, " is neither spatial nor a reduction"));
    if (iter->kind == IterKind::reduce) reduction_vars.push_back(iter->var);
  }
  if (!is_dominant(site)) return refuse(4, "another block writes the same buffer");
  if (std::string other = used_outside_of_blocks(s_, site); !other.empty()) return refuse(4, other);
  if (std::string axis = begins_late(s_, site); !axis.empty())
    return refuse(6, text("axis ", axis, " does not begin at the first value of its domain"));
  MaybeReason indexed;
  auto check_indices = [&](const BufferStore& st) {
    for (const Expr& index : st.indices) {
      for (const VarRef& v : reduction_vars) {
        if (!indexed && uses_var(index, *v)) indexed = refuse(5, text(v->name, " indexes ", st.buffer->name));
      }
    }
  };
  walk(block.body, [&](const Block&) { return false; }, check_indices);
  return indexed;
}

MaybeReason ScopeAnalysis::not_complete_or_reduction(int site) const {
  const bool may_reduce = s_.sites()[site].realize()->block->init != nullptr;
  if (may_reduce && !not_reduction(site)) return {};
  MaybeReason complete = not_complete(site);
  if (!complete) return {};
  MaybeReason reduction = not_reduction(site);
  if (!reduction) return {};
  const Block& block = *s_.sites()[site].realize()->block;
  return Reason{.what = text("block ", name_of(block), " is neither a complete block nor a reduction block"),
                .needs = text(complete->needs, "; or ", reduction->needs),
                .hint = "see which condition each definition misses in the marks",
                .at = {complete->at.front(), reduction->at.front()}};
}

bool has_affine_binding(const Schedule& s, int block_site, int outermost_loop) {
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[block_site].realize();
  const int high = outermost_loop < 0 ? sites[block_site].scope : sites[outermost_loop].parent;
  if (realize.values.empty() || sites[block_site].parent == high) return true;
  const Expr predicate = realize.block->annotations.contains(kInitFollows) ? bool_imm(true) : realize.predicate;
  const arith::IterMap& map = binding_map(s, block_site, high, predicate);
  if (!map.ok()) return false;
  for (const arith::IterSum& sum : map.indices) {
    if (!sum.args.empty() && (sum.args.size() != 1 || !is_one(sum.args[0].scale))) return false;
  }
  return true;
}

std::string misses_values(const Schedule& s, int block_site, std::optional<IterKind> kind) {
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[block_site].realize();
  const int scope = sites[block_site].scope;
  auto counts = [&](const IterVarRef& iter) { return !kind || iter->kind == *kind; };
  if (std::ranges::none_of(realize.block->iter_vars, counts)) return "";
  const arith::IterMap& map = binding_map(s, block_site, scope, realize.predicate);
  if (!map.ok()) return map.error;
  for (size_t i = 0; i < map.indices.size(); ++i) {
    const IterVar& iter = *realize.block->iter_vars[i];
    if (!counts(ref(iter))) continue;
    Expr extent = int_imm(1, iter.dom->extent->dtype);
    for (const arith::IterSplit& split : map.indices[i].args) extent = extent * split.extent;
    if (!are_equal(s, scope, map.indices[i].base, iter.dom->min) || !are_equal(s, scope, extent, iter.dom->extent))
      return text("iterator ", iter.var->name, " might not take all its values");
  }
  return "";
}

using Box = std::vector<arith::IntSet>;

bool covers(const BufferRef& buffer, const Box& produced, const Box& consumed, arith::Analyzer& a) {
  auto at_most = [&](const Expr& x, const Expr& y) {
    if (!x || !y) return false;
    const Expr excess = a.canonical(arith::combine_exprs(arith::Kind::sub, x, y));
    return a.prove(le(excess, int_imm(0, excess->dtype)));
  };
  for (size_t i = 0; i < produced.size(); ++i) {
    if (produced[i].empty) return false;
    if (consumed[i].empty) continue;
    const arith::IntSet &all = produced[i], &some = consumed[i];
    const arith::IntSet whole = arith::IntSet::from_min_extent(int_imm(0, buffer->shape[i]->dtype), buffer->shape[i]);
    // Beyond the ends of the buffer there is nothing to read.
    if ((at_most(all.min, some.min) || at_most(all.min, whole.min)) &&
        (at_most(some.max, all.max) || at_most(whole.max, all.max)))
      continue;
    const arith::IntSet p = arith::intersect({all, whole}), c = arith::intersect({some, whole});
    if (c.empty) continue;  // all of it lies outside of the buffer
    if (p.empty || !at_most(p.min, c.min) || !at_most(c.max, p.max)) return false;
  }
  return true;
}

/// The box that a block surely writes: that of all iterations where the predicate says no more than that the elements lie in the
/// buffer; nothing if it is not known.
static std::optional<Box> written_box(const BufferRegion& write, const arith::RangeMap& loops, const Expr& predicate,
                                      arith::Analyzer& analyzer) {
  if (auto box = arith::estimate_region_lower_bound(write.region, loops, predicate, analyzer)) return box;
  auto box = arith::estimate_region_lower_bound(write.region, loops, bool_imm(true), analyzer);
  if (!box) return {};
  for (const auto& [var, range] : loops) analyzer.bind(var, range);
  Expr inside = bool_imm(true);
  for (size_t d = 0; d < write.region.size(); ++d) {
    const Expr& at = write.region[d]->min;
    inside = logical_and(inside, logical_and(ge(at, int_imm(0, at->dtype)), lt(at, write.buffer->shape[d])));
  }
  auto known = analyzer.with_constraint(inside);
  for (const Expr& part : arith::conjuncts(predicate)) {
    if (!analyzer.prove(part, arith::Strength::symbolic)) return {};
  }
  return box;
}

/// The predicate under which the block writes its elements: an init that is about to be taken out writes whatever the terms are.
static Expr where_it_writes(const Sites& sites, int block_site) {
  const BlockRealize& realize = *sites[block_site].realize();
  if (!realize.block->annotations.contains(kInitFollows)) return realize.predicate;
  std::vector<const For*> terms;
  for (int l : sites.loops_above(block_site)) {
    for (size_t i = 0; i < realize.values.size(); ++i) {
      if (realize.block->iter_vars[i]->kind == IterKind::reduce && uses_var(realize.values[i], *sites[l].loop()->var))
        terms.push_back(sites[l].loop());
    }
  }
  return conjuncts_without(realize.predicate, terms);
}

bool has_region_cover(const Schedule& s, const ScopeAnalysis& scope, int consumer, const BufferRef& of) {
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[consumer].realize();
  std::map<int, std::vector<int>> producers_at;  // lowest common ancestor -> producers
  for (const Dependency& d : scope.dependencies()) {
    if (d.dst == consumer && d.kind == DependencyKind::read_after_write)
      producers_at[sites.lowest_common_ancestor(d.src, consumer)].push_back(d.src);
  }
  if (producers_at.empty()) return true;
  VarMap consumer_map = bindings_of(realize);
  for (const auto& [lca, producers] : producers_at) {
    arith::Analyzer analyzer;
    s.bind_ranges(analyzer, lca);
    for (const BufferRegionRef& read : realize.block->reads) {
      if (of && read->buffer != of) continue;
      std::vector<Box> produced;
      for (int p : producers) {
        const BlockRealize& producer = *sites[p].realize();
        const Expr predicate = where_it_writes(sites, p);
        for (const BufferRegionRef& write : producer.block->writes) {
          if (write->buffer != read->buffer) continue;
          const BufferRegionRef at =
              make<BufferRegion>(write->buffer, substitute_region(write->region, bindings_of(producer)));
          std::optional<Box> box =
              written_box(*at, loop_domain(sites, sites[p].parent, lca, write->buffer->scope()), predicate, analyzer);
          produced.push_back(box ? *box : Box(write->region.size(), arith::IntSet::nothing()));
        }
      }
      if (produced.empty()) continue;
      Box consumed =
          arith::estimate_region_upper_bound(substitute_region(read->region, consumer_map),
                                             loop_domain(sites, sites[consumer].parent, lca, read->buffer->scope()),
                                             realize.predicate,
                                             analyzer);
      auto is_enough = [&](const Box& box) { return covers(read->buffer, box, consumed, analyzer); };
      if (!std::ranges::any_of(produced, is_enough) && !is_enough(arith::unite_regions_lower_bound(produced)))
        return false;
    }
  }
  return true;
}

MaybeReason not_compact_dataflow(const Schedule& s, int site) {
  std::vector<int> blocks = s.sites()[site].realize() ? s.sites().child_blocks(site) : s.sites().blocks_under(site);
  ScopeAnalysis local(s, blocks);
  for (int b : blocks) {
    if (MaybeReason r = local.not_complete_or_reduction(b)) {
      r->needs = "compact dataflow: every block under the loop is complete or a reduction, seen within it. " + r->needs;
      return r;
    }
  }
  return {};
}

MaybeReason not_stage_pipeline(const Schedule& s, int scope_site) {
  ScopeAnalysis scope(s, scope_site);
  auto refuse = [&](int site, std::string what) -> MaybeReason {
    return Reason{.what = text("the scope is not a stage pipeline: ", what),
                  .needs =
                      "a scope whose blocks read only what has been written before, all of it, and never write "
                      "what an earlier block has read",
                  .hint = "look at the regions (T.reads, T.writes) of the blocks named",
                  .at = {{s.sites()[site].stmt, what}}};
  };
  for (const Dependency& d : scope.dependencies()) {
    if (d.kind == DependencyKind::write_after_read)
      return refuse(d.dst,
                    text("block ",
                         name_of(*s.sites()[d.dst].realize()->block),
                         " writes what block ",
                         name_of(*s.sites()[d.src].realize()->block),
                         " has read"));
  }
  for (int b : scope.blocks()) {
    if (!has_region_cover(s, scope, b))
      return refuse(b, text("block ", name_of(*s.sites()[b].realize()->block), " reads more than was written"));
  }
  return {};
}

bool is_allocated(const Schedule& s, const BufferRef& buffer) {
  for (int i = 0; i < s.sites().count(); ++i) {
    const BlockRealize* r = s.sites()[i].realize();
    if (!r) continue;
    const auto& allocs = r->block->alloc_buffers;
    if (std::find(allocs.begin(), allocs.end(), buffer) != allocs.end()) return true;
  }
  return false;
}

bool is_output_block(const Schedule& s, int block_site) {
  const Block& scope = *s.sites()[s.sites()[block_site].scope].realize()->block;
  for (const BufferRegionRef& w : s.sites()[block_site].realize()->block->writes) {
    if (std::find(scope.alloc_buffers.begin(), scope.alloc_buffers.end(), w->buffer) == scope.alloc_buffers.end())
      return true;
  }
  return false;
}

}  // namespace sator::schedule
