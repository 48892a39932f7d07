// Schemes against each other: ratios to the baseline, the Pareto front, which scheme wins and why.
#pragma once

#include <span>

#include "study/result.h"

namespace sator::study {

/// The scheme that figures of no chip refer to (perplexity, bytes of weights): f16, else the first.
size_t baseline_of(const Study& study);
/// The scheme that ratios on a chip refer to: what is deployed there unquantized. On chips whose fast units take 16 bits that
/// is f16+a16, for f16 multiplies by 32-bit floats; elsewhere, and where the study lacks it, as above.
size_t baseline_of(const Study& study, size_t chip);
/// Its name among the schemes.
inline constexpr const char* kBaseline16Bit = "f16+a16";

/// How often the baseline's figure is the scheme's: above 1 the scheme is the better one. Absent where there is nothing to
/// divide.
std::optional<double> ratio(double baseline, double scheme);

/// A figure of a whole request: of the prompt, and gen_len times that of a token.
double of_request(const ChipResult& result, const Protocol& protocol, double Cost::* figure);

/// Kernels that both phases' figures leave out, as nothing tells what they cost.
int64_t kernels_without_cost(const ChipResult& result);

/// Seconds of a whole request on the chip: the prompt, then gen_len tokens at the mean context.
double request_s(const ChipResult& result, const Protocol& protocol);

/// The points that no other beats: none is as cheap and as good, and better in one of the two. In the order of cost.
/// Points that are not finite are left out.
///   cost, loss   one each per point; smaller is better
std::vector<size_t> pareto_front(std::span<const double> cost, std::span<const double> loss);

/// How much more a scheme loses on a token than another, in nats: ln of the ratio of their perplexities. With the figures of
/// the windows it has its paired standard error. Nothing where a perplexity is missing or not finite.
std::optional<WindowMean> quality_gap(const SchemeResult& scheme, const SchemeResult& other);

/// Two standard errors, beyond which a difference is taken for one: some 95 % of a normal distribution lie within.
inline constexpr double kSure = 2;

/// Below 0: a predicts better than b; above 0: worse; 0: the text does not tell, their gap is within kSure paired errors.
/// A perplexity that is missing or infinite is the worst.
int quality_order(const SchemeResult& a, const SchemeResult& b);

/// Whether a scheme's perplexity is at most `factor` times another's, kSure paired errors included.
bool is_surely_within(const SchemeResult& scheme, const SchemeResult& other, double factor);

/// A scheme on a chip, by what a request takes.
struct Candidate {
  size_t scheme = 0, chip = 0;
  double latency_s = 0, energy_j = 0;
  std::optional<dataflow::LatencyInterval> latency_interval;
  std::optional<double> perplexity;
  /// No other is as good in latency, energy and quality (quality_order, where perplexity was measured) and better in one.
  bool best = false;
};
std::vector<Candidate> candidates(const Study& study);

/// Which scheme wins on a chip: the shortest request, of equal ones the better by quality_order. Where it is not surely within
/// 1 % of the best perplexity, also the fastest of those that are.
struct Verdict {
  std::string chip;
  size_t winner = 0;                    // of the schemes
  std::optional<size_t> close_to_best;  // the fastest surely within 1 % of the best perplexity, if it is another
  std::string sentence;
};

/// One per chip; none where there is no scheme. The reason is what the components of the request's latency gained
/// and lost most against the baseline.
std::vector<Verdict> verdicts(const Study& study);

/// A remark for each width that the chip runs otherwise than asked, over both phases: "float32 x float32 runs as
/// int16 x int16 in 4 passes".
std::vector<std::string> precision_remarks(const ChipResult& result);

}  // namespace sator::study
