#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/error.h"
#include "temp_folder.h"

namespace sator {
namespace {

TEST(WriteFile, ReplacesAWholeFileAndKeepsItsPermissions) {
  TempFolder folder;
  const fs::path path = folder.path() / "a/b.txt";
  write_file(path, "old and long");
  ::chmod(path.c_str(), 0600);
  write_file(path, "new");
  EXPECT_EQ(read_file(path), "new");
  struct stat s{};
  ASSERT_EQ(::stat(path.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), {}), 1);
}

TEST(WriteFile, FollowsLinksToWhatTheyLeadTo) {
  TempFolder folder;
  const fs::path &at = folder.path(), file = at / "deep/file", link = at / "link", chain = at / "chain";
  fs::create_symlink("deep/file", link);  // leads nowhere yet
  fs::create_symlink(link, chain);
  for (const char* bytes : {"first", "second"}) {
    write_file(chain, bytes);
    EXPECT_EQ(read_file(file), bytes);
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_TRUE(fs::is_symlink(chain));
  }
}

TEST(WriteFile, LeavesPipesWhatTheyAre) {
  TempFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = read_file(pipe); });
  write_file(pipe, "through");
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(WriteFile, ADeviceWithoutRoomIsAnErrorThatNamesIt) {
  TempFolder folder;
  // A link, so that a fault here breaks no device of the machine.
  const fs::path full = folder.path() / "full";
  fs::create_symlink("/dev/full", full);
  ASSERT_TRUE(fs::is_character_file("/dev/full"));  // as on every Linux
  try {
    write_file(full, "x");
    ADD_FAILURE() << "a device without room took a byte";
  } catch (const Error& e) {
    EXPECT_NE(e.reason.what.find(full.string()), std::string::npos) << e.what();
  }
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(ReadFile, APipeInAFolderIsNotWaitedFor) {
  TempFolder folder;
  const fs::path pipe = folder.path() / "config.json";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(error_of([&] { read_regular_file(pipe); }).find("is a pipe or a device"), std::string::npos);
  EXPECT_NE(error_of([&] { read_regular_file("/dev/zero"); }).find("is a pipe or a device"), std::string::npos);
  write_file(folder.path() / "plain", "as it is");
  EXPECT_EQ(read_regular_file(folder.path() / "plain"), "as it is");
}

TEST(ReadFile, WhatHasNoEndIsRefused) {
  TempFolder folder;
  const fs::path path = folder.path() / "four";
  write_file(path, "four");
  EXPECT_EQ(read_file(path, 4), "four");
  struct Row {
    fs::path path;
    size_t most_bytes;
    const char* words;
  };
  for (const Row& row :
       {Row{path, 3, "has more than 3 bytes"}, {"/dev/zero", 100'000, "/dev/zero has more than 100,000 bytes"}})
    try {
      read_file(row.path, row.most_bytes);
      ADD_FAILURE() << row.path << " was read";
    } catch (const Error& e) {
      EXPECT_NE(e.reason.what.find(row.words), std::string::npos) << e.what();
    }
  EXPECT_EQ(read_file("/dev/null"), "");
}

}  // namespace
}  // namespace sator
