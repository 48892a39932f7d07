#pragma once

#include <random>

namespace sator::dataflow {

using Random = std::mt19937_64;

template <class T, size_t N>
const T& one_of(Random& random, const T (&from)[N]) {
  return from[random() % N];
}

}  // namespace sator::dataflow
