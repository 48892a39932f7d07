#pragma once

#include <map>
#include <string>
#include <vector>

#include "dataflow/programs/work.h"

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

  /// Per statement: the number of the pass over elements that it is part of. Vector statements in a row that do something
  /// with each element of one domain are done element by element: what one makes and the next takes stays in registers. A
  /// reduction can end a pass, for its result comes after the last element.
  std::vector<size_t> passes() const;

  /// Whether the tensor that statement `made_by` writes is taken within its pass alone.
  bool stays_in_registers(size_t made_by, const std::vector<size_t>& pass_of) const;

  /// The last statement before `before` that writes the tensor; works.size() if none does.
  size_t writer_of(const std::string& tensor, size_t before) const;

  /// Parts of a tensor from outside that the statements of the kernel work on one after the other.
  int64_t parts_of(const std::string& tensor) const;

 private:
  std::vector<bool> find_flows(const std::string& tensor, size_t since, size_t rank) const;
  std::vector<bool> find_made_apart(size_t made_by) const;

  const std::vector<Work>& works_;
  const std::vector<bool>& gone_;
  /// Found before: statements share what they depend on, and each way to it would ask again.
  mutable std::map<std::pair<std::string, size_t>, std::vector<bool>> flows_;
  mutable std::map<size_t, std::vector<bool>> apart_;
};

/// The access that a statement writes.
const Access& write_of(const Work& work);

/// Whether two statements over equally large domains touch the same elements in their instances of equal number.
bool in_step(const Work& a, const Map& at_a, const Work& b, const Map& at_b);

}  // namespace sator::dataflow
