#include "study/tenet_files.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/tenet/metrics.h"
#include "study/csv_table.h"
#include "study/file_names.h"

namespace sator::study {

namespace {

constexpr const char* kColumns =
    "files,chip,function,tensor,role,total_volume,unique_volume,footprint,reuse_factor,temporal_reuse,spatial_reuse,"
    "ibw_elements_per_cycle,sbw_elements_per_cycle,delay_cycles,delay_in_cycles,delay_out_cycles,delay_compute_cycles,"
    "latency_cycles,macs,time_stamps,pes_used,pe_array,average_pes,utilization\n";

std::string lines_of(const TenetNames::Product& product, const TenetTexts& texts) {
  const dataflow::TenetInput input = dataflow::parse_tenet(
      {texts.pe_array, texts.mapping, texts.statement, product.name + ".p", product.name + ".m", product.name + ".s"});
  const auto counted = dataflow::count(input.problem);
  if (const Reason* reason = std::get_if<Reason>(&counted)) {
    Reason refused = *reason;
    refused.where = product.name;
    fail(std::move(refused));
  }
  const dataflow::Counts& counts = std::get<dataflow::Counts>(counted);
  const dataflow::TenetMetrics metrics = tenet_metrics(counts, input.hardware);
  // The array takes as long as its busiest stamps do; moving overlaps with it.
  const double latency = std::max(
      {static_cast<double>(metrics.delay_in), static_cast<double>(metrics.delay_out), metrics.delay_compute_unrounded});
  std::string out;
  for (size_t t = 0; t < counts.tensors.size(); ++t) {
    const dataflow::TensorCounts& c = counts.tensors[t];
    const dataflow::TenetTensorMetrics& m = metrics.tensors[t];
    const std::vector<std::string> fields = {csv_field(product.name),
                                             csv_field(product.chip),
                                             csv_field(product.function),
                                             csv_field(c.tensor),
                                             c.role == dataflow::Role::read ? "in" : "out",
                                             text(c.total),
                                             text(c.unique),
                                             text(c.footprint),
                                             m.reuse_factor ? text(*m.reuse_factor) : "",
                                             text(m.temporal_reuse),
                                             text(m.spatial_reuse),
                                             text(m.ibw_per_cycle),
                                             text(m.sbw_per_cycle),
                                             text(m.delay_cycles),
                                             text(metrics.delay_in),
                                             text(metrics.delay_out),
                                             text(metrics.delay_compute_unrounded),
                                             text(latency),
                                             text(counts.macs),
                                             text(counts.time),
                                             text(counts.space),
                                             text(counts.pe_array),
                                             text(metrics.avg_active_pe),
                                             text(metrics.utilization)};
    out += join(fields, ",") + "\n";
  }
  return out;
}

}  // namespace

TenetNames::TenetNames(const Study& study) {
  FileNames files;
  for (const SchemeResult& scheme : study.schemes)
    for (size_t c = 0; c < scheme.chips.size(); ++c)
      for (const PhaseName& phase : kPhases)
        for (const KernelRow& k : (scheme.chips[c].*phase.result).rows)
          for (const TenetTexts& texts : k.tenet) {
            const std::string& chip = study.chips[c].name;
            auto [at, fresh] = names_.try_emplace({chip, k.function, texts.mapping, texts.statement});
            if (!fresh) continue;
            at->second = files.unused(text("tenet/", chip, "/", k.function.substr(0, 100)));
            products_.push_back({{chip, k.function, at->second}, texts});
          }
}

std::string TenetNames::of(const std::string& chip, const KernelRow& kernel) const {
  std::vector<std::string> names;
  for (const TenetTexts& texts : kernel.tenet) {
    auto at = names_.find({chip, kernel.function, texts.mapping, texts.statement});
    if (at != names_.end()) names.push_back(at->second);
  }
  return join(names, "; ");
}

std::vector<std::pair<std::string, std::string>> tenet_files(const Study& study) {
  std::vector<std::pair<std::string, std::string>> files;
  const TenetNames names(study);
  std::string metrics = kColumns;
  for (const auto& [product, texts] : names.products()) {
    files.emplace_back(product.name + ".p", texts.pe_array);
    files.emplace_back(product.name + ".m", texts.mapping);
    files.emplace_back(product.name + ".s", texts.statement);
    metrics += lines_of(product, texts);
  }
  if (!files.empty()) files.emplace_back("tenet/metrics.csv", std::move(metrics));
  return files;
}

}  // namespace sator::study
