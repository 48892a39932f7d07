#include "rules/nest.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "arith/analyzer.h"
#include "schedule/primitives.h"
#include "schedule/reducers.h"
#include "tir/nodes.h"

namespace sator::rules {

using namespace schedule;
using namespace tir;

namespace {

constexpr int64_t kTile = 16;          // of a transposition: a cache line of floats
constexpr int64_t kEnoughParts = 64;   // iterations of a parallel loop, for any number of threads
constexpr int64_t kPartOfFlat = 4096;  // elements of a flat loop that one part takes
constexpr int64_t kPartOfSum = 16384;  // elements that one part of a sum over everything takes
constexpr int64_t kFewTiles = 512;     // results: a reduction with fewer is cut into parts
constexpr int64_t kFewSums = 16;       // the same where each result is a sum by itself
constexpr int64_t kLongReduction = 4096;
constexpr int64_t kShortVector = 4;  // an iterator with fewer values is no vector

/// How an access moves when an iterator grows by one: not at all, to the next element, elsewhere.
enum class Step : uint8_t { none, next, far };

/// An iterator of the block and the loop that it is.
struct Axis {
  size_t place;
  VarRef var;
  Loop loop;
  bool reduces;
  std::optional<int64_t> extent;  ///< nothing: symbolic
  bool at_least(int64_t n) const { return !extent || *extent >= n; }
};

Step step_of(const std::vector<Expr>& indices, const BufferRef& buffer, const VarRef& var) {
  arith::Analyzer analyzer;
  size_t last = indices.size();
  while (last > 1 && is_one(buffer->shape[last - 1])) --last;
  bool used = false;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!uses_var(indices[d], *var)) continue;
    if (d + 1 != last) return Step::far;
    used = true;
  }
  if (!used) return Step::none;
  const Expr& index = indices[last - 1];
  const Expr moved = substitute(index, VarMap{{var, Expr(var) + int_imm(1, var->dtype)}});
  return analyzer.prove_equal(moved, index + int_imm(1, index->dtype)) ? Step::next : Step::far;
}

/// A block whose iterators are loops, one each, that stores one element, or one of each of the buffers that a reduction of tuples
/// has, at the same indices.
class Nest {
 public:
  /// Nothing where the block has another form.
  static std::optional<Nest> of(Schedule& s, const BlockHandle& block) {
    Nest nest;
    const Block& b = s.get(block);
    const BlockRealize& realize = s.realize(block);
    const std::vector<Loop> loops = get_loops(s, block);
    if (loops.size() != b.iter_vars.size() || !is_one(realize.predicate)) return {};
    if (const BufferStore* store = b.body.as<BufferStore>()) {
      nest.results_ = {store->buffer};
      nest.indices_ = store->indices;
    } else {
      schedule::Reduction of_tuples;
      if (!b.init || not_a_known_reduction(b, b.body, of_tuples)) return {};
      nest.results_ = of_tuples.buffers;
      nest.indices_ = of_tuples.indices;
    }
    for (size_t i = 0; i < b.iter_vars.size(); ++i) {
      const VarRef value = cast<Var>(realize.values[i]);
      const auto at = std::ranges::find(loops, value);
      const IterKind kind = b.iter_vars[i]->kind;
      if (at == loops.end() || (kind != IterKind::spatial && kind != IterKind::reduce)) return {};
      if (s.get(*at).kind != LoopKind::serial) return {};
      nest.axes_.push_back({i, b.iter_vars[i]->var, *at, kind == IterKind::reduce, as_int(s.get(*at).extent)});
    }
    for (const Loop& loop : loops)
      if (std::ranges::count(nest.axes_, loop, &Axis::loop) != 1) return {};
    walk(b.body, [&](const BufferLoad& load) {
      const bool is_sum = b.init && std::ranges::find(nest.results_, load.buffer) != nest.results_.end();
      if (!is_sum) nest.loads_.push_back(ref(load));
    });
    return nest;
  }

