#include "codegen/emit/lanes.h"

#include <algorithm>

namespace sator::codegen {

namespace {

bool is_constant(const Lanes& x) { return !x.base; }
bool is_uniform(const Lanes& x) {
  return std::all_of(x.offsets.begin(), x.offsets.end(), [&](int64_t o) { return o == x.offsets[0]; });
}

/// Both sides constant: lane by lane.
template <class F>
std::optional<Lanes> lanewise(const Lanes& a, const Lanes& b, F f) {
  if (!is_constant(a) || !is_constant(b)) return {};
  Lanes out;
  for (size_t i = 0; i < a.offsets.size(); ++i) {
    std::optional<int64_t> v = f(a.offsets[i], b.offsets[i]);
    if (!v) return {};
    out.offsets.push_back(*v);
  }
  return out;
}

std::optional<Lanes> sum(const Lanes& a, const Lanes& b, int sign) {
  Lanes out;
  for (size_t i = 0; i < a.offsets.size(); ++i) out.offsets.push_back(a.offsets[i] + sign * b.offsets[i]);
  if (!b.base)
    out.base = a.base;
  else if (!a.base)
    out.base = sign > 0 ? b.base : -b.base;
  else
    out.base = sign > 0 ? a.base + b.base : a.base - b.base;
  return out;
}

std::optional<Lanes> product(Lanes a, Lanes b) {
  if (!is_constant(b)) std::swap(a, b);
  if (!is_constant(b)) return {};
  if (a.base && !is_uniform(b)) return {};
  for (size_t i = 0; i < a.offsets.size(); ++i) a.offsets[i] *= b.offsets[i];
  if (a.base) a.base = a.base * b.offsets[0];
  return a;
}

template <class N, class F>
std::optional<Lanes> both(const N& n, F f) {
  auto a = lanes_of(n.a), b = lanes_of(n.b);
  if (!a || !b) return {};
  return f(*a, *b);
}

std::optional<int64_t> when(bool ok, int64_t v) { return ok ? std::optional(v) : std::nullopt; }

}  // namespace

std::optional<Lanes> lanes_of(const Expr& index) {
  if (index->dtype.lanes == 1) {
    if (auto value = as_int(index)) return Lanes{nullptr, {*value}};
    return Lanes{index, {0}};
  }
  using Result = std::optional<Lanes>;
  return match(
      index,
      [](const Ramp& n) -> Result {
        auto base = lanes_of(n.base), stride = lanes_of(n.stride);
        if (!base || !stride || !is_constant(*stride)) return {};
        Lanes out{base->base, {}};
        for (int i = 0; i < n.lanes.count; ++i)
          for (size_t j = 0; j < base->offsets.size(); ++j)
            out.offsets.push_back(base->offsets[j] + i * stride->offsets[j]);
        return out;
      },
      [](const Broadcast& n) -> Result {
        auto value = lanes_of(n.value);
        if (!value) return {};
        Lanes out{value->base, {}};
        for (int i = 0; i < n.lanes.count; ++i)
          out.offsets.insert(out.offsets.end(), value->offsets.begin(), value->offsets.end());
        return out;
      },
      [](const Shuffle& n) -> Result {
        if (n.vectors.size() != 1) return {};
        auto from = lanes_of(n.vectors[0]);
        if (!from) return {};
        Lanes out{from->base, {}};
        for (const Expr& i : n.indices) {
          auto at = as_int(i);
          if (!at || *at < 0 || *at >= static_cast<int64_t>(from->offsets.size())) return {};
          out.offsets.push_back(from->offsets[static_cast<size_t>(*at)]);
        }
        return out;
      },
      [](const Cast& n) -> Result {
        if (!n.dtype.is_integer() || !n.value->dtype.is_integer() || n.dtype.bits < n.value->dtype.bits) return {};
        auto value = lanes_of(n.value);
        if (value && value->base) value->base = cast_to(n.dtype.element(), value->base);
        return value;
      },
      [](const Add& n) -> Result { return both(n, [](auto& a, auto& b) { return sum(a, b, 1); }); },
      [](const Sub& n) -> Result { return both(n, [](auto& a, auto& b) { return sum(a, b, -1); }); },
      [](const Mul& n) -> Result { return both(n, product); },
      [](const FloorDiv& n) -> Result {
        return both(n, [](auto& a, auto& b) {
          return lanewise(a, b, [](int64_t x, int64_t y) { return when(y > 0, y > 0 ? floor_div(x, y) : 0); });
        });
      },
      [](const FloorMod& n) -> Result {
        return both(n, [](auto& a, auto& b) {
          return lanewise(a, b, [](int64_t x, int64_t y) { return when(y > 0, y > 0 ? floor_mod(x, y) : 0); });
        });
      },
      [](const Div& n) -> Result {
        return both(n, [](auto& a, auto& b) {
          return lanewise(a, b, [](int64_t x, int64_t y) { return when(y > 0, y > 0 ? x / y : 0); });
        });
      },
      [](const Mod& n) -> Result {
        return both(n, [](auto& a, auto& b) {
          return lanewise(a, b, [](int64_t x, int64_t y) { return when(y > 0, y > 0 ? x % y : 0); });
        });
      },
      [](const ExprNode&) -> Result { return {}; });
}

}  // namespace sator::codegen
