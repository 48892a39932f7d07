#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

namespace sator {

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
    if (p_) p_->refs_.fetch_add(1, std::memory_order_relaxed);
  }
  void drop() {
    if (p_ && p_->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete p_;
  }
  T* p_ = nullptr;
};

}  // namespace sator

template <class T>
struct std::hash<sator::Ref<T>> {
  size_t operator()(const sator::Ref<T>& r) const { return std::hash<const void*>()(r.get()); }
};
