#include "base/object.h"

namespace sator {

constinit thread_local ObjectMemory::List ObjectMemory::lists_[kLists];

namespace {

/// Objects that one list keeps.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr uint32_t kMost = 0;
#else
constexpr uint32_t kMost = 4096;
#endif

}  // namespace

/// Gives a thread's memory back. What objects leave after it goes to malloc.
struct ObjectMemory::AtEnd {
  AtEnd() {
    for (size_t i = 0; i + 1 < kLists; ++i) lists_[i].most = kMost;
  }
  ~AtEnd() {
    for (List& list : lists_) {
      list.most = list.count = 0;
      for (Free* at = std::exchange(list.first, nullptr); at;) ::operator delete(std::exchange(at, at->next));
    }
  }
};

void* ObjectMemory::take_new(size_t size) {
  static thread_local AtEnd at_end;
  // Whole grains: another size of the same list takes it later.
  return ::operator new((size + kGrain - 1) / kGrain * kGrain);
}

void ObjectMemory::give_back(void* memory) { ::operator delete(memory); }

}  // namespace sator