  const std::vector<Axis>& axes() const { return axes_; }
  const std::vector<Ref<const BufferLoad>>& loads() const { return loads_; }
  int64_t result_bytes() const { return results_[0]->dtype.bytes(); }
  Step of_result(const Axis& a) const { return step_of(indices_, results_[0], a.var); }
  /// The dimension of the result that the iterator is; nothing where none is.
  std::optional<size_t> dimension_in_result(const Axis& a) const {
    for (size_t d = 0; d < indices_.size(); ++d)
      if (cast<Var>(indices_[d]) == a.var) return d;
    return {};
  }
  /// Whether some operand moves so.
  bool some(const Axis& a, Step step) const {
    return std::ranges::any_of(loads_, [&](const auto& l) { return step_of(l->indices, l->buffer, a.var) == step; });
  }
  /// Whether an operand that lies along `vector` is the same for all values of `a`.
  bool is_reused(const Axis& vector, const Axis& a) const {
    return std::ranges::any_of(loads_, [&](const auto& l) {
      return step_of(l->indices, l->buffer, vector.var) == Step::next &&
             step_of(l->indices, l->buffer, a.var) == Step::none;
    });
  }
  /// The iterator along which the result lies.
  const Axis* along_result() const {
    for (const Axis& a : axes_)
      if (!a.reduces && of_result(a) == Step::next) return &a;
    return nullptr;
  }
  std::vector<Axis> spatial() const { return of_kind(false); }
  std::vector<Axis> reductions() const { return of_kind(true); }

 private:
  std::vector<Axis> of_kind(bool reduces) const {
    std::vector<Axis> out;
    for (const Axis& a : axes_)
      if (a.reduces == reduces) out.push_back(a);
    return out;
  }
  std::vector<BufferRef> results_;  ///< of the same shape
  std::vector<Expr> indices_;       ///< of the element of each
  std::vector<Axis> axes_;
  std::vector<Ref<const BufferLoad>> loads_;
};

std::vector<Loop> loops_of(const std::vector<Axis>& axes, const Axis* without = nullptr,
                           const Axis* without_too = nullptr) {
  std::vector<Loop> out;
  for (const Axis& a : axes)
    if (!(without && a.loop == without->loop) && !(without_too && a.loop == without_too->loop)) out.push_back(a.loop);
  return out;
}

/// The product of extents; nothing where one is symbolic.
std::optional<int64_t> product_of(const std::vector<Axis>& axes) {
  int64_t product = 1;
  for (const Axis& a : axes) {
    if (!a.extent) return {};
    product *= *a.extent;
  }
  return product;
}

/// Tries steps; what they did is undone where one of them is refused.
template <class Steps>
bool tried(Schedule& s, const Steps& steps) {
  const Schedule before = s;
  try {
    steps();
    return true;
  } catch (const Error&) {
    s = before;
    return false;
  }
}

/// Makes the outermost of these loops, which stand in this order around the block, one parallel loop of enough iterations.
Loop parallel_outer(Schedule& s, const std::vector<Loop>& loops) {
  size_t count = 0;
  int64_t parts = 1;
  for (const Loop& l : loops) {
    if (count > 0 && parts >= kEnoughParts) break;
    ++count;
    parts *= as_int(s.get(l).extent).value_or(kEnoughParts);
  }
  Loop outer =
      count == 1 ? loops[0] : fuse(s, std::vector<Loop>(loops.begin(), loops.begin() + static_cast<ptrdiff_t>(count)));
  parallel(s, outer);
  return outer;
}

/// The largest of these values that divides the extent; the first one that is no larger where none does.
int64_t divisor_of(std::optional<int64_t> extent, std::initializer_list<int64_t> values) {
  for (int64_t v : values)
    if (extent && *extent % v == 0) return v;
  for (int64_t v : values)
    if (!extent || *extent >= v) return v;
  return *(values.end() - 1);
}

/// A vector tile of an extent, and how much of the vectors' width it uses: 1 where the extent is whole vectors.
struct Width {
  int64_t elements;
  double use;
};

