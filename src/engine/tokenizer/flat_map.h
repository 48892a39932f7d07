#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sator {

/// A map from pairs of 32-bit numbers to V in one array (open addressing, linear probing): the merges and
/// tries of a tokenizer are read far more often than built. Nothing is removed.
template <class V>
class PairMap {
 public:
  explicit PairMap(size_t expected = 0) : slots_(std::bit_ceil(2 * expected + 16)) {}

  const V* find(uint32_t a, uint32_t b) const {
    uint64_t key = packed(a, b);
    for (size_t i = place(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == kEmpty) return nullptr;
    }
  }
  /// The value at (a, b), made if it is not there.
  V& operator()(uint32_t a, uint32_t b) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slot_of(packed(a, b));
    if (slot.key == kEmpty) {
      slot.key = packed(a, b);
      ++size_;
    }
    return slot.value;
  }

 private:
  struct Slot {
    uint64_t key = kEmpty;
    V value{};
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // ids stay below 2^31, so no pair has this key

  static uint64_t packed(uint32_t a, uint32_t b) { return static_cast<uint64_t>(a) << 32 | b; }
  size_t place(uint64_t key) const {
    key *= 0x9e3779b97f4a7c15ull;
    return (key ^ key >> 32) & (slots_.size() - 1);
  }
  Slot& slot_of(uint64_t key) {
    size_t i = place(key);
    while (slots_[i].key != key && slots_[i].key != kEmpty) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_ = std::vector<Slot>(2 * old.size());
    for (Slot& slot : old)
      if (slot.key != kEmpty) slot_of(slot.key) = std::move(slot);
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace sator
