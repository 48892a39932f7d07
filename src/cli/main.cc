#include <signal.h>

#include <iostream>

#include "base/interrupt.h"
#include "cli/app.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  sator::end_on_interrupt();
  ::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit on file sizes then fails with words
  return sator::cli::run_app({argv + 1, argv + argc}, sator::cli::command_table(), std::cin, std::cout, std::cerr);
}
