#pragma once

#include <map>
#include <string>
#include <vector>

#include "dataflow/programs/work.h"

namespace sator::dataflow {

/// What a kernel's accesses have touched of each tensor so far.
class Regions {
 public:
  /// Adds access `a` of the work, which must outlive this. True if it surely touches nothing that earlier ones did: the boxes
  /// around them lie apart. Accesses that share some elements of a tensor mostly share all.
  bool add(const Work& work, size_t a);

 private:
  struct Touched {
    const Access* access;
    const Domain* domain;
  };
  std::map<std::string, std::vector<Touched>> before_;  // by tensor
};

}  // namespace sator::dataflow