/// Of 4 to `most` elements those with the fewest instructions of `lanes` elements; what is left of the extent counts half an
/// instruction an element. 100 elements are 3 tiles of 32 and 4 elements: 8 instructions.
Width width_of(std::optional<int64_t> extent, int64_t most, int64_t lanes) {
  if (!extent) return {most, 1};
  Width best{0, 0};
  for (int64_t w = most; w >= kShortVector; w /= 2) {
    const int64_t whole = *extent / w * std::max<int64_t>(1, w / lanes);
    const double instructions = static_cast<double>(whole) + 0.5 * static_cast<double>(*extent % w);
    const double use = static_cast<double>(*extent) / static_cast<double>(lanes) / instructions;
    if (use > best.use) best = {w, use};
  }
  return best;
}

// ---- Without a reduction ----

/// A copy that takes the same operands again every c values of an iterator v (v % c), or c times the same one (v // c), has v // c and
/// v % c in its place: the map of its iterators; null where there is no such iterator.
arith::IndexMapRef without_repeats(const Nest& nest) {
  std::map<VarRef, int64_t> periods;
  const auto note = [&](const Expr& a, const Expr& b) {
    const VarRef v = cast<Var>(a);
    const auto period = as_int(b);
    for (const Axis& axis : nest.axes())
      if (v && period && axis.var == v && axis.extent && *period > 1 && *axis.extent > *period &&
          *axis.extent % *period == 0)
        periods.emplace(v, *period);
  };
  for (const auto& load : nest.loads())
    for (const Expr& index : load->indices)
      walk(index, [&](const FloorMod& n) { note(n.a, n.b); }, [&](const FloorDiv& n) { note(n.a, n.b); });
  if (periods.empty()) return nullptr;
  const std::vector<Axis>& axes = nest.axes();
  return arith::index_map(
      static_cast<int>(axes.size()),
      [&](const std::vector<VarRef>& v) {
        std::vector<Expr> out;
        for (const Axis& axis : axes) {
          const VarRef& i = v[axis.place];
          const auto period = periods.find(axis.var);
          if (period == periods.end()) {
            out.push_back(i);
          } else {
            const Expr c = int_imm(period->second, i->dtype);
            out.push_back(floordiv(i, c));
            out.push_back(floormod(i, c));
          }
        }
        return out;
      },
      axes.front().var->dtype);
}

void schedule_copy(Schedule& s, const Nest& nest) {
  const Axis* v = nest.along_result();
  if (!v || !v->at_least(kShortVector)) {
    parallel_outer(s, loops_of(nest.axes()));
    return;
  }
  const Axis* u = nullptr;  // along which an operand lies that does not lie along v
  for (const Axis& a : nest.axes())
    if (a.loop != v->loop && a.at_least(kTile) && nest.some(*v, Step::far) && nest.some(a, Step::next)) u = &a;
  if (u && v->at_least(kTile)) {
    std::vector<Loop> us = schedule::split(s, u->loop, Factors{std::nullopt, factor(u->loop, kTile)});
    std::vector<Loop> vs = schedule::split(s, v->loop, Factors{std::nullopt, factor(v->loop, kTile)});
    std::vector<Loop> order = loops_of(nest.axes(), u, v);
    order.insert(order.end(), {us[0], vs[0]});
    std::vector<Loop> whole = order;
    whole.insert(whole.end(), {us[1], vs[1]});
    reorder(s, whole);
    vectorize(s, vs[1]);
    parallel_outer(s, order);
    return;
  }
  std::vector<Loop> order = loops_of(nest.axes(), v);
  // A vector of bytes is as wide as one of floats.
  const int64_t most = nest.some(*v, Step::far) ? kTile : kTile * std::max<int64_t>(1, 4 / nest.result_bytes());
  const int64_t lanes = width_of(v->extent, most, most).elements;
  const int64_t part = std::min(v->extent.value_or(kPartOfFlat), kPartOfFlat);  // of a flat loop, for one thread
  std::vector<Loop> vs =
      order.empty()
          ? schedule::split(
                s, v->loop, Factors{std::nullopt, factor(v->loop, (part + lanes - 1) / lanes), factor(v->loop, lanes)})
          : schedule::split(s, v->loop, Factors{std::nullopt, factor(v->loop, lanes)});
  std::vector<Loop> whole = order;
  whole.insert(whole.end(), vs.begin(), vs.end());
  if (whole.size() > vs.size()) reorder(s, whole);
  vectorize(s, vs.back());
  whole.pop_back();
  parallel_outer(s, whole);
}

