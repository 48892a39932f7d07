#pragma once

#include <memory>
#include <variant>

#include "base/error.h"
#include "dataflow/cost/cost.h"
#include "dataflow/cost/tenet_array.h"
#include "dataflow/counts/count_memo.h"

namespace sator::dataflow {

/// All that a mapping of one of a kernel's products is chosen from.
struct MappingProblem {
  Work work;
  Product product;
  const Chip& chip;  // as it maps the product's class
  Pace pace;
  Beside beside;
};

/// Why the product of that number cannot run under its mapping.
struct Refusal {
  size_t product = 0;
  Reason reason;
};

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

  /// How many products need a mapping: none on a chip with TENET's files.
  size_t products() const;
  /// What the mapping of a product is chosen from.
  ///   before   the mappings of the products before it: what they store outside of the chip is known
  MappingProblem problem(size_t product, const std::vector<Placement>& before);

  /// The kernel's cost with a mapping for each of its products, in their order.
  /// Errors: a count of what no mapping changes is refused.
  std::variant<KernelCost, Refusal> cost(const std::vector<Placement>& placements);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sator::dataflow
