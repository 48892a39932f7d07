#pragma once

#include "cli/command.h"

// One function per command, each in the file of its name. table.cc lists them in the order of `sator --help`.
namespace sator::cli {

Command study_command();
Command tokenize_command();
Command schemes_command();
Command chat_command();
Command generate_command();
Command perplexity_command();
Command logits_command();
Command eval_command();
Command bench_command();
Command profile_command();
Command estimate_command();
Command explore_command();
Command explain_command();
Command opt_command();
Command passes_command();
Command fmt_command();
Command build_command();
Command run_command();
Command convert_weight_command();
Command gen_config_command();
Command compile_command();
Command calibrate_command();
Command cache_command();
Command version_command();

/// All commands.
std::vector<Command> command_table();

}  // namespace sator::cli
