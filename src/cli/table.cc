#include "cli/commands.h"

namespace sator::cli {

std::vector<Command> command_table() {
  return {
      version_command(),
  };
}

}  // namespace sator::cli
