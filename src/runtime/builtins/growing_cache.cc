// A cache of one dense tensor that grows along its first axis, as nn.KVCache of TVM v0.17 keeps one:
//   vm.builtin.attention_kv_cache_create(values, shape, filled) -> cache     room for `shape`; `filled` < 0: all of `values`
//   vm.builtin.attention_kv_cache_append(cache, rows) -> cache               behind those that are there
//   vm.builtin.attention_kv_cache_update(cache, rows) -> cache               in their place
//   vm.builtin.attention_kv_cache_view(cache[, shape]) -> tensor             the rows, in the cache's memory
//   vm.builtin.attention_kv_cache_array_popn(caches, n), ..._array_clear(caches)
#include <algorithm>

#include "base/error.h"
#include "runtime/builtins/functions.h"

namespace sator::runtime::builtin {

namespace {

class GrowingCache final : public Object {
 public:
  Ref<Tensor> data;    ///< [room, ...]
  int64_t filled = 0;  ///< rows that hold something
};

GrowingCache& cache_of(const Args& args) {
  return args.object<GrowingCache>(0, "a cache that vm.builtin.attention_kv_cache_create made");
}

/// The shape of so many rows of the cache.
Dims shape_of_rows(const GrowingCache& cache, int64_t rows) {
  Dims shape = cache.data->shape();
  shape[0] = rows;
  return shape;
}

int64_t row_bytes(const Tensor& t) { return t.shape()[0] == 0 ? 0 : t.size_bytes() / t.shape()[0]; }

/// Writes rows behind the first `at` ones; a cache that is too small gets twice the room, or more.
void put(GrowingCache& cache, int64_t at, const Tensor& rows, const Args& args) {
  Dims expected = shape_of_rows(cache, rows.rank() > 0 ? rows.shape()[0] : 0);
  if (rows.rank() == 0 || rows.dtype() != cache.data->dtype() || rows.shape() != expected)
    fail({.what = text(args.callee(), ": rows of ", with_article(rows.dtype()), rows.shape(), " tensor"),
          .needs =
              text(cache.data->dtype(), " rows of the cache's shape ", cache.data->shape(), " behind its first axis")});
  const int64_t needed = at + expected[0];
  if (int64_t room = cache.data->shape()[0]; needed > room) {
    room = std::max<int64_t>(room, 1);
    while (room < needed) room *= 2;
    const Ref<Tensor> larger = Tensor::empty(shape_of_rows(cache, room), cache.data->dtype());
    std::copy_n(cache.data->data_as<char>(), at * row_bytes(*cache.data), larger->data_as<char>());
    cache.data = larger;
  }
  std::copy_n(rows.data_as<char>(), rows.size_bytes(), cache.data->data_as<char>() + at * row_bytes(*cache.data));
  cache.filled = needed;
}

template <class F>
Value for_each_cache(const Args& args, F&& change) {
  for (const Value& field : args.object<Tuple>(0, "a list of caches").fields) {
    auto* cache = field.as<GrowingCache>();
    if (cache == nullptr) args.fail_expected(0, "a list of caches that vm.builtin.attention_kv_cache_create made");
    change(*cache);
  }
  return {};
}

}  // namespace

Value growing_cache_create(VirtualMachine&, const Args& args) {
  const Dims& room = args.shape(1).dims;
  if (room.size() == 0) args.fail_expected(1, "a shape of rank 1 or more");
  Ref<GrowingCache> cache(new GrowingCache);
  cache->data = Tensor::empty(room, args.tensor(0).dtype());
  put(*cache, 0, args.tensor(0), args);
  if (const int64_t filled = args.integer(2); filled >= 0) {
    if (filled > cache->data->shape()[0]) args.fail_expected(2, "at most as many rows as the cache has room for");
    cache->filled = filled;
  }
  return Ref<Object>(cache);
}

Value growing_cache_append(VirtualMachine&, const Args& args) {
  GrowingCache& cache = cache_of(args);
  put(cache, cache.filled, args.tensor(1), args);
  return args[0];
}

Value growing_cache_update(VirtualMachine&, const Args& args) {
  put(cache_of(args), 0, args.tensor(1), args);
  return args[0];
}

Value growing_cache_view(VirtualMachine&, const Args& args) {
  const GrowingCache& cache = cache_of(args);
  const Dims rows = shape_of_rows(cache, cache.filled);
  if (args.size() > 1 && args.shape(1).dims != rows)
    fail({.what = text(args.callee(), ": the shape ", args.shape(1).dims, " of a cache that holds ", rows),
          .needs = "the shape of what the cache holds"});
  return Tensor::view(cache.data->storage(), cache.data->byte_offset(), rows, cache.data->dtype());
}

Value growing_cache_popn(VirtualMachine&, const Args& args) {
  const int64_t n = args.integer(1);
  return for_each_cache(args, [&](GrowingCache& cache) {
    if (n < 0 || n > cache.filled) args.fail_expected(1, text("a number of rows from 0 to ", cache.filled));
    cache.filled -= n;
  });
}

Value growing_cache_clear(VirtualMachine&, const Args& args) {
  return for_each_cache(args, [](GrowingCache& cache) { cache.filled = 0; });
}

}  // namespace sator::runtime::builtin
