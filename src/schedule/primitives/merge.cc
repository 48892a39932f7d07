#include <algorithm>

#include "schedule/loops.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// The loops from below the common ancestor to a loop, outermost first.
std::vector<int> path_to(const Sites& sites, int ancestor, int site) {
  std::vector<int> out;
  for (; site != ancestor; site = sites[site].parent) out.insert(out.begin(), site);
  return out;
}

struct NestAccesses {
  std::vector<BufferRef> reads, writes;
};
NestAccesses accesses_of(const Stmt& stmt) {
  NestAccesses out;
  walk(stmt, [&](const Block& n) {
    for (const BufferRegionRef& r : n.reads) out.reads.push_back(r->buffer);
    for (const BufferRegionRef& w : n.writes) out.writes.push_back(w->buffer);
  });
  return out;
}
bool meet(const std::vector<BufferRef>& a, const std::vector<BufferRef>& b) {
  return std::ranges::any_of(a, [&](const BufferRef& x) {
    return std::ranges::any_of(b, [&](const BufferRef& y) { return x->data == y->data; });
  });
}

/// The statements directly below the common ancestor.
std::vector<Stmt> children_of(const Sites& sites, int ancestor) {
  const For* loop = sites[ancestor].loop();
  Stmt body = loop ? loop->body : sites[ancestor].realize()->block->body;
  const Seq* seq = body.as<Seq>();
  return seq ? seq->stmts : std::vector<Stmt>{body};
}

}  // namespace

/// Why the nests cannot become one; nothing if they can.
static MaybeReason cannot_merge(const Schedule& s, const std::vector<Loop>& loops) {
  if (loops.size() < 2)
    return Reason{.what = text(loops.size(), " loops are given"),
                  .needs = "two loops or more",
                  .hint = "name the loops of two nests"};
  const Sites& sites = s.sites();
  int ancestor = s.site(loops[0]);
  for (const Loop& l : loops) {
    if (sites[s.site(l)].scope != sites[s.site(loops[0])].scope)
      return Reason{.what = text("loops ", loops[0]->name, " and ", l->name, " are in different blocks"),
                    .needs = "loops of one scope",
                    .hint = "merge before blockize",
                    .at = {{sites[s.site(l)].stmt, "in another block"}}};
    ancestor = sites.lowest_common_ancestor(ancestor, s.site(l));
  }
  std::vector<int> first = path_to(sites, ancestor, s.site(loops[0]));
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, ancestor);
  for (const Loop& l : loops) {
    std::vector<int> path = path_to(sites, ancestor, s.site(l));
    if (path.empty() || path.size() != first.size())
      return Reason{
          .what = text(
              "loop ", l->name, " is ", path.size(), " loops deep, and loop ", loops[0]->name, " is ", first.size()),
          .needs = "loops of the same depth below what is around both",
          .hint = "name loops of one level",
          .at = {{sites[s.site(l)].stmt, ""}}};
    for (size_t k = 0; k < path.size(); ++k) {
      const For& loop = *sites[path[k]].loop();
      if (MaybeReason r = not_a_plain_loop(s, loop.var, "merge")) return r;
      if (k + 1 < path.size() && loop.body != sites[path[k + 1]].stmt)
        return Reason{
            .what =
                text("loop ", sites[path[k + 1]].loop()->var->name, " is not the only child of loop ", loop.var->name),
            .needs = "nothing between the loops of a nest",
            .hint = "merge an outer level first",
            .at = {{Stmt(&loop), "has other children"}}};
      const For& other = *sites[first[k]].loop();
      if (!analyzer.prove_equal(loop.extent, other.extent) || loop.kind != other.kind ||
          loop.var->dtype != other.var->dtype)
        return Reason{.what = text("loop ",
                                   loop.var->name,
                                   " has extent ",
                                   loop.extent,
                                   ", and loop ",
                                   other.var->name,
                                   " has ",
                                   other.extent),
                      .needs = "the same extents, kinds and dtypes in all nests",
                      .hint = "split the longer one",
                      .at = {{Stmt(&loop), ""}, {Stmt(&other), ""}}};
    }
  }
  // A nest moves up to the first: past the statements between, and each iteration past later ones of the nests before.
  std::vector<Stmt> children = children_of(sites, ancestor);
  auto place = [&](const Loop& l) {
    return std::ranges::find(children, sites[path_to(sites, ancestor, s.site(l))[0]].stmt) - children.begin();
  };
  std::ptrdiff_t from = place(loops[0]), last = from;
  for (size_t n = 1; n < loops.size(); ++n) {
    std::ptrdiff_t to = place(loops[n]);
    if (to <= last || to >= std::ssize(children))
      return Reason{.what = text("loop ", loops[n]->name, " does not follow the nests before it"),
                    .needs = "different nests of one sequence, in its order",
                    .hint = "name them in the order of the program",
                    .at = {{sites[s.site(loops[n])].stmt, ""}}};
    last = to;
    NestAccesses moved = accesses_of(children[static_cast<size_t>(to)]);
    for (std::ptrdiff_t i = from; i < to; ++i) {
      NestAccesses passed = accesses_of(children[static_cast<size_t>(i)]);
      if (meet(moved.writes, passed.reads) || meet(moved.writes, passed.writes) || meet(moved.reads, passed.writes))
        return Reason{.what = text("the nest of loop ", loops[n]->name, " depends on what runs before it"),
                      .needs = "nests that touch no buffer that another of them, or a statement between, writes",
                      .hint = "use compute_at or reverse_compute_at",
                      .at = {{children[static_cast<size_t>(i)], "runs before"}}};
    }
  }
  return {};
}

