// What the fuzzers began with and what they found, once more: each input is read, or refused in words, in time.
#include <gtest/gtest.h>

#include <chrono>

#include "fuzz/readers/readers.h"

namespace sator::fuzz {
namespace {

fs::path corpus(std::string_view name) { return fs::path(SATOR_SOURCE_DIR) / "tests" / "fuzz" / "corpus" / name; }

class Readers : public testing::TestWithParam<Reader> {};

TEST_P(Readers, ReadOrRefuseTheirCorpus) {
  int read = 0;
  for (const auto& entry : fs::directory_iterator(corpus(GetParam().name))) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_NO_THROW(read += run_reader(GetParam(), read_file(entry.path()))) << entry.path();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << entry.path();
  }
  EXPECT_GE(read, 1) << "an input that is well formed";
}

INSTANTIATE_TEST_SUITE_P(All, Readers, testing::ValuesIn(readers()),
                         [](const auto& reader) { return std::string(reader.param.name); });

}  // namespace
}  // namespace sator::fuzz
