// A reader under LLVM's libFuzzer: fuzz_readers --reader=NAME [libFuzzer's options] CORPUS; fuzz_readers --list.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "fuzz/readers/readers.h"

namespace {

using namespace sator::fuzz;

const Reader* chosen = nullptr;

[[noreturn]] void list_readers(std::FILE* to, int status) {
  for (const Reader& r : readers()) std::fprintf(to, "%-18s %s\n", r.name.data(), r.does.data());
  std::exit(status);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static std::vector<char*> words(*argv, *argv + *argc);
  for (const std::string word : words) {
    if (word == "--list") list_readers(stdout, 0);
    if (word.starts_with("--reader=")) chosen = find_reader(word.substr(9));
  }
  if (!chosen) {
    std::fprintf(stderr, "error: no such reader\n  needs: --reader=NAME\n  hint:  one of these:\n");
    list_readers(stderr, 1);
  }
  static std::string dictionary =
      "-dict=" SATOR_SOURCE_DIR "/tests/fuzz/dictionaries/" + std::string(chosen->dictionary) + ".dict";
  if (!chosen->dictionary.empty()) words.push_back(dictionary.data());
  *argc = static_cast<int>(words.size());
  words.push_back(nullptr);
  *argv = words.data();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    run_reader(*chosen, {reinterpret_cast<const char*>(data), size});
  } catch (const std::exception& finding) {
    std::fprintf(stderr, "%s\n", finding.what());
    std::abort();
  }
  return 0;
}
