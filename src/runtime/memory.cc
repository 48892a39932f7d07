#include "runtime/memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace sator::runtime {

namespace {

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Maps one huge page more than asked, then gives back what lies outside the aligned part.
void* map_huge(int64_t size_bytes) {
  int64_t mapped_bytes = size_bytes + kHugePage;
  void* mapped =
      mmap(nullptr, static_cast<size_t>(mapped_bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(mapped);
  int64_t head = -reinterpret_cast<intptr_t>(begin) & (kHugePage - 1);
  if (head > 0) munmap(begin, static_cast<size_t>(head));
  if (int64_t tail = kHugePage - head; tail > 0) munmap(begin + head + size_bytes, static_cast<size_t>(tail));
  madvise(begin + head, static_cast<size_t>(size_bytes),
          MADV_HUGEPAGE);  // advice: without it all still works
  return begin + head;
}

}  // namespace

void* allocate_memory(int64_t size_bytes) noexcept {
  if (size_bytes < 0 || size_bytes > (int64_t{1} << 62)) return nullptr;
  if (size_bytes >= kHugePage) return map_huge(round_up(size_bytes, kHugePage));
  return std::aligned_alloc(kAlignment, static_cast<size_t>(round_up(size_bytes > 0 ? size_bytes : 1, kAlignment)));
}

void free_memory(void* memory, int64_t size_bytes) noexcept {
  if (memory == nullptr) return;
  if (size_bytes >= kHugePage)
    munmap(memory, static_cast<size_t>(round_up(size_bytes, kHugePage)));
  else
    std::free(memory);
}

}  // namespace sator::runtime
