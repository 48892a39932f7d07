#include "base/digest.h"

#include <gtest/gtest.h>

#include "temp_folder.h"

namespace sator {
namespace {

// Of the reference implementation: `xxhsum -H2`, and of its own tests XXH3_128bits("", seed 0).
TEST(Digest, IsXxh3) {
  EXPECT_EQ(digest_of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(digest_of("abc"), "06b05ab6733a618578af5f94892f3950");
}

TEST(Digest, PartsAreTheWhole) {
  TempFolder folder;
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += static_cast<char>(i * 7);
  const std::string whole = digest_of(bytes);
  EXPECT_EQ(whole.size(), 32u);
  EXPECT_EQ(Digest().add(bytes.substr(0, 1)).add(bytes.substr(1, 3000)).add(bytes.substr(3001)).hex(), whole);
  const fs::path file = folder.write("file", bytes);
  EXPECT_EQ(digest_of_file(file), whole);
  EXPECT_EQ(Digest().add("head").add_file(file).hex(), digest_of("head" + bytes));
}

TEST(Seal, KnowsEveryChange) {
  const std::string content("some\0bytes\n", 11), whole = sealed(content);
  EXPECT_EQ(unsealed(whole), content);
  EXPECT_EQ(unsealed(sealed("")), "");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] ^= 1;
    EXPECT_EQ(unsealed(changed), std::nullopt) << i;
    EXPECT_EQ(unsealed(whole.substr(0, i)), std::nullopt) << i;
  }
  EXPECT_EQ(unsealed(whole + " "), std::nullopt);
  EXPECT_EQ(unsealed("never sealed"), std::nullopt);
  EXPECT_EQ(unsealed(sealed(whole)), whole);
}

}  // namespace
}  // namespace sator