/// Joins loop nests side by side:
///   for i in 8: S(i)
///   for k in 8: R(k)      =>   for i_m in 8: S(i_m); R(i_m)
/// All loops from the statement around all of them down to the named ones are joined.
static Loop do_merge(Schedule& s, std::vector<Loop> loops) {
  s.require(cannot_merge(s, loops));
  const Sites& sites = s.sites();
  int ancestor = s.site(loops[0]);
  for (const Loop& l : loops) ancestor = sites.lowest_common_ancestor(ancestor, s.site(l));
  std::vector<int> first = path_to(sites, ancestor, s.site(loops[0]));
  std::vector<Loop> joined;
  for (int site : first) {
    const Loop& l = sites[site].loop()->var;
    joined.push_back(make_var(l->name + "_m", l->dtype));
  }
  std::vector<Stmt> bodies, outermost;
  for (const Loop& l : loops) {
    std::vector<int> path = path_to(sites, ancestor, s.site(l));
    VarMap map;
    for (size_t k = 0; k < path.size(); ++k) map[sites[path[k]].loop()->var] = joined[k];
    bodies.push_back(substitute(s.get(l).body, map));
    outermost.push_back(sites[path[0]].stmt);
  }
  Stmt nest = seq(std::move(bodies));
  for (size_t k = joined.size(); k-- > 0;) {
    const For& old = *sites[first[k]].loop();
    nest = make<For>(joined[k], old.min, old.extent, LoopKind{old.kind}, std::string(old.thread), Attrs(), nest);
  }
  std::vector<Stmt> kept;
  for (const Stmt& child : children_of(sites, ancestor)) {
    auto at = std::ranges::find(outermost, child);
    if (at == outermost.begin()) {
      kept.push_back(nest);
    } else if (at == outermost.end()) {
      kept.push_back(child);
    }
  }
  Stmt body = seq(std::move(kept));
  if (const For* around = sites[ancestor].loop()) {
    s.replace(*around, with(*around, &For::body, body));
  } else {
    const BlockRealize& block = *sites[ancestor].realize();
    s.replace(Stmt(&block), with(block, &BlockRealize::block, with(block.block, &Block::body, body)));
  }
  return joined.back();
}

const Primitive<Loop(std::vector<Loop>)> merge{"merge", do_merge, {"loops"}, "joins loop nests side by side into one"};

}  // namespace sator::schedule
