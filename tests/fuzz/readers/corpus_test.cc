// What the fuzzers began with and what they found, once more: each input is read, or refused in words, in time.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

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

/// Files of models, each well-formed input damaged in many ways: cut off, bits turned, bytes replaced, parts doubled or moved.
class Damaged : public testing::TestWithParam<const char*> {};

std::string damaged(std::string bytes, std::mt19937& random) {
  auto below = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  for (size_t times = 1 + below(4); times > 0 && !bytes.empty(); --times) {
    const size_t at = below(bytes.size()), length = 1 + below(std::min<size_t>(64, bytes.size() - at));
    switch (below(6)) {
      case 0: bytes.resize(at); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8)); break;
      case 2: bytes[at] = static_cast<char>(random()); break;
      case 3: bytes.insert(below(bytes.size()), bytes.substr(at, length)); break;
      case 4: bytes.erase(at, length); break;
      default: bytes.replace(at, length, length, random() % 2 ? '\xff' : '\0'); break;
    }
  }
  return bytes;
}

TEST_P(Damaged, TwoThousandFilesAreReadOrRefusedInWords) {
  const Reader& reader = *find_reader(GetParam());
  std::vector<std::string> whole;
  for (const auto& entry : fs::directory_iterator(corpus(reader.name))) whole.push_back(read_file(entry.path()));
  std::ranges::sort(whole);
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = damaged(whole[static_cast<size_t>(i) % whole.size()], random);
    EXPECT_NO_THROW(refused += !run_reader(reader, bytes)) << "input " << i;
  }
  EXPECT_GT(refused, 700);
}

INSTANTIATE_TEST_SUITE_P(Files, Damaged,
                         testing::Values("gguf", "safetensors", "stored_codes", "mlc_codes", "tokenizer",
                                         "tokenizer_model"));

INSTANTIATE_TEST_SUITE_P(All, Readers, testing::ValuesIn(readers()),
                         [](const auto& reader) { return std::string(reader.param.name); });

}  // namespace
}  // namespace sator::fuzz
