// Sorting along an axis. Equal elements keep their order, and a NaN counts as greater than all numbers, as in NumPy: what the
// ops mean (relax/ops/search.cc), in O(n log n).
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "runtime/builtins/functions.h"
#include "runtime/nonzero.h"
#include "runtime/sort_keys.h"
#include "runtime/sort_network.h"
#include "runtime/unique.h"
#include "runtime/vm.h"

namespace sator::runtime::builtin {

namespace {

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

constexpr int64_t kFew = 64;  // elements that are compared, not counted

template <class Key>
bool comes_first(const Keyed<Key>& a, const Keyed<Key>& b) {
  return a.key < b.key || (a.key == b.key && a.index < b.index);
}

/// The `wanted` first elements of a line, in order, where that are few: all others are compared with the last of those found.
template <class Key>
void select_first(const Key* keys, int64_t n, size_t wanted, std::vector<Keyed<Key>>& items) {
  constexpr int64_t kBlock = 256;
  const size_t most = std::max<size_t>(4 * wanted, kBlock);
  items.clear();
  std::optional<Key> limit;  // of the last of those found: a later element with this key comes behind it
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    if (limit) {
      bool any = false;
      for (int64_t i = begin; i < end; ++i) any |= keys[i] < *limit;
      if (!any) continue;
    }
    for (int64_t i = begin; i < end; ++i)
      if (!limit || keys[i] < *limit) items.push_back({keys[i], static_cast<int32_t>(i)});
    if (items.size() < most) continue;
    std::nth_element(items.begin(), items.begin() + static_cast<int64_t>(wanted) - 1, items.end(), comes_first<Key>);
    items.resize(wanted);
    limit = items.back().key;
  }
  std::partial_sort(items.begin(), items.begin() + static_cast<int64_t>(wanted), items.end(), comes_first<Key>);
}

/// The lines of a tensor along an axis: line l begins at `first(l)`, its elements lie `inner` apart.
struct Lines {
  int64_t length, inner, count;
  static Lines of(const Tensor& x, int64_t axis) {
    const int64_t length = x.dim(static_cast<size_t>(axis));
    int64_t inner = 1;
    for (int64_t d = axis + 1; d < x.rank(); ++d) inner *= x.dim(static_cast<size_t>(d));
    return {length, inner, x.num_elements() / length};
  }
  int64_t first(int64_t line) const { return line / inner * length * inner + line % inner; }
};

constexpr int64_t kMostOfNetwork = 2048;  // elements of a line

/// Short lines, the values of the first elements alone. Elements T that are narrower than their keys are widened on the way.
template <class T, class Key>
void sort_short_lines(VirtualMachine& vm, const SortJob& job) {
  constexpr bool widened = sizeof(T) < sizeof(Key);
  constexpr int64_t kAtOnce = kLinesOfNetwork<Key>;
  const Lines lines = Lines::of(job.x, job.axis), results = Lines::of(*job.out.values, job.axis);
  const int64_t n = lines.length;
  const KeyForm form = key_form(job.x.dtype(), false);
  vm.pool().for_each_chunk((lines.count + kAtOnce - 1) / kAtOnce, [&](int64_t begin, int64_t end, SatorContext*) {
    std::vector<Key> keys(static_cast<size_t>(keys_of_network<Key>(n)));
    std::vector<Key> wide(widened ? static_cast<size_t>(n * kAtOnce) : 0);
    LinesOfKeys<Key> group{.length = n, .wanted = job.wanted, .stride = widened ? 1 : lines.inner};
    for (int64_t first = begin * kAtOnce; first < end * kAtOnce; first += kAtOnce) {
      // What is missing of the last group is its last line again.
      auto line = [&](int64_t l) { return std::min(first + l, lines.count - 1); };
      for (int64_t l = 0; l < kAtOnce; ++l) {
        const T* from = job.x.data_as<T>() + lines.first(line(l));
        if constexpr (widened) {
          group.from[l] = group.to[l] = wide.data() + l * n;
          for (int64_t i = 0; i < n; ++i) group.to[l][i] = from[i * lines.inner];
        } else {
          group.from[l] = from;
          group.to[l] = job.out.values->data_as<T>() + results.first(line(l));
        }
      }
      sort_side_by_side(group, form, job.descending, keys.data());
      if constexpr (widened)
        for (int64_t l = 0; l < kAtOnce; ++l) {
          T* to = job.out.values->data_as<T>() + results.first(line(l));
          for (int64_t i = 0; i < job.wanted; ++i) to[i * lines.inner] = static_cast<T>(group.to[l][i]);
        }
    }
  });
}

/// The order of lines of bytes that lie in one piece: where each value begins follows from how many there are of those before it.
template <class Index>
void order_bytes(VirtualMachine& vm, const SortJob& job) {
  const Lines lines = Lines::of(job.x, job.axis);
  const KeyForm form = key_form(job.x.dtype());
  const auto flip = static_cast<uint8_t>(job.descending ? 0xff : 0);
  vm.pool().for_each_chunk(lines.count, [&](int64_t begin, int64_t end, SatorContext*) {
    for (int64_t line = begin; line < end; ++line) {
      const uint8_t* from = job.x.data_as<uint8_t>() + lines.first(line);
      Index* to = job.out.indices->data_as<Index>() + lines.first(line);
      auto key = [&](int64_t i) { return static_cast<uint8_t>(form.key_of(from[i]) ^ flip); };
      std::array<Index, 256> begins{};
      for (int64_t i = 0; i < lines.length; ++i) ++begins[key(i)];
      Index before = 0;
      for (Index& b : begins) before += std::exchange(b, before);
      for (int64_t i = 0; i < lines.length; ++i) to[begins[key(i)]++] = static_cast<Index>(i);
    }
  });
}

/// Whole, long lines, values alone: half the bytes of the general case.
template <class Key>
void sort_long_lines(VirtualMachine& vm, const SortJob& job) {
  const Lines lines = Lines::of(job.x, job.axis);
  const KeyForm form = key_form(job.x.dtype(), false);
  const Key flip = job.descending ? static_cast<Key>(form.sign | (form.sign - 1)) : Key{0};
  vm.pool().for_each_chunk(lines.count, [&](int64_t begin, int64_t end, SatorContext*) {
    std::vector<Key> keys(static_cast<size_t>(lines.length)), scratch;
    for (int64_t line = begin; line < end; ++line) {
      read_keys(job.x.data(), form, lines.first(line), 1, lines.inner, lines.length, flip, keys.data());
      sort_by_digits(keys, scratch, form.bits);
      with_unsigned(form.bits, [&]<class T>(T) {
        T* to = job.out.values->data_as<T>() + lines.first(line);
        for (int64_t i = 0; i < lines.length; ++i)
          to[i * lines.inner] = static_cast<T>(form.value_of(static_cast<Key>(keys[static_cast<size_t>(i)] ^ flip)));
      });
    }
  });
}

/// Lines that lie side by side are taken together, so that cache lines are used whole.
template <class Key>
void sort_lines(VirtualMachine& vm, const SortJob& job) {
  const Lines all = Lines::of(job.x, job.axis);
  const int64_t n = all.length, inner = all.inner, wanted = job.wanted;
  const int64_t size = job.x.dtype().bytes();
  constexpr int64_t kMostLines = 16, kMostKeys = 1 << 17;
  const int64_t at_once = std::clamp<int64_t>(kMostKeys / n, 1, std::min(inner, kMostLines));
  const int64_t groups = (inner + at_once - 1) / at_once;
  const KeyForm form = key_form(job.x.dtype());
  const Key flip = job.descending ? static_cast<Key>(form.sign | (form.sign - 1)) : Key{0};
  vm.pool().for_each_chunk(all.count / inner * groups, [&](int64_t begin, int64_t end, SatorContext*) {
    std::vector<Keyed<Key>> items, scratch;
    std::vector<Key> keys(static_cast<size_t>(at_once * n));
    std::vector<int32_t> order(static_cast<size_t>(at_once * wanted));
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group % groups * at_once, lines = std::min(at_once, inner - first);
      const int64_t from = group / groups * n * inner + first, to = group / groups * wanted * inner + first;
      read_keys(job.x.data(), form, from, lines, inner, n, flip, keys.data());
      for (int64_t line = 0; line < lines; ++line) {
        const Key* own = keys.data() + line * n;
        if (wanted * 8 < n || n < kFew) {
          select_first(own, n, static_cast<size_t>(wanted), items);
        } else {
          items.resize(static_cast<size_t>(n));
          for (int64_t i = 0; i < n; ++i) items[static_cast<size_t>(i)] = {own[i], static_cast<int32_t>(i)};
          sort_by_digits(items, scratch, form.bits);
        }
        for (int64_t i = 0; i < wanted; ++i)
          order[static_cast<size_t>(line * wanted + i)] = items[static_cast<size_t>(i)].index;
      }
      for (int64_t i = 0; i < wanted; ++i)
        for (int64_t line = 0; line < lines; ++line) {
          const int64_t index = order[static_cast<size_t>(line * wanted + i)], at = to + i * inner + line;
          if (job.out.values)
            std::memcpy(job.out.values->data_as<char>() + at * size,
                        static_cast<const char*>(job.x.data()) + (from + line + index * inner) * size,
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

/// Values alone are found again from their keys: zeros stand by their signs.
template <class Key>
void sort_by_keys(VirtualMachine& vm, const SortJob& job) {
  const Lines lines = Lines::of(job.x, job.axis);
  const int64_t n = lines.length, bytes = job.x.dtype().bytes();
  const bool values_alone = !job.out.indices, whole = job.wanted == n;
  // Numbers of few digits need few passes; of long lines few elements are found without sorting the others.
  if (values_alone && n <= (bytes < 4 ? kFew : whole ? kMostOfNetwork : kMostOfNetwork / 4))
    with_unsigned(static_cast<int>(bytes) * 8, [&]<class T>(T) {
      if constexpr (sizeof(T) <= sizeof(Key)) sort_short_lines<T, Key>(vm, job);
    });
  else if (values_alone && whole)
    sort_long_lines<Key>(vm, job);
  else if (bytes == 1 && whole && !job.out.values && lines.inner == 1)
    job.out.indices->dtype() == i64 ? order_bytes<int64_t>(vm, job) : order_bytes<int32_t>(vm, job);
  else
    sort_lines<Key>(vm, job);
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
  if (job.wanted == 0) return;
  if (x.dtype().bytes() == 8)
    sort_by_keys<uint64_t>(vm, job);
  else
    sort_by_keys<uint32_t>(vm, job);
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
