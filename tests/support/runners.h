#pragma once

#include "support/texttest.h"

// The functions behind the kinds of cases, each in tests/<room>/*_runner.cc; runners.cc is the table.
namespace sator::test {

/// Runs `--- command`, a command line of `sator`, in the root of the checkout; the result is its standard output.
std::string run_command(const TestCase& test);

}  // namespace sator::test
