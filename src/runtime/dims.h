#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"

namespace sator::runtime {

/// The extents of a tensor, outermost first. Up to six live inside the object, so that a decode step
/// allocates none.
class Dims {
 public:
  static constexpr size_t kInline = 6;

  Dims() = default;
  Dims(std::initializer_list<int64_t> dims) : Dims(std::span(dims.begin(), dims.size())) {}
  explicit Dims(std::span<const int64_t> dims) { assign(dims); }

  void assign(std::span<const int64_t> dims) {
    resize(dims.size());
    std::copy(dims.begin(), dims.end(), data());
  }
  /// New extents are 0.
  void resize(size_t rank) {
    if (rank > kInline) {
      std::vector<int64_t> moved(begin(), end());
      moved.resize(rank);
      more_ = std::move(moved);
    } else if (size_ > kInline) {
      std::copy_n(more_.begin(), rank, inline_.begin());
      more_.clear();
    } else if (rank > size_) {
      std::fill(inline_.begin() + size_, inline_.begin() + rank, 0);
    }
    size_ = rank;
  }

  size_t size() const { return size_; }
  int64_t* data() { return size_ > kInline ? more_.data() : inline_.data(); }
  const int64_t* data() const { return size_ > kInline ? more_.data() : inline_.data(); }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  int64_t& operator[](size_t i) { return data()[i]; }
  int64_t operator[](size_t i) const { return data()[i]; }
  operator std::span<const int64_t>() const { return {data(), size_}; }

  friend bool operator==(const Dims& a, const Dims& b) { return std::ranges::equal(a, b); }

 private:
  size_t size_ = 0;
  std::array<int64_t, kInline> inline_;
  std::vector<int64_t> more_;
};

/// The product of the extents, 1 for none; nothing if one is negative or the product exceeds 2^62.
std::optional<int64_t> count_elements(std::span<const int64_t> dims);

/// "[1, 784]"
void append_text(std::string& out, const Dims& dims);

}  // namespace sator::runtime
