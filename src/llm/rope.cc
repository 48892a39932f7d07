// Where attention learns of positions: rotary frequencies and linear biases.
#include <algorithm>
#include <bit>
#include <cmath>

#include "llm/blocks.h"

namespace sator::llm {

namespace {

using Kind = RopeScaling::Kind;

/// The dimension whose pair turns so many times over the original positions. Source: YaRN, equation 17 and its code.
double dimension_of(double turns, const Rope& rope) {
  return static_cast<double>(rope.dims) *
         std::log(static_cast<double>(rope.scaling.original_positions) / (turns * 2 * M_PI)) /
         (2 * std::log(rope.theta));
}

double llama3(double f, const RopeScaling& s) {
  const double wavelength = 2 * M_PI / f, original = static_cast<double>(s.original_positions);
  const double low = original / s.low_freq_factor, high = original / s.high_freq_factor;
  if (wavelength > low) return f / s.factor;
  if (wavelength <= high) return f;
  const double smooth = (original / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - smooth) * f / s.factor + smooth * f;
}

double yarn(double f, int64_t pair, const Rope& rope) {
  const RopeScaling& s = rope.scaling;
  double low = dimension_of(s.beta_fast, rope), high = dimension_of(s.beta_slow, rope);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(rope.dims - 1));
  if (low == high) high += 0.001;
  const double ramp = std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
  return f / s.factor * ramp + f * (1 - ramp);
}

}  // namespace

/// Source: Su et al., "RoFormer", 2021; the scalings as RopeScaling says.
std::vector<float> rope_frequencies(const Rope& rope, int64_t context_window) {
  std::vector<float> out;
  const RopeScaling& s = rope.scaling;
  const auto dims = static_cast<double>(rope.dims);
  double theta = rope.theta;
  const bool is_long = context_window > s.original_positions;
  if (s.kind == Kind::dynamic && is_long)
    theta *= std::pow(
        s.factor * static_cast<double>(context_window) / static_cast<double>(s.original_positions) - (s.factor - 1),
        dims / (dims - 2));
  for (int64_t j = 0; j < rope.dims / 2; ++j) {
    double f = std::pow(theta, -2.0 * static_cast<double>(j) / dims);
    switch (s.kind) {
      case Kind::none:
      case Kind::dynamic: break;
      case Kind::linear: f /= s.factor; break;
      case Kind::llama3: f = llama3(f, s); break;
      case Kind::yarn: f = yarn(f, j, rope); break;
      case Kind::longrope: f /= (is_long ? s.long_factor : s.short_factor)[static_cast<size_t>(j)]; break;
    }
    out.push_back(static_cast<float>(f));
  }
  return out;
}

std::vector<float> alibi_slopes(int64_t heads) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  std::vector<float> out;
  for (int64_t h = 0; h < heads; ++h) {
    const double exponent =
        h < power ? 8.0 * static_cast<double>(h + 1) : 4.0 * static_cast<double>(2 * (h - power) + 1);
    out.push_back(static_cast<float>(std::exp2(-exponent / static_cast<double>(power))));
  }
  return out;
}

}  // namespace sator::llm
