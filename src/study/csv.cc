#include "study/csv.h"

#include <map>
#include <tuple>

#include "base/text.h"
#include "study/compare.h"
#include "study/csv_table.h"
#include "study/file_names.h"
#include "study/tenet_files.h"
#include "study/words.h"

namespace sator::study {

namespace {

/// What a line is about.
struct Place {
  Study& study;
  SchemeResult& scheme;
  size_t chip;
  const PhaseName& phase;
  PhaseResult& result() const { return scheme.chips[chip].*phase.result; }
};

/// Calls visit(place) for each phase of each scheme on each chip.
template <class Visit>
void each_phase(Study& study, const Visit& visit) {
  for (SchemeResult& scheme : study.schemes)
    for (size_t chip = 0; chip < scheme.chips.size(); ++chip)
      for (const PhaseName& phase : kPhases) visit(Place{study, scheme, chip, phase});
}

/// One scheme on one chip, with everything that a line of its kind can have but memories, whose columns come last: those of all
/// chips, outermost first.
Study example() {
  ChipResult chip{.chip = "chip", .prefill = {}, .decode = {}, .need = MemoryNeed{}};
  for (const PhaseName& phase : kPhases) (chip.*phase.result).rows.emplace_back();
  return {.model = {}, .protocol = {}, .chips = {{.name = "chip"}}, .schemes = {{.name = "f16", .chips = {chip}}}};
}

double outer_bytes(const Cost& cost) { return cost.levels.empty() ? 0 : cost.levels.front().bytes(); }

std::string energy_sources(const Cost& cost) {
  std::vector<std::string> parts;
  for (const EnergyShare& e : cost.energy)
    if (!e.source.empty()) parts.push_back(text(e.name, ": ", e.source));
  return join(parts, "; ");
}

void put_place(CsvWriter& w, const Place& p) {
  w(csv_only("model"), p.study.model.name);
  w(csv_only("scheme"), p.scheme.name);
  w(csv_only("chip"), p.study.chips[p.chip].name);
  w(csv_only("phase"), std::string(p.phase.name));
}

/// The baseline's figures over the line's.
void put_ratios(CsvWriter& w, const Place& p) {
  SchemeResult& baseline = p.study.schemes[baseline_of(p.study, p.chip)];
  const Cost &cost = p.result().cost, &base = (baseline.chips[p.chip].*p.phase.result).cost;
  w(csv_only("ratio_latency"), ratio(base.latency_s, cost.latency_s));
  w(csv_only("ratio_energy"), knows_energy(cost) ? ratio(base.energy_j, cost.energy_j) : std::nullopt);
  w(csv_only("ratio_bytes"), ratio(outer_bytes(base), outer_bytes(cost)));
  w(csv_only("ratio_baseline"), baseline.name);
}

void put_study_line(CsvWriter& w, const Place& p) {
  put_place(w, p);
  describe(w, p.study.protocol);
  describe(w, p.scheme);
  w.optional_part("memory_need", p.scheme.chips[p.chip].need);
  put_ratios(w, p);
  describe(w, p.result());
  w(csv_only("energy_sources"), energy_sources(p.result().cost));
}

/// Per MAC, or per element, as TENET has it; empty without any.
std::optional<double> per(int64_t value, int64_t whole) {
  return whole > 0 ? std::optional(static_cast<double>(value) / static_cast<double>(whole)) : std::nullopt;
}

/// TENET's metrics of the kernel's products, over all tensors.
void put_reuse(CsvWriter& w, const KernelRow& k) {
  w(csv_only("average_active_pes"), per(k.counts.spacetime, k.counts.time));
  w(csv_only("reuse_factor"), per(k.counts.total, k.counts.unique));
  w(csv_only("temporal_reuse_per_mac"), per(k.counts.total - k.counts.assigned + k.counts.temporal_hits, k.cost.macs));
  w(csv_only("spatial_reuse_per_mac"), per(k.counts.spatial_hits, k.cost.macs));
}

/// Of the estimate, where the chip is this machine.
std::optional<double> host_error(const Place& p, const KernelRow& k) {
  const std::optional<double>& us = k.duration_us;
  if (!p.study.chips[p.chip].is_host || !k.costed || !us || *us <= 0) return {};
  return k.cost.latency_s * 1e6 / *us - 1;
}

/// Files of schedules by chip, function and text.
using ScheduleNames = std::map<std::tuple<std::string, std::string, std::string>, std::string>;

ScheduleNames schedule_names(const Study& study) {
  ScheduleNames names;
  FileNames files;
  for (const SchemeResult& scheme : study.schemes)
    for (size_t c = 0; c < scheme.chips.size(); ++c)
      for (const PhaseName& phase : kPhases)
        for (const KernelRow& k : (scheme.chips[c].*phase.result).rows) {
          if (k.schedule.empty()) continue;
          auto [at, fresh] = names.try_emplace({study.chips[c].name, k.function, k.schedule});
          if (!fresh) continue;
          at->second = files.unused(text("schedules/", study.chips[c].name, "/", k.function.substr(0, 100))) + ".py";
        }
  return names;
}

/// Writes lines of kernels.csv; the names of the files beside it are those of the study's.
class KernelLines {
 public:
  explicit KernelLines(const Study& study) : schedules_(schedule_names(study)), tenet_(study) {}
  void put(CsvWriter& w, const Place& p, KernelRow& k) const {
    const std::string& chip = p.study.chips[p.chip].name;
    const auto schedule = schedules_.find({chip, k.function, k.schedule});
    put_place(w, p);
    describe(w, k);
    w(csv_only("schedule"), schedule == schedules_.end() ? "" : schedule->second);
    w(csv_only("tenet"), tenet_.of(chip, k));
    put_reuse(w, k);
    w(csv_only("host_error"), host_error(p, k));
  }

 private:
  ScheduleNames schedules_;
  TenetNames tenet_;
};

}  // namespace

std::string study_csv(const Study& given) {
  Study study = given, shape = example();  // the descriptions take fields to read and to write
  CsvTable table;
  auto add = [&](const Place& p) {
    table.begin();
    CsvWriter w(table);
    put_study_line(w, p);
  };
  each_phase(shape, add);
  table.keep_head_alone();
  each_phase(study, add);
  return table.words();
}

std::string kernels_csv(const Study& given) {
  Study study = given, shape = example();
  CsvTable table;
  auto add = [&](Study& of) {
    const KernelLines lines(of);
    each_phase(of, [&](const Place& p) {
      for (KernelRow& kernel : p.result().rows) {
        table.begin();
        CsvWriter w(table);
        lines.put(w, p, kernel);
      }
    });
  };
  add(shape);
  table.keep_head_alone();
  add(study);
  return table.words();
}

std::vector<std::pair<std::string, std::string>> schedule_files(const Study& study) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& [key, name] : schedule_names(study))
    files.emplace_back(name, text("# ", std::get<1>(key), " on ", std::get<0>(key), "\n", std::get<2>(key)));
  return files;
}

}  // namespace sator::study
