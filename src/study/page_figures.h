// Which data of a study each figure of the page shows.
#pragma once

#include "study/compare.h"
#include "study/svg.h"
#include "study/svg_roofline.h"

namespace sator::study {

/// The block that a layer's name belongs to: "transformer.h.3.attn.c_attn" is of "h.3", "model.layers.12" of "layers.12",
/// "lm_head" is itself, and no name is "other".
std::string block_of(std::string_view layer);
/// What is left of a layer's name inside of its block: "attn.c_attn"; of a block itself its name.
std::string place_in_block(std::string_view layer);

/// Perplexity against the latency of a phase, one point per scheme.
std::string quality_plot(const Study& study, size_t chip, const PhaseName& phase);

/// Latency of a phase by component, one bar per scheme, with the interval where the chip is calibrated.
std::string time_plot(const Study& study, size_t chip, const PhaseName& phase);

/// The kernels of a phase summed by block of the model, in the order of the program.
std::string layer_plot(const Study& study, const SchemeResult& scheme, size_t chip, const PhaseName& phase);

/// The chip's ceilings and memories, and each different kernel of both phases that multiplies: against the outermost memory,
/// and once more against the memory that binds it if that is another.
Roofline roofline_of(const Study& study, const SchemeResult& scheme, size_t chip);

/// The energy of a phase, part by part.
std::string energy_plot(const Study& study, const SchemeResult& scheme, size_t chip, const PhaseName& phase);

/// What a part of the chip that is faster by a tenth takes off the latency of a phase, as a share of it: elasticity times
/// 1 - 1/1.1. Exact while the same parts bind; mostly less where another comes to.
struct Gain {
  std::string name;
  double share = 0;
};
inline constexpr double kFaster = 1.1;
/// The clock, then parts by their gain.
std::vector<Gain> gains_of(const Cost& cost, const ChipFacts& chip);
/// What a memory that is larger by a tenth takes off the latency, named by that size. Its kernels were mapped anew.
std::vector<Gain> larger_memory_gains(const PhaseResult& phase);
std::string sensitivity_plot(const Study& study, const SchemeResult& scheme, size_t chip, const PhaseName& phase);

/// All schemes on all chips: energy against latency of a request, a shape per chip, those named that no other beats.
std::string pareto_plot(const Study& study, const std::vector<Candidate>& all);

/// Of the largest product of a phase's kernels: what it is, and the first stamps of it on the array. A mapping that no picture shows
/// gives words instead; no product, nothing.
struct ProductFigure {
  std::string title, figure;
};
std::optional<ProductFigure> space_time_figure(const Study& study, const SchemeResult& scheme, size_t chip,
                                               const PhaseName& phase);

}  // namespace sator::study