// ---- A reduction whose vector lies along its result ----

/// The buffers that a block writes.
std::vector<BufferSelector> results_of(const Schedule& s, const BlockHandle& block) {
  std::vector<BufferSelector> out;
  for (size_t i = 0; i < s.get(block).writes.size(); ++i) out.push_back({true, static_cast<int64_t>(i)});
  return out;
}

/// The blocks that store a tile of results, which stay in registers until then.
std::vector<BlockHandle> stores_of_tile(Schedule& s, const BlockHandle& block) {
  std::vector<BlockHandle> out;
  for (const BufferSelector& result : results_of(s, block))
    out.push_back(cache_write(s, block, result, std::string("local")));
  return out;
}

/// Lays out what the block writes so that one dimension is the innermost.
void lay_innermost(Schedule& s, const BlockHandle& block, size_t dimension) {
  const size_t rank = s.get(block).writes[0]->buffer->shape.size();
  const DType dtype = s.get(block).iter_vars[0]->var->dtype;
  auto map = [&](const std::vector<VarRef>& i) {
    std::vector<Expr> index;
    for (size_t d = 0; d < rank; ++d)
      if (d != dimension) index.push_back(i[d]);
    index.push_back(i[dimension]);
    return index;
  };
  for (const BufferSelector& result : results_of(s, block))
    transform_layout(s, block, result, arith::index_map(rank, map, dtype), schedule::Value(), false);
}

/// The spatial iterator whose values share an operand that lies along the vector; the one with most values.
const Axis* shared_along(const Nest& nest, const Axis& v) {
  const Axis* u = nullptr;
  for (const Axis& a : nest.axes())
    if (!a.reduces && a.loop != v.loop && nest.is_reused(v, a) && a.at_least(2) &&
        (!u || (u->extent && (!a.extent || *a.extent > *u->extent))))
      u = &a;
  return u;
}

/// Elements of a vector of what the block writes.
int64_t lanes_of_result(const Schedule& s, const BlockHandle& block, const target::CpuLevel& level) {
  return vector_lanes(level, s.get(block).writes[0]->buffer->dtype.bits);
}

/// Tiles of u x v, whose sums stay in registers over the whole reduction. u may be null.
void schedule_tile(Schedule& s, const BlockHandle& block, const Nest& nest, const Axis& v, const Axis* u,
                   const target::CpuLevel& level) {
  const int64_t lanes = lanes_of_result(s, block, level);
  // Alone, a tile reads as much of a row at once as has few rows' begins: 64 elements at least.
  const int64_t most = u ? 2 * lanes : std::max<int64_t>(4 * lanes, 64);
  const int64_t width = width_of(v.extent, most, lanes).elements;
  const int64_t vector = std::min(width, lanes);
  const int64_t registers = level.vector_registers * 3 / 4 / std::max<int64_t>(1, width / lanes);
  const int64_t rows = !u               ? 1
                       : registers >= 8 ? divisor_of(u->extent, {8, 7, 6, 5, 4, 3, 2})
                                        : divisor_of(u->extent, {6, 5, 4, 3, 2});
  const bool stored_along = nest.of_result(v) == Step::next;
  const std::optional<size_t> dimension = nest.dimension_in_result(v);
  const std::vector<BlockHandle> stores = stores_of_tile(s, block);
  if (!stored_along && dimension) lay_innermost(s, block, *dimension);
  std::vector<Loop> vs =
      schedule::split(s, v.loop, Factors{std::nullopt, factor(v.loop, width / vector), factor(v.loop, vector)});
  std::vector<Loop> outer = loops_of(nest.spatial(), &v, u), tile = {vs[1], vs[2]};
  if (!stored_along) outer.insert(outer.begin(), vs[0]);
  if (u) {
    std::vector<Loop> us = schedule::split(s, u->loop, Factors{std::nullopt, factor(u->loop, rows)});
    outer.push_back(us[0]);
    tile.insert(tile.begin(), us[1]);
  }
  if (stored_along) outer.push_back(vs[0]);
  const std::vector<Loop> sums = loops_of(nest.reductions());
  std::vector<Loop> whole = outer;
  whole.insert(whole.end(), sums.begin(), sums.end());
  whole.insert(whole.end(), tile.begin(), tile.end());
  reorder(s, whole);
  for (const BlockHandle& store : stores) reverse_compute_at(s, store, outer.back(), true);
  for (size_t i = 0; i + 1 < tile.size(); ++i) unroll(s, tile[i]);
  vectorize(s, tile.back());
  for (const BlockHandle& store : stores) {
    if (!stored_along) break;
    const Loop own = get_loops(s, store).back();
    vectorize(s, schedule::split(s, own, Factors{std::nullopt, factor(own, vector)})[1]);
  }
  parallel_outer(s, outer);
  decompose_reduction(s, block, sums[0]);
}

