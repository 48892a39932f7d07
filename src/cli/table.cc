#include "cli/commands.h"

namespace sator::cli {

std::vector<Command> command_table() {
  return {
      tokenize_command(),
      version_command(),
  };
}

}  // namespace sator::cli
