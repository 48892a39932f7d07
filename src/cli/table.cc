#include "cli/commands.h"

namespace sator::cli {

std::vector<Command> command_table() {
  return {
      study_command(),      explain_command(),   generate_command(), chat_command(),
      perplexity_command(), eval_command(),      bench_command(),    profile_command(),
      estimate_command(),   explore_command(),   logits_command(),   convert_weight_command(),
      gen_config_command(), compile_command(),   tokenize_command(), schemes_command(),
      opt_command(),        passes_command(),    fmt_command(),      build_command(),
      run_command(),        calibrate_command(), cache_command(),    version_command(),
  };
}

}  // namespace sator::cli
