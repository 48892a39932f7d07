#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
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

/// The root of everything that is shared by reference count: IR nodes, tensors, caches.
class Object {
 public:
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
