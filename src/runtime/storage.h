#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "base/object.h"

namespace sator::runtime {

class StoragePool;

/// Bytes that tensors lie in, 64-byte aligned, from 2 MB on in huge pages. The content of fresh storage is
/// undefined.
class Storage final : public Object {
 public:
  /// Errors: memory is out (the message says how much was asked for).
  static Ref<Storage> allocate(int64_t size_bytes);
  /// Memory that `owner` keeps alive: a mapped file, a foreign array. `owner` may be null for memory that
  /// outlives all.
  static Ref<Storage> borrow(void* data, int64_t size_bytes, Ref<Object> owner);
  ~Storage() override;

  void* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  friend class StoragePool;
  Storage() = default;
  void* data_ = nullptr;
  int64_t size_bytes_ = 0;
  int64_t capacity_bytes_ = 0;
  bool borrowed_ = true;
  Ref<Object> owner_;
  Ref<StoragePool> pool_;
};

/// Keeps the memory of dropped storages for the next request of about the same size (eight size classes per
/// power of two, so at most an eighth is wasted). After the first call of a function its planned storages
/// come from here.
class StoragePool final : public Object {
 public:
  ~StoragePool() override;
  /// Errors: memory is out.
  Ref<Storage> allocate(int64_t size_bytes);
  /// Gives the memory that no storage uses back to the system.
  void trim();

  struct Stats {
    int64_t held_bytes = 0;  ///< taken from the system and not given back
    int64_t peak_held_bytes = 0;
    int64_t system_allocations = 0;  ///< requests that the system, not the pool, had to serve
  };
  Stats stats() const;

 private:
  friend class Storage;
  void give_back(void* memory, int64_t capacity_bytes);

  mutable std::mutex mutex_;
  std::map<int64_t, std::vector<void*>> free_;  // by capacity
  Stats stats_;
};

}  // namespace sator::runtime
