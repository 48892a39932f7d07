#pragma once

#include <functional>
#include <memory>
#include <variant>

#include "base/error.h"
#include "dataflow/cost/cost.h"
#include "dataflow/cost/tenet_array.h"
#include "dataflow/counts/count_memo.h"

namespace sator::dataflow {

/// A product of a kernel that needs a mapping.
struct ProductToPlace {
  const Work& work;
  const Product& product;
  const Chip& chip;  // as it maps the product's class
  const Pace& pace;
  std::function<Beside()> beside;  // what the vector unit does meanwhile
};
using PlaceProduct = std::function<Placement(const ProductToPlace&)>;

/// Puts a kernel's cost together, part by part, under one choice of mappings after the other.
class Composer {
 public:
  ///   by_class   the chip as it maps each class of products
  ///   tenet      TENET's files of the chip; null if it has none
  /// All of them, and the kernel, outlive the composer.
  /// Errors: operands that do not match the accesses; no product on a chip that has no vector unit.
  Composer(const Kernel& kernel, const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts,
           const TenetArray* tenet);
  ~Composer();

  /// The kernel's cost with the mappings that `place` gives its products, in their order; or why a product cannot run so.
  /// Errors: a count of what no mapping changes is refused.
  std::variant<KernelCost, Reason> cost(const PlaceProduct& place);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sator::dataflow
