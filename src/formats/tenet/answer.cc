#include "formats/tenet/answer.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "dataflow/counts/enumerate.h"
#include "dataflow/tenet/metrics.h"
#include "formats/input_keys.h"
#include "formats/tenet/program.h"

namespace sator::formats {

using namespace dataflow;

namespace {

Json counts_json(const Counts& c) {
  Json tensors = Json::object();
  for (const TensorCounts& t : c.tensors)
    tensors[tenet_key(t)] = {{"total", t.total},
                             {"assigned", t.assigned},
                             {"unique", t.unique},
                             {"temporal_hits", t.temporal_hits},
                             {"spatial_hits", t.spatial_hits},
                             {"footprint", t.footprint}};
  return {{"macs", c.macs},
          {"pe_array", c.pe_array},
          {"space", c.space},
          {"time", c.time},
          {"spacetime", c.spacetime},
          {"tensors", std::move(tensors)}};
}

Json derived_json(const TenetMetrics& m, const Counts& c) {
  Json tensors = Json::object();
  for (size_t i = 0; i < c.tensors.size(); ++i) {
    const TenetTensorMetrics& t = m.tensors[i];
    tensors[tenet_key(c.tensors[i])] = {{"reuse_factor", t.reuse_factor ? Json(*t.reuse_factor) : Json()},
                                        {"temporal_reuse", t.temporal_reuse},
                                        {"spatial_reuse", t.spatial_reuse},
                                        {"ibw_per_cycle", t.ibw_per_cycle},
                                        {"sbw_per_cycle", t.sbw_per_cycle},
                                        {"delay", t.delay_cycles}};
  }
  return {{"delay_in", m.delay_in},
          {"delay_out", m.delay_out},
          {"delay_compute_master", m.delay_compute_master},
          {"delay_compute_micro_tutorial", m.delay_compute_micro_tutorial},
          {"delay_compute_unrounded", m.delay_compute_unrounded},
          {"latency_master", m.latency_master},
          {"latency_micro_tutorial", m.latency_micro_tutorial},
          {"avg_active_pe", m.avg_active_pe},
          {"utilization", m.utilization},
          {"energy_untruncated", m.energy_untruncated},
          {"tensors", std::move(tensors)}};
}

Json program_json(const TenetProgram& p, const Counts& c) {
  Json tensors = Json::object();
  for (size_t i = 0; i < c.tensors.size(); ++i) {
    const TenetProgramTensor& t = p.tensors[i];
    tensors[tenet_key(c.tensors[i])] = {{"total", t.total},
                                        {"unique", t.unique},
                                        {"reuse_factor", t.reuse_factor},
                                        {"temporal_reuse", t.temporal_reuse},
                                        {"spatial_reuse", t.spatial_reuse},
                                        {"delay", t.delay},
                                        {"l1_read", t.total},
                                        {"l1_write", t.total},
                                        {"l2_read", t.unique},
                                        {"l2_write", t.unique}};
  }
  return {{"delay_in", p.delay_in},
          {"delay_out", p.delay_out},
          {"delay_compute", p.delay_compute},
          {"active_pe", p.active_pe},
          {"avg_active_pe", p.avg_active_pe},
          {"mac_num", p.mac_num},
          {"total_time", p.total_time},
          {"delay", p.delay},
          {"energy", p.energy},
          {"tensors", std::move(tensors)}};
}

}  // namespace

std::string tenet_key(const TensorCounts& tensor) {
  return (tensor.role == Role::read ? "in:" : "out:") + tensor.tensor;
}

Counts tenet_counts(const TenetInput& input) {
  auto counted = count(input.problem);
  if (auto* reason = std::get_if<Reason>(&counted)) {
    reason->where = "counting";
    fail(std::move(*reason));
  }
  Counts counts = std::get<Counts>(std::move(counted));
  if (!counts.work_cycles) counts.work_cycles = list_work_cycles(input.problem, CountOptions{}.enumerate_up_to);
  return counts;
}

Json tenet_answer(const TenetInput& input, const Counts& counts) {
  Json answer = {{"counts", counts_json(counts)},
                 {"derived", derived_json(tenet_metrics(counts, input.hardware), counts)},
                 {"cycles",
                  {{"work_cycles", counts.work_cycles ? Json(*counts.work_cycles) : Json()},
                   {"enumerated", counts.enumerated},
                   {"outside_array", counts.outside_array}}}};
  if (auto master = as_tenet_prints(counts, input.hardware, TenetBranch::master))
    answer["tenet_master"] = program_json(*master, counts);
  if (auto tutorial = as_tenet_prints(counts, input.hardware, TenetBranch::micro_tutorial))
    answer["tenet_micro_tutorial"] = program_json(*tutorial, counts);
  return answer;
}

Json answer_tenet(const Json& input) {
  const InputKeys keys(input, "tenet");
  keys.only({"pe_array", "mapping", "statement"});
  const std::string pe_array = keys.text("pe_array"), mapping = keys.text("mapping"),
                    statement = keys.text("statement");
  const TenetInput read = parse_tenet({pe_array, mapping, statement});
  return tenet_answer(read, tenet_counts(read));
}

}  // namespace sator::formats
