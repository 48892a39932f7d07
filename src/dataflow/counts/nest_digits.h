// Iterators as the digits that space and time show of them.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "dataflow/counts/relation.h"

namespace sator::dataflow {

inline constexpr int64_t kWhole = INT64_MAX;
inline constexpr size_t kMostDigits = 12, kMostIterators = 24;

/// floor((x % modulus) / block) of an iterator x counted from its lower bound; `offset` where nothing divides it.
struct Part {
  size_t iterator = 0;
  int64_t modulus = kWhole, block = 1, offset = 0;
};

/// The part of an iterator that a term shows, where it is one; `constant` stands beside the term.
std::optional<Part> part_of(const Term& term, int64_t constant, const Domain& domain);

/// A digit of an iterator, and the coordinate of time that it is; several places show one digit.
struct Digit {
  int64_t modulus = kWhole, block = 1;
  bool in_space = false, in_time = false;
  size_t position = 0;
};

/// The digits of one iterator, the coarsest first.
struct Digits {
  int64_t extent = 1;
  size_t count = 0;
  std::array<Digit, kMostDigits> at;

  bool add(const Digit& digit) {
    for (size_t i = 0; i < count; ++i)
      if (at[i].modulus == digit.modulus && at[i].block == digit.block) {
        at[i].in_space |= digit.in_space;
        if (digit.in_time && at[i].in_time) return false;
        if (digit.in_time) at[i].in_time = true, at[i].position = digit.position;
        return true;
      }
    if (count == kMostDigits) return false;
    size_t i = count++;
    for (; i > 0 && at[i - 1].block < digit.block; --i) at[i] = at[i - 1];
    at[i] = digit;
    return true;
  }
  /// Whether each digit lies within a block of the one before, at the same place in each.
  bool nested() const {
    for (size_t i = 1; i < count; ++i)
      if (at[i].modulus > at[i - 1].block || at[i - 1].block % at[i].modulus != 0) return false;
    return true;
  }
  /// Tuples of the digits that `asks` for, over the first `extent` values.
  template <class Asks>
  int64_t distinct(int64_t length, const Asks& asks, size_t i = 0) const {
    if (length == 0) return 0;
    while (i < count && !asks(at[i])) ++i;
    if (i == count) return 1;
    length = std::min(length, at[i].modulus);  // each remainder occurs
    const int64_t block = at[i].block, whole = length / block;
    return (whole > 0 ? whole * distinct(block, asks, i + 1) : 0) + distinct(length % block, asks, i + 1);
  }
  /// Values at which every digit that space alone shows is 0: at each stamp no PE has more.
  int64_t at_first_pe(int64_t length, size_t i = 0) const {
    if (i == count || length == 0) return length;
    const Digit& digit = at[i];
    const int64_t period = digit.modulus;
    auto within = [&](int64_t part) {
      if (digit.in_space && !digit.in_time) return at_first_pe(std::min(part, digit.block), i + 1);
      const int64_t whole = part / digit.block;
      return (whole > 0 ? whole * at_first_pe(digit.block, i + 1) : 0) + at_first_pe(part % digit.block, i + 1);
    };
    if (period >= length) return within(length);
    return length / period * within(period) + within(length % period);
  }
  /// Blocks of `grain` values that a stamp meets, over all tuples of the digits before coordinate `cut` of time within
  /// which the others have one value only. Digits are nested without gaps, and their blocks are whole grains.
  int64_t met(int64_t length, int64_t grain, size_t cut, size_t i = 0) const {
    if (length == 0) return 0;
    if (i == count || at[i].position >= cut)
      return i == count || length <= at[count - 1].block ? ceil_div(length, grain) : 0;
    const int64_t block = at[i].block, whole = length / block;
    return (whole > 0 ? whole * met(block, grain, cut, i + 1) : 0) + met(length % block, grain, cut, i + 1);
  }
  /// Whether `met` can be asked.
  bool cuts_no(int64_t grain) const {
    for (size_t i = 0; i < count; ++i) {
      if (at[i].block % grain != 0) return false;
      if (i == 0 ? at[i].modulus < extent : at[i].modulus != at[i - 1].block || at[i].position < at[i - 1].position)
        return false;
    }
    return true;
  }
};

/// The digits of all iterators, and for those that index a tensor how many of their values share a coordinate (else 0).
using IteratorDigits = std::array<Digits, kMostIterators>;
using Grains = std::array<int64_t, kMostIterators>;

/// Gives the digits their extents. The instances of the domain; nothing if it has guards, is empty or has 2^61 of them.
std::optional<int64_t> read_extents(const Domain& domain, IteratorDigits& digits);
/// Nothing if a coordinate is no part of one iterator, or if two are of the same one.
std::optional<Grains> grains_of(const Access& access, const Domain& domain);
/// Elements of the tensor.
int64_t footprint_of(const Grains& grains, const Domain& domain);

}  // namespace sator::dataflow
