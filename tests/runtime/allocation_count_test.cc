// Replaces operator new of the test program by one that can count.
#include "allocation_count.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

namespace {
std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};
}  // namespace

// Not inlined, for the compiler warns of malloc beside delete where it sees through one of the two.
[[gnu::noinline]] void* operator new(size_t size) {
  if (counting) ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (counting) ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace sator::runtime::testing {

void start_counting_allocations() {
  allocations = 0;
  counting = true;
}

int64_t stop_counting_allocations() {
  counting = false;
  return allocations;
}

TEST(AllocationCount, CountsWhileItIsOn) {
  start_counting_allocations();
  std::vector<std::vector<int>> three(2, std::vector<int>(10));
  EXPECT_EQ(stop_counting_allocations(), 4);  // the sample, the vector, its two copies
  three.emplace_back(5);
  EXPECT_EQ(stop_counting_allocations(), 4);
}

}  // namespace sator::runtime::testing
