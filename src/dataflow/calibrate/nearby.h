// What the constants of a model do not know, such as which kernel a library takes for which sizes, shows in measurements nearby.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dataflow/calibrate/fit.h"
#include "target/calibration.h"

namespace sator::dataflow {

/// Of samples that were measured: what their estimates are off by, at most by a quarter. Of a family with more than
/// kMostNeighbours every second, third, ... sample is taken. Samples without extents are none.
std::vector<CalibrationNeighbour> neighbours_of(const std::vector<Sample>& samples,
                                                const std::vector<double>& estimated);

/// The expected factor on an estimate, given those of its neighbours: ln(measured / estimated) as a stationary random field whose
/// correlation falls with the distance d as exp(-d^2 / 2), seen with as much noise as it varies itself.
/// Source: Matheron, "Principles of geostatistics", 1963 (kriging); Rasmussen and Williams, "Gaussian Processes for Machine
/// Learning", 2006, equation 2.25.
class Nearby {
 public:
  ///   reach   octaves of each extent that make a distance of 1
  /// Errors: a neighbour has another number of extents.
  Nearby(const std::vector<CalibrationNeighbour>& neighbours, std::vector<double> reach, const std::string& file = "");

  /// 1 far from all neighbours, and where there are none of the family.
  double factor(const Sample& sample) const;

 private:
  struct Family {
    std::vector<std::vector<double>> at;  // in distances
    std::vector<double> weights;
  };
  std::vector<double> place(const std::vector<double>& at) const;

  std::vector<double> reach_;
  std::map<std::string, Family> families_;
};

}  // namespace sator::dataflow
