// Random choices that can be repeated and made simpler.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace sator::fuzz {

/// Draws numbers and remembers them. The same choices give the same case again; a case is made simpler by leaving choices
/// out, or by making them smaller: 0 is the simplest answer to each question, and the one where no choice is left.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  explicit Draw(std::vector<int64_t> choices) : given_(std::move(choices)), is_given_(true) {}

  int64_t below(int64_t n) {
    if (n <= 1) return 0;
    int64_t v = 0;
    if (!is_given_)
      v = static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
    else if (taken.size() < given_.size())
      v = given_[taken.size()] % n;
    taken.push_back(v);
    return v;
  }
  int64_t from(int64_t low, int64_t high) { return low + below(high - low + 1); }
  /// True once in n times; not in the simplest case.
  bool one_in(int64_t n) { return below(n) == n - 1; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

  std::vector<int64_t> taken;

 private:
  std::mt19937_64 random_;
  std::vector<int64_t> given_;
  bool is_given_ = false;
};

}  // namespace sator::fuzz
