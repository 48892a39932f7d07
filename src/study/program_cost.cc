#include "study/program_cost.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/figures.h"
#include "runtime/builtins/table.h"
#include "study/cost_program.h"
#include "study/json.h"
#include "study/words.h"
#include "target/calibration.h"

namespace sator::study {

namespace {

/// The values of the function's symbolic sizes in a call, by name.
std::map<std::string, int64_t> sizes_of(const tir::PrimFunc& func, const runtime::CallRecord& record) {
  std::map<std::string, int64_t> sizes;
  for (const runtime::CallRecord::NamedValue& v : record.values) sizes[v.name] = v.value;
  size_t next = 0;
  for (const VarRef& param : func.params) {
    const BufferRef buffer = func.buffer_of(param);
    if (!buffer || next >= record.arguments.size()) continue;
    const runtime::Dims& shape = record.arguments[next++].shape;
    for (size_t d = 0; d < buffer->shape.size() && d < shape.size(); ++d)
      if (const Var* v = buffer->shape[d].as<Var>()) sizes[v->name] = shape[d];
  }
  return sizes;
}

std::string outside_text(const Cost& cost) {
  return cost.levels.empty() ? "-" : quantity(cost.levels.front().bytes(), "B");
}

}  // namespace

std::vector<llm::KernelCall> kernel_calls(const std::vector<runtime::CallRecord>& run, const Module& phase3) {
  std::vector<llm::KernelCall> calls;
  for (const runtime::CallRecord& record : run) {
    const auto at = phase3.functions.find(record.function);
    const tir::PrimFuncRef func = at == phase3.functions.end() ? nullptr : cast<tir::PrimFunc>(at->second);
    if (!record.is_kernel || !func) continue;
    calls.push_back({.function = record.function, .sizes = sizes_of(*func, record), .work = func});
  }
  return calls;
}

PhaseResult cost_of_run(const std::vector<runtime::CallRecord>& run, const Module& phase3, const Chip& chip,
                        const dataflow::Goal& goal) {
  auto add_builtins = [&](std::vector<KernelRow>& rows) {
    for (const runtime::CallRecord& record : run)
      for (const runtime::Builtin& b : runtime::builtins())
        if (b.computes && b.name == record.function)
          rows.push_back(uncosted_row({.function = record.function}, "the runtime computes it, and no kernel"));
  };
  return ChipCoster(chip, goal).cost(kernels_of(kernel_calls(run, phase3), chip), add_builtins);
}

std::string run_cost_table(const PhaseResult& cost, const Chip& chip) {
  size_t width = 8;
  size_t bound_width = std::max<size_t>(16, cost.cost.bound.size() + 2);
  for (const KernelRow& row : cost.rows) {
    width = std::max(width, row.function.size() + 2);
    if (row.costed) bound_width = std::max(bound_width, row.cost.bound.size() + 2);
  }
  auto line = [&](const std::string& name, int64_t calls, const Cost* c, const std::string& what) {
    const std::vector<std::string> cells = {calls > 0 ? text(calls) : "calls",
                                            c              ? quantity(c->latency_s, "s")
                                            : what.empty() ? "latency"
                                                           : what,
                                            c              ? quantity(static_cast<double>(c->macs), "")
                                            : what.empty() ? "MACs"
                                                           : "-",
                                            c              ? percent(c->utilization)
                                            : what.empty() ? "MAC array"
                                                           : "-",
                                            c              ? outside_text(*c)
                                            : what.empty() ? "outside"
                                                           : "-",
                                            c              ? energy_text(*c)
                                            : what.empty() ? "energy"
                                                           : "-",
                                            c              ? c->bound
                                            : what.empty() ? "bound by"
                                                           : "-"};
    const size_t widths[] = {7, 11, 10, 11, 11, 11, bound_width};
    std::string out = pad_right(name, width);
    for (size_t i = 0; i < cells.size(); ++i) out += pad_left(cells[i], widths[i]);
    return out + "\n";
  };
  std::string out = text(chip_line(facts_of(chip)), "; ", calibration_words(chip), "\n");
  out += line("kernel", 0, nullptr, "");
  for (const KernelRow& row : cost.rows)
    out += line(row.function, row.count, row.costed ? &row.cost : nullptr, "not costed");
  if (cost.rows.size() > 1) out += line("all", cost.launches, &cost.cost, "");
  out += text("counts checked by enumeration on ", cost.kernels_checked, " of ", cost.kernels, " kernels\n");
  for (const KernelRow& row : cost.rows)
    for (const std::string& note : row.notes) out += text("note: ", row.function, ": ", note, "\n");
  return out;
}

Json run_cost_json(const PhaseResult& cost, const Chip& chip) {
  Json json = phase_json(cost);
  json["chip"] = chip.name;
  return json;
}

}  // namespace sator::study
