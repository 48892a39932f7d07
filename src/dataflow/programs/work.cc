#include "dataflow/programs/work.h"

#include <algorithm>
#include <array>

namespace sator::dataflow {

std::string_view name_of(OperandKind kind) {
  static constexpr std::array<std::string_view, 4> kNames{"weight", "activation", "scale", "kv"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<Product> product_of(const Work& work) {
  if (!work.multiply_accumulate) return {};
  const std::vector<Access>& accesses = work.statement.accesses;
  Product product;
  size_t writes = 0;
  for (size_t a = 0; a < accesses.size(); ++a)
    if (accesses[a].role == Role::write) product.output = a, ++writes;
  if (writes != 1) return {};
  std::vector<size_t> factors;
  for (size_t a = 0; a < accesses.size(); ++a)
    // The output read back is the running sum; scales ride along with what they scale.
    if (accesses[a].role == Role::read && accesses[a].tensor != accesses[product.output].tensor &&
        work.operands[a].kind != OperandKind::scale)
      factors.push_back(a);
  if (factors.size() < 2) return {};
  product.first = factors[0];
  product.second = factors[1];
  const int rank = work.statement.domain.rank();
  auto uses = [&](size_t access, int iterator) {
    for (const Map& reference : accesses[access].references)
      for (const QuasiAffine& e : reference)
        if (mentions(e, iterator)) return true;
    return false;
  };
  for (int x = 0; x < rank; ++x)
    product.uses.push_back({uses(product.first, x), uses(product.second, x), uses(product.output, x)});
  return product;
}

size_t weight_of(const Work& work, const Product& product) {
  auto is_weight = [&](size_t access) {
    return work.operands[access].kind == OperandKind::weight || work.operands[access].kind == OperandKind::kv;
  };
  return is_weight(product.first) && !is_weight(product.second) ? product.first : product.second;
}

std::vector<size_t> memory_path(const Work& work, const Product& product, size_t weight, size_t access,
                                const Chip& chip, bool stored_outside) {
  const Operand& operand = work.operands[access];
  if (operand.on_the_way) return {};
  const std::vector<Access>& accesses = work.statement.accesses;
  const bool output = accesses[access].tensor == accesses[product.output].tensor;
  bool with_weight = access == weight;
  if (!output && access != product.first && access != product.second) {
    // A scale or another companion lives beside the factor whose iterators it has.
    with_weight = true;
    for (size_t x = 0; x < product.uses.size(); ++x)
      for (const Map& reference : accesses[access].references)
        for (const QuasiAffine& e : reference)
          if (mentions(e, static_cast<int>(x)) && !product.in(x, weight)) with_weight = false;
  }
  std::vector<size_t> path;
  for (size_t m = operand.internal && !stored_outside ? 1 : 0; m < chip.memories.size(); ++m) {
    const Memory& memory = chip.memories[m];
    if (output ? memory.holds_outputs : with_weight ? memory.holds_weights : memory.holds_activations)
      path.push_back(m);
  }
  return path;
}

std::optional<Work> inline_producer(const Work& consumer, size_t made, const Work& producer) {
  const Access& read = consumer.statement.accesses[made];
  const Access* write = nullptr;
  for (const Access& access : producer.statement.accesses)
    if (access.role == Role::write) {
      if (write) return {};
      write = &access;
    }
  if (!write || write->tensor != read.tensor || write->references.size() != 1) return {};
  const int rank = producer.statement.domain.rank();
  std::vector<int> coordinate_of(static_cast<size_t>(rank), -1);
  for (size_t c = 0; c < write->references[0].size(); ++c) {
    const QuasiAffine& e = write->references[0][c];
    if (e.is_constant()) continue;
    if (e.constant != 0 || e.terms.size() != 1 || e.terms[0].division || e.terms[0].coefficient != 1) return {};
    int& at = coordinate_of[static_cast<size_t>(e.terms[0].variable)];
    if (at >= 0) return {};
    at = static_cast<int>(c);
  }
  for (int x = 0; x < rank; ++x)
    if (coordinate_of[static_cast<size_t>(x)] < 0 && producer.statement.domain.extent[static_cast<size_t>(x)] > 1)
      return {};
  Work merged = consumer;
  merged.operands[made].on_the_way = true;
  for (size_t a = 0; a < producer.statement.accesses.size(); ++a) {
    const Access& source = producer.statement.accesses[a];
    if (source.role == Role::write) continue;
    Access composed{source.tensor, Role::read, {}};
    for (const Map& at : read.references) {
      std::vector<QuasiAffine> replacement;
      for (int x = 0; x < rank; ++x) {
        const int c = coordinate_of[static_cast<size_t>(x)];
        replacement.push_back(c < 0 ? number(producer.statement.domain.lower[static_cast<size_t>(x)])
                                    : at[static_cast<size_t>(c)]);
      }
      for (const Map& reference : source.references) {
        Map map;
        for (const QuasiAffine& e : reference) map.push_back(substitute(e, replacement));
        composed.references.push_back(std::move(map));
      }
    }
    merged.statement.accesses.push_back(std::move(composed));
    merged.operands.push_back(producer.operands[a]);
    // What zeros would be made of is not read.
    merged.operands.back().lies_outside_where = consumer.operands[made].lies_outside_where;
  }
  return merged;
}

namespace {

/// The work once more for each value of a new outermost iterator, which numbers from `first` on the tensors that `own` names.
Work repeated(Work work, std::string name, int64_t first, int64_t times, FunctionRef<bool(OperandKind)> own) {
  Domain& domain = work.statement.domain;
  std::vector<QuasiAffine> moved;  // the iterators, one place further in
  for (int x = 0; x < domain.rank(); ++x) moved.push_back(variable(x + 1));
  auto move = [&](std::vector<QuasiAffine>& all) {
    for (QuasiAffine& e : all) e = substitute(e, moved);
  };
  while (std::find(domain.names.begin(), domain.names.end(), name) != domain.names.end()) name += "_";
  domain.names.insert(domain.names.begin(), name);
  domain.lower.insert(domain.lower.begin(), 0);
  domain.extent.insert(domain.extent.begin(), times);
  move(domain.guards);
  move(work.only_where);
  for (size_t a = 0; a < work.operands.size(); ++a) {
    move(work.operands[a].lies_outside_where);
    for (Map& map : work.statement.accesses[a].references) {
      move(map);
      if (own(work.operands[a].kind)) map.insert(map.begin(), variable(0) + first);
    }
  }
  return work;
}

}  // namespace

Work of_sequences(Work work, int64_t sequences) {
  return repeated(
      std::move(work), "sequence", 0, sequences, [](OperandKind kind) { return kind != OperandKind::weight; });
}

Work of_groups(Work work, int64_t first, int64_t count) {
  return repeated(std::move(work), "group", first, count, [](OperandKind) { return true; });
}

ProductClass class_of(const Work& work, const Product& product) {
  const size_t weight = weight_of(work, product);
  bool batched = work.operands[weight].kind == OperandKind::activation || work.operands[weight].kind == OperandKind::kv;
  bool has_batch = false;
  double rows = 1;  // of outputs that share a weight
  for (size_t x = 0; x < product.uses.size(); ++x) {
    const Product::Use& u = product.uses[x];
    const int64_t extent = work.statement.domain.extent[x];
    has_batch |= u.first && u.second && u.output && extent > 1;
    if (u.output && !product.in(x, weight)) rows *= static_cast<double>(extent);
  }
  if (batched && has_batch) return ProductClass::batched;
  return rows < 8 ? ProductClass::gemv : ProductClass::gemm;
}

}  // namespace sator::dataflow
