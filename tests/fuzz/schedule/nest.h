// One block of a random program as text: its loops in one of several spellings, its axes, what it computes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "fuzz/draw.h"

namespace sator::fuzz {

/// An extent: a number, or an expression of symbolic sizes, which are at least 3, or all 0.
struct Size {
  std::string text;
  std::optional<int64_t> value;

  Size(int64_t n) : text(sator::text(n)), value(n) {}
  explicit Size(std::string symbol) : text(std::move(symbol)) {}
  Size plus(int64_t n) const {
    if (value) return *value + n;
    return n == 0 ? *this
                  : Size(n > 0 ? sator::text("(", text, " + ", n, ")") : sator::text("(", text, " - ", -n, ")"));
  }
  Size times(const Size& other) const {
    if (value && other.value) return *value * *other.value;
    return Size(text + " * " + other.text);
  }
  /// An upper bound, for the count of roundings.
  int64_t most() const { return value.value_or(10); }
};

/// An axis v0, v1, ... of a block.
struct Axis {
  Size size;
  char kind = 'S';     ///< or 'R'
  std::string extent;  ///< of its loop where that is not `size`; may name the loops i0, i1, ... before it
  int64_t begin = 0;   ///< the axis is [begin, size), and so is its loop
};

class Nest {
 public:
  Nest(Draw& draw, int64_t number) : draw_(draw), number_(number) {}

  std::vector<Axis> axes;
  std::vector<std::string> init, body;
  std::string name;

  /// The loops count from 0, from elsewhere, or in tiles of which the last may be cut off by a predicate.
  std::string text();

 private:
  struct Loop {
    std::string name, range;
    bool is_plain;
  };
  std::string loop_name(size_t axis, const char* suffix) const { return sator::text("i", number_, "_", axis, suffix); }
  void add_axis(size_t k);

  Draw& draw_;
  int64_t number_;
  std::vector<Loop> loops_;
  std::vector<std::string> values_, conditions_;
};

}  // namespace sator::fuzz
