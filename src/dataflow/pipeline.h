#pragma once

#include <string>
#include <vector>

#include "dataflow/work.h"

namespace sator::dataflow {

/// Which statements of a kernel can start on a part of what others make.
class Pipeline {
 public:
  ///   works   in the order of the program
  ///   gone    statements that were taken into others
  Pipeline(const std::vector<Work>& works, const std::vector<bool>& gone) : works_(works), gone_(gone) {}

  /// Per coordinate of `tensor`: whether a slice along it is all that the statements after `since` need for slices of what
  /// they make. Elements that are summed up, or compared with each other, are needed together.
  std::vector<bool> flows_on(const std::string& tensor, size_t since, size_t rank) const;

  /// Per coordinate of what vector statement `made_by` writes: whether its slices are made without the others.
  std::vector<bool> made_apart(size_t made_by) const;

  /// The last statement before `before` that writes the tensor; works.size() if none does.
  size_t writer_of(const std::string& tensor, size_t before) const;

  /// Parts of a tensor from outside that the statements of the kernel work on one after the other.
  int64_t parts_of(const std::string& tensor) const;

 private:
  const std::vector<Work>& works_;
  const std::vector<bool>& gone_;
};

/// The access that a statement writes.
const Access& write_of(const Work& work);

}  // namespace sator::dataflow
