// Elements as unsigned numbers that sort as they do: NaN is the greatest, -0 and 0 are equal.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/dtype.h"

namespace sator::runtime {

/// How the bits of a dtype become a key of as many bits, and back.
struct KeyForm {
  int bits;
  uint64_t sign;                ///< its highest bit
  uint64_t flip = 0;            ///< of integers: the sign of signed ones
  uint64_t infinity = 0;        ///< of floats: the bits of infinity; 0: an integer
  bool zeros_are_equal = true;  ///< of floats; else -0 comes before 0, and value_of gives each again

  template <class Key>
  Key key_of(Key value) const {
    const auto top = static_cast<Key>(sign);
    if (infinity == 0) return value ^ static_cast<Key>(flip);
    const Key magnitude = value & ~top;
    const Key ordered = value & top ? static_cast<Key>(~value & static_cast<Key>(top | (top - 1))) : value | top;
    const Key numbers = zeros_are_equal && magnitude == 0 ? top : ordered;
    return magnitude > static_cast<Key>(infinity) ? static_cast<Key>(top | (top - 1)) : numbers;
  }
  /// The bits whose key it is; of the NaN some NaN, of equal zeros 0.
  template <class Key>
  Key value_of(Key key) const {
    const auto top = static_cast<Key>(sign);
    if (infinity == 0) return key ^ static_cast<Key>(flip);
    return key & top ? key & ~top : static_cast<Key>(~key & static_cast<Key>(top | (top - 1)));
  }
};

/// Of bool, integers, IEEE floats and bfloat16.
inline KeyForm key_form(DType dtype, bool zeros_are_equal = true) {
  KeyForm form{.bits = static_cast<int>(dtype.bytes()) * 8, .sign = 0, .zeros_are_equal = zeros_are_equal};
  form.sign = uint64_t{1} << (form.bits - 1);
  if (dtype.is_bfloat())
    form.infinity = 0x7f80;
  else if (dtype.is_float())
    form.infinity = form.bits == 16 ? 0x7c00 : form.bits == 32 ? 0x7f800000 : 0x7ff0000000000000;
  else if (dtype.is_int())
    form.flip = form.sign;
  return form;
}

/// Calls f(T{}) with the unsigned type of so many bits.
template <class F>
void with_unsigned(int bits, F&& f) {
  if (bits == 8) return f(uint8_t{});
  if (bits == 16) return f(uint16_t{});
  if (bits == 32) return f(uint32_t{});
  return f(uint64_t{});
}

/// The keys of `lines` lines of `count` elements, which lie `stride` apart in each and side by side: keys[line * count + i]. `flip` is
/// all ones where greater elements come first, else 0.
template <class Key>
void read_keys(const void* data, const KeyForm& form, int64_t from, int64_t lines, int64_t stride, int64_t count,
               Key flip, Key* keys) {
  with_unsigned(form.bits, [&, form = form]<class T>(T) {
    if constexpr (sizeof(T) <= sizeof(Key)) {
      const char* first = static_cast<const char*>(data) + from * static_cast<int64_t>(sizeof(T));
      auto key_at = [&](int64_t i) {
        T value;
        std::memcpy(&value, first + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
        return static_cast<Key>(form.key_of(Key{value}) ^ flip);
      };
      if (lines == 1 && stride == 1) {  // a loop of vectors
        for (int64_t i = 0; i < count; ++i) keys[i] = key_at(i);
        return;
      }
      for (int64_t i = 0; i < count; ++i)
        for (int64_t line = 0; line < lines; ++line) keys[line * count + i] = key_at(i * stride + line);
    }
  });
}

template <class Key>
  requires std::is_unsigned_v<Key>
Key digits_of(Key key) {
  return key;
}

/// Sorts items by the lowest `bits` bits of digits_of(item), digit by digit from the last: each pass keeps the order of equal digits.
/// Source: Knuth, "The Art of Computer Programming" 3, 5.2.5.
template <int kDigitBits, class Item>
void sort_by_digits_of(std::vector<Item>& items, std::vector<Item>& scratch, int bits) {
  constexpr int kDigits = 1 << kDigitBits;
  const int passes = (bits + kDigitBits - 1) / kDigitBits;
  std::array<uint32_t, static_cast<size_t>((64 + kDigitBits - 1) / kDigitBits) * kDigits> counts;
  std::fill_n(counts.begin(), passes * kDigits, 0u);
  auto digit = [](auto key, int pass) { return static_cast<size_t>(key >> (pass * kDigitBits)) & (kDigits - 1); };
  for (const Item& item : items)
    for (int p = 0; p < passes; ++p) ++counts[static_cast<size_t>(p) * kDigits + digit(digits_of(item), p)];
  scratch.resize(items.size());
  for (int p = 0; p < passes; ++p) {
    uint32_t* count = counts.data() + static_cast<size_t>(p) * kDigits;
    if (!items.empty() && count[digit(digits_of(items[0]), p)] == items.size()) continue;  // all have the same digit
    uint32_t sum = 0;
    for (int d = 0; d < kDigits; ++d) sum += std::exchange(count[d], sum);
    for (const Item& item : items) scratch[count[digit(digits_of(item), p)]++] = item;
    items.swap(scratch);
  }
}
template <class Item>
void sort_by_digits(std::vector<Item>& items, std::vector<Item>& scratch, int bits) {
  constexpr size_t kMany = 8192;  // for which more counts than passes pay
  if (items.size() < kMany || bits <= 8)
    sort_by_digits_of<8>(items, scratch, bits);
  else
    sort_by_digits_of<11>(items, scratch, bits);
}

/// A key and where it stood.
template <class Key>
struct Keyed {
  Key key;
  int32_t index;
};
template <class Key>
Key digits_of(const Keyed<Key>& item) {
  return item.key;
}

}  // namespace sator::runtime
