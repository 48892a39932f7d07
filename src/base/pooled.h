// Containers whose memory is of the lists that objects share: for what a step makes and drops.
#pragma once

#include <functional>
#include <limits>
#include <new>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/object.h"

namespace sator {

/// Allocates from ObjectMemory. Half of a schedule step's calls of malloc were those of small vectors and maps.
template <class T>
struct PooledAllocator {
  using value_type = T;
  PooledAllocator() = default;
  template <class U>
  PooledAllocator(const PooledAllocator<U>&) {}
  T* allocate(size_t n) {
    static_assert(alignof(T) <= alignof(std::max_align_t));
    if (n > std::numeric_limits<size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(ObjectMemory::take(n * sizeof(T)));
  }
  void deallocate(T* memory, size_t n) { ObjectMemory::give(memory, n * sizeof(T)); }
  template <class U>
  bool operator==(const PooledAllocator<U>&) const {
    return true;
  }
};

template <class T>
using PooledVector = std::vector<T, PooledAllocator<T>>;
template <class Key>
using PooledSet = std::unordered_set<Key, std::hash<Key>, std::equal_to<Key>, PooledAllocator<Key>>;
template <class Key, class Value>
using PooledMap =
    std::unordered_map<Key, Value, std::hash<Key>, std::equal_to<Key>, PooledAllocator<std::pair<const Key, Value>>>;

}  // namespace sator
