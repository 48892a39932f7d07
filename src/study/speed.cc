#include "study/speed.h"

#include <algorithm>
#include <numeric>

namespace sator::study {

namespace {

using Figures = std::array<HostSpeed, 2>;

HostSpeed speed_of(std::vector<double> rounds) {
  std::ranges::sort(rounds);
  const size_t half = rounds.size() / 2;
  const double median = rounds.size() % 2 ? rounds[half] : (rounds[half - 1] + rounds[half]) / 2;
  return {median, rounds.front(), rounds.back()};
}

double spread(const HostSpeed& s) { return (s.most - s.least) / s.median; }

/// One measurement of some probes, in turns.
std::vector<Figures> measured(std::span<const SpeedProbe> probes, std::span<const size_t> which) {
  std::vector<std::array<std::vector<double>, 2>> rounds(which.size());
  for (int64_t r = 0; r < kRounds; ++r)
    for (size_t i = 0; i < which.size(); ++i) {
      const std::array<double, 2> speeds = probes[which[i]]();
      for (size_t f = 0; f < speeds.size(); ++f) rounds[i][f].push_back(speeds[f]);
    }
  std::vector<Figures> out;
  for (const auto& both : rounds) out.push_back({speed_of(both[0]), speed_of(both[1])});
  return out;
}

bool is_unsteady(const Figures& both) { return both[0].is_unsteady() || both[1].is_unsteady(); }

}  // namespace

std::vector<Figures> measure_in_turns(std::span<const SpeedProbe> probes) {
  std::vector<size_t> which(probes.size());
  std::iota(which.begin(), which.end(), size_t{0});
  std::vector<Figures> best = measured(probes, which);
  for (int again = 0; again < kAgain; ++again) {
    which.clear();
    for (size_t i = 0; i < best.size(); ++i)
      if (is_unsteady(best[i])) which.push_back(i);
    if (which.empty()) break;
    if (which.front() != 0) which.insert(which.begin(), 0);
    const std::vector<Figures> anew = measured(probes, which);
    for (size_t i = 0; i < which.size(); ++i)
      for (size_t f = 0; f < anew[i].size(); ++f)
        if (HostSpeed& known = best[which[i]][f]; spread(anew[i][f]) < spread(known)) known = anew[i][f];
  }
  return best;
}

}  // namespace sator::study
