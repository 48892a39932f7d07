#include "base/trust.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temp_folder.h"

namespace sator {
namespace {

constexpr uid_t kStranger = 54321;  // a number that no user of a common system has

/// The words against a file; empty if nobody else can change it.
std::string words_against(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::optional<Reason> reason = exposed_to_others(fd, "library");
  ::close(fd);
  return reason ? reason->what + " / " + reason->hint : "";
}

class Trust : public testing::Test {
 protected:
  Trust() : file(folder.write("a/b/file", "x")) { ::chmod(file.c_str(), 0644); }
  void expect_against(const std::string& words) {
    const std::string found = words_against(file);
    EXPECT_NE(found.find(words), std::string::npos) << found;
  }
  TempFolder folder;  // below /tmp, which is sticky
  fs::path file;
};

TEST_F(Trust, AFileOfOnesOwnInFoldersOfOnesOwn) { EXPECT_EQ(words_against(file), ""); }

TEST_F(Trust, NobodyElseWritesTheFile) {
  ::chmod(file.c_str(), 0646);
  expect_against("is writable by all users / chmod go-w '" + file.string() + "'");
}

TEST_F(Trust, NobodyElseWritesAFolderOnTheWay) {
  const fs::path above = folder.path() / "a";
  ::chmod(above.c_str(), 0777);
  expect_against("the folder " + above.string() + " is writable by all users");
  ::chmod(above.c_str(), 01777);  // sticky: what is in it stays its owner's
  EXPECT_EQ(words_against(file), "");
}

TEST_F(Trust, LinksAreResolvedFirst) {
  const fs::path open = folder.path() / "open";
  fs::create_directories(open);
  ::chmod(open.c_str(), 0777);
  // A link in a folder that others write: what it leads to counts, and is fine.
  fs::create_symlink(file, open / "link");
  EXPECT_EQ(words_against(open / "link"), "");
  // A link in a good folder to a file that others can replace.
  folder.write("open/theirs", "x");
  fs::create_symlink(open / "theirs", folder.path() / "a/b/link");
  EXPECT_NE(words_against(folder.path() / "a/b/link").find("open is writable by all users"), std::string::npos);
}

TEST_F(Trust, AGroupIsFineWhereItIsTheOwnersOwn) {
  const struct passwd* me = ::getpwuid(::geteuid());
  ASSERT_NE(me, nullptr);
  ::chmod(file.c_str(), 0664);
  if (::geteuid() == 0) {
    EXPECT_EQ(words_against(file), "");  // root's group is called root and has no other member
    ASSERT_EQ(::chown(file.c_str(), 0, kStranger), 0);
    expect_against("is writable by its group");
  }
}

TEST_F(Trust, OwnersAreOneselfAndRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(file.c_str(), kStranger, 0), 0);
  expect_against("belongs to user 54321");
  ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown((folder.path() / "a/b").c_str(), kStranger, 0), 0);
  expect_against("the folder " + (folder.path() / "a/b").string() + " belongs to user 54321");
}

TEST_F(Trust, FoldersAreMadeForTheUserAlone) {
  const mode_t before = ::umask(0);
  make_private_folder(folder.path() / "c/d/e", "the cache");
  ::umask(before);
  for (const char* name : {"c", "c/d", "c/d/e"})
    EXPECT_EQ(fs::status(folder.path() / name).permissions(), fs::perms::owner_all) << name;
  ::chmod((folder.path() / "c").c_str(), 0777);
  EXPECT_NE(error_of([&] { make_private_folder(folder.path() / "c/d/e", "the cache"); }).find("the cache could be"),
            std::string::npos);
}

/// $HOME and $SATOR_HOME as they were before.
struct Environment {
  std::optional<std::string> home = value("HOME"), own = value("SATOR_HOME");
  static std::optional<std::string> value(const char* name) {
    const char* v = std::getenv(name);
    return v ? std::optional<std::string>(v) : std::nullopt;
  }
  ~Environment() {
    home ? ::setenv("HOME", home->c_str(), 1) : ::unsetenv("HOME");
    own ? ::setenv("SATOR_HOME", own->c_str(), 1) : ::unsetenv("SATOR_HOME");
  }
};

TEST(Home, IsNeverAFolderThatOthersKnowOf) {
  const Environment environment;
  ::setenv("SATOR_HOME", "/somewhere", 1);
  EXPECT_EQ(sator_home(), "/somewhere");
  ::unsetenv("SATOR_HOME");
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(sator_home(), "/home/me/.cache/sator");
  ::unsetenv("HOME");
  const struct passwd* me = ::getpwuid(::geteuid());
  ASSERT_NE(me, nullptr);
  if (fs::is_directory(me->pw_dir)) {
    EXPECT_EQ(sator_home(), fs::path(me->pw_dir) / ".cache/sator");
  } else {
    EXPECT_NE(error_of([] { sator_home(); }).find("set SATOR_HOME"), std::string::npos);
  }
}

}  // namespace
}  // namespace sator
