// What the explanations of phases and of kernels share.
#pragma once

#include <string>
#include <vector>

#include "study/result.h"

namespace sator::study::explaining {

using Lines = std::vector<std::string>;

/// "  dram              25 calls, ..."
std::string item(std::string_view name, std::string_view words);
/// A kernel's layer, or that it has none.
std::string place(const KernelRow& row);
std::string seconds_of(int64_t cycles, const ChipFacts& chip);

/// "6.10 MB / 4.27 GB/s = 1.43 ms", where that is what it takes; else what it takes in words.
std::string bytes_over_speed(double bytes, double bytes_per_s, double takes_s);

/// Errors: the parts of a whole do not add up to it.
void expect_sum(std::string_view what, int64_t parts, int64_t whole);

/// The named parts of a latency. Errors: their sum is not the latency.
void add_components(Lines& lines, const Cost& cost, const ChipFacts& chip);
/// Each part with what it is per piece of work: pJ per MAC, per operation, per byte; W. Errors: their sum is not the energy.
void add_energy_parts(Lines& lines, const Cost& cost);
/// Bytes per memory, those of the outermost by what they are. Errors: kinds do not add up to the outermost memory's bytes.
void add_traffic(Lines& lines, const Cost& cost);
/// A product's delays by TENET's formula, each with its terms; the longest is its time. Errors: terms that do not make them.
void add_tenet_delays(Lines& lines, const TenetTerms& terms);
/// What twice the speed of each resource would give while the same ones bind, by elasticity.
void add_what_if(Lines& lines, const Cost& cost, const ChipFacts& chip);

}  // namespace sator::study::explaining
