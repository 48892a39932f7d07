// What a user asks of a mapping's loops, told by iterators' names; and the same for one product, by their numbers.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace sator::dataflow {

/// Constraints of loops in time, as those of mapspaces in Timeloop (Parashar et al., ISPASS 2019).
struct LoopLimits {
  /// The outermost loops over these iterators stand in this order, the outermost first. Others stand anywhere.
  std::vector<std::string> order;
  /// The least and most consecutive values of an iterator in its tile: what its outermost loop steps by, and where it has no loop
  /// all of its values; on several cores, those of a core.
  struct TileBounds {
    std::string iterator;
    int64_t least = 1, most = std::numeric_limits<int64_t>::max();
  };
  std::vector<TileBounds> tiles;

  bool any() const { return !order.empty() || !tiles.empty(); }
  /// "order k, i; tiles i = 64, 32 <= j <= 256"
  std::string words() const;
};

/// Limits of the iterators of one product.
class IteratorLimits {
 public:
  /// Errors: an iterator that is not one of `names`, or is told twice in an order; a least above a most.
  IteratorLimits(const LoopLimits& limits, const std::vector<std::string>& names);

  /// Whether all orders and tiles are allowed.
  bool none() const { return none_; }
  bool allows_tile(size_t x, int64_t values) const { return values >= of_[x].least && values <= of_[x].most; }
  /// Where the outermost loop of x stands among those of others in the order; -1: anywhere.
  int place(size_t x) const { return of_[x].place; }
  int64_t least(size_t x) const { return of_[x].least; }
  int64_t most(size_t x) const { return of_[x].most; }

 private:
  struct Limit {
    int64_t least = 1, most = std::numeric_limits<int64_t>::max();
    int place = -1;  // in the order; -1: anywhere
  };
  std::vector<Limit> of_;
  bool none_ = true;
};

}  // namespace sator::dataflow
