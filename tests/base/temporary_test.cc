#include "base/temporary.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/staged_file.h"
#include "temp_folder.h"

namespace sator {
namespace {

/// As a process leaves it that was killed an hour ago.
void set_old(const fs::path& path) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
}

TEST(Temporary, FoldersGoWithTheirObject) {
  TempFolder place;
  fs::path path;
  {
    const TemporaryFolder folder(place.path());
    path = folder.path();
    write_file(path / "a/b", "x");
    EXPECT_TRUE(is_temporary_name(path.filename().string()));
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  }
  EXPECT_FALSE(fs::exists(path));
}

/// Unlike write_file it does not look for what others left.
fs::path put(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "x";
  return path;
}

TEST(Temporary, WhatKilledProcessesLeftIsRemoved) {
  TempFolder place;
  const fs::path folder = place.path() / ".sator-temporary-abcdef", file = place.path() / "m.so.sator-abcdef.partial",
                 young = place.path() / "m.so.sator-ghijkl.partial", locked = place.path() / ".sator-temporary-locked";
  put(folder / "x.o"), put(locked / "x.o"), put(file), put(young);
  std::vector<fs::path> others;
  for (const char* name : {"m.so.partial", "sator-abcdef.partial", ".sator-temporary-toolong", "notes.txt"})
    others.push_back(put(place.path() / name));
  for (const fs::path& f : {folder, file, locked}) set_old(f);
  for (const fs::path& f : others) set_old(f);
  const int lock = ::open(locked.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  write_file(place.path() / "m.so", "new");  // the next one to write here
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_FALSE(fs::exists(file));
  EXPECT_TRUE(fs::exists(young)) << "it may be in use";
  EXPECT_TRUE(fs::exists(locked / "x.o")) << "it is in use";
  for (const fs::path& f : others) EXPECT_TRUE(fs::exists(f)) << f;
  ::close(lock);
}

TEST(Temporary, AFileBeingWrittenIsLocked) {
  TempFolder place;
  StagedFile file(place.path() / "m.so");
  file.write(std::string(100'000, 'x'));
  fs::path partial;
  for (const auto& entry : fs::directory_iterator(place.path())) partial = entry.path();
  ASSERT_TRUE(is_temporary_name(partial.filename().string())) << partial;
  const int fd = ::open(partial.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_NE(::flock(fd, LOCK_EX | LOCK_NB), 0);
  ::close(fd);
  file.finish();
  EXPECT_FALSE(fs::exists(partial));
}

TEST(Temporary, LongNamesFit) {
  TempFolder place;
  const std::string name(255, 'n');
  write_file(place.path() / name, "x");
  EXPECT_EQ(read_file(place.path() / name), "x");
}

}  // namespace
}  // namespace sator
