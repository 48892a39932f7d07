// What a run of a user's program costs on a described chip: its kernels with the sizes that ran.
#pragma once

#include "driver/program.h"
#include "runtime/call_record.h"
#include "study/costing.h"

namespace sator::study {

/// The launches of a run as the cost engine takes them: the functions of phase 3, with sizes from the shapes that ran. What
/// is computed for shapes is no work of the program.
std::vector<llm::KernelCall> kernel_calls(const std::vector<runtime::CallRecord>& run, const Module& phase3);

/// The run on a chip, one row per function and sizes. A kernel that the engine refuses has no cost, and its words.
PhaseResult cost_of_run(const std::vector<runtime::CallRecord>& run, const Module& phase3, const Chip& chip,
                        const dataflow::Goal& goal = {});

/// The rows for a terminal, their sum, and what was refused or assumed.
std::string run_cost_table(const PhaseResult& cost, const Chip& chip);

/// The same with all figures: {"chip", "latency_s", "macs", ..., "kernels": [...]}.
Json run_cost_json(const PhaseResult& cost, const Chip& chip);

}  // namespace sator::study
