// The program `sator` as a process of its own, because signals and limits belong to a process.
#pragma once

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "base/temporary.h"
#include "temp_folder.h"

namespace sator::cli {

inline const fs::path kExample = fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories";

struct Ended {
  int status = -1;  // of the exit; 1000 + the signal that killed it
  std::string out, notes;
};

/// The program `sator` in a folder of its own, with its own $SATOR_HOME and $TMPDIR.
class Program {
 public:
  explicit Program(const TempFolder& folder) : folder_(folder.path()) { fs::create_directories(folder_ / "tmp"); }

  void start(const std::vector<std::string>& args, int64_t file_limit_bytes = 0,
             const std::vector<const char*>& unset = {}) {
    std::vector<std::string> words = {SATOR_PROGRAM};
    words.insert(words.end(), args.begin(), args.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    write_file(folder_ / "notes.txt", "");
    pid_ = ::fork();
    if (pid_ != 0) return;
    const bool ready = ::chdir(folder_.c_str()) == 0 && ::setenv("SATOR_HOME", (folder_ / "home").c_str(), 1) == 0 &&
                       ::setenv("TMPDIR", (folder_ / "tmp").c_str(), 1) == 0 && ::freopen("out.txt", "w", stdout) &&
                       ::freopen("notes.txt", "w", stderr);
    for (const char* name : unset) ::unsetenv(name);
    struct rlimit limit = {static_cast<rlim_t>(file_limit_bytes), static_cast<rlim_t>(file_limit_bytes)};
    if (ready && (file_limit_bytes == 0 || ::setrlimit(RLIMIT_FSIZE, &limit) == 0)) ::execv(argv[0], argv.data());
    ::_exit(127);
  }

  /// Sends Ctrl-C's signal as soon as `moment` has come. False if the program ended before.
  bool interrupt_when(const std::function<bool()>& moment, int signal = SIGINT) {
    int status = 0;
    while (!moment()) {
      if (::waitpid(pid_, &status, WNOHANG) == pid_) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return ::kill(pid_, signal) == 0;
  }

  /// Whether the program has come so far that it takes signals itself: it blocks them for all threads but one.
  bool takes_signals() const {
    const std::string status = read_file(text("/proc/", static_cast<int64_t>(pid_), "/status"));
    const size_t at = status.find("SigBlk:");
    return at != status.npos && (std::stoull(status.substr(at + 7), nullptr, 16) >> (SIGINT - 1) & 1) != 0;
  }

  Ended end() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status),
            read_file(folder_ / "out.txt"),
            read_file(folder_ / "notes.txt")};
  }

  Ended run(const std::vector<std::string>& args, int64_t file_limit_bytes = 0,
            const std::vector<const char*>& unset = {}) {
    start(args, file_limit_bytes, unset);
    return end();
  }

 private:
  fs::path folder_;
  pid_t pid_ = -1;
};

/// The files below a folder whose name satisfies a condition.
inline std::vector<std::string> files_below(const fs::path& folder,
                                            const std::function<bool(const std::string&)>& wanted) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored))
    if (entry.is_regular_file() && wanted(entry.path().filename().string()))
      found.push_back(fs::relative(entry.path(), folder).string());
  return found;
}

/// Whether a process has left temporary files or folders below a folder, or is using some.
inline bool has_temporaries(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored))
    if (is_temporary_name(entry.path().filename().string())) return true;
  return false;
}

inline auto ending_in(const std::string& end) {
  return [end](const std::string& file) { return file.ends_with(end); };
}

}  // namespace sator::cli
