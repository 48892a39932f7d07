// Which files the program replaces, loads, keeps and leaves: docs/files.md.
#include <gtest/gtest.h>

#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/program.h"

namespace sator::cli {
namespace {

// Signals at random times while a model is compiled, converted, calibrated on, or studied: nothing temporary is left, the
// status says which signal came, and the same command goes through afterwards. `./dev faults` does it a hundred times.
TEST(Files, SignalsAtAnyTimeLeaveNothingTemporary) {
  const std::string model = kExample.string();
  const std::vector<std::vector<std::string>> commands = {
      {"compile", model, "-o", "out/model.so"},
      {"convert_weight", model, "--quantization", "f32", "-o", "out"},
      {"generate", model, "--prompt", "Once", "--max-tokens", "2"},
      {"study", model, "--shapes-only", "--quant", "f16", "--chip", "tpuv1", "-o", "out"}};
  const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  std::mt19937 random(20);  // any seed will do
  int in_time = 0;
  for (size_t c = 0; c < commands.size(); ++c)
    for (int attempt = 0; attempt < 3; ++attempt) {
      TempFolder folder;
      Program program(folder);
      const int signal = signals[(c + static_cast<size_t>(attempt)) % 3];
      const auto after = std::chrono::milliseconds(random() % 500);
      program.start(commands[c]);
      std::optional<std::chrono::steady_clock::time_point> ready;
      const auto moment = [&] {
        if (!ready && program.takes_signals()) ready = std::chrono::steady_clock::now();
        return ready && std::chrono::steady_clock::now() - *ready > after;
      };
      if (!program.interrupt_when(moment, signal)) continue;
      const Ended ended = program.end();
      SCOPED_TRACE(testing::Message() << commands[c][0] << ", signal " << signal << " after " << after.count()
                                      << " ms");
      EXPECT_TRUE(ended.status == 128 + signal || ended.status == 0) << ended.status << "\n" << ended.notes;
      EXPECT_FALSE(has_temporaries(folder.path()));
      in_time += ended.status != 0;
    }
  EXPECT_GT(in_time, 3);
}

/// Whether a line of a file is there: one that exists may be empty yet.
static bool written(const fs::path& file) { return fs::exists(file) && read_file(file).ends_with("\n"); }

// The linker works in a folder of its own, and as a process of its own.
TEST(Files, AnInterruptWhileLinkingEndsTheLinkerAndTakesItsFolder) {
  TempFolder folder;
  Program program(folder);
  const fs::path linker = folder.write("slow-linker", "#!/bin/sh\necho $$ >linker.pid\nsleep 60\n");
  fs::permissions(linker, fs::perms::owner_all);
  ::setenv("SATOR_LINKER", linker.c_str(), 1);
  program.start({"compile", kExample.string(), "-o", "out/model.so"});
  ::unsetenv("SATOR_LINKER");
  ASSERT_TRUE(
      program.interrupt_when([&] { return written(folder.path() / "linker.pid") && has_temporaries(folder.path()); }));
  const Ended ended = program.end();
  EXPECT_EQ(ended.status, 130) << ended.notes;
  EXPECT_FALSE(has_temporaries(folder.path()));
  const int pid = std::stoi(read_file(folder.path() / "linker.pid"));
  EXPECT_NE(::kill(pid, 0), 0) << "the linker goes on";
}

const std::vector<std::string> kGenerate = {
    "generate", kExample.string(), "--prompt", "Once", "--max-tokens", "2", "--greedy"};

TEST(Files, ADamagedCachedModelIsMadeAnew) {
  TempFolder folder;
  Program program(folder);
  const Ended first = program.run(kGenerate);
  ASSERT_EQ(first.status, 0) << first.notes;
  const auto cached = files_below(folder.path() / "home/models", ending_in(".so"));
  ASSERT_EQ(cached.size(), 1u);
  const fs::path path = folder.path() / "home/models" / cached[0];
  const std::string whole = read_file(path);
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  for (const std::string& damaged : {whole.substr(0, whole.size() / 2), flipped, std::string()}) {
    write_file(path, damaged);
    const Ended ended = program.run(kGenerate);
    EXPECT_EQ(ended.status, 0) << ended.notes;
    EXPECT_EQ(ended.out, first.out);
    EXPECT_NE(ended.notes.find("is damaged and made anew"), std::string::npos) << ended.notes;
    EXPECT_EQ(read_file(path), whole);
  }
}

TEST(Files, WhatALinkInTheCacheLeadsToStays) {
  TempFolder folder;
  Program program(folder);
  ASSERT_EQ(program.run(kGenerate).status, 0);
  const auto cached = files_below(folder.path() / "home/models", ending_in(".so"));
  ASSERT_EQ(cached.size(), 1u);
  const fs::path path = folder.path() / "home/models" / cached[0];
  const fs::path theirs = folder.write("theirs.txt", "precious");
  const auto link = [&] {
    fs::remove(path);
    fs::create_symlink(theirs, path);
  };
  link();
  EXPECT_EQ(program.run(kGenerate).status, 0);
  EXPECT_TRUE(read_file(theirs) == "precious");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path)));
  // A folder in the place of an entry is named, with a way on; an empty one goes.
  fs::remove(path);
  fs::create_directories(path / "theirs");
  const Ended ended = program.run(kGenerate);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.notes.find("move it away, or choose another cache with SATOR_HOME"), std::string::npos)
      << ended.notes;
  fs::remove(path / "theirs");
  EXPECT_EQ(program.run(kGenerate).status, 0);
}

