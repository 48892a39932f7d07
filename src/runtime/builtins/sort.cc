// Sorting along an axis. Equal elements keep their order, and a NaN counts as greater than all numbers, as in NumPy: what the
// ops mean (relax/ops/search.cc), in O(n log n).
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "runtime/builtins/functions.h"
#include "runtime/nonzero.h"
#include "runtime/sort_keys.h"
#include "runtime/unique.h"
#include "runtime/vm.h"

namespace sator::runtime::builtin {

namespace {

/// An element as an unsigned number that sorts as it does, and where it stood.
template <class Key>
struct Keyed {
  Key key;
  int32_t index;
};

/// A float's key without what makes zeros equal: its bits can be found again.
uint32_t plain_key(float value) {
  if (value != value) return std::numeric_limits<uint32_t>::max();
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = uint32_t{1} << 31;
  return bits & sign ? ~bits : bits | sign;
}
float value_of(uint32_t key) {
  const uint32_t sign = uint32_t{1} << 31;
  return std::bit_cast<float>(key & sign ? key & ~sign : ~key);
}

template <class Key>
Key digits_of(Key key) {
  return key;
}
template <class Key>
Key digits_of(const Keyed<Key>& item) {
  return item.key;
}

/// Sorts by keys, digit by digit from the last: each pass keeps the order of equal digits.
/// Source: Knuth, "The Art of Computer Programming" 3, 5.2.5.
template <class Item>
void sort_by_digits(std::vector<Item>& items, std::vector<Item>& scratch) {
  using Key = decltype(digits_of(items[0]));
  constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits;
  constexpr int kPasses = (static_cast<int>(sizeof(Key)) * 8 + kDigitBits - 1) / kDigitBits;
  std::vector<uint32_t> counts(static_cast<size_t>(kPasses) * kDigits);
  auto digit = [](Key key, int pass) { return static_cast<size_t>(key >> (pass * kDigitBits)) & (kDigits - 1); };
  for (const Item& item : items)
    for (int p = 0; p < kPasses; ++p) ++counts[static_cast<size_t>(p) * kDigits + digit(digits_of(item), p)];
  scratch.resize(items.size());
  for (int p = 0; p < kPasses; ++p) {
    uint32_t* count = counts.data() + static_cast<size_t>(p) * kDigits;
    if (!items.empty() && count[digit(digits_of(items[0]), p)] == items.size()) continue;  // all have the same digit
    uint32_t sum = 0;
    for (int d = 0; d < kDigits; ++d) sum += std::exchange(count[d], sum);
    for (const Item& item : items) scratch[count[digit(digits_of(item), p)]++] = item;
    items.swap(scratch);
  }
}

/// Where the first elements of each line's order go.
struct SortResults {
  Tensor* values = nullptr;  ///< null: not asked for
  Tensor* indices = nullptr;
};
struct SortJob {
  const Tensor& x;
  int64_t axis;
  bool descending;
  int64_t wanted;  ///< so many elements of each line
  SortResults out;
};

/// The keys of `count` elements, `stride` apart; flipped where the greatest come first.
template <class Key>
void read_keys(const SortJob& job, int64_t from, int64_t stride, int64_t count, Key* keys) {
  const Key flip = job.descending ? std::numeric_limits<Key>::max() : Key{0};
  const DType dtype = job.x.dtype();
  if (dtype == f32 && stride == 1) {
    const float* values = job.x.data_as<float>() + from;
    for (int64_t i = 0; i < count; ++i) keys[i] = key_of_float<float, uint32_t>(values[i]) ^ flip;
    return;
  }
  for (int64_t i = 0; i < count; ++i) keys[i] = key_at<Key>(job.x.data(), from + i * stride, dtype) ^ flip;
}

template <class Key>
bool comes_first(const Keyed<Key>& a, const Keyed<Key>& b) {
  return a.key < b.key || (a.key == b.key && a.index < b.index);
}

/// The `wanted` first elements of a line, in order, where that are few: all others are compared with the last of those found.
template <class Key>
void select_first(const SortJob& job, int64_t from, int64_t stride, int64_t n, std::vector<Keyed<Key>>& items) {
  constexpr int64_t kBlock = 256;
  const auto wanted = static_cast<size_t>(job.wanted);
  const size_t most = std::max<size_t>(4 * wanted, kBlock);
  items.clear();
  std::optional<Key> limit;  // of the last of those found: a later element with this key comes behind it
  Key keys[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    read_keys(job, from + begin * stride, stride, count, keys);
    if (limit) {
      bool any = false;
      for (int64_t i = 0; i < count; ++i) any |= keys[i] < *limit;
      if (!any) continue;
    }
    for (int64_t i = 0; i < count; ++i)
      if (!limit || keys[i] < *limit) items.push_back({keys[i], static_cast<int32_t>(begin + i)});
    if (items.size() < most) continue;
    std::nth_element(items.begin(), items.begin() + static_cast<int64_t>(wanted) - 1, items.end(), comes_first<Key>);
    items.resize(wanted);
    limit = items.back().key;
  }
  std::partial_sort(items.begin(), items.begin() + static_cast<int64_t>(wanted), items.end(), comes_first<Key>);
}

template <class Key>
void sort_lines(VirtualMachine& vm, const SortJob& job) {
  constexpr int64_t kFew = 256;  // elements that are compared, not counted
  if (job.wanted == 0) return;
  const Dims& shape = job.x.shape();
  int64_t inner = 1, outer = 1;
  for (int64_t d = 0; d < job.x.rank(); ++d)
    (d < job.axis ? outer : inner) *= d == job.axis ? 1 : shape[static_cast<size_t>(d)];
  const int64_t n = shape[static_cast<size_t>(job.axis)], wanted = job.wanted;
  const int64_t size = job.x.dtype().bytes();
  vm.pool().for_each_chunk(outer * inner, [&](int64_t begin, int64_t end, SatorContext*) {
    std::vector<Keyed<Key>> items, scratch;
    std::vector<Key> keys;
    for (int64_t line = begin; line < end; ++line) {
      const int64_t from = line / inner * n * inner + line % inner, to = line / inner * wanted * inner + line % inner;
      if (wanted * 8 < n || n < kFew) {
        select_first(job, from, inner, n, items);
      } else {
        keys.resize(static_cast<size_t>(n));
        read_keys(job, from, inner, n, keys.data());
        items.resize(static_cast<size_t>(n));
        for (size_t i = 0; i < items.size(); ++i) items[i] = {keys[i], static_cast<int32_t>(i)};
        sort_by_digits(items, scratch);
      }
      for (int64_t i = 0; i < wanted; ++i) {
        const int64_t index = items[static_cast<size_t>(i)].index, at = to + i * inner;
        if (job.out.values)
          std::memcpy(job.out.values->data_as<char>() + at * size,
                      static_cast<const char*>(job.x.data()) + (from + index * inner) * size,
                      static_cast<size_t>(size));
        if (!job.out.indices) continue;
        if (job.out.indices->dtype() == i64)
          job.out.indices->data_as<int64_t>()[at] = index;
        else
          job.out.indices->data_as<int32_t>()[at] = static_cast<int32_t>(index);
      }
    }
  });
}

/// Whole lines of floats in one piece, values alone: half the bytes of the general case. Zeros stand by their signs.
void sort_floats(VirtualMachine& vm, const SortJob& job) {
  const int64_t n = job.wanted;
  vm.pool().for_each_chunk(job.x.num_elements() / n, [&](int64_t begin, int64_t end, SatorContext*) {
    std::vector<uint32_t> keys(static_cast<size_t>(n)), scratch;
    for (int64_t line = begin; line < end; ++line) {
      const float* from = job.x.data_as<float>() + line * n;
      float* to = job.out.values->data_as<float>() + line * n;
      const uint32_t flip = job.descending ? ~uint32_t{0} : 0;
      for (int64_t i = 0; i < n; ++i) keys[static_cast<size_t>(i)] = plain_key(from[i]) ^ flip;
      sort_by_digits(keys, scratch);
      for (int64_t i = 0; i < n; ++i) to[i] = value_of(keys[static_cast<size_t>(i)] ^ flip);
    }
  });
}

/// (x, axis, descending, results)
/// Errors: an axis that the tensor has not; a line that is too long; results of another dtype or shape.
void sort_into(VirtualMachine& vm, const Args& args, const SortResults& out) {
  const Tensor& x = args.tensor(0);
  const int64_t axis = args.integer(1);
  if (axis < 0 || axis >= x.rank()) args.fail_expected(1, "an axis of the tensor");
  const auto along = static_cast<size_t>(axis);
  const int64_t n = x.dim(along);
  if (n > std::numeric_limits<int32_t>::max())
    fail({.what = text(args.callee(), " of ", n, " elements along an axis"), .needs = "fewer than 2^31"});
  std::optional<int64_t> wanted;
  for (const Tensor* result : {out.values, out.indices}) {
    if (!result) continue;
    const DType dtype = result->dtype();
    Dims expected = x.shape();
    if (result->rank() == x.rank()) expected[along] = result->dim(along);
    const bool fits = result == out.values ? dtype == x.dtype() : dtype == i32 || dtype == i64;
    if (!fits || result->shape() != expected || expected[along] > n || (wanted && *wanted != expected[along]))
      fail({.what = text(args.callee(), " of ", x, " into ", *result),
            .needs = "at most as many elements as there are, of the same dtype; indices of 32 or 64 bits"});
    wanted = expected[along];
  }
  if (x.num_elements() == 0) return;
  const SortJob job{x, axis, args.integer(2) != 0, wanted.value_or(0), out};
  constexpr int64_t kLong = 1024;
  if (x.dtype() == f32 && !out.indices && axis + 1 == x.rank() && job.wanted == n && n >= kLong)
    sort_floats(vm, job);
  else if (x.dtype().bytes() == 8)
    sort_lines<uint64_t>(vm, job);
  else
    sort_lines<uint32_t>(vm, job);
}

}  // namespace

Value sort(VirtualMachine& vm, const Args& args) {
  sort_into(vm, args, {.values = &args.tensor(3)});
  return {};
}

Value argsort(VirtualMachine& vm, const Args& args) {
  sort_into(vm, args, {.indices = &args.tensor(3)});
  return {};
}

Value topk(VirtualMachine& vm, const Args& args) {
  sort_into(vm, args, {.values = &args.tensor(3), .indices = &args.tensor(4)});
  return {};
}

Value unique(VirtualMachine&, const Args& args) {
  UniqueOptions options{args.integer(1) != 0, args.integer(2) != 0, args.integer(3) != 0, args.integer(4) != 0};
  if (args.size() > 5) options.axis = args.integer(5);
  return runtime::unique(args.tensor(0), options);
}

Value nonzero(VirtualMachine&, const Args& args) { return runtime::nonzero(args.tensor(0)); }

}  // namespace sator::runtime::builtin
