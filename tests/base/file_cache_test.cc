#include "base/file_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "temp_folder.h"

namespace sator {
namespace {

class Cache : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return cache.path_of(name, digest_of(name)); }
  void write(const std::string& name, size_t bytes) { cache.write(path(name), std::string(bytes, 'x')); }
  void set_age(const std::string& name, int64_t seconds) {
    fs::last_write_time(path(name), fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }
  std::optional<std::string> read(const std::string& name) {
    return cache.read(path(name), [&](const std::string& words) { remarks.push_back(words); });
  }
  ~Cache() override { ::unsetenv("SATOR_CACHE_LIMIT"); }
  TempFolder folder;
  FileCache cache{folder.path(), ".so"};
  std::vector<std::string> remarks;
};

TEST_F(Cache, GivesBackWhatWasWritten) {
  EXPECT_EQ(read("a"), std::nullopt);
  cache.write(path("a"), "content");
  EXPECT_EQ(read("a"), "content");
  EXPECT_TRUE(remarks.empty());
}

TEST_F(Cache, ADamagedEntryIsRemovedWithARemark) {
  for (int damage = 0; damage < 3; ++damage) {
    cache.write(path("a"), "content");
    std::string bytes = read_file(path("a"));
    if (damage == 0) bytes.resize(bytes.size() / 2);
    if (damage == 1) bytes[3] ^= 4;
    if (damage == 2) bytes.clear();
    write_file(path("a"), bytes);
    EXPECT_EQ(read("a"), std::nullopt) << damage;
    EXPECT_FALSE(fs::exists(path("a")));
  }
  ASSERT_EQ(remarks.size(), 3u);
  EXPECT_NE(remarks[0].find("is damaged and made anew"), std::string::npos);
}

TEST_F(Cache, TheLeastRecentlyUsedGo) {
  for (const char* name : {"a", "b", "c"}) write(name, 1000), set_age(name, 5000 - *name);
  set_age("a", 5000), set_age("b", 4000), set_age("c", 3000);
  read("a");  // used now
  ::setenv("SATOR_CACHE_LIMIT", "3.3K", 1);
  write("d", 1000);
  EXPECT_TRUE(fs::exists(path("a")));
  EXPECT_FALSE(fs::exists(path("b")));
  EXPECT_TRUE(fs::exists(path("c")) && fs::exists(path("d")));
  // What was used within ten minutes stays, be the limit what it may: another process may be about to open it.
  ::setenv("SATOR_CACHE_LIMIT", "0", 1);
  write("e", 1000);
  EXPECT_FALSE(fs::exists(path("c")));
  EXPECT_TRUE(fs::exists(path("a")) && fs::exists(path("d")) && fs::exists(path("e")));
  ::setenv("SATOR_CACHE_LIMIT", "much", 1);
  EXPECT_NE(error_of([] { cache_limit_bytes(); }).find("SATOR_CACHE_LIMIT is \"much\""), std::string::npos);
}

TEST_F(Cache, OtherFilesAreNoEntries) {
  folder.write("notes.so", "x");
  folder.write("0123456789abcdef0123456789abcdef.so", "x");
  folder.write("a.0123456789ABCDEF0123456789abcdef.so", "x");
  fs::create_symlink(folder.path() / "notes.so", path("link"));
  write("a", 10);
  EXPECT_EQ(cache.entries().size(), 1u);
  EXPECT_EQ(cache.prune(0, std::chrono::seconds(0)).size(), 1u);
  EXPECT_TRUE(fs::exists(folder.path() / "notes.so") && fs::is_symlink(path("link")));
}

// `sator cache` prints the names of entries, and a terminal obeys what it is given.
TEST_F(Cache, NamesThatNobodyGaveAnEntryAreNoEntries) {
  const std::string key = "." + std::string(32, '0') + ".so";
  for (const char* name : {"red\x1b[31m", "two\nlines", "half\xff", "sp ace", "dot.ted"}) folder.write(name + key, "x");
  folder.write(std::string(101, 'a') + key, "x");
  write("a", 10);
  EXPECT_EQ(cache.entries().size(), 1u);
  cache.prune(0, std::chrono::seconds(0));
  EXPECT_TRUE(fs::exists(folder.path() / ("red\x1b[31m" + key)));
  // What is stored under such a name is an entry under another.
  for (const char* name : {"red\x1b[31m", "two\nlines", "half\xff", "sp ace", "dot.ted", ""}) write(name, 10);
  write(std::string(300, 'a'), 10);
  EXPECT_EQ(cache.entries().size(), 7u);
}

TEST(Sizes, AreBytesWithAUnit) {
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("1234"), 1234);
  EXPECT_EQ(parse_size("1.5G"), 1'500'000'000);
  EXPECT_EQ(parse_size("500M"), 500'000'000);
  for (const char* bad : {"", "G", "-1", "1x", "1 G", "nan", "1e30"}) EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace sator
