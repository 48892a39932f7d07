#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataflow/counts/relation.h"
#include "target/chip.h"

namespace sator::dataflow {

/// What a tensor is to the model: the columns of a report.
enum class OperandKind : uint8_t { weight, activation, scale, kv };
std::string_view name_of(OperandKind kind);

/// The tensor behind one access of a statement.
struct Operand {
  int bits = 32;  // per element as it is stored
  bool is_float = false;
  OperandKind kind = OperandKind::activation;
  bool internal = false;    // made and used up inside of the kernel: never leaves the chip
  bool on_the_way = false;  // made between the memories and the array: no memory holds it
  /// Of a tensor that is filled up to whole tiles on its way in: affine functions of the iterators, which are all at least 0
  /// where the access is to an element that lies outside of the chip; elsewhere it is to a zero. Empty: everywhere.
  std::vector<QuasiAffine> lies_outside_where;
};

/// A statement with its arithmetic.
struct Work {
  Statement statement;
  std::vector<Operand> operands;     // one per access
  bool multiply_accumulate = false;  // each instance adds the product of two reads to the write
  double vector_ops = 0;             // arithmetic operations per instance otherwise
  VectorWork vector_work = VectorWork::elementwise;
  /// Affine functions of the iterators. Instances at which one of them is below 0 are masked: what they make is not used, so
  /// they are no work of the program, and an array may run them all the same. Empty: every instance counts.
  std::vector<QuasiAffine> only_where;
};

/// The work for so many sequences at once, the outermost iterator: each has tensors of its own, except for weights.
Work of_sequences(Work work, int64_t sequences);
/// The work for the groups number `first` to `first + count - 1`, the outermost iterator: each has tensors of its own.
Work of_groups(Work work, int64_t first, int64_t count);

/// What one launch does, in the order of the program.
struct Kernel {
  std::string name;
  std::vector<Work> work;
  /// The program that runs goes through its products tile by tile, with running sums in place of the reductions between
  /// them: what lies between can stay where a chip keeps it (Chip::one_pass).
  bool one_pass = false;
};

/// Which iterators index which of the three tensors of a multiply-accumulate. This is all that mapping knows of an
/// operator: a reduction is in both factors and not in the output, a batch is in all three, a window is in two of them
/// through one coordinate.
struct Product {
  struct Use {
    bool first = false, second = false, output = false;
  };
  size_t first = 0, second = 0, output = 0;  // numbers of accesses
  std::vector<Use> uses;                     // per iterator

  bool in(size_t iterator, size_t access) const {
    const Use& u = uses[iterator];
    return access == first ? u.first : access == second ? u.second : u.output;
  }
};

/// The factor that memories treat as the weight: the one that is a weight or a KV cache; else the second.
size_t weight_of(const Work& work, const Product& product);

/// The class that decides how a product is mapped.
ProductClass class_of(const Work& work, const Product& product);

/// The memories of a chip that an access passes, outermost first; those between kernels are left out for tensors that
/// never leave the chip, unless they are `stored_outside`. `weight` is the factor held where weights are held.
std::vector<size_t> memory_path(const Work& work, const Product& product, size_t weight, size_t access,
                                const Chip& chip, bool stored_outside = false);

/// The product that a statement computes; nothing if it is no multiply-accumulate of two tensors.
std::optional<Product> product_of(const Work& work);

/// The consumer with `producer` put in the place of the tensor that it makes: where the consumer reads the tensor, it now
/// also reads what the producer reads for that element. The access itself stays, as the stream of made elements.
/// Nothing if the producer does not write one element per instance at its plain iterators.
///   made    the number of the consumer's access that reads the tensor
std::optional<Work> inline_producer(const Work& consumer, size_t made, const Work& producer);

}  // namespace sator::dataflow
