#pragma once

#include <string>
#include <unordered_map>

#include "dataflow/counts/counts.h"

namespace sator::dataflow {

/// The structure of a problem without its names: equal keys have equal counts.
std::string structure_key(const Problem& problem);

/// Counts that are remembered by structure: the layers of a model share a handful.
class CountMemo {
 public:
  /// Errors: the reason for which the engine refuses; `for_whom` says where it happened.
  const Counts& of(const Problem& problem, const std::string& for_whom);
  /// The same; null where the engine refuses.
  const Counts* find(const Problem& problem);
  /// The same; or why the engine refuses.
  const std::variant<Counts, Reason>& counted(const Problem& problem);
  size_t size() const { return known_.size(); }

 private:
  std::unordered_map<std::string, std::variant<Counts, Reason>> known_;
};

}  // namespace sator::dataflow
