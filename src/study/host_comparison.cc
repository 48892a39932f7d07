#include "study/host_comparison.h"

#include <algorithm>
#include <cmath>

#include "base/figures.h"
#include "base/text.h"
#include "study/host_kernels.h"
#include "study/svg_parts.h"

namespace sator::study {

namespace {

constexpr size_t kWidestName = 26;
constexpr size_t kMostKernels = 12;  // of a phase on the page: those that take longest

dataflow::LatencyInterval expected_of(const Cost& cost) {
  return cost.latency_interval.value_or(dataflow::LatencyInterval{cost.latency_s, cost.latency_s});
}

HostPhase compared(const Study& study, const SchemeResult& scheme, size_t chip, const PhaseName& phase) {
  const PhaseResult& result = scheme.chips[chip].*phase.result;
  const bool prefill = phase.name == "prefill";
  const auto tokens = static_cast<double>(prefill ? study.protocol.prompt_len : 1);
  HostPhase out{.scheme = scheme.name, .phase = std::string(phase.name)};
  auto rate = [&](double seconds) { return seconds > 0 ? tokens / seconds : 0; };
  out.estimated_tokens_per_s = rate(result.cost.latency_s);
  const dataflow::LatencyInterval expected = expected_of(result.cost);
  out.low_tokens_per_s = rate(expected.high_s);
  out.high_tokens_per_s = rate(expected.low_s);
  if (const auto& measured = prefill ? scheme.host_prefill : scheme.host_decode)
    out.measured_tokens_per_s = measured->median;
  for (const KernelRow& row : result.rows) {
    if (!row.costed || !row.duration_us || *row.duration_us < kLeastCompared_us) continue;
    const double measured = *row.duration_us * 1e-6;
    ++out.kernels;
    out.within += measured >= expected_of(row.cost).low_s && measured <= expected_of(row.cost).high_s;
    out.mean_error += std::abs(row.cost.latency_s / measured - 1);
    out.estimated_s += row.cost.latency_s * static_cast<double>(row.count);
    out.measured_s += measured * static_cast<double>(row.count);
  }
  if (out.kernels > 0) out.mean_error /= static_cast<double>(out.kernels);
  return out;
}

std::string between(double low, double high) { return text(significant(low), " to ", significant(high)); }

std::string kernels_words(const HostPhase& p) {
  if (p.kernels == 0) return "no durations";
  return text(p.kernels, " kernels: ", percent(p.mean_error), " off, ", p.within, " inside");
}

std::string row_of(std::initializer_list<std::string> cells) {
  std::string out = "<tr>";
  bool head = true;
  for (const std::string& cell : cells) {
    out += text(head ? "<th>" : "<td>", escaped(cell), head ? "</th>" : "</td>");
    head = false;
  }
  return out + "</tr>";
}

std::string table_of(const std::string& heads, const std::string& body) {
  return text("<div class=\"scroll wide\"><table><thead>", heads, "</thead><tbody>", body, "</tbody></table></div>");
}

std::string heads_of(std::initializer_list<const char*> heads) {
  std::string out = "<tr>";
  for (const char* head : heads) out += text("<th>", head, "</th>");
  return out + "</tr>";
}

/// The kernels of a phase that take longest here.
std::string kernel_rows(const PhaseResult& result, std::string_view phase) {
  std::vector<const KernelRow*> rows;
  for (const KernelRow& row : result.rows)
    if (row.costed && row.duration_us && *row.duration_us > 0) rows.push_back(&row);
  auto whole = [](const KernelRow& row) { return *row.duration_us * static_cast<double>(row.count); };
  std::stable_sort(rows.begin(), rows.end(), [&](auto* a, auto* b) { return whole(*a) > whole(*b); });
  if (rows.size() > kMostKernels) rows.resize(kMostKernels);
  std::string out;
  for (const KernelRow* row : rows) {
    const double us = row->cost.latency_s * 1e6;
    out += row_of({text(phase, ": ", row->function, row->layer.empty() ? "" : text(", ", row->layer)),
                   text(row->count),
                   significant(us),
                   between(expected_of(row->cost).low_s * 1e6, expected_of(row->cost).high_s * 1e6),
                   significant(*row->duration_us),
                   error_words(us, *row->duration_us)});
  }
  return out;
}

}  // namespace

std::vector<HostPhase> host_phases(const Study& study, size_t chip) {
  std::vector<HostPhase> out;
  if (!study.chips[chip].is_host) return out;
  for (const SchemeResult& scheme : study.schemes)
    for (const PhaseName& phase : kPhases) out.push_back(compared(study, scheme, chip, phase));
  return out;
}

std::string error_words(double estimated, std::optional<double> measured) {
  if (!measured || !(*measured > 0)) return "-";
  const double error = estimated / *measured - 1;
  return text(error < 0 ? "-" : "+", percent(std::abs(error)));
}

std::string host_table(const Study& study, size_t chip) {
  const std::vector<HostPhase> phases = host_phases(study, chip);
  if (phases.empty()) return "";
  size_t name = 6;
  for (const HostPhase& p : phases) name = std::clamp(display_width(p.scheme), name, kWidestName);
  auto line = [&](const std::string& scheme,
                  const std::string& phase,
                  const std::string& estimated,
                  const std::string& interval,
                  const std::string& measured,
                  const std::string& error,
                  const std::string& kernels) {
    return text(pad_right(scheme, name + 2),
                pad_right(phase, 9),
                pad_left(estimated, 10),
                pad_left(interval, 18),
                pad_left(measured, 10),
                pad_left(error, 9),
                "  ",
                kernels,
                "\n");
  };
  std::string out = text(study.chips[chip].name, " is this machine: tokens/s estimated beside measured here\n");
  out += line("scheme", "phase", "estimated", "90 % between", "measured", "error", "kernel by kernel");
  for (const HostPhase& p : phases)
    out += line(p.scheme,
                p.phase,
                significant(p.estimated_tokens_per_s),
                between(p.low_tokens_per_s, p.high_tokens_per_s),
                or_dash(p.measured_tokens_per_s, significant),
                error_words(p.estimated_tokens_per_s, p.measured_tokens_per_s),
                kernels_words(p));
  return out;
}

std::string host_section(const Study& study, size_t chip) {
  const std::vector<HostPhase> phases = host_phases(study, chip);
  if (phases.empty()) return "";
  std::string body;
  for (const HostPhase& p : phases)
    body += row_of({text(p.scheme, ", ", p.phase),
                    significant(p.estimated_tokens_per_s),
                    between(p.low_tokens_per_s, p.high_tokens_per_s),
                    or_dash(p.measured_tokens_per_s, significant),
                    error_words(p.estimated_tokens_per_s, p.measured_tokens_per_s),
                    kernels_words(p)});
  std::string out = "<h3>This machine: estimated beside measured</h3>";
  out += table_of(heads_of({"scheme",
                            "tokens/s<small>estimated</small>",
                            "90 %<small>between</small>",
                            "tokens/s<small>measured</small>",
                            "error",
                            "kernel by kernel"}),
                  body);
  for (const SchemeResult& scheme : study.schemes) {
    std::string rows;
    for (const PhaseName& phase : kPhases) rows += kernel_rows(scheme.chips[chip].*phase.result, phase.name);
    if (rows.empty()) continue;
    out += text("<details><summary>Kernels of ",
                escaped(scheme.name),
                ": estimated and measured</summary>",
                table_of(heads_of({"kernel",
                                   "calls",
                                   "us<small>estimated</small>",
                                   "90 %<small>between</small>",
                                   "us<small>measured</small>",
                                   "error"}),
                         rows),
                "</details>");
  }
  return out;
}

}  // namespace sator::study
