#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>

namespace sator {

/// While one lives, several threads may hold the same objects, and counts are atomic. Else they are plain: atomic counts were half of the
/// time of schedule steps. Whoever lets a second thread meet objects (base/threads.h, a pool's loop, Python without its lock) has one
/// from before that thread may begin until after it has ended.
class SharedObjects {
 public:
  SharedObjects() { alive_.fetch_add(1, std::memory_order_relaxed); }
  ~SharedObjects() { alive_.fetch_sub(1, std::memory_order_relaxed); }
  SharedObjects(const SharedObjects&) = delete;
  SharedObjects& operator=(const SharedObjects&) = delete;
  static bool any() { return alive_.load(std::memory_order_relaxed) != 0; }

 private:
  inline static std::atomic<int> alive_{0};
};

/// Memory of objects: the next of a size takes what the last one gave back, in each thread by itself. A step of a schedule makes and
/// drops thousands of small nodes, more of a size than malloc keeps at hand: 13 % of its time. With sanitizers it is malloc's alone.
class ObjectMemory {
 public:
  static void* take(size_t size) {
    List& list = list_of(size);
    if (!list.first) return take_new(size);
    --list.count;
    return std::exchange(list.first, list.first->next);
  }
  static void give(void* memory, size_t size) {
    List& list = list_of(size);
    if (list.count == list.most) return give_back(memory);
    ++list.count;
    list.first = new (memory) Free{list.first};
  }

 private:
  struct Free {
    Free* next;
  };
  struct List {
    Free* first = nullptr;
    uint32_t count = 0,
             most = 0;  ///< nothing is kept until take_new() has seen to it that the thread's end gives it back
  };
  static constexpr size_t kGrain = 16,
                          kLists = 17;  ///< objects of up to 256 bytes; the last list is for larger ones and keeps none
  static List& list_of(size_t size) { return lists_[std::min((size + kGrain - 1) / kGrain, kLists) - 1]; }
  static void* take_new(size_t size);
  static void give_back(void* memory);
  struct AtEnd;
  // Where a library that is loaded later finds it without a call.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local List lists_[kLists];
};

/// The root of everything that is shared by reference count: IR nodes, tensors, caches.
class Object {
 public:
  static void* operator new(size_t size) { return ObjectMemory::take(size); }
  static void* operator new(size_t, void* at) { return at; }
  static void operator delete(void* memory, size_t size) { ObjectMemory::give(memory, size); }
  // Of classes that want more than malloc's alignment.
  static void* operator new(size_t size, std::align_val_t alignment) { return ::operator new(size, alignment); }
  static void operator delete(void* memory, size_t, std::align_val_t alignment) {
    ::operator delete(memory, alignment);
  }

  Object() = default;
  Object(const Object&) {}  // A copy starts with its own count.
  Object& operator=(const Object&) { return *this; }
  virtual ~Object() = default;

 private:
  template <class T>
  friend class Ref;
  mutable std::atomic<uint32_t> refs_{0};
};

/// A counted pointer to T, possibly null. Equality is identity; structural equality is `equal()` of ir/.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* p) : p_(p) { retain(); }
  Ref(const Ref& o) : p_(o.p_) { retain(); }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
    requires(std::is_convertible_v<U*, T*> && !std::is_same_v<U, T>)
  Ref(const Ref<U>& o) : p_(o.get()) {
    retain();
  }
  template <class U>
    requires(std::is_convertible_v<U*, T*> && !std::is_same_v<U, T>)
  Ref(Ref<U>&& o) noexcept : p_(o.release()) {}
  ~Ref() { drop(); }

  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  /// Whether nothing else holds the object; then its holder may change it.
  bool is_unique() const { return p_ && p_->refs_.load(std::memory_order_acquire) == 1; }
  /// Gives the count away; for conversions only.
  T* release() { return std::exchange(p_, nullptr); }

  /// The object as a U, or null if it is another kind (or null).
  template <class U>
  const U* as() const {
    return p_ ? p_->template as<U>() : nullptr;
  }

  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }
  friend bool operator==(const Ref& a, std::nullptr_t) { return a.p_ == nullptr; }
  friend auto operator<=>(const Ref& a, const Ref& b) {
    return reinterpret_cast<std::uintptr_t>(a.p_) <=> reinterpret_cast<std::uintptr_t>(b.p_);
  }

 private:
  void retain() const {
    if (!p_) return;
    if (SharedObjects::any()) [[unlikely]]
      p_->refs_.fetch_add(1, std::memory_order_relaxed);
    else
      p_->refs_.store(p_->refs_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void drop() {
    if (!p_) return;
    if (SharedObjects::any()) [[unlikely]] {
      if (p_->refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    } else if (const uint32_t count = p_->refs_.load(std::memory_order_relaxed); count != 1) {
      p_->refs_.store(count - 1, std::memory_order_relaxed);
      return;
    }
    delete p_;
  }
  T* p_ = nullptr;
};

}  // namespace sator

template <class T>
struct std::hash<sator::Ref<T>> {
  size_t operator()(const sator::Ref<T>& r) const { return std::hash<const void*>()(r.get()); }
};
