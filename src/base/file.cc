#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/staged_file.h"

namespace sator {

// What leads on after a failed system call, where that is not a question of permissions.
struct CodeHint {
  int code;
  const char *needs, *hint;
};
static constexpr CodeHint kCodeHints[] = {
    {ENOENT, "a path that exists", "check the path"},
    {ENOSPC, "room for the whole file", "free some space, or choose a folder on another disk"},
    {EDQUOT, "room for the whole file", "free some of this user's quota, or choose another folder"},
    {EFBIG, "room for the whole file", "raise the limit on file sizes (`ulimit -f`)"},
    {EROFS, "a file system that can be written", "choose another folder"},
    {EISDIR, "a file, not a folder", "check the path"},
    {ENOTDIR, "folders on the way to the file", "check the path: one of its folders is a file"},
};

[[noreturn]] static void fail_file(const fs::path& path, std::string_view verb, int code) {
  Reason reason{.what = text("cannot ", verb, " ", path.string(), ": ", std::strerror(code)),
                .needs = text("a file that this user may ", verb),
                .hint = "check the path and its permissions"};
  for (const CodeHint& row : kCodeHints)
    if (row.code == code) reason.needs = row.needs, reason.hint = row.hint;
  fail(std::move(reason));
}

std::string read_file(const fs::path& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_file(path, "read", errno);
  std::string bytes;
  char chunk[1 << 16];
  while (true) {
    ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0) {
      if (errno == EINTR) continue;
      int code = errno;
      ::close(fd);
      fail_file(path, "read", code);
    }
    if (n == 0) break;
    bytes.append(chunk, static_cast<size_t>(n));
  }
  ::close(fd);
  return bytes;
}

static fs::path partial_name(fs::path path) {
  path += text(".", static_cast<int64_t>(::getpid()), ".partial");
  return path;
}

/// Where a path's links lead, be there a file or not.
static fs::path linked(fs::path path) {
  std::error_code error;
  constexpr int kMostLinks = 40;  // as Linux follows
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, error); ++i) {
    const fs::path to = fs::read_symlink(path, error);
    if (error) break;
    path = to.is_absolute() ? to : path.parent_path() / to;
  }
  return path;
}

StagedFile::StagedFile(const fs::path& path) : path_(path), target_(linked(path)) {
  std::error_code error;
  if (target_.has_parent_path()) fs::create_directories(target_.parent_path(), error);
  if (error) fail_file(path, "write", error.value());
  struct stat old{};
  const bool exists = ::stat(target_.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) {
    file_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    partial_ = partial_name(target_);
    guard_.emplace(partial_);
    file_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file_ >= 0 && exists) ::fchmod(file_, old.st_mode & 07777);
  }
  if (file_ < 0) fail_file(path, "write", errno);
}

StagedFile::~StagedFile() {
  if (file_ >= 0) ::close(file_);
  if (!finished_ && !partial_.empty()) ::unlink(partial_.c_str());
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
  const int closed = ::close(file_);
  file_ = -1;
  if (closed != 0 || (!partial_.empty() && ::rename(partial_.c_str(), target_.c_str()) != 0))
    fail_file(path_, "write", errno);
  finished_ = true;
}

void write_file(const fs::path& path, std::string_view bytes) {
  StagedFile file(path);
  file.write(bytes);
  file.finish();
}

Ref<MappedFile> MappedFile::open(const fs::path& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_file(path, "read", errno);
  struct stat st{};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    int code = S_ISREG(st.st_mode) ? errno : EISDIR;
    ::close(fd);
    fail_file(path, "read", code);
  }
  Ref<MappedFile> file(new MappedFile);
  file->path_ = path;
  file->size_ = static_cast<size_t>(st.st_size);
  if (file->size_ > 0) {
    void* at = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
      int code = errno;
      ::close(fd);
      fail_file(path, "read", code);
    }
    file->data_ = static_cast<const std::byte*>(at);
  }
  ::close(fd);
  return file;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

fs::path sator_home() {
  if (const char* home = std::getenv("SATOR_HOME"); home && *home) return home;
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "sator";
  return fs::temp_directory_path() / text("sator-", static_cast<int64_t>(::getuid()));
}

uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  uint64_t h = 0xcbf29ce484222325ull ^ (seed * 0x9e3779b97f4a7c15ull);
  for (unsigned char c : bytes) h = (h ^ c) * 0x100000001b3ull;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 33);
}

std::string hex(uint64_t value) {
  char buf[20];
  std::snprintf(buf, sizeof buf, "%016llx", static_cast<unsigned long long>(value));
  return buf;
}

}  // namespace sator
