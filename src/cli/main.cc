#include <signal.h>

#include <exception>
#include <iostream>
#include <new>

#include "base/interrupt.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/commands.h"

/// Called for what no catch can reach: memory that runs out in a thread or a library that takes no exceptions.
static void end_in_words() {
  try {
    if (std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    sator::end_process(sator::cli::kUserMistake, sator::cli::kMemoryRanOut);
  } catch (const std::exception& error) {
    sator::end_process(sator::cli::kOurMistake, sator::text("internal error: ", error.what(), "\n"));
  } catch (...) {
  }
  sator::end_process(sator::cli::kOurMistake, "internal error: the program was ended from within\n");
}

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  sator::end_on_interrupt();
  std::set_terminate(end_in_words);
  ::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit on file sizes then fails with words
  return sator::cli::run_app({argv + 1, argv + argc}, sator::cli::command_table(), std::cin, std::cout, std::cerr);
}
