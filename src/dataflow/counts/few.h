#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

namespace sator::dataflow {

/// A list of at most N values that is copied without memory of its own.
template <class T, size_t N>
class Few {
 public:
  Few() = default;
  Few(std::initializer_list<T> values) {
    for (const T& v : values) push_back(v);
  }

  const T* begin() const { return at_.data(); }
  const T* end() const { return at_.data() + size_; }
  T* begin() { return at_.data(); }
  T* end() { return at_.data() + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return at_[i]; }
  const T& operator[](size_t i) const { return at_[i]; }

  /// There must be room.
  void push_back(const T& value) { at_[size_++] = value; }
  void insert(size_t where, const T& value) {
    std::copy_backward(begin() + where, end(), end() + 1);
    at_[where] = value;
    ++size_;
  }
  void erase(size_t where) {
    std::copy(begin() + where + 1, end(), begin() + where);
    --size_;
  }
  void clear() { size_ = 0; }
  /// In order, each value once.
  void sort_unique() {
    std::sort(begin(), end());
    size_ = static_cast<size_t>(std::unique(begin(), end()) - begin());
  }

  friend bool operator==(const Few& a, const Few& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  std::array<T, N> at_{};
  size_t size_ = 0;
};

}  // namespace sator::dataflow
