#include "support/runners.h"

namespace sator::test {

const std::vector<Runner>& runners() {
  static const std::vector<Runner> table = {
      {.section = "command",
       .inputs = {"stdin"},
       .does = "runs a command line of sator in the root of the checkout; the result is its standard output",
       .run = run_command},
      {.section = "print",
       .inputs = {"program"},
       .does = "the program as it prints, after a round trip through its text",
       .run = run_tir_print},
      {.section = "verify",
       .inputs = {"program"},
       .does = "the verifier's mistakes, one per line",
       .run = run_tir_verify},
      {.section = "run",
       .inputs = {"program"},
       .does = "the arrays of the section after the interpreter ran the program",
       .run = run_tir_run},
      {.section = "evaluate",
       .inputs = {"program"},
       .does = "what main gives for the tensors of the section, by the interpreter and by machine code",
       .run = run_evaluate},
      {.section = "passes",
       .inputs = {"program", "bounds", "target", "config", "patterns", "attach", "tolerance"},
       .does = "the module after the passes that the section names, checked after each; config: options, one "
               "`name = text` a line",
       .run = run_passes},
      {.section = "script",
       .inputs = {"program", "desc", "impl"},
       .does = "the program after the schedule primitives of the section, checked after each",
       .run = run_script},
      {.section = "machine",
       .inputs = {"program", "script"},
       .does =
           "whether the program, after the primitives of the section script, computes as machine code of every level "
           "what the interpreter says",
       .run = run_machine},
      {.section = "lower",
       .inputs = {"program", "config"},
       .does = "the program after the lowering passes that the section names, or after `all`; config: options, one "
               "`name = number` a line",
       .run = run_lower},
      {.section = "gpu",
       .inputs = {"program", "target"},
       .does = "the program as the first of these GPU rules that takes it schedules it, and why others do not",
       .run = run_gpu_rules},
  };
  return table;
}

}  // namespace sator::test
