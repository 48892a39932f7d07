// The products of a study as TENET's three files, which TENET loads too, and its metrics of them.
#pragma once

#include <map>
#include <utility>

#include "study/result.h"

namespace sator::study {

/// Names of a study's TENET files, without ending, by their texts: tenet/CHIP/KERNEL, with a number behind it where a kernel
/// has several (other sizes, other schemes).
class TenetNames {
 public:
  explicit TenetNames(const Study& study);

  struct Product {
    std::string chip, function, name;
  };
  const std::vector<std::pair<Product, TenetTexts>>& products() const { return products_; }
  /// The names of the kernel's products on the chip, with "; " between them.
  std::string of(const std::string& chip, const KernelRow& kernel) const;

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::string> names_;
  std::vector<std::pair<Product, TenetTexts>> products_;
};

/// Each distinct product of a kernel on a chip as NAME.p (the array and its wires), NAME.m (the mapping) and NAME.s (the
/// statement), by file name within the study's folder, and tenet/metrics.csv: TENET's figures of them, one line per tensor
/// and role. Volumes are in elements, bandwidths in elements per cycle, delays in cycles. The figures are those of the
/// texts, read again. Errors: a text that the reader refuses (ours).
std::vector<std::pair<std::string, std::string>> tenet_files(const Study& study);

}  // namespace sator::study
