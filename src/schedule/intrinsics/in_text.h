// Tensor intrinsics that are shipped as text.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "schedule/tensor_intrin.h"

namespace sator::schedule {

struct IntrinTexts {
  std::string desc, impl;
};

/// Intrinsics by their names, each parsed when it is first asked for.
class TextIntrins {
 public:
  explicit TextIntrins(std::map<std::string, IntrinTexts> texts) : texts_(std::move(texts)) {}
  /// The intrinsic, or null.
  const TensorIntrin* find(const std::string& name) const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, IntrinTexts> texts_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, TensorIntrin> parsed_;
};

}  // namespace sator::schedule
