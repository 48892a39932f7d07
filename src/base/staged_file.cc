#include "base/staged_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/temporary.h"

namespace sator {

namespace {

// What leads on after a failed system call, where that is not a question of permissions.
struct CodeHint {
  int code;
  const char *needs, *hint;
};
constexpr CodeHint kCodeHints[] = {
    {ENOENT, "a path that exists", "check the path"},
    {ENOSPC, "room for the whole file", "free some space, or choose a folder on another disk"},
    {EDQUOT, "room for the whole file", "free some of this user's quota, or choose another folder"},
    {EIO, "a disk that works", "read the system's log, or choose a folder on another disk"},
    {EFBIG, "room for the whole file", "raise the limit on file sizes (`ulimit -f`)"},
    {EROFS, "a file system that can be written", "choose another folder"},
    {EISDIR, "a file, not a folder", "check the path"},
    {ENOTDIR, "folders on the way to the file", "check the path: one of its folders is a file"},
};

/// Where a path's links lead, be there a file or not.
fs::path linked(fs::path path) {
  std::error_code error;
  constexpr int kMostLinks = 40;  // as Linux follows
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, error); ++i) {
    const fs::path to = fs::read_symlink(path, error);
    if (error) break;
    path = to.is_absolute() ? to : path.parent_path() / to;
  }
  return path;
}

}  // namespace

void fail_file(const fs::path& path, std::string_view verb, int code) {
  Reason reason{.what = text("cannot ", verb, " ", path.string(), ": ", std::strerror(code)),
                .needs = text("a file that this user may ", verb),
                .hint = "check the path and its permissions"};
  for (const CodeHint& row : kCodeHints)
    if (row.code == code) reason.needs = row.needs, reason.hint = row.hint;
  fail(std::move(reason));
}

StagedFile::StagedFile(const fs::path& path, Sync sync) : path_(path), target_(linked(path)), sync_(sync) {
  std::error_code error;
  if (target_.has_parent_path()) fs::create_directories(target_.parent_path(), error);
  if (error) fail_file(path, "write", error.value());
  struct stat old{};
  const bool exists = ::stat(target_.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) {
    file_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    remove_abandoned(target_.parent_path());
    HoldInterrupts hold;
    file_ = open_partial(target_, partial_);
    if (file_ >= 0) guard_.emplace(partial_);
    if (file_ >= 0 && exists) ::fchmod(file_, old.st_mode & 07777);
  }
  if (file_ < 0) fail_file(path, "write", errno);
}

StagedFile::~StagedFile() {
  HoldInterrupts hold;
  if (!finished_ && !partial_.empty()) ::unlink(partial_.c_str());
  if (file_ >= 0) ::close(file_);
  guard_.reset();
}

void StagedFile::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_file(path_, "write", errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void StagedFile::write(std::string_view bytes) {
  constexpr size_t kHeld = size_t{1} << 16;
  if (held_.size() + bytes.size() < kHeld) {
    held_ += bytes;
    return;
  }
  put(held_);
  held_.clear();
  put(bytes);
}

void StagedFile::finish() {
  put(held_);
  held_.clear();
  if (!partial_.empty()) {
    if (sync_ == Sync::yes && ::fsync(file_) != 0) fail_file(path_, "write", errno);
    HoldInterrupts hold;
    if (::rename(partial_.c_str(), target_.c_str()) != 0) fail_file(path_, "write", errno);
    finished_ = true;
    guard_.reset();
    if (sync_ == Sync::yes) sync_folder_of(target_);
  }
  const int closed = ::close(file_);
  file_ = -1;
  if (closed != 0) fail_file(path_, "write", errno);
}

static void write_whole(const fs::path& path, std::string_view bytes, Sync sync) {
  StagedFile file(path, sync);
  file.write(bytes);
  file.finish();
}

void write_file(const fs::path& path, std::string_view bytes) { write_whole(path, bytes, Sync::no); }

void write_file_synced(const fs::path& path, std::string_view bytes) { write_whole(path, bytes, Sync::yes); }

/// Calls a function with a folder's descriptor. Errors: those of opening it and those that the function returns.
static void with_folder(const fs::path& folder, const fs::path& named, int (*call)(int)) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_file(named, "write", errno);
  const int code = call(fd) != 0 && errno != EINVAL ? errno : 0;  // EINVAL: a file system without it
  ::close(fd);
  if (code != 0) fail_file(named, "write", code);
}

void sync_folder_of(const fs::path& path) { with_folder(path.parent_path(), path, ::fsync); }

void sync_all(const fs::path& folder) { with_folder(folder, folder, ::syncfs); }

}  // namespace sator
