// Of the mappings that were found, the one that the goal asks for.
#include <algorithm>
#include <optional>

#include "dataflow/mapping/nest_search.h"

namespace sator::dataflow {

namespace {

constexpr double kAsQuick = 1.0005;
constexpr size_t kMostSavings = 24;  // to less energy

}  // namespace

/// From the best mapping to neighbours that are as quick, within 1/2000, and move with less energy, until there is none.
void NestSearch::save_energy() {
  if (best_.front().cycles >= kDoesNotFit) return;
  const double limit = best_.front().cycles * kAsQuick;
  auto moving = [&](const Choice& choice) {
    use(choice.plan);
    Nest nest = nest_of(choice);
    return time_.moves_of_product(nest).picojoules;
  };
  Candidate at = best_.front();
  double least = moving(at.choice);
  for (size_t i = 1; i < best_.size() && best_[i].cycles <= limit; ++i)
    if (const double energy = moving(best_[i].choice); energy < least) least = energy, at = best_[i];
  const double found_before = least;
  for (size_t step = 0; step < kMostSavings; ++step) {
    std::optional<Candidate> better;
    for (const Choice& next : neighbours(at.choice)) {
      if (!next.nests()) continue;
      const double cycles = estimate_of(next);
      if (cycles > limit) continue;
      if (const double energy = moving(next); energy < 0.999 * least) least = energy, better = Candidate{cycles, next};
    }
    if (!better) break;
    at = *better;
  }
  if (least == found_before) return;
  best_.insert(best_.begin() + 1, at);
  if (best_.size() > kKept) best_.pop_back();
}

/// Energy of what moves and of the time, or that times the latency.
double NestSearch::score_of(const Choice& choice, double cycles) {
  if (cycles >= kDoesNotFit) return kDoesNotFit;
  use(choice.plan);
  Nest nest = nest_of(choice);
  const double idle = s_.chip.static_watts * 1e12 * cycles / s_.chip.clock_hz;  // picojoules
  const double energy = time_.moves_of_product(nest).picojoules + idle;
  return goal_.objective == Objective::edp ? energy * cycles : energy;
}

/// The best by the goal of all that were tried, then of their neighbours, until there is no better one.
std::vector<NestSearch::Candidate> NestSearch::best_by_goal(double known) {
  const double limit = goal_.objective == Objective::latency ? known * (1 + *goal_.energy_within) : kDoesNotFit;
  std::vector<Candidate> by_score;  // with scores for cycles
  auto add = [&](const Choice& choice) {
    if (estimate_of(choice) >= kDoesNotFit) return;
    const double cycles = time_.latency_of_last();
    if (cycles < kDoesNotFit && cycles <= limit) by_score.push_back({score_of(choice, cycles), choice});
  };
  auto sort = [&] {
    std::stable_sort(
        by_score.begin(), by_score.end(), [](const Candidate& a, const Candidate& b) { return a.cycles < b.cycles; });
    if (by_score.size() > kKept) by_score.resize(kKept);
  };
  for (const Seen::Tried& tried : seen_.all()) add(tried.choice);
  sort();
  for (double least = kDoesNotFit; !by_score.empty() && by_score[0].cycles < least;) {
    least = by_score[0].cycles * 0.9999;
    for (const Choice& next : neighbours(Choice(by_score[0].choice)))
      if (next.nests()) add(next);
    sort();
  }
  return by_score;
}

/// Of the mappings that are as quick as the best, within 1/2000, the one that moves with the least energy comes first; of those
/// within a thousandth of that, the one with most PEs at work, then the one with the least traffic outside.
void NestSearch::prefer_among_equals() {
  size_t equals = 0;
  std::vector<NestTime::Moves> moves;
  double least = 0;
  for (; equals < best_.size() && best_[equals].cycles <= best_[0].cycles * kAsQuick; ++equals) {
    use(best_[equals].choice.plan);
    Nest nest = nest_of(best_[equals].choice);
    moves.push_back(time_.moves_of_product(nest));
    least = equals == 0 ? moves[0].picojoules : std::min(least, moves.back().picojoules);
  }
  auto pes = [&](size_t i) {
    return plans_[best_[i].choice.plan].rows_used * plans_[best_[i].choice.plan].columns_used;
  };
  size_t preferred = equals;
  for (size_t i = 0; i < equals; ++i) {
    if (moves[i].picojoules > least * 1.001) continue;
    if (preferred == equals || pes(i) > pes(preferred) ||
        (pes(i) == pes(preferred) && moves[i].outside_bits < moves[preferred].outside_bits))
      preferred = i;
  }
  if (preferred >= equals) return;
  best_[preferred].cycles = best_[0].cycles;
  std::rotate(
      best_.begin(), best_.begin() + static_cast<long>(preferred), best_.begin() + static_cast<long>(preferred) + 1);
}

}  // namespace sator::dataflow
