#include "runtime/storage.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "runtime/memory.h"

namespace sator::runtime {

namespace {

[[noreturn]] void fail_out_of_memory(int64_t size_bytes) {
  fail({.what = text("cannot allocate ", grouped(size_bytes), " bytes for a tensor"),
        .needs = "that much free memory",
        .hint = "use a shorter context, a smaller batch or fewer bits per weight"});
}

// The smallest size class that holds `size_bytes`.
int64_t size_class(int64_t size_bytes) {
  if (size_bytes <= 8 * kAlignment)
    return std::max<int64_t>(1, (size_bytes + kAlignment - 1) / kAlignment) * kAlignment;
  int64_t step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size_bytes - 1))) / 8;
  return (size_bytes + step - 1) / step * step;
}

}  // namespace

Ref<Storage> Storage::allocate(int64_t size_bytes) {
  void* data = allocate_memory(size_bytes);
  if (data == nullptr) fail_out_of_memory(size_bytes);
  Ref<Storage> storage(new Storage());
  storage->data_ = data;
  storage->size_bytes_ = storage->capacity_bytes_ = size_bytes;
  storage->borrowed_ = false;
  return storage;
}

Ref<Storage> Storage::borrow(void* data, int64_t size_bytes, Ref<Object> owner) {
  Ref<Storage> storage(new Storage());
  storage->data_ = data;
  storage->size_bytes_ = size_bytes;
  storage->owner_ = std::move(owner);
  return storage;
}

Storage::~Storage() {
  if (borrowed_) return;
  if (pool_)
    pool_->give_back(data_, capacity_bytes_);
  else
    free_memory(data_, capacity_bytes_);
}

Ref<Storage> StoragePool::allocate(int64_t size_bytes) {
  if (size_bytes < 0 || size_bytes > (int64_t{1} << 60)) fail_out_of_memory(size_bytes);
  int64_t capacity = size_class(size_bytes);
  Ref<Storage> storage(new Storage());
  storage->size_bytes_ = size_bytes;
  storage->capacity_bytes_ = capacity;
  {
    std::lock_guard lock(mutex_);
    auto it = free_.find(capacity);
    if (it != free_.end() && !it->second.empty()) {
      storage->data_ = it->second.back();
      it->second.pop_back();
    }
  }
  if (storage->data_ == nullptr) {
    storage->data_ = allocate_memory(capacity);
    if (storage->data_ == nullptr) {
      trim();
      storage->data_ = allocate_memory(capacity);
    }
    if (storage->data_ == nullptr) fail_out_of_memory(size_bytes);
    std::lock_guard lock(mutex_);
    ++stats_.system_allocations;
    stats_.held_bytes += capacity;
    stats_.peak_held_bytes = std::max(stats_.peak_held_bytes, stats_.held_bytes);
  }
  storage->pool_ = Ref<StoragePool>(this);
  storage->borrowed_ = false;
  return storage;
}

void StoragePool::give_back(void* memory, int64_t capacity_bytes) {
  std::lock_guard lock(mutex_);
  free_[capacity_bytes].push_back(memory);
}

void StoragePool::trim() {
  std::lock_guard lock(mutex_);
  for (auto& [capacity, blocks] : free_) {
    for (void* block : blocks) free_memory(block, capacity);
    stats_.held_bytes -= capacity * static_cast<int64_t>(blocks.size());
  }
  free_.clear();
}

StoragePool::~StoragePool() { trim(); }

StoragePool::Stats StoragePool::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace sator::runtime
