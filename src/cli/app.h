#pragma once

#include "cli/command.h"

namespace sator::cli {

enum ExitStatus : int {
  kSuccess = 0,
  kUserMistake = 1,  ///< an Error: the words say what to change
  kOurMistake = 70,  ///< EX_SOFTWARE of sysexits.h: an invariant of ours does not hold
};

/// Runs one command line: the command named first, `--help` or `--version`. Errors: those of the command; unknown names,
/// options and values; output that cannot be written.
///   args   without the program's own name
void dispatch(const std::vector<std::string>& args, const std::vector<Command>& commands, std::istream& in,
              std::ostream& out, std::ostream& notes);

/// The same, and turns whatever is thrown into words on `notes` and an exit status.
int run_app(const std::vector<std::string>& args, const std::vector<Command>& commands, std::istream& in,
            std::ostream& out, std::ostream& notes);

/// The same for a program that is one command: the programs of tests/ and bench/.
int run_single(const std::vector<std::string>& args, const Command& command, std::istream& in, std::ostream& out,
               std::ostream& notes);

/// All of standard input: what `-` names.
std::string standard_input(Streams& io);

/// "sator 0.1.0"
std::string version_line();

}  // namespace sator::cli
