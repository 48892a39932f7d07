// A library for LD_PRELOAD that stands before the C library's calls on files: it lists them, or makes one of them fail.
//   SATOR_FAULT_BELOW   folder: calls on files elsewhere (and on pipes and terminals) pass
//   SATOR_FAULT_LOG     file that gets one line per call: "CALL SITE NUMBER PATH"
//   SATOR_FAULT_AT      "CALL SITE NUMBER": the call that fails; the numbers of a site count from 1
//   SATOR_FAULT_DO      kill | short | ENOSPC | EIO | EROFS | EDQUOT
//   SATOR_FAULT_MARK    file that is made when the process comes to that call
// A site is a call with the callers that led there: a hash of their offsets in their files, equal from run to run.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

constexpr int kFrames = 12;   // of the backtrace that make a site
constexpr int kSites = 4096;  // slots of the table
constexpr int kLine = 4600;   // bytes of a line of the log

struct Site {
  uint64_t hash;
  int count;
};
Site sites[kSites];
volatile int busy = 0;
thread_local bool inside = false;

void lock() {
  while (__sync_lock_test_and_set(&busy, 1)) {
  }
}
void unlock() { __sync_lock_release(&busy); }

template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

uint64_t mixed(uint64_t h, const void* bytes, size_t n) {
  for (size_t i = 0; i < n; ++i) h = (h ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3ull;
  return h;
}

/// By the callers' offsets and the names of their files, so that neither load addresses nor folders count.
uint64_t site_of(const char* call) {
  void* frames[kFrames + 3];
  const int n = backtrace(frames, kFrames + 3);
  uint64_t h = mixed(0xcbf29ce484222325ull, call, strlen(call));
  for (int i = 3; i < n; ++i) {
    Dl_info info;
    if (!dladdr(frames[i], &info) || !info.dli_fname) continue;
    const char* slash = strrchr(info.dli_fname, '/');
    const char* file = slash ? slash + 1 : info.dli_fname;
    const auto offset = static_cast<uint64_t>(static_cast<char*>(frames[i]) - static_cast<char*>(info.dli_fbase));
    h = mixed(h, file, strlen(file));
    h = mixed(h, &offset, sizeof offset);
  }
  return h;
}

int count_of(uint64_t hash) {
  lock();
  int count = 0;
  for (int probe = 0; probe < kSites; ++probe) {
    Site& s = sites[(hash + static_cast<uint64_t>(probe)) % kSites];
    if (s.count != 0 && s.hash != hash) continue;
    s.hash = hash;
    count = ++s.count;
    break;
  }
  unlock();
  return count;
}

bool is_below(const char* path) {
  const char* below = getenv("SATOR_FAULT_BELOW");
  if (!below) return false;
  char whole[4096];
  if (path[0] != '/') {
    if (!getcwd(whole, sizeof whole)) return false;
    const size_t n = strlen(whole);
    snprintf(whole + n, sizeof whole - n, "/%s", path);
    path = whole;
  }
  const size_t n = strlen(below);
  return strncmp(path, below, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/// The file's; false for pipes, whose links do not begin with a slash.
bool path_of(int fd, char* out, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, out, size - 1);
  if (n <= 0 || out[0] != '/') return false;
  out[n] = '\0';
  return true;
}

/// Adds a line to a file, if there is one, by calls that nobody stands before.
void append(const char* file, const char* line) {
  if (!file) return;
  const long fd = syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  syscall(SYS_write, fd, line, strlen(line));
  syscall(SYS_close, fd);
}

enum class Do { pass, kill, cut, fail };

/// What becomes of this call; with `fail`, errno is set.
Do decided(const char* call, const char* path) {
  if (inside || !is_below(path)) return Do::pass;
  const char* log = getenv("SATOR_FAULT_LOG");
  if (log && strcmp(path, log) == 0) return Do::pass;
  inside = true;
  const uint64_t hash = site_of(call);
  const int number = count_of(hash);
  char mine[64];
  snprintf(mine, sizeof mine, "%s %016llx %d", call, static_cast<unsigned long long>(hash), number);
  char line[kLine];
  snprintf(line, sizeof line, "%s %s\n", mine, path);
  append(log, line);
  inside = false;
  const char *at = getenv("SATOR_FAULT_AT"), *what = getenv("SATOR_FAULT_DO");
  if (!at || !what || strcmp(at, mine) != 0) return Do::pass;
  append(getenv("SATOR_FAULT_MARK"), line);
  if (strcmp(what, "kill") == 0) return Do::kill;
  if (strcmp(what, "short") == 0) return Do::cut;
  errno = strcmp(what, "ENOSPC") == 0   ? ENOSPC
          : strcmp(what, "EROFS") == 0  ? EROFS
          : strcmp(what, "EDQUOT") == 0 ? EDQUOT
                                        : EIO;
  return Do::fail;
}

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/// A call that is done or not.
template <class Call>
auto guarded(const char* name, const char* path, const Call& call) -> decltype(call()) {
  switch (decided(name, path)) {
    case Do::kill: die();
    case Do::fail: return static_cast<decltype(call())>(-1);
    default: return call();
  }
}

template <class Call>
auto guarded_fd(const char* name, int fd, const Call& call) -> decltype(call()) {
  char path[4096];
  if (inside || !path_of(fd, path, sizeof path)) return call();
  return guarded(name, path, call);
}

/// A call that may do a part: half of it is done before the process is killed, or instead of the whole.
template <class Part>
ssize_t written(const char* name, int fd, size_t size, const Part& part) {
  char path[4096];
  if (inside || !path_of(fd, path, sizeof path)) return part(size);
  switch (decided(name, path)) {
    case Do::kill: part(size / 2); die();
    case Do::cut: return part(size > 1 ? size / 2 : size);
    case Do::fail: return -1;
    default: return part(size);
  }
}

bool writes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0; }

/// The first backtrace loads a library, which must not happen amid a call.
__attribute__((constructor)) void prepare() {
  void* frame[1];
  backtrace(frame, 1);
}

/// The mode that follows the arguments of a call that may make a file.
mode_t mode_of(int flags, va_list rest) { return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0; }

/// open and open64; those that only read pass.
template <class Open>
int opened(const char* path, int flags, va_list rest, Open* next) {
  const mode_t mode = mode_of(flags, rest);
  if (!writes(flags)) return next(path, flags, mode);
  return guarded("open", path, [&] { return next(path, flags, mode); });
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  static auto* next = real<ssize_t(int, const void*, size_t)>("write");
  return written("write", fd, size, [&](size_t n) { return next(fd, bytes, n); });
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  static auto* next = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return written("pwrite", fd, size, [&](size_t n) { return next(fd, bytes, n, at); });
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  static auto* next = real<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return written("pwrite", fd, size, [&](size_t n) { return next(fd, bytes, n, at); });
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  static auto* next = real<ssize_t(int, const struct iovec*, int)>("writev");
  return written(
      "writev", fd, static_cast<size_t>(count), [&](size_t n) { return next(fd, parts, static_cast<int>(n)); });
}

int rename(const char* from, const char* to) {
  static auto* next = real<int(const char*, const char*)>("rename");
  return guarded("rename", to, [&] { return next(from, to); });
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  static auto* next = real<int(int, const char*, int, const char*)>("renameat");
  return guarded("rename", to, [&] { return next(from_folder, from, to_folder, to); });
}

int fsync(int fd) {
  static auto* next = real<int(int)>("fsync");
  return guarded_fd("fsync", fd, [&] { return next(fd); });
}

int fdatasync(int fd) {
  static auto* next = real<int(int)>("fdatasync");
  return guarded_fd("fsync", fd, [&] { return next(fd); });
}

int syncfs(int fd) {
  static auto* next = real<int(int)>("syncfs");
  return guarded_fd("fsync", fd, [&] { return next(fd); });
}

int ftruncate(int fd, off_t size) {
  static auto* next = real<int(int, off_t)>("ftruncate");
  return guarded_fd("ftruncate", fd, [&] { return next(fd, size); });
}

int ftruncate64(int fd, off64_t size) {
  static auto* next = real<int(int, off64_t)>("ftruncate64");
  return guarded_fd("ftruncate", fd, [&] { return next(fd, size); });
}

int mkdir(const char* path, mode_t mode) {
  static auto* next = real<int(const char*, mode_t)>("mkdir");
  return guarded("mkdir", path, [&] { return next(path, mode); });
}

char* mkdtemp(char* pattern) {
  static auto* next = real<char*(char*)>("mkdtemp");
  switch (decided("mkdir", pattern)) {
    case Do::kill: die();
    case Do::fail: return nullptr;
    default: return next(pattern);
  }
}

int unlink(const char* path) {
  static auto* next = real<int(const char*)>("unlink");
  return guarded("unlink", path, [&] { return next(path); });
}

int open(const char* path, int flags, ...) {
  static auto* next = real<int(const char*, int, ...)>("open");
  va_list rest;
  va_start(rest, flags);
  const int fd = opened(path, flags, rest, next);
  va_end(rest);
  return fd;
}

int open64(const char* path, int flags, ...) {
  static auto* next = real<int(const char*, int, ...)>("open64");
  va_list rest;
  va_start(rest, flags);
  const int fd = opened(path, flags, rest, next);
  va_end(rest);
  return fd;
}

int openat(int folder, const char* path, int flags, ...) {
  static auto* next = real<int(int, const char*, int, ...)>("openat");
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  if (!writes(flags) || folder != AT_FDCWD) return next(folder, path, flags, mode);
  return guarded("open", path, [&] { return next(folder, path, flags, mode); });
}

}  // extern "C"
