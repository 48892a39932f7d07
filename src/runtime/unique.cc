#include "runtime/unique.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "base/error.h"
#include "runtime/sort_keys.h"
#include "runtime/tensor.h"

namespace sator::runtime {

namespace {

/// The slices of a tensor along an axis, or its elements: `count` of them, of `before` blocks of `inside` elements each.
struct Slices {
  int64_t before = 1, count = 1, inside = 1;
  int64_t element(int64_t slice, int64_t k) const { return (k / inside * count + slice) * inside + k % inside; }
  int64_t length() const { return before * inside; }
};

Ref<Tensor> as_tensor(const std::vector<int64_t>& values) {
  return Tensor::of(values, {static_cast<int64_t>(values.size())}, i64);
}

/// Single elements, by digits of their keys.
template <class Key>
Value unique_elements(const Tensor& x, const UniqueOptions& options) {
  const int64_t n = x.num_elements();
  const KeyForm form = key_form(x.dtype());
  std::vector<Key> keys(static_cast<size_t>(n));
  read_keys(x.data(), form, 0, 1, 1, n, Key{0}, keys.data());
  const bool by_order = options.index || options.inverse || !options.sorted;
  std::vector<Keyed<Key>> order;
  if (by_order) {
    std::vector<Keyed<Key>> scratch;
    order.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
      order[static_cast<size_t>(i)] = {keys[static_cast<size_t>(i)], static_cast<int32_t>(i)};
    sort_by_digits(order, scratch, form.bits);
    for (int64_t i = 0; i < n; ++i) keys[static_cast<size_t>(i)] = order[static_cast<size_t>(i)].key;
  } else {
    std::vector<Key> scratch;
    sort_by_digits(keys, scratch, form.bits);
  }
  // Where each value begins in the order; in that of the values.
  std::vector<int64_t> begins;
  for (int64_t i = 0; i < n; ++i)
    if (i == 0 || keys[static_cast<size_t>(i)] != keys[static_cast<size_t>(i - 1)]) begins.push_back(i);
  const auto found = static_cast<int64_t>(begins.size());
  auto end_of = [&](int64_t g) { return g + 1 < found ? begins[static_cast<size_t>(g + 1)] : n; };
  std::vector<int64_t> groups(static_cast<size_t>(found));
  std::iota(groups.begin(), groups.end(), 0);
  auto first_of = [&](int64_t g) { return order[static_cast<size_t>(begins[static_cast<size_t>(g)])].index; };
  if (!options.sorted) std::ranges::sort(groups, {}, first_of);

  Ref<Tensor> values = Tensor::empty({found}, x.dtype());
  std::vector<int64_t> index, counts, inverse(options.inverse ? static_cast<size_t>(n) : 0);
  const Key zero = static_cast<Key>(form.sign), nan = static_cast<Key>(form.sign | (form.sign - 1));
  with_unsigned(form.bits, [&]<class T>(T) {
    const T* elements = x.data_as<T>();
    for (int64_t to = 0; to < found; ++to) {
      const int64_t g = groups[static_cast<size_t>(to)];
      const Key key = keys[static_cast<size_t>(begins[static_cast<size_t>(g)])];
      T value = static_cast<T>(form.value_of(key));
      // Zeros and NaN have several forms: the first one's counts.
      if (form.infinity != 0 && (key == zero || key == nan))
        value = by_order ? elements[first_of(g)] : *std::find_if(elements, elements + n, [&](T e) {
          return form.key_of(static_cast<Key>(e)) == key;
        });
      values->data_as<T>()[to] = value;
      if (options.index) index.push_back(first_of(g));
      if (options.counts) counts.push_back(end_of(g) - begins[static_cast<size_t>(g)]);
      for (int64_t i = begins[static_cast<size_t>(g)]; options.inverse && i < end_of(g); ++i)
        inverse[static_cast<size_t>(order[static_cast<size_t>(i)].index)] = to;
    }
  });
  std::vector<Value> results = {values};
  if (options.index) results.emplace_back(as_tensor(index));
  if (options.inverse) results.emplace_back(as_tensor(inverse));
  if (options.counts) results.emplace_back(as_tensor(counts));
  return results.size() == 1 ? results[0] : Value(Tuple::of(std::move(results)));
}

}  // namespace

Value unique(const Tensor& x, const UniqueOptions& options) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  Slices slices{.count = x.num_elements()};
  Dims shape = {slices.count};
  size_t along = 0;
  if (options.axis && rank > 0) {
    const int64_t axis = *options.axis < 0 ? *options.axis + rank : *options.axis;
    if (axis < 0 || axis >= rank)
      fail({.what = text("unique: axis ", *options.axis, " is outside a tensor of rank ", rank),
            .needs = "-rank <= axis < rank",
            .hint = "check the axis"});
    along = static_cast<size_t>(axis), shape = x.shape();
    slices = {1, shape[along], 1};
    for (size_t d = 0; d < shape.size(); ++d)
      (d < along ? slices.before : d > along ? slices.inside : slices.count) *= d == along ? 1 : shape[d];
  }
  const int64_t length = slices.length();
  if (length == 1 && x.num_elements() <= std::numeric_limits<int32_t>::max() && shape.size() == 1)
    return x.dtype().bytes() == 8 ? unique_elements<uint64_t>(x, options) : unique_elements<uint32_t>(x, options);
  // The keys of a slice side by side.
  const KeyForm form = key_form(x.dtype());
  std::vector<uint64_t> keys(static_cast<size_t>(slices.count * length));
  for (int64_t s = 0; s < slices.count; ++s)
    for (int64_t k = 0; k < length; ++k)
      read_keys(x.data(), form, slices.element(s, k), 1, 1, 1, uint64_t{0}, &keys[static_cast<size_t>(s * length + k)]);
  auto keys_of = [&](int64_t s) {
    return std::span(keys).subspan(static_cast<size_t>(s * length), static_cast<size_t>(length));
  };
  std::vector<int64_t> order(static_cast<size_t>(slices.count));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](int64_t a, int64_t b) { return std::ranges::lexicographical_compare(keys_of(a), keys_of(b)); });
  // Groups of equal slices: the first of each came first, because the order is stable.
  struct Group {
    int64_t first = 0;
    std::vector<int64_t>::iterator begin, end;
  };
  std::vector<Group> groups;
  for (auto at = order.begin(); at != order.end();) {
    const auto end =
        std::find_if(at, order.end(), [&](int64_t s) { return !std::ranges::equal(keys_of(*at), keys_of(s)); });
    groups.push_back({*at, at, end});
    at = end;
  }
  if (!options.sorted) std::ranges::sort(groups, {}, &Group::first);

  const auto found = static_cast<int64_t>(groups.size());
  shape[along] = found;
  Ref<Tensor> values = Tensor::empty(shape, x.dtype());
  const Slices out{slices.before, found, slices.inside};
  const int64_t bytes = x.dtype().bytes();
  std::vector<int64_t> index, inverse(order.size()), counts;
  for (int64_t g = 0; g < found; ++g) {
    const Group& group = groups[static_cast<size_t>(g)];
    for (int64_t k = 0; k < length; ++k)
      std::memcpy(static_cast<char*>(values->data()) + out.element(g, k) * bytes,
                  static_cast<const char*>(x.data()) + slices.element(group.first, k) * bytes,
                  static_cast<size_t>(bytes));
    index.push_back(group.first);
    counts.push_back(group.end - group.begin);
    for (auto s = group.begin; s != group.end; ++s) inverse[static_cast<size_t>(*s)] = g;
  }
  std::vector<Value> results = {values};
  if (options.index) results.emplace_back(as_tensor(index));
  if (options.inverse) results.emplace_back(as_tensor(inverse));
  if (options.counts) results.emplace_back(as_tensor(counts));
  return results.size() == 1 ? results[0] : Value(Tuple::of(std::move(results)));
}

}  // namespace sator::runtime
