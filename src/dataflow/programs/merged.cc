#include "dataflow/programs/merged.h"

#include "dataflow/programs/product_axes.h"

namespace sator::dataflow {

namespace {

double volume_of(const Work& work) {
  double volume = 1;
  for (int64_t extent : work.statement.domain.extent) volume *= static_cast<double>(extent);
  return volume;
}

/// Puts the makers of what statement `consumer` reads in the places of these reads.
void take_in_makers(Merged& merged, const Kernel& kernel, size_t consumer) {
  const std::vector<Operand>& operands = kernel.work[consumer].operands;
  for (size_t p = 0; p < consumer; ++p) {
    const Work& producer = kernel.work[p];
    Work& work = merged.works[consumer];
    if (producer.vector_work != VectorWork::dequantize || producer.multiply_accumulate) continue;
    if (!merged.products[consumer] && (merged.gone[p] || volume_of(work) >= volume_of(producer))) continue;
    for (size_t a = 0; a < operands.size(); ++a) {
      if (work.statement.accesses[a].role != Role::read || !operands[a].internal) continue;
      auto joined = inline_producer(work, a, producer);
      if (!joined) continue;
      work = std::move(*joined);
      merged.gone[p] = true;
      if (merged.products[consumer]) {
        merged.made.push_back({consumer, p, a});
      } else {
        work.vector_ops += producer.vector_ops;
        work.vector_work = VectorWork::dequantize;
      }
    }
  }
}

/// The product of a statement, as far as the chip's array takes it: TENET's files are for products of i, j, k.
std::optional<Product> product_on(const Chip& chip, const Work& work) {
  std::optional<Product> product = product_of(work);
  if (product && chip.tenet && !axes_of(work, *product)) return {};
  return product;
}

}  // namespace

Merged merge_producers(const Kernel& kernel, const Chip& chip) {
  Merged merged{.works = kernel.work, .products = {}, .gone = std::vector<bool>(kernel.work.size(), false), .made = {}};
  for (const Work& work : kernel.work) merged.products.push_back(product_on(chip, work));
  for (size_t i = 0; i < kernel.work.size(); ++i) take_in_makers(merged, kernel, i);
  return merged;
}

}  // namespace sator::dataflow
