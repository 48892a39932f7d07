#include "base/temporary.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include "base/error.h"

namespace sator {

namespace {

constexpr std::string_view kFolder = ".sator-temporary-", kFile = ".sator-", kPartial = ".partial";
constexpr size_t kRandom = 6;         // letters that are chosen anew each time
constexpr size_t kLongestName = 200;  // of a file's own part: what follows fits into the 255 bytes of a file system
constexpr time_t kAbandonedAfterS = 600;

/// Whether the open file or folder belongs to this user, is old, and no living process has it locked.
bool is_abandoned(int fd) {
  struct stat s{};
  return ::fstat(fd, &s) == 0 && s.st_uid == ::geteuid() && ::time(nullptr) - s.st_mtime >= kAbandonedAfterS &&
         ::flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void remove_if_abandoned(const fs::path& path) {
  // O_NONBLOCK: a pipe of that name must not stop us.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  std::error_code ignored;
  if (is_abandoned(fd)) fs::remove_all(path, ignored);
  ::close(fd);
}

}  // namespace

fs::path temporary_place() {
  const char* given = std::getenv("TMPDIR");
  return given && *given ? given : "/tmp";
}

bool is_temporary_name(const std::string& name) {
  if (name.starts_with(kFolder)) return name.size() == kFolder.size() + kRandom;
  const size_t tail = kFile.size() + kRandom + kPartial.size();
  return name.size() > tail && name.ends_with(kPartial) &&
         std::string_view(name).substr(name.size() - tail).starts_with(kFile);
}

void remove_abandoned(const fs::path& folder) {
  static std::mutex& mutex = *new std::mutex;
  static auto& seen = *new std::set<fs::path>;
  {
    std::lock_guard lock(mutex);
    if (!seen.insert(folder).second) return;
  }
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (is_temporary_name(at->path().filename().string())) found.push_back(at->path());
  for (const fs::path& path : found) remove_if_abandoned(path);
}

TemporaryFolder::TemporaryFolder(const fs::path& parent) {
  remove_abandoned(parent);
  std::string pattern = (parent / text(kFolder, std::string(kRandom, 'X'))).string();
  HoldInterrupts hold;
  if (!::mkdtemp(pattern.data()))
    fail({.what = text("no temporary folder can be made in ", parent.string(), ": ", std::strerror(errno)),
          .needs = "a folder for temporary files",
          .hint = "set TMPDIR to one, or free some space"});
  path_ = pattern;
  guard_.emplace(path_);
  lock_ = ::open(pattern.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0) ::flock(lock_, LOCK_EX | LOCK_NB);
}

TemporaryFolder::~TemporaryFolder() {
  HoldInterrupts hold;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

int open_partial(const fs::path& path, fs::path& partial) {
  static std::random_device& random = *new std::random_device;
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr int kMostTries = 100;
  const std::string name = path.filename().string().substr(0, kLongestName);
  HoldInterrupts hold;
  for (int i = 0; i < kMostTries; ++i) {
    std::string letters;
    while (letters.size() < kRandom) letters += kLetters[random() % kLetters.size()];
    partial = path.parent_path() / text(name, kFile, letters, kPartial);
    // O_EXCL: the name is of no other process, and leads nowhere else.
    const int fd = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd >= 0) ::flock(fd, LOCK_EX | LOCK_NB);
    if (fd < 0) partial.clear();
    return fd;
  }
  partial.clear();
  return -1;
}

}  // namespace sator
