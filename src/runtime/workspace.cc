#include "runtime/workspace.h"

#include <algorithm>
#include <new>

#include "runtime/memory.h"

namespace sator::runtime {

namespace {
constexpr int64_t kFirstBlock = 64 << 10;
}

Workspace::~Workspace() {
  for (const Block& block : blocks_) free_memory(block.memory, block.size_bytes);
}

bool Workspace::add_block(int64_t size_bytes) noexcept {
  char* memory = static_cast<char*>(allocate_memory(size_bytes));
  if (memory == nullptr) return false;
  blocks_.push_back({memory, size_bytes});
  used_ = 0;
  return true;
}

void* Workspace::push(int64_t size_bytes) noexcept {
  if (size_bytes < 0 || size_bytes > (int64_t{1} << 60)) return nullptr;
  int64_t size = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (blocks_.empty() || blocks_.back().size_bytes - used_ < size) {
    int64_t last = blocks_.empty() ? kFirstBlock / 2 : blocks_.back().size_bytes;
    if (!add_block(std::max(size, 2 * last)) && !add_block(size)) return nullptr;
  }
  Push push{blocks_.size() - 1, used_};
  pushed_.push_back(push);
  used_ += size;
  return blocks_.back().memory + push.offset;
}

void Workspace::pop(void* memory) noexcept {
  for (size_t i = pushed_.size(); i-- > 0;)
    if (blocks_[pushed_[i].block].memory + pushed_[i].offset == memory) return release(i);
}

void Workspace::release(size_t mark) noexcept {
  if (mark >= pushed_.size()) return;
  Push first = pushed_[mark];
  pushed_.resize(mark);
  if (mark == 0 && blocks_.size() > 1) return merge_blocks();
  // An earlier block is not filled again before all is released: its rest is lost until then, but nothing
  // grows.
  used_ = first.block + 1 == blocks_.size() ? first.offset : 0;
}

void Workspace::merge_blocks() noexcept {
  int64_t total = capacity_bytes();
  for (const Block& block : blocks_) free_memory(block.memory, block.size_bytes);
  blocks_.clear();
  used_ = 0;
  add_block(total);
}

int64_t Workspace::capacity_bytes() const {
  int64_t total = 0;
  for (const Block& block : blocks_) total += block.size_bytes;
  return total;
}

}  // namespace sator::runtime
