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

// In float32, step by step, as transformers computes them: position 5000 moves an angle by 5000 times what a frequency is off.

float llama3(float f, const RopeScaling& s) {
  const auto wavelength = static_cast<float>(2 * M_PI) / f;
  const double original = static_cast<double>(s.original_positions);
  if (wavelength > static_cast<float>(original / s.low_freq_factor)) return f / static_cast<float>(s.factor);
  if (wavelength < static_cast<float>(original / s.high_freq_factor)) return f;
  const float smooth = (static_cast<float>(original) / wavelength - static_cast<float>(s.low_freq_factor)) /
                       static_cast<float>(s.high_freq_factor - s.low_freq_factor);
  return (1 - smooth) * f / static_cast<float>(s.factor) + smooth * f;
}

///   power   1 / the frequency before it is scaled
float yarn(float power, int64_t pair, const Rope& rope) {
  const RopeScaling& s = rope.scaling;
  double low = dimension_of(s.beta_fast, rope), high = dimension_of(s.beta_slow, rope);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(rope.dims - 1));
  if (low == high) high += 0.001;
  const float ramp =
      std::clamp((static_cast<float>(pair) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0F, 1.0F);
  const float kept = 1 - ramp, scaled = 1 / (static_cast<float>(s.factor) * power);
  return scaled * (1 - kept) + 1 / power * kept;
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
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(rope.dims);
    const auto power = static_cast<float>(std::pow(double{static_cast<float>(theta)}, double{exponent}));
    float f = 1 / power;
    switch (s.kind) {
      case Kind::none:
      case Kind::dynamic: break;
      case Kind::linear: f /= static_cast<float>(s.factor); break;
      case Kind::llama3: f = llama3(f, s); break;
      case Kind::yarn: f = yarn(power, j, rope); break;
      case Kind::longrope:
        f = 1 / (static_cast<float>((is_long ? s.long_factor : s.short_factor)[static_cast<size_t>(j)]) * power);
        break;
    }
    out.push_back(f);
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