// ---- A reduction with an operand that has to be laid out anew ----

/// The dimension of a load that is the iterator by itself; nothing where it stands elsewhere too.
std::optional<size_t> dimension_of(const BufferLoad& load, const Axis& a) {
  std::optional<size_t> found;
  for (size_t d = 0; d < load.indices.size(); ++d) {
    if (!uses_var(load.indices[d], *a.var)) continue;
    if (found || cast<Var>(load.indices[d]) != a.var) return {};
    found = d;
  }
  return found;
}

/// What is laid out anew so that `vector` lies along it: the operand's place among the block's reads, and the dimension that goes
/// innermost in parts of kTile.
struct Packing {
  const Axis* vector = nullptr;
  const Axis* shared = nullptr;  ///< whose values share the operand
  int64_t read = 0;
  size_t dimension = 0;
  bool in_tiles = true;  ///< else the whole dimension goes innermost, for it is not whole tiles
};

///   in_tiles  iterators of whole tiles, whichever; else the one along which the result lies, whatever its extent
std::optional<Packing> packing_of(const Schedule& s, const BlockHandle& block, const Nest& nest, bool in_tiles) {
  constexpr int64_t kLeastReuse = 32;  // of each packed element
  const Block& b = s.get(block);
  for (const Axis& v : nest.axes()) {
    if (v.reduces || !v.extent) continue;
    if (in_tiles ? *v.extent % kTile != 0 : !v.at_least(kTile) || nest.of_result(v) != Step::next) continue;
    Packing out{.vector = &v, .in_tiles = in_tiles};
    int packed = 0;
    for (const auto& load : nest.loads()) {
      const Step step = step_of(load->indices, load->buffer, v.var);
      if (step == Step::none) continue;
      const std::optional<size_t> d = dimension_of(*load, v);
      if (!d || ++packed > 1) {
        packed = 2;
        break;
      }
      int64_t reuse = 1;
      for (const Axis& a : nest.axes()) {
        if (a.reduces || step_of(load->indices, load->buffer, a.var) != Step::none) continue;
        reuse *= a.extent.value_or(kLeastReuse);
        if (a.at_least(2) && (!out.shared || nest.of_result(a) == Step::next)) out.shared = &a;
      }
      if (reuse < kLeastReuse) packed = 2;
      out.dimension = *d;
      const auto at =
          std::ranges::find_if(b.reads, [&](const BufferRegionRef& r) { return r->buffer == load->buffer; });
      if (at == b.reads.end()) packed = 2;
      out.read = at - b.reads.begin();
    }
    if (packed == 1 && out.shared) return out;
  }
  return {};
}

