// Search over a space of choices for points that no other beats in every objective.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sator::explore {

/// One choice per dimension, by number.
using Point = std::vector<size_t>;

/// What a point comes to. Objectives are minimised.
struct Evaluated {
  Point point;
  std::vector<double> objectives;
  double violation = 0;  // by how much limits are passed; 0: allowed
  std::string refused;   // why there are no objectives; empty: there are

  bool allowed() const { return refused.empty() && violation == 0; }
};

/// At least as good in every objective and better in one.
bool dominates(const std::vector<double>& a, const std::vector<double>& b);

/// Numbers of the allowed points that no other allowed one dominates, in the order of their first objective, then of the
/// others. Of equal ones the first is kept.
std::vector<size_t> pareto_front(const std::vector<Evaluated>& points);

struct SearchOptions {
  int64_t budget = 256;  // points that are evaluated at most
  uint64_t seed = 1;
  int threads = 1;
  std::function<void(int64_t done, int64_t of)> progress;
};

struct SearchResult {
  double size = 0;          // points of the space
  bool exhaustive = false;  // all of them were evaluated
  std::vector<Evaluated> evaluated;
  std::vector<size_t> front;
};

/// Evaluates a point; called on several threads at once, with the thread's number.
using Evaluate = std::function<Evaluated(const Point&, int thread)>;

/// All points where the budget reaches for them; else an evolutionary search: tournaments by rank of domination and crowding,
/// uniform crossover, steps to neighbours, points that were not evaluated before. The same seed gives the same result for any
/// number of threads, provided that `evaluate` depends on the point alone.
///   choices   per dimension, how many there are
/// Errors: a dimension without choices, a budget or a number of threads below 1; what `evaluate` throws.
/// Source: Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", 2002.
SearchResult search(const std::vector<size_t>& choices, const Evaluate& evaluate, const SearchOptions& options);

}  // namespace sator::explore
