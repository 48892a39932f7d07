#include "base/owned_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "temp_folder.h"

namespace sator {
namespace {

class Owned : public testing::Test {
 protected:
  void write(const OwnedFolder::Files& files, bool replace = false) {
    OwnedFolder(out, "study", replace).replace(files);
  }
  std::string refusal(const OwnedFolder::Files& files) {
    return error_of([&] { write(files); });
  }
  /// By name, without the command's own list.
  std::map<std::string, std::string> found() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(out))
      if (entry.is_regular_file() && !entry.path().filename().string().starts_with(".sator-study"))
        all[fs::relative(entry.path(), out).string()] = read_file(entry.path());
    return all;
  }
  using Map = std::map<std::string, std::string>;
  TempFolder folder;
  fs::path out = folder.path() / "out";
};

TEST_F(Owned, AnEarlierRunsFilesGoAndOthersStay) {
  write({{"a.csv", "1"}, {"old/f.py", "2"}, {"old/g.py", "3"}});
  write_file(out / "old/mine.py", "kept");
  write_file(out / "notes.csv", "kept");
  write({{"a.csv", "new"}, {"fresh/f.py", "4"}});
  EXPECT_EQ(found(), (Map{{"a.csv", "new"}, {"fresh/f.py", "4"}, {"notes.csv", "kept"}, {"old/mine.py", "kept"}}));
  fs::remove(out / "old/mine.py");
  write({{"a.csv", "new"}});
  EXPECT_FALSE(fs::exists(out / "fresh"));  // empty now
}

TEST_F(Owned, WhatItDidNotWriteStandsInTheWay) {
  write_file(out / "a.csv", "somebody's");
  const std::string words = refusal({{"b.csv", "1"}, {"a.csv", "2"}});
  EXPECT_NE(words.find((out / "a.csv").string() + " is not on the list of files that `sator study` wrote here"),
            std::string::npos)
      << words;
  EXPECT_NE(words.find("--replace"), std::string::npos) << words;
  EXPECT_EQ(found(), (Map{{"a.csv", "somebody's"}}));
  write({{"a.csv", "2"}}, true);
  EXPECT_EQ(found(), (Map{{"a.csv", "2"}}));
}

TEST_F(Owned, WhatWasChangedSinceIsNoLongerItsOwn) {
  write({{"a.csv", "1"}, {"b.csv", "1"}});
  write_file(out / "a.csv", "edited");
  EXPECT_NE(refusal({{"a.csv", "2"}}).find("was changed since `sator study` wrote it"), std::string::npos);
  write({{"b.csv", "2"}});  // is not in the way of these
  EXPECT_EQ(found(), (Map{{"a.csv", "edited"}, {"b.csv", "2"}}));
}

TEST_F(Owned, FilesOfTheSameBytesAreNotInTheWayTwice) {
  write({{"a.csv", "1"}});
  write({{"a.csv", "1"}});
  EXPECT_EQ(found(), (Map{{"a.csv", "1"}}));  // on the list, and so not stale
  fs::remove(out / "a.csv");
  write({{"a.csv", "1"}});
  EXPECT_EQ(found(), (Map{{"a.csv", "1"}}));
}

// As gen_config into the model's own folder, which has the tokenizer.
TEST_F(Owned, AFileOfAnotherWithTheVeryBytesStaysAnothers) {
  write_file(out / "tokenizer.json", "t");
  write({{"tokenizer.json", "t"}, {"config.json", "c"}});
  write({{"tokenizer.json", "t"}, {"config.json", "d"}});
  EXPECT_EQ(found(), (Map{{"config.json", "d"}, {"tokenizer.json", "t"}}));
  write({{"config.json", "e"}});
  EXPECT_EQ(found(), (Map{{"config.json", "e"}, {"tokenizer.json", "t"}}));
}

TEST_F(Owned, LinksAreNotFollowed) {
  fs::create_directories(folder.path() / "source");
  write_file(folder.path() / "source/f.py", "theirs");
  fs::create_directories(out);
  fs::create_symlink(folder.path() / "source", out / "schedules");
  EXPECT_NE(refusal({{"schedules/f.py", "ours"}}).find("schedules is a link"), std::string::npos);
  fs::create_symlink(folder.path() / "source/f.py", out / "g.py");
  EXPECT_NE(error_of([&] { write({{"g.py", "ours"}}, true); }).find("g.py is a link"), std::string::npos);
  EXPECT_EQ(read_file(folder.path() / "source/f.py"), "theirs");
}

TEST_F(Owned, ALinkThatCameLaterIsNotFollowedForRemoval) {
  write({{"old/f.py", "same bytes"}});
  fs::remove_all(out / "old");
  write_file(folder.path() / "source/f.py", "same bytes");
  fs::create_symlink(folder.path() / "source", out / "old");
  write({{"a.csv", "1"}});
  EXPECT_TRUE(fs::exists(folder.path() / "source/f.py"));
}

// A list is a file like others: whoever sends a folder can write one.
TEST_F(Owned, AListThatNamesOtherPlacesIsRefused) {
  const fs::path victim = folder.write("victim.csv", "1");
  write({{"a.csv", "1"}});
  const std::string good = read_file(out / ".sator-study.json");
  for (const std::string& name : {std::string("../victim.csv"),
                                  victim.string(),
                                  std::string("x/../../victim.csv"),
                                  std::string("./a.csv"),
                                  std::string("")}) {
    auto list = nlohmann::json::parse(good);
    list["files"][0]["name"] = name;
    write_file(out / ".sator-study.json", list.dump());
    const std::string words = refusal({{"b.csv", "1"}});
    EXPECT_NE(words.find("a name within the folder"), std::string::npos) << name << ": " << words;
    EXPECT_TRUE(fs::exists(victim));
  }
  for (const char* damaged : {"", "{", "{\"version\": 1}", "{\"version\": 2, \"files\": []}"}) {
    write_file(out / ".sator-study.json", damaged);
    EXPECT_NE(refusal({{"b.csv", "1"}}), "") << damaged;
  }
}

TEST_F(Owned, OneProcessAtATime) {
  const OwnedFolder first(out, "study");
  EXPECT_NE(refusal({{"a.csv", "1"}}).find("another process is writing its results to"), std::string::npos);
}

TEST_F(Owned, TwoCommandsDoNotTakeEachOthersFiles) {
  write({{"index.html", "1"}});
  EXPECT_NE(error_of([&] { OwnedFolder(out, "explore").replace({{"index.html", "2"}}); }).find("stands where a result"),
            std::string::npos);
  OwnedFolder(out, "explore").replace({{"explore.csv", "2"}});
  write({{"study.csv", "3"}});
  EXPECT_EQ(read_file(out / "explore.csv"), "2");
}

TEST_F(Owned, EveryFileBelowAFolderOfResultsCounts) {
  write_file(out / "schedules/chip/f.py", "somebody's");
  write_file(out / "schedules/chip/notes.txt", "kept");
  const OwnedFolder place(out, "study");
  EXPECT_NE(error_of([&] { place.require_free_below({"schedules/chip"}, {".py"}); }).find("f.py"), std::string::npos);
  place.require_free_below({"schedules/chip", "schedules/other"}, {".m"});
}

}  // namespace
}  // namespace sator