void schedule_packed(Schedule& s, const BlockHandle& block, const Nest& nest, const Packing& p,
                     const target::CpuLevel& level) {
  const BlockHandle pack =
      cache_read(s, block, BufferSelector{false, p.read}, std::string("global"), std::vector<BlockHandle>{});
  const size_t rank = s.get(pack).iter_vars.size();
  auto panels = [&](const std::vector<VarRef>& i) {
    std::vector<Expr> index;
    if (p.in_tiles) index.push_back(floordiv(i[p.dimension], kTile));
    for (size_t d = 0; d < rank; ++d)
      if (d != p.dimension) index.push_back(i[d]);
    index.push_back(p.in_tiles ? floormod(i[p.dimension], kTile) : Expr(i[p.dimension]));
    return index;
  };
  const DType dtype = s.get(pack).iter_vars[0]->var->dtype;
  transform_layout(
      s, pack, BufferSelector{true, int64_t{0}}, arith::index_map(rank, panels, dtype), schedule::Value(), false);
  const std::vector<Loop> loops = get_loops(s, pack);
  const std::vector<Loop> parts =
      schedule::split(s, loops[p.dimension], Factors{std::nullopt, factor(loops[p.dimension], kTile)});
  std::vector<Loop> order = {parts[0]};
  for (size_t d = 0; d < rank; ++d)
    if (d != p.dimension) order.push_back(loops[d]);
  std::vector<Loop> whole = order;
  whole.push_back(parts[1]);
  reorder(s, whole);
  vectorize(s, parts[1]);
  parallel_outer(s, order);
  schedule_tile(s, block, nest, *p.vector, p.shared, level);
}

// ---- A reduction whose vector lies along what is reduced ----

void schedule_lanes(Schedule& s, const BlockHandle& block, const Nest& nest, const Axis& r) {
  const int64_t lanes = lanes_along(r.extent);
  std::vector<Loop> order = loops_of(nest.spatial());
  const std::vector<Loop> outer = order, sums = loops_of(nest.reductions(), &r);
  std::vector<Loop> rs = schedule::split(s, r.loop, Factors{std::nullopt, factor(r.loop, lanes)});
  order.insert(order.end(), sums.begin(), sums.end());
  order.insert(order.end(), rs.begin(), rs.end());
  reorder(s, order);
  // The rest of a sum that is not whole vectors runs under a condition.
  const bool has_rest = !r.extent || *r.extent % lanes != 0;
  const BlockHandle partial = rfactor(s, rs[1], -1, has_rest);
  const BlockHandle folded = fold_lanes(s, block, lanes);
  if (!outer.empty()) {
    parallel_outer(s, outer);
    const Loop at = get_loops(s, block)[0];
    if (folded) compute_at(s, folded, at, true);
    compute_at(s, partial, at, true);
  }
  for (const BufferSelector& result : results_of(s, partial)) set_scope(s, partial, result, std::string("local"));
  std::vector<Loop> own = get_loops(s, partial);
  const Block& b = s.get(partial);
  const BlockRealize& realize = s.realize(partial);
  // rfactor's first iterator is the lane.
  std::vector<Loop> lane, rest;
  for (const Loop& l : own) {
    if (s.get(l).kind != LoopKind::serial) continue;
    (uses_var(realize.values[0], *l) ? lane : rest).push_back(l);
  }
  if (b.iter_vars.empty() || lane.size() != 1 || rest.empty())
    fail({.what = "the partial results have other loops", .needs = "a loop over lanes and one over the rest"});
  std::vector<Loop> lane_parts = schedule::split(s, lane[0], Factors{std::nullopt, factor(lane[0], 16)});
  std::vector<Loop> inner = rest;
  inner.insert(inner.end(), lane_parts.begin(), lane_parts.end());
  reorder(s, inner);
  unroll(s, lane_parts[0]);
  vectorize(s, lane_parts[1]);
  Loop first_sum = nullptr;
  for (const Loop& l : rest)
    for (size_t i = 0; i < b.iter_vars.size() && !first_sum; ++i)
      if (b.iter_vars[i]->kind == IterKind::reduce && uses_var(s.realize(partial).values[i], *l)) first_sum = l;
  if (first_sum) decompose_reduction(s, partial, first_sum);
  if (folded) schedule_folded(s, folded);
}