TEST(Files, CachedModelsAreListedPrunedAndCleared) {
  TempFolder folder;
  Program program(folder);
  ASSERT_EQ(program.run(kGenerate).status, 0);
  write_file(folder.path() / "home/models/0123456789abcdef/model.so", "of an earlier version");
  auto json = [&](const std::vector<std::string>& args) {
    std::vector<std::string> all = {"cache", "--json", "c.json"};
    all.insert(all.end(), args.begin(), args.end());
    const Ended ended = program.run(all);
    EXPECT_EQ(ended.status, 0) << ended.notes;
    return nlohmann::json::parse(read_file(folder.path() / "c.json"));
  };
  auto listed = json({});
  ASSERT_EQ(listed["entries"].size(), 1u);
  EXPECT_NE(listed["entries"][0]["file"].get<std::string>().find("gpt2-stories-f16-run."), std::string::npos);
  EXPECT_EQ(listed["entries"][0]["damaged"], false);
  EXPECT_EQ(listed["earlier"], 1);
  EXPECT_EQ(listed["limit_bytes"], 4'000'000'000);
  EXPECT_EQ(json({"prune"})["removed"].size(), 1u);  // the earlier version's
  EXPECT_EQ(json({"list"})["entries"].size(), 1u);
  EXPECT_EQ(json({"prune", "--limit", "1K"})["removed"].size(), 1u);
  ASSERT_EQ(program.run(kGenerate).status, 0);
  write_file(folder.path() / "home/models/mine.so", "x");
  EXPECT_EQ(json({"clear"})["removed"].size(), 1u);
  EXPECT_EQ(files_below(folder.path() / "home/models", ending_in(".so")), std::vector<std::string>{"mine.so"});
  EXPECT_EQ(program.run({"cache", "prune", "--limit", "much"}).status, 1);
}

// A place that every user can write is no cache, and nothing is loaded from it.
TEST(Files, NothingIsLoadedFromWhereOthersCanWrite) {
  TempFolder folder;
  Program program(folder);
  fs::create_directories(folder.path() / "home/models");
  ::chmod((folder.path() / "home").c_str(), 0777);
  Ended ended = program.run(kGenerate);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.notes.find("could be another user's work"), std::string::npos) << ended.notes;
  EXPECT_NE(ended.notes.find("chmod go-w '" + (folder.path() / "home").string()), std::string::npos) << ended.notes;
  EXPECT_TRUE(files_below(folder.path() / "home", ending_in(".so")).empty());
  ::chmod((folder.path() / "home").c_str(), 0755);
  ASSERT_EQ(program.run(kGenerate).status, 0);

  ASSERT_EQ(program.run({"compile", kExample.string(), "-o", "lib/model.so"}).status, 0);
  std::vector<std::string> with_library = kGenerate;
  with_library.insert(with_library.end(), {"--model-lib", "lib/model.so"});
  EXPECT_EQ(program.run(with_library).status, 0);
  ::chmod((folder.path() / "lib/model.so").c_str(), 0666);
  ended = program.run(with_library);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.notes.find("model library lib/model.so could be another user's work"), std::string::npos)
      << ended.notes;
  ::chmod((folder.path() / "lib/model.so").c_str(), 0644);
  ::chmod((folder.path() / "lib").c_str(), 0777);
  EXPECT_EQ(program.run(with_library).status, 1);
}

// Where nothing can be kept, what was compiled is loaded from a temporary folder, which goes.
TEST(Files, AHomeThatCannotBeWritten) {
  TempFolder folder;
  Program program(folder);
  fs::create_symlink("/proc", folder.path() / "home");  // where nobody makes a folder
  const fs::path validation = kExample / "validation.txt";
  for (const std::vector<std::string>& args :
       {kGenerate, {"perplexity", kExample.string(), "--text", validation.string(), "--windows", "1"}}) {
    const Ended ended = program.run(args);
    EXPECT_EQ(ended.status, 0) << ended.notes;
    const std::string remark = "not kept for the next start: cannot write " + (folder.path() / "home/models").string();
    const size_t at = ended.notes.find(remark);
    ASSERT_NE(at, std::string::npos) << ended.notes;
    EXPECT_NE(ended.notes.find("SATOR_HOME names another folder"), std::string::npos) << ended.notes;
    EXPECT_EQ(ended.notes.find("not kept", at + 8), std::string::npos) << ended.notes;
  }
  EXPECT_TRUE(fs::is_empty(folder.path() / "tmp"));
}

