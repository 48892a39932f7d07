// What a fuzzer leaves for tools/run_tests.py when ctest runs it: a report in the shape of GoogleTest's, with a note that is
// printed in any case (the seed, and how many cases ran).
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace sator::fuzz {

/// A first seed that no run before had.
inline int64_t new_seed() { return std::chrono::system_clock::now().time_since_epoch().count() / 1000 % 1'000'000'000; }

inline std::atomic<int64_t> seed_now = 0;

/// Names the seed of a case whose machine code crashes. Only calls that a signal's handler may make.
inline void on_crash(int signal) {
  char line[64] = "\ncrashed; repeat: --seed ";
  char* end = std::to_chars(line + 25, line + sizeof line - 12, seed_now.load()).ptr;
  std::copy_n(" --count 1\n", 11, end);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, static_cast<size_t>(end + 11 - line));
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// The case that runs from here on.
inline void begin_case(int64_t seed) {
  if (seed_now.exchange(seed) == 0)
    for (int s : {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) ::signal(s, on_crash);
}

/// Whether `./dev test FILTER` leaves out the fuzzer, whose test is called "fuzz/NAME".
inline bool is_left_out(const std::string& name) {
  const char* given = std::getenv("SATOR_TEST_FILTER");
  std::string filter = given ? given : "";
  std::ranges::transform(filter, filter.begin(), [](unsigned char c) { return std::tolower(c); });
  return ("fuzz/" + name).find(filter) == std::string::npos;
}

enum class Ran { passed, failed, left_out };
inline void write_report(const std::string& path, const std::string& name, Ran ran, const std::string& note) {
  nlohmann::json test = {{"name", name}, {"status", ran == Ran::left_out ? "NOTRUN" : "RUN"}, {"result", "COMPLETED"}};
  if (ran == Ran::failed) test["failures"].push_back({{"failure", note}});
  nlohmann::json suite = {{"name", "fuzz"}, {"testsuite", nlohmann::json::array({test})}};
  nlohmann::json report = {{"testsuites", nlohmann::json::array({suite})}};
  if (ran != Ran::left_out) report["note"] = note;
  std::ofstream(path) << report.dump(1) << "\n";
}

}  // namespace sator::fuzz
