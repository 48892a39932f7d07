#include "study/words.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/figures.h"
#include "base/text.h"
#include "study/compare.h"

namespace sator::study {

std::string headline(const Study& study) {
  const ModelFacts& m = study.model;
  return text(m.name,
              ": ",
              m.type,
              ", ",
              m.layers,
              " layers, ",
              quantity(static_cast<double>(m.parameters), ""),
              " parameters");
}

std::string protocol_line(const Study& study) {
  const Protocol& p = study.protocol;
  std::string line = text("prompt of ", counted(p.prompt_len, "token"), ", ", p.gen_len, " generated");
  if (p.objective != "latency") line += text("; mappings chosen for ", p.objective);
  if (p.shapes_only) return line + "; shapes only: no weights, nothing was run";
  line += text("; perplexity on ", p.text, ", ", p.windows, " windows of ", p.window_tokens, " tokens");
  for (const SchemeResult& s : study.schemes)
    if (s.compared && s.perplexity) {
      line += text("; ", p.reference, " has ", perplexity_text(*s.perplexity - s.compared->perplexity.value));
      break;
    }
  line += text("; measured on ", p.host, " with ", p.threads, p.threads == 1 ? " thread" : " threads");
  return line;
}

std::string chip_line(const ChipFacts& chip) {
  return text(chip.name, ": ", chip.rows, "x", chip.columns, " MAC units, ", chip.dataflow, ", ", speed_words(chip));
}

std::string speed_words(const ChipFacts& chip) {
  return text(quantity(chip.clock_hz, "Hz"),
              ", ",
              quantity(chip.outer_bytes_per_s, "B/s"),
              " outside",
              chip.node_nm > 0 ? text(", ", chip.node_nm, " nm") : "");
}

bool knows_energy(const Cost& cost) {
  const bool did_nothing = cost.energy_node_nm > 0 && cost.latency_cycles == 0;
  return cost.energy_j > 0 || did_nothing;
}

std::string energy_text(const Cost& cost) { return knows_energy(cost) ? quantity(cost.energy_j, "J") : "-"; }

std::string energy_text(double joules) { return joules > 0 ? quantity(joules, "J") : "-"; }

/// What +a16 would gain where inputs stay 32-bit floats and the chip is made for narrower ones.
static std::string narrow_hint(const ChipFacts& chip, std::string_view remark) {
  constexpr std::string_view kWide = "float32 x float32", kNarrow = "float16 x float16";
  if (!remark.ends_with(kWide)) return "";
  auto rate = [&](std::string_view precision) {
    auto at = std::ranges::find(chip.peaks, precision, &PeakRate::precision);
    return at == chip.peaks.end() ? 0 : at->macs_per_s;
  };
  if (rate(kWide) == 0 || rate(kNarrow) <= rate(kWide)) return "";
  return text(" (", kNarrow, " is ", rate(kNarrow) / rate(kWide), " times as fast: schemes with +a16)");
}

std::vector<PrecisionRemark> precision_remarks_on(const Study& study, size_t chip) {
  std::vector<PrecisionRemark> remarks;
  for (const SchemeResult& scheme : study.schemes)
    for (const std::string& words : precision_remarks(scheme.chips[chip])) {
      auto known = std::find_if(remarks.begin(), remarks.end(), [&](const auto& r) { return r.words == words; });
      if (known == remarks.end()) known = remarks.insert(remarks.end(), {words, {}});
      known->schemes.push_back(scheme.name);
    }
  for (PrecisionRemark& r : remarks) r.words += narrow_hint(study.chips[chip], r.words);
  for (PrecisionRemark& r : remarks)
    if (study.schemes.size() > 1 && r.schemes.size() == study.schemes.size()) r.schemes = {"all schemes"};
  return remarks;
}

std::string need_words(const MemoryNeed& need) {
  auto bytes = [](int64_t b) { return quantity(static_cast<double>(b), "B"); };
  return text(bytes(need.bytes()),
              need.capacity_bytes ? text(" on ", bytes(*need.capacity_bytes), " of ", need.memory) : "",
              " (weights ",
              bytes(need.weights_bytes),
              ", cache ",
              bytes(need.cache_bytes),
              ", activations ",
              bytes(need.activation_bytes),
              ")");
}

std::vector<std::string> capacity_remarks_on(const Study& study, size_t chip) {
  std::vector<std::string> remarks;
  for (const SchemeResult& scheme : study.schemes) {
    const std::optional<MemoryNeed>& need = scheme.chips[chip].need;
    if (!need || need->fits()) continue;
    const int64_t each = study.protocol.parallel;
    const std::string way_out =
        need->chips_with_room
            ? text("; ", *need->chips_with_room, " of them have room: --parallel ", *need->chips_with_room)
            : "; no number of them with --parallel has room";
    remarks.push_back(text(scheme.name,
                           " does not fit",
                           each > 1 ? text(" each of ", each, " chips") : "",
                           ": ",
                           need_words(*need),
                           way_out));
  }
  return remarks;
}

std::vector<std::string> footer_lines(const Study& study) {
  const KernelTally n = tally(study);
  std::vector<std::string> lines = study.protocol.remarks;
  lines.push_back(text("kernels costed: ",
                       grouped(n.costed),
                       " of ",
                       grouped(n.kernels),
                       "; counts checked by enumeration on ",
                       grouped(n.checked),
                       " kernels"));
  for (size_t c = 0; c < study.chips.size(); ++c) {
    std::vector<std::string> lacking;
    for (const SchemeResult& scheme : study.schemes)
      if (const int64_t without = kernels_without_cost(scheme.chips[c]); without > 0)
        lacking.push_back(text(scheme.name, " ", grouped(without)));
    if (!lacking.empty())
      lines.push_back(text("kernels without a cost on ",
                           study.chips[c].name,
                           ", left out of its figures (kernels.csv says why): ",
                           join(lacking, ", ")));
  }
  bool all = !study.chips.empty();
  for (const ChipFacts& chip : study.chips) {
    if (!chip.calibration.empty()) lines.push_back(text("estimate for ", chip.name, ": ", chip.calibration));
    all &= !chip.calibration.empty();
  }
  if (!all) lines.push_back("estimate, not calibrated to silicon");
  return lines;
}

std::string signed_text(double value) { return (value > 0 ? "+" : "") + significant(value); }

std::string error_text(const std::optional<double>& error) { return or_dash(error, significant); }

std::string speed_text(const std::optional<HostSpeed>& speed) {
  return speed ? significant(speed->median) + (speed->is_unsteady() ? "~" : "") : "-";
}

std::string speeds_line(const Study& study) {
  const Protocol& p = study.protocol;
  std::string line =
      text("speed here in tokens/s: median, least and most of ", p.rounds, " rounds in turns, ", p.measured_at);
  const bool unsteady = std::ranges::any_of(study.schemes, [](const SchemeResult& s) {
    return (s.host_prefill && s.host_prefill->is_unsteady()) || (s.host_decode && s.host_decode->is_unsteady());
  });
  if (unsteady) line += "; ~ rounds differ by more than 10 %, also when measured again: something else ran";
  return line;
}

std::string perplexity_text(std::optional<double> value) {
  if (!value) return "-";
  if (!std::isfinite(*value)) return fixed(*value, 0);
  if (*value < 99.9995) return fixed(*value, 3);
  if (*value < 99999.5) return fixed(*value, *value < 999.995 ? 2 : 0);
  char out[32];
  std::snprintf(out, sizeof out, "%.1e", *value);
  return out;
}

}  // namespace sator::study
