// Maps of index tuples: i -> (i // 4, i % 4), as transform_layout takes them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "arith/intset.h"
#include "ir/expr.h"

namespace sator::arith {

class Analyzer;

/// initial_indices -> final_indices. A given inverse (or null) is trusted.
struct IndexMap final : Node<IndexMap> {
  std::vector<VarRef> initial_indices;
  std::vector<Expr> final_indices;
  Ref<const IndexMap> inverse_index_map;
  static constexpr auto fields() {
    return std::tuple{definition("initial_indices", &IndexMap::initial_indices),
                      field("final_indices", &IndexMap::final_indices),
                      field("inverse_index_map", &IndexMap::inverse_index_map)};
  }
};
using IndexMapRef = Ref<const IndexMap>;

/// The map that `f` computes from `rank` fresh variables i0, i1, ...
IndexMapRef index_map(int rank, const std::function<std::vector<Expr>(const std::vector<VarRef>&)>& f,
                      DType dtype = i32);

/// The image of one point, simplified. Indices may be of a wider dtype than the map's variables: constants follow.
std::vector<Expr> map_indices(const IndexMap& map, const std::vector<Expr>& indices, Analyzer& analyzer);
/// The box of the image of a box.
Region map_ranges(const IndexMap& map, const Region& ranges, Analyzer& analyzer);
/// The shape after the map: [14] through i -> (i // 4, i % 4) is [4, 4].
/// Errors: the image does not begin at 0.
std::vector<Expr> map_shape(const IndexMap& map, const std::vector<Expr>& shape, Analyzer& analyzer);

/// The map back, or why there is none.
///   padding_predicate  over the inverse's variables: true for points that come from no point of the domain
struct InverseMap {
  IndexMapRef map;
  Expr padding_predicate;
  std::string error;
  bool ok() const { return error.empty(); }
};
/// The inverse of a bijective map of the box.
InverseMap inverse(const IndexMap& map, const Region& ranges, Analyzer& analyzer);
/// The inverse of a map whose image may be padded: [14] through i -> (i // 4, i % 4).
InverseMap non_surjective_inverse(const IndexMap& map, const Region& ranges, Analyzer& analyzer);

/// Whether two maps send every point to the same one (provably).
bool equivalent(const IndexMap& a, const IndexMap& b);

/// The expression with variables replaced by values that may be wider: the arithmetic around them widens too.
Expr substitute_promoting(const Expr& e, const VarMap& map);

}  // namespace sator::arith
