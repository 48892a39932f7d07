#pragma once

#include "cli/command.h"

namespace sator::cli {

enum ExitStatus : int {
  kSuccess = 0,
  kUserMistake = 1,  ///< an Error: the words say what to change
  kOurMistake = 70,  ///< EX_SOFTWARE of sysexits.h: an invariant of ours does not hold
  // 128 + a signal: it ended the program (base/interrupt.h): 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
};

/// Needs no memory to be said.
inline constexpr const char* kMemoryRanOut =
    "error: memory ran out\n  needs: room for the model and its workspace\n"
    "  hint:  close other programs, or take a smaller model or scheme\n";

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
