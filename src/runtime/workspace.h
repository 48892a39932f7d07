#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sator::runtime {

/// Scratch memory of one worker, given out and taken back like a stack. It grows by blocks; once everything
/// is given back, one block of the whole size takes their place, so that a steady state allocates nothing.
class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();

  /// Uninitialised memory, 64-byte aligned; null when memory is out or the size is negative.
  void* push(int64_t size_bytes) noexcept;
  /// Takes back `memory` and whatever was pushed after it. A pointer that was not pushed is ignored.
  void pop(void* memory) noexcept;

  /// How much is pushed now; `release` takes back what was pushed since.
  size_t mark() const { return pushed_.size(); }
  void release(size_t mark) noexcept;
  int64_t capacity_bytes() const;

 private:
  struct Block {
    char* memory;
    int64_t size_bytes;
  };
  struct Push {
    size_t block;
    int64_t offset;  // in the block, of the memory given out
  };
  bool add_block(int64_t size_bytes) noexcept;
  void merge_blocks() noexcept;

  std::vector<Block> blocks_;
  std::vector<Push> pushed_;
  int64_t used_ = 0;  // bytes of the last block in use
};

}  // namespace sator::runtime