// A disk that is full, or read-only.
TEST(Files, AHomeWithoutRoom) {
  for (const auto& [options, says] : {std::pair{"size=300k", "No space left"}, {"ro", "Read-only file system"}}) {
    TempFolder folder;
    Program program(folder);
    const std::string in_mount = text("unshare -rm sh -c 'mount -t tmpfs -o ", options, " sator home && \"$@\"' sh ");
    fs::create_directory(folder.path() / "home");
    const std::string begin =
        text("cd '", folder.path().string(), "' && export SATOR_HOME=$PWD/home TMPDIR=$PWD/tmp && ");
    if (std::system((begin + in_mount + "true 2> none.txt").c_str()) != 0)
      GTEST_SKIP() << "no file system can be mounted";
    std::string command = begin + in_mount + SATOR_PROGRAM;
    for (const std::string& word : kGenerate) command += text(" '", word, "'");
    EXPECT_EQ(std::system((command + " > out.txt 2> notes.txt").c_str()), 0);
    const std::string notes = read_file(folder.path() / "notes.txt");
    EXPECT_NE(notes.find("not kept for the next start: cannot write"), std::string::npos) << notes;
    EXPECT_NE(notes.find(says), std::string::npos) << notes;
    EXPECT_NE(read_file(folder.path() / "out.txt"), "");
    EXPECT_TRUE(fs::is_empty(folder.path() / "tmp"));
  }
}

// Found through PATH, the program's name tells nothing of where it is.
TEST(Files, ShippedChipsAreFoundThroughPath) {
  TempFolder folder;
  fs::create_directory(folder.path() / "bin");
  fs::create_symlink(SATOR_PROGRAM, folder.path() / "bin/sator");
  const std::string command = text("cd '",
                                   folder.path().string(),
                                   "' && PATH=$PWD/bin:$PATH sator estimate --chip tpuv1 --workload 8,8,8 > out.txt");
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_NE(read_file(folder.path() / "out.txt").find("tpuv1"), std::string::npos);
}

// Without $HOME and $SATOR_HOME the cache was a folder in /tmp that anyone could guess.
TEST(Files, WithoutAHomeNoSharedFolderIsUsed) {
  TempFolder folder;
  Program program(folder);
  const fs::path guessed = folder.path() / "tmp" / text("sator-", static_cast<int64_t>(::getuid()));
  const Ended ended = program.run({"cache", "--json", "c.json"}, 0, {"HOME", "SATOR_HOME"});
  const struct passwd* me = ::getpwuid(::getuid());
  if (me && fs::is_directory(me->pw_dir)) {
    const auto listed = nlohmann::json::parse(read_file(folder.path() / "c.json"));
    EXPECT_EQ(listed["folder"], (fs::path(me->pw_dir) / ".cache/sator/models").string());
  } else {
    EXPECT_NE(ended.notes.find("set SATOR_HOME to one"), std::string::npos) << ended.notes;
  }
  EXPECT_FALSE(fs::exists(guessed));
}

// What a study did not write stays, be it called as a result or not.
TEST(Files, AStudyTakesNoFilesThatItDidNotWrite) {
  TempFolder folder;
  Program program(folder);
  const std::vector<std::string> study = {
      "study", kExample.string(), "--shapes-only", "--quant", "f16", "--chip", "tpuv1", "-o", "."};
  // As beside a checkout of TENET.
  const std::map<std::string, std::string> theirs = {{"tenet/src/main.p", "a"},
                                                     {"tenet/data/gemm.s", "b"},
                                                     {"schedules/mine.py", "c"},
                                                     {"chakra/trace.json", "d"},
                                                     {"sweep.csv", "e"}};
  for (const auto& [name, bytes] : theirs) folder.write(name, bytes);
  const auto expect_theirs = [&] {
    for (const auto& [name, bytes] : theirs) EXPECT_EQ(read_file(folder.path() / name), bytes) << name;
  };
  ASSERT_EQ(program.run(study).status, 0);
  expect_theirs();
  ASSERT_EQ(program.run(study).status, 0);
  expect_theirs();
  folder.write("study.csv", "edited");
  Ended ended = program.run(study);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.notes.find("study.csv was changed since `sator study` wrote it"), std::string::npos) << ended.notes;
  EXPECT_EQ(ended.notes.find("[1/1]"), std::string::npos) << "work began: " << ended.notes;
  EXPECT_EQ(read_file(folder.path() / "study.csv"), "edited");
  std::vector<std::string> replacing = study;
  replacing.push_back("--replace");
  EXPECT_EQ(program.run(replacing).status, 0);
  EXPECT_NE(read_file(folder.path() / "study.csv"), "edited");
  expect_theirs();
  // Finished parts do not go where a link leads either.
  fs::remove_all(folder.path() / ".parts");
  fs::create_directory(folder.path() / "elsewhere");
  fs::create_directory_symlink(folder.path() / "elsewhere", folder.path() / ".parts");
  ended = program.run(study);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.notes.find(".parts is a link"), std::string::npos) << ended.notes;
  EXPECT_TRUE(fs::is_empty(folder.path() / "elsewhere"));
}

}  // namespace
}  // namespace sator::cli