/// The largest divisor of the extent from `least` to `most`, of whole vectors if there is one; `most` where there is none.
int64_t part_of(std::optional<int64_t> extent, int64_t least, int64_t most) {
  for (const int64_t unit : {64, 16, 1})
    for (int64_t part = most / unit * unit; extent && part >= std::max(least, unit); part -= unit)
      if (*extent % part == 0) return part;
  return most;
}

/// Cuts the reduction into parts: along the outer ones of its iterators as one, so that a part lies in one piece, where their extents
/// are known; one along which operands lie only where it is alone. The block of the parts has another spatial iterator.
BlockHandle cut_in_parts(Schedule& s, const Nest& nest) {
  const std::vector<Axis> sums = nest.reductions();
  std::vector<Axis> outer;
  int64_t extent = 1;
  for (const Axis& a : sums) {
    if (!a.extent || extent >= kEnoughParts || (sums.size() > 1 && nest.some(a, Step::next))) break;
    extent *= *a.extent;
    outer.push_back(a);
  }
  if (outer.empty()) {
    const auto longest = std::ranges::max_element(
        sums, {}, [](const Axis& a) { return a.extent.value_or(std::numeric_limits<int64_t>::max()); });
    outer = {*longest};
    extent = longest->extent.value_or(kLongReduction);
  }
  std::vector<Loop> order = loops_of(nest.spatial());
  for (const Axis& a : outer) order.push_back(a.loop);
  for (const Axis& a : sums)
    if (std::ranges::find(order, a.loop) == order.end()) order.push_back(a.loop);
  const bool is_flat = order.size() == 1;
  if (!is_flat) reorder(s, order);
  const Loop k = outer.size() == 1 ? outer[0].loop : fuse(s, loops_of(outer));
  const int64_t most_of_parts = std::max<int64_t>(1, extent / kEnoughParts);
  const int64_t part = is_flat ? part_of(outer[0].extent, kPartOfSum / 8, kPartOfSum)
                               : part_of(extent, most_of_parts / 8, most_of_parts);
  return rfactor(s, schedule::split(s, k, Factors{std::nullopt, factor(k, part)})[0], 0);
}

/// Whether there are too few results to share the work by them: with a vector along the results, each takes many of them.
bool has_few_results(const Nest& nest) {
  const std::optional<int64_t> results = product_of(nest.spatial()), work = product_of(nest.reductions());
  const Axis* v = nest.along_result();
  const bool by_tiles = v && v->at_least(kShortVector) && !nest.some(*v, Step::far);
  return results && *results < (by_tiles ? kFewTiles : kFewSums) && (!work || *work >= kLongReduction);
}

void schedule_reduction(Schedule& s, const BlockHandle& block, const Nest& nest, const target::CpuLevel& level) {
  constexpr double kGoodUse = 0.75;
  const int64_t lanes = lanes_of_result(s, block, level);
  const Axis* v = nest.along_result();
  if (v && !v->at_least(kShortVector)) v = nullptr;
  auto tile = [&] { schedule_tile(s, block, nest, *v, shared_along(nest, *v), level); };
  const bool along = v && !nest.some(*v, Step::far);
  if (along && width_of(v->extent, 2 * lanes, lanes).use >= kGoodUse && tried(s, tile)) return;
  for (const bool in_tiles : {true, false})
    if (const std::optional<Packing> p = packing_of(s, block, nest, in_tiles);
        p && tried(s, [&] { schedule_packed(s, block, nest, *p, level); }))
      return;
  if (along && tried(s, tile)) return;
  for (const Axis& r : nest.reductions())
    if (r.at_least(32) && nest.some(r, Step::next) && !nest.some(r, Step::far) &&
        tried(s, [&] { schedule_lanes(s, block, nest, r); }))
      return;
  if (v && tried(s, tile)) return;
  if (!nest.spatial().empty()) {
    std::vector<Loop> order = loops_of(nest.spatial());
    for (const Loop& l : loops_of(nest.reductions())) order.push_back(l);
    reorder(s, order);
    parallel_outer(s, loops_of(nest.spatial()));
  }
}

}  // namespace

