#include "dataflow/programs/product_axes.h"

namespace sator::dataflow {

std::optional<ProductAxes> axes_of(const Work& work, const Product& product) {
  const Domain& domain = work.statement.domain;
  const size_t weight = weight_of(work, product);
  const size_t input = weight == product.first ? product.second : product.first;
  ProductAxes axes;
  std::vector<int> class_of(domain.extent.size(), -1);
  for (size_t x = 0; x < domain.extent.size(); ++x) {
    if (domain.extent[x] < 2) continue;
    const bool in_input = product.in(x, input), in_weight = product.in(x, weight), output = product.uses[x].output;
    std::vector<size_t>* const lists[] = {&axes.batch, &axes.i, &axes.j, &axes.k};
    class_of[x] = in_input && in_weight ? (output ? 0 : 3) : output && in_input ? 1 : output && in_weight ? 2 : -1;
    if (class_of[x] < 0) return {};
    lists[class_of[x]]->push_back(x);
  }
  for (size_t a : {product.first, product.second, product.output})
    for (const Map& reference : work.statement.accesses[a].references)
      for (const QuasiAffine& e : reference) {
        int met = -1;
        for (size_t x = 0; x < class_of.size(); ++x) {
          if (class_of[x] < 0 || !mentions(e, static_cast<int>(x))) continue;
          if (met >= 0 && met != class_of[x]) return {};
          met = class_of[x];
        }
      }
  return axes;
}

QuasiAffine fused(const std::vector<size_t>& iterators, const Domain& domain) {
  QuasiAffine value = number(0);
  for (size_t x : iterators) value = value * domain.extent[x] + (variable(static_cast<int>(x)) - domain.lower[x]);
  return value;
}

int64_t extent_of(const std::vector<size_t>& iterators, const Domain& domain) {
  int64_t extent = 1;
  for (size_t x : iterators) extent *= domain.extent[x];
  return extent;
}

}  // namespace sator::dataflow
