#include "base/file.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/staged_file.h"

namespace sator {

/// What is left of an open file, which is closed.
static std::string read_rest(int fd, const fs::path& path, size_t most_bytes) {
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
    if (static_cast<size_t>(n) > most_bytes - bytes.size()) {
      ::close(fd);
      const std::string bound = grouped(static_cast<int64_t>(most_bytes));
      fail({.what = text(path.string(), " has more than ", bound, " bytes"),
            .needs = text("a file of at most ", bound, " bytes"),
            .hint = "check that it is the file that was meant"});
    }
    bytes.append(chunk, static_cast<size_t>(n));
  }
  ::close(fd);
  return bytes;
}

/// Opens a file that is neither a folder nor a pipe or device: one that nobody writes is refused, not waited for.
static int open_regular(const fs::path& path, struct stat& st) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail_file(path, "read", errno);
  if (::fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) return fd;
  const int code = S_ISREG(st.st_mode) ? errno : EISDIR;
  ::close(fd);
  if (code == EISDIR && !S_ISDIR(st.st_mode))
    fail({.what = text(path.string(), " is a pipe or a device"), .needs = "a regular file"});
  fail_file(path, "read", code);
}

std::string read_file(const fs::path& path, size_t most_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_file(path, "read", errno);
  return read_rest(fd, path, most_bytes);
}

std::string read_regular_file(const fs::path& path, size_t most_bytes) {
  struct stat st{};
  const int fd = open_regular(path, st);
  return read_rest(fd, path, most_bytes);
}

Ref<MappedFile> MappedFile::open(const fs::path& path) {
  struct stat st{};
  const int fd = open_regular(path, st);
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

/// What the system's list of users says, for a process without $HOME; empty if nothing.
static fs::path home_of_user() {
  std::vector<char> buffer(1 << 14);
  struct passwd entry, *found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found || !found->pw_dir)
    return {};
  return found->pw_dir;
}

fs::path sator_home() {
  if (const char* home = std::getenv("SATOR_HOME"); home && *home) return fs::absolute(home);
  if (const char* home = std::getenv("HOME"); home && *home) return fs::absolute(home) / ".cache" / "sator";
  const fs::path home = home_of_user();
  // No folder that others know of: whoever makes it first decides what is in it.
  std::error_code ignored;
  if (!home.is_absolute() || !fs::is_directory(home, ignored))
    fail({.what = text(
              "SATOR_HOME and HOME are unset, and user ", static_cast<int64_t>(::geteuid()), " has no home folder"),
          .needs = "a folder of this user alone for compiled models",
          .hint = "set SATOR_HOME to one"});
  return home / ".cache" / "sator";
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
