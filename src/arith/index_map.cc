#include "arith/index_map.h"

#include <algorithm>

#include "arith/analyzer.h"
#include "arith/interval_eval.h"
#include "arith/iter_map.h"
#include "arith/iter_rewriter.h"
#include "arith/kind.h"

namespace sator::arith {

IndexMapRef index_map(int rank, const std::function<std::vector<Expr>(const std::vector<VarRef>&)>& f, DType dtype) {
  std::vector<VarRef> vars;
  for (int i = 0; i < rank; ++i) vars.push_back(make_var(text("i", i), dtype));
  std::vector<Expr> image = f(vars);
  return make<IndexMap>(vars, image, IndexMapRef());
}

Expr substitute_promoting(const Expr& e, const VarMap& map) {
  Kind kind = kind_of(e);
  if (kind == Kind::var) {
    auto at = map.find(VarRef(static_cast<const Var*>(e.get())));
    return at == map.end() ? e : at->second;
  }
  if (is_binary(kind)) {
    Operands o = operands(*e, kind);
    Expr a = substitute_promoting(o.a, map), b = substitute_promoting(o.b, map);
    if (a == o.a && b == o.b) return e;
    return a->dtype == b->dtype ? make_binary(kind, a, b) : combine_exprs(kind, a, b);
  }
  if (const Select* n = e.as<Select>())
    return select(substitute_promoting(n->condition, map),
                  substitute_promoting(n->true_value, map),
                  substitute_promoting(n->false_value, map));
  NodeRef mapped = e->info().map_children(*e, [&](const NodeRef& child) -> NodeRef {
    const ExprNode* part = child->as<ExprNode>();
    return part ? NodeRef(substitute_promoting(Expr(part), map)) : child;
  });
  return mapped.get() == e.get() ? e : Expr(mapped.as<ExprNode>());
}

namespace {

void need_rank(const IndexMap& map, size_t rank) {
  if (map.initial_indices.size() != rank)
    fail({.what = text("an index map of ", map.initial_indices.size(), " indices is given ", rank),
          .needs = "as many indices as the map has inputs",
          .hint = "pass one per dimension of the buffer"});
}

RangeMap ranges_of(const IndexMap& map, const Region& ranges) {
  RangeMap out;
  for (size_t i = 0; i < ranges.size(); ++i) out[map.initial_indices[i]] = ranges[i];
  return out;
}

}  // namespace

std::vector<Expr> map_indices(const IndexMap& map, const std::vector<Expr>& indices, Analyzer& analyzer) {
  need_rank(map, indices.size());
  VarMap values;
  for (size_t i = 0; i < indices.size(); ++i) values[map.initial_indices[i]] = indices[i];
  std::vector<Expr> out;
  for (const Expr& e : map.final_indices) out.push_back(analyzer.simplify(substitute_promoting(e, values)));
  return out;
}

Region map_ranges(const IndexMap& map, const Region& ranges, Analyzer& analyzer) {
  need_rank(map, ranges.size());
  RangeMap domain = ranges_of(map, ranges);
  IterMap found = detect_iter_map(map.final_indices, domain, nullptr, IterMapLevel::no_check, analyzer, false);
  Region out;
  if (found.ok()) {
    // The terms of a sum are orthogonal: the largest gives the extent.
    for (const IterSum& sum : found.indices) {
      Expr extent, min = sum.base;
      for (const IterSplit& s : sum.args) {
        Expr scale = s.scale;
        if (analyzer.prove_lt(scale, 0)) {  // runs downward from the base
          min = iadd(min, imul(isub(s.extent, one_of(s.extent->dtype)), scale));
          scale = isub(zero_of(scale->dtype), scale);
        }
        Expr term = imul(s.extent, scale);
        extent = extent ? combine_exprs(Kind::max, extent, term) : term;
      }
      out.push_back(make<Range>(min, extent ? extent : one_of(sum.base->dtype)));
    }
  } else {
    // Coarser, and blind to padding: [2] through i -> (i // 4, i % 4) gives [1, 2].
    SetMap sets = as_sets(domain);
    for (const Expr& e : map.final_indices) {
      IntSet s = eval_set(e, sets);
      if (!s.has_lower() || !s.has_upper())
        fail({.what = text("an output of the index map has no bounds: ", found.error),
              .needs = "outputs made of +, -, *, // and % of the inputs",
              .hint = "write the map without loads and calls"});
      Expr extent = iadd(isub(s.max, s.min), one_of(s.max->dtype));
      out.push_back(make<Range>(analyzer.simplify(s.min), analyzer.simplify(extent)));
    }
  }
  int bits = 32;
  for (const RangeRef& r : ranges) bits = std::max<int>(bits, r->extent->dtype.bits);
  for (RangeRef& r : out) r = make<Range>(cast_to(DType::Int(bits), r->min), cast_to(DType::Int(bits), r->extent));
  return out;
}

std::vector<Expr> map_shape(const IndexMap& map, const std::vector<Expr>& shape, Analyzer& analyzer) {
  Region ranges;
  for (const Expr& n : shape) ranges.push_back(range_of(n));
  std::vector<Expr> out;
  for (const RangeRef& r : map_ranges(map, ranges, analyzer)) {
    if (!is_zero(analyzer.simplify(r->min)))
      fail({.what = "the index map moves the start of a dimension away from 0",
            .needs = "an image that begins at 0",
            .hint = "subtract the offset in the map"});
    out.push_back(r->extent);
  }
  return out;
}

namespace {

/// The splits of each iterator in these sums and in what they are sums of.
void collect_splits(const IterSum& sum, std::vector<MarkSplits::Entry>& out) {
  for (const IterSplit& split : sum.args) {
    auto at = std::ranges::find(out, split.source, &MarkSplits::Entry::mark);
    if (at != out.end()) {
      at->splits.push_back(split);
      continue;
    }
    out.push_back({split.source, {split}});
    if (split.source->is_sum()) collect_splits(split.source->sum, out);
  }
}

/// Whether the splits are all digits of the iterator, so that they tell each of its values from the others.
bool are_all_digits(const MarkSplits::Entry& iterator, Analyzer& analyzer) {
  PooledVector<IterSplit> left = iterator.splits;
  const Expr& extent = iterator.mark->extent;
  Expr period = one_of(iterator.mark->dtype());
  bool reaches_extent = false;
  while (!left.empty()) {
    auto next = std::ranges::find_if(
        left, [&](const IterSplit& split) { return analyzer.prove_equal(split.lower_factor, period); });
    if (next == left.end()) return false;
    // Not by the product of all extents: (n // k) * k == n is hard to prove of symbols.
    const bool divides = proves_divisible(extent, period, analyzer);
    const Expr rest = divides ? ifloordiv(extent, period) : iceildiv(extent, period);
    reaches_extent = analyzer.prove_equal(next->extent, rest);
    period = imul(period, next->extent);
    left.erase(next);
  }
  return reaches_extent;
}

/// Whether the iterator has one value, also where padding gives it a larger extent.
bool has_one_value(const IterMark& mark) {
  return mark.is_sum() ? std::ranges::all_of(mark.sum.args, [](const IterSplit& split) { return is_one(split.extent); })
                       : is_one(mark.extent);
}

/// Why two points of the box go to one; "" if none do.
std::string not_injective(const std::vector<IterSum>& indices, Analyzer& analyzer) {
  std::vector<MarkSplits::Entry> iterators;
  for (const IterSum& sum : indices) collect_splits(sum, iterators);
  for (const MarkSplits::Entry& e : iterators) {
    if (has_one_value(*e.mark) || are_all_digits(e, analyzer)) continue;
    const Expr value = e.mark->is_sum() ? to_expr(e.mark->sum, analyzer) : e.mark->expr;
    return text("several values of ", value, " get the same indices");
  }
  return "";
}

InverseMap invert(const IndexMap& map, const Region& ranges, IterMapLevel level, Analyzer& analyzer) {
  need_rank(map, ranges.size());
  if (map.inverse_index_map) return {map.inverse_index_map, bool_imm(false), ""};
  IterMap found = detect_iter_map(map.final_indices, ranges_of(map, ranges), nullptr, level, analyzer, false);
  if (!found.ok()) return {nullptr, nullptr, found.error};
  if (std::string why = not_injective(found.indices, analyzer); !why.empty()) return {nullptr, nullptr, why};
  std::vector<VarRef> outputs;
  std::vector<Expr> values;
  for (size_t i = 0; i < map.final_indices.size(); ++i) {
    outputs.push_back(make_var(text("axis", i), map.final_indices[i]->dtype));
    values.push_back(outputs.back());
  }
  InverseResult back = inverse_affine_iter_map(found.indices, values);
  if (!back.ok()) return {nullptr, nullptr, back.error};
  std::vector<Expr> image;
  for (size_t i = 0; i < ranges.size(); ++i) {
    auto at = back.values.find(map.initial_indices[i]);
    if (at != back.values.end())
      image.push_back(analyzer.simplify(at->second));
    else if (is_one(ranges[i]->extent))
      image.push_back(ranges[i]->min);
    else
      return {nullptr, nullptr, text("the input ", map.initial_indices[i]->name, " is not used")};
  }
  Expr padding = substitute(found.padding_predicate, back.values);
  if (!padding.as<IntImm>()) {
    Analyzer over_outputs;
    Region box = map_ranges(map, ranges, analyzer);
    for (size_t i = 0; i < outputs.size(); ++i) over_outputs.bind(outputs[i], box[i]);
    // Nested quotients and remainders come apart one at a time.
    padding = over_outputs.simplify(padding, 10);
  }
  return {make<IndexMap>(outputs, image, IndexMapRef()), padding, ""};
}

}  // namespace

InverseMap non_surjective_inverse(const IndexMap& map, const Region& ranges, Analyzer& analyzer) {
  return invert(map, ranges, IterMapLevel::no_check, analyzer);
}

InverseMap inverse(const IndexMap& map, const Region& ranges, Analyzer& analyzer) {
  InverseMap out = invert(map, ranges, IterMapLevel::bijective, analyzer);
  if (out.ok() && !is_zero(out.padding_predicate)) return {nullptr, nullptr, "the map needs padding"};
  return out;
}

bool equivalent(const IndexMap& a, const IndexMap& b) {
  if (a.initial_indices.size() != b.initial_indices.size() || a.final_indices.size() != b.final_indices.size())
    return false;
  VarMap values;
  for (size_t i = 0; i < a.initial_indices.size(); ++i) values[a.initial_indices[i]] = b.initial_indices[i];
  Analyzer analyzer;
  for (size_t i = 0; i < a.final_indices.size(); ++i)
    if (!analyzer.prove_equal(substitute_promoting(a.final_indices[i], values), b.final_indices[i])) return false;
  return true;
}

}  // namespace sator::arith
