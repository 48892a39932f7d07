#include "explore/search.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"

namespace sator::explore {

bool dominates(const std::vector<double>& a, const std::vector<double>& b) {
  bool better = false;
  for (size_t o = 0; o < a.size(); ++o) {
    if (a[o] > b[o]) return false;
    better |= a[o] < b[o];
  }
  return better;
}

std::vector<size_t> pareto_front(const std::vector<Evaluated>& points) {
  // In lexicographic order a point is dominated only by an earlier one.
  std::vector<size_t> order;
  for (size_t i = 0; i < points.size(); ++i)
    if (points[i].allowed()) order.push_back(i);
  std::stable_sort(
      order.begin(), order.end(), [&](size_t a, size_t b) { return points[a].objectives < points[b].objectives; });
  std::vector<size_t> front;
  for (size_t i : order)
    if (std::none_of(front.begin(), front.end(), [&](size_t f) {
          return dominates(points[f].objectives, points[i].objectives) || points[f].objectives == points[i].objectives;
        }))
      front.push_back(i);
  return front;
}

namespace {

class Evolution {
 public:
  Evolution(const std::vector<size_t>& choices, const Evaluate& evaluate, const SearchOptions& options)
      : choices_(choices), evaluate_(evaluate), options_(options), random_(options.seed) {}

  SearchResult run() {
    SearchResult result;
    result.size = 1;
    for (size_t n : choices_) result.size *= static_cast<double>(n);
    result.exhaustive = result.size <= static_cast<double>(options_.budget);
    of_ = result.exhaustive ? static_cast<int64_t>(result.size) : options_.budget;
    if (result.exhaustive)
      evaluate_all();
    else
      evolve();
    result.front = pareto_front(done_);
    result.evaluated = std::move(done_);
    return result;
  }

 private:
  /// Evaluates points side by side; results stand in the order of the points.
  void evaluate(const std::vector<Point>& points) {
    const size_t before = done_.size();
    done_.resize(before + points.size());
    std::atomic<size_t> next = 0, finished = before;
    std::exception_ptr error;
    std::mutex lock;
    auto work = [&](int thread) {
      for (size_t i = next++; i < points.size(); i = next++) {
        try {
          Evaluated e = evaluate_(points[i], thread);
          e.point = points[i];
          done_[before + i] = std::move(e);
          const std::lock_guard hold(lock);
          if (options_.progress) options_.progress(static_cast<int64_t>(++finished), of_);
        } catch (...) {
          const std::lock_guard hold(lock);
          if (!error) error = std::current_exception();
          next = points.size();
        }
      }
    };
    run_on_threads(std::min<int>(options_.threads, static_cast<int>(points.size())), work);
    if (error) std::rethrow_exception(error);
  }

  void evaluate_all() {
    std::vector<Point> all;
    Point at(choices_.size(), 0);
    while (true) {
      all.push_back(at);
      size_t d = choices_.size();
      while (d > 0 && ++at[d - 1] == choices_[d - 1]) at[--d] = 0;
      if (d == 0) break;
    }
    evaluate(all);
  }

  size_t draw(size_t below) { return random_() % below; }

  Point random_point() {
    Point p;
    for (size_t n : choices_) p.push_back(draw(n));
    return p;
  }

  /// A point that was not evaluated before: the one given, else others drawn at random.
  bool fresh(Point& p) {
    for (int tries = 0; tries < 200; ++tries) {
      if (seen_.insert(p).second) return true;
      p = random_point();
    }
    return false;
  }

  void evolve() {
    const size_t size = static_cast<size_t>(std::clamp<int64_t>(options_.budget / 8, 8, 64));
    std::vector<Point> born;
    // Both ends of every dimension beside the middle, then any.
    Point middle;
    for (size_t n : choices_) middle.push_back(n / 2);
    for (size_t d = 0; d < choices_.size(); ++d)
      for (size_t end : {size_t{0}, choices_[d] - 1}) {
        Point p = middle;
        p[d] = end;
        if (born.size() < size / 2 && seen_.insert(p).second) born.push_back(p);
      }
    while (true) {
      if (!alive_.empty()) add_neighbours(born, size / 2);
      while (born.size() < size) {
        Point p = alive_.empty() ? random_point() : child();
        if (!fresh(p)) break;
        born.push_back(std::move(p));
      }
      const size_t left = static_cast<size_t>(options_.budget) - done_.size();
      if (born.size() > left) born.resize(left);
      if (born.empty()) return;
      for (size_t i = 0; i < born.size(); ++i) alive_.push_back(done_.size() + i);
      evaluate(born);
      born.clear();
      select(size);
    }
  }

