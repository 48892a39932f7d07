// Counts of small kernels found a second time, by listing every instance.
#pragma once

#include <unordered_map>

#include "dataflow/cost/cost.h"

namespace sator::study {

class CountChecker {
 public:
  ///   limit   instances of a product beyond which it is not listed
  explicit CountChecker(Chip chip, int64_t limit = 1 << 16) : chip_(std::move(chip)), limit_(limit) {}

  /// Whether all products of the kernel, with the codes of what is made on the way, were listed on the chip's array and
  /// gave the counts of its cost; false if there is none or one is too large. Equal structures are listed once.
  /// Errors: InternalError if the counts differ.
  /// Cost: about a second per four million accesses.
  bool confirms(const dataflow::KernelCost& cost);

 private:
  bool confirms(const dataflow::StatementCost& product);

  Chip chip_;
  int64_t limit_;
  std::unordered_map<std::string, dataflow::Counts> listed_;
};

}  // namespace sator::study