int64_t lanes_along(std::optional<int64_t> extent) {
  constexpr int64_t kVectors = 4, kLong = 256;
  if (extent && *extent < kLong) return kLanes;
  if (extent && *extent % kLanes == 0 && *extent % (kVectors * kLanes) != 0)
    for (int64_t vectors : {7, 6, 5, 3, 2})
      if (*extent / kLanes % vectors == 0) return vectors * kLanes;
  return kVectors * kLanes;
}

BlockHandle fold_lanes(Schedule& s, const BlockHandle& block, int64_t lanes) {
  if (lanes == kLanes) return nullptr;
  const Loop lane = get_loops(s, block).back();
  return rfactor(s, schedule::split(s, lane, Factors{std::nullopt, factor(lane, kLanes)})[1], -1);
}

void schedule_folded(Schedule& s, const BlockHandle& folded) {
  for (const BufferSelector& result : results_of(s, folded)) set_scope(s, folded, result, std::string("local"));
  const BlockRealize& realize = s.realize(folded);
  // rfactor's first iterator is the lane; what is reduced goes over vectors.
  Loop lane = nullptr, vectors = nullptr;
  for (const Loop& l : get_loops(s, folded)) {
    if (uses_var(realize.values[0], *l)) lane = l;
    for (size_t i = 0; i < realize.values.size(); ++i)
      if (realize.block->iter_vars[i]->kind == IterKind::reduce && uses_var(realize.values[i], *l)) vectors = l;
  }
  if (!lane || !vectors)
    s.fail({.what = "folded lanes have other loops", .needs = "a loop over lanes and one over vectors"});
  reorder(s, std::vector<Loop>{vectors, lane});
  vectorize(s, lane);
  unroll(s, vectors);
  decompose_reduction(s, folded, vectors);
}

bool lies_along_last_iterator(const Block& block) {
  bool along = !block.iter_vars.empty();
  walk(block.body, [&](const BufferLoad& load) {
    if (along) along = step_of(load.indices, load.buffer, block.iter_vars.back()->var) != Step::far;
  });
  return along;
}

void schedule_nest(Schedule& s, const BlockHandle& block, const target::CpuLevel& level) {
  std::optional<Nest> nest = Nest::of(s, block);
  if (!nest || nest->axes().empty()) {
    // The first loop in parallel, where that is allowed.
    const std::vector<Loop> loops = get_loops(s, block);
    if (!loops.empty()) tried(s, [&] { parallel(s, loops[0]); });
    if (loops.size() >= 2) vectorize_last(s, block);
    return;
  }
  if (nest->reductions().empty()) {
    if (const arith::IndexMapRef map = without_repeats(*nest)) {
      tried(s, [&] {
        transform_block_layout(s, block, map);
        std::optional<Nest> split = Nest::of(s, block);
        if (!split) s.fail({.what = "the block is no plain nest any more"});
        nest = std::move(split);
      });
    }
    if (!tried(s, [&] { schedule_copy(s, *nest); })) tried(s, [&] { parallel_outer(s, loops_of(nest->axes())); });
    return;
  }
  if (has_few_results(*nest)) {
    BlockHandle parts = nullptr;
    const bool cut = tried(s, [&] { parts = cut_in_parts(s, *nest); });
    std::optional<Nest> of_parts = cut ? Nest::of(s, parts) : std::nullopt;
    if (of_parts) {
      tried(s, [&] { schedule_reduction(s, parts, *of_parts, level); });
      const std::optional<Nest> whole = Nest::of(s, block);
      const Axis* v = whole ? whole->along_result() : nullptr;
      if (v && v->at_least(kShortVector)) tried(s, [&] { schedule_tile(s, block, *whole, *v, nullptr, level); });
      return;
    }
  }
  tried(s, [&] { schedule_reduction(s, block, *nest, level); });
}

}  // namespace sator::rules
