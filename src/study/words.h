// Sentences that the table and the page share.
#pragma once

#include "study/result.h"

namespace sator::study {

/// "gpt2-stories: gpt2, 8 layers, 8.55 M parameters"
std::string headline(const Study& study);

/// Text and windows, lengths, threads, processor.
std::string protocol_line(const Study& study);

/// "tpuv1: 256x256 MAC units, weight-stationary, 700 MHz, 34.0 GB/s outside, 28 nm"
std::string chip_line(const ChipFacts& chip);
/// "700 MHz, 34.0 GB/s outside, 28 nm"
std::string speed_words(const ChipFacts& chip);

/// A width that a chip runs otherwise than asked, and the schemes that ask it.
struct PrecisionRemark {
  std::string words;
  std::vector<std::string> schemes;
};
std::vector<PrecisionRemark> precision_remarks_on(const Study& study, size_t chip);

/// "141 GB on 80.0 GB of hbm (weights 140 GB, cache 1.00 GB, activations 30.0 MB)".
std::string need_words(const MemoryNeed& need);

/// Of a chip of a study: a sentence for each scheme that does not fit.
std::vector<std::string> capacity_remarks_on(const Study& study, size_t chip);

/// An energy; "-" where none of what it is of has a known one.
bool knows_energy(const Cost& cost);
std::string energy_text(const Cost& cost);
std::string energy_text(double joules);

/// A perplexity: five significant digits where it is small, fewer where it explodes; "-" if it was not measured.
std::string perplexity_text(std::optional<double> value);

/// Three digits with the sign: "+0.222".
std::string signed_text(double value);
/// A mean's error; "-" where one window knows none.
std::string error_text(const std::optional<double>& error);

/// A speed's median, marked with ~ where its rounds differ too much; "-" if it was not measured.
std::string speed_text(const std::optional<HostSpeed>& speed);
/// What stands over a table of such speeds, and what ~ means where it occurs.
std::string speeds_line(const Study& study);

/// What was costed and how far the figures can be trusted.
std::vector<std::string> footer_lines(const Study& study);

}  // namespace sator::study