  /// Points a step away from the best of each objective, or a step up in one dimension and down in another: what crossover
  /// finds late, at limits above all.
  void add_neighbours(std::vector<Point>& born, size_t most) {
    const size_t objectives = done_[alive_[0]].objectives.size();
    for (size_t o = 0; o < objectives; ++o) {
      const Evaluated* best = nullptr;
      for (size_t i : alive_)
        if (done_[i].allowed() && (!best || done_[i].objectives[o] < best->objectives[o])) best = &done_[i];
      if (!best) continue;
      const size_t share = born.size() + most / objectives;
      auto offer = [&](const Point& p) {
        for (size_t d = 0; d < p.size(); ++d)
          if (p[d] >= choices_[d]) return;  // also a step below 0
        if (born.size() < share && seen_.insert(p).second) born.push_back(p);
      };
      const Point from = best->point;
      for (size_t d = 0; d < from.size(); ++d)
        for (bool up : {true, false}) {
          Point p = from;
          p[d] += up ? size_t{1} : SIZE_MAX;
          offer(p);
        }
      for (size_t d = 0; d < from.size(); ++d)
        for (size_t other = 0; other < from.size(); ++other) {
          if (d == other) continue;
          Point p = from;
          ++p[d], --p[other];
          offer(p);
        }
    }
  }

  Point child() {
    const Point &a = done_[alive_[tournament()]].point, &b = done_[alive_[tournament()]].point;
    Point p;
    for (size_t d = 0; d < choices_.size(); ++d) p.push_back(draw(2) == 0 ? a[d] : b[d]);
    // On average one and a half dimensions change, mostly by a step.
    for (size_t d = 0; d < choices_.size(); ++d) {
      if (choices_[d] < 2 || draw(2 * choices_.size()) >= 3) continue;
      const bool up = draw(2) == 0;
      if (draw(4) == 0)
        p[d] = draw(choices_[d]);
      else if (up ? p[d] + 1 < choices_[d] : p[d] == 0)
        ++p[d];
      else
        --p[d];
    }
    return p;
  }

  /// Numbers in alive_, which select() has sorted: the smaller is the better.
  size_t tournament() { return std::min(draw(alive_.size()), draw(alive_.size())); }

  bool beats(const Evaluated& a, const Evaluated& b) const {
    if (!a.refused.empty() || !b.refused.empty()) return a.refused.empty() && !b.refused.empty();
    if (a.violation != b.violation) return a.violation < b.violation;
    return dominates(a.objectives, b.objectives);
  }

  /// Keeps the best of those alive: front by front, within a front those with the most room around them first.
  void select(size_t size) {
    std::vector<size_t> kept;
    std::vector<size_t> left = alive_;
    while (!left.empty() && kept.size() < size) {
      std::vector<size_t> front, others;
      for (size_t i : left) {
        const bool beaten = std::any_of(left.begin(), left.end(), [&](size_t j) { return beats(done_[j], done_[i]); });
        (beaten ? others : front).push_back(i);
      }
      const std::vector<double> room = room_around(front);
      std::vector<size_t> order(front.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return room[a] > room[b]; });
      for (size_t o : order)
        if (kept.size() < size) kept.push_back(front[o]);
      left = std::move(others);
    }
    alive_ = std::move(kept);
  }

  /// Crowding distance: the sum over objectives of the span between both neighbours; the ends have all of it.
  std::vector<double> room_around(const std::vector<size_t>& front) const {
    std::vector<double> room(front.size(), 0);
    const size_t objectives = front.empty() ? 0 : done_[front[0]].objectives.size();
    for (size_t o = 0; o < objectives; ++o) {
      auto value = [&](size_t i) { return done_[front[i]].objectives[o]; };
      std::vector<size_t> order(front.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return value(a) < value(b); });
      const double span = value(order.back()) - value(order[0]);
      room[order[0]] = room[order.back()] = std::numeric_limits<double>::infinity();
      for (size_t i = 1; i + 1 < order.size() && span > 0; ++i)
        room[order[i]] += (value(order[i + 1]) - value(order[i - 1])) / span;
    }
    return room;
  }

  const std::vector<size_t>& choices_;
  const Evaluate& evaluate_;
  const SearchOptions& options_;
  std::mt19937_64 random_;
  int64_t of_ = 0;
  std::vector<Evaluated> done_;
  std::set<Point> seen_;
  std::vector<size_t> alive_;  // of done_
};

}  // namespace

SearchResult search(const std::vector<size_t>& choices, const Evaluate& evaluate, const SearchOptions& options) {
  if (options.budget < 1 || options.threads < 1)
    fail({.what = text("a search of ", options.budget, " points on ", options.threads, " threads"),
          .needs = "at least one of each",
          .hint = "leave them out for their defaults"});
  for (size_t d = 0; d < choices.size(); ++d)
    if (choices[d] == 0)
      fail({.what = text("dimension ", d, " of the space has no choices"),
            .needs = "at least one",
            .hint = "leave the dimension out"});
  return Evolution(choices, evaluate, options).run();
}

}  // namespace sator::explore
