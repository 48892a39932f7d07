#include "base/trust.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/staged_file.h"

namespace sator {

namespace {

constexpr size_t kEntryBytes =
    size_t{1} << 16;  // of the lists of users and groups; a longer entry is taken for unknown

struct User {
  std::string name;
  gid_t group;
};

std::optional<User> user_of(uid_t uid) {
  std::vector<char> buffer(kEntryBytes);
  struct passwd entry, *found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || !found) return {};
  return User{found->pw_name, found->pw_gid};
}

std::string name_of(uid_t uid) {
  const std::optional<User> user = user_of(uid);
  return user ? user->name : text("user ", static_cast<int64_t>(uid));
}

/// Whether the file's group is its owner's alone.
bool has_private_group(const struct stat& s, const fs::path& path) {
  const std::optional<User> owner = user_of(s.st_uid);
  if (!owner || owner->group != s.st_gid) return false;
  std::vector<char> buffer(kEntryBytes);
  struct group entry, *found = nullptr;
  if (::getgrgid_r(s.st_gid, &entry, buffer.data(), buffer.size(), &found) != 0 || !found ||
      found->gr_name != owner->name)
    return false;
  for (char** member = found->gr_mem; *member; ++member)
    if (*member != owner->name) return false;
  // With an access list the group's bits are what anyone on the list has at most.
  return ::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) < 0;
}

/// What is wrong with one file or folder; empty if nothing.
struct Exposure {
  std::string problem, hint;
};
std::optional<Exposure> exposure_of(const struct stat& s, const fs::path& path, bool on_the_way) {
  const std::string quoted = text("'", path.string(), "'");
  if (s.st_uid != ::geteuid() && s.st_uid != 0)
    return Exposure{text("belongs to ", name_of(s.st_uid)),
                    text("if you trust it, copy it to a folder of your own, or `chown` ", quoted, " to yourself")};
  if (on_the_way && (s.st_mode & S_ISVTX) != 0) return {};
  if ((s.st_mode & S_IWOTH) != 0)
    return Exposure{"is writable by all users", text("chmod go-w ", quoted, ", if it is still what you put there")};
  if ((s.st_mode & S_IWGRP) != 0 && !has_private_group(s, path))
    return Exposure{"is writable by its group", text("chmod g-w ", quoted, ", if it is still what you put there")};
  return {};
}

}  // namespace

std::optional<Reason> exposed_to_others(int fd, const std::string& what) {
  const std::string needs =
      "a file that belongs to you or root, in folders that do, all of them writable by nobody else";
  struct stat s{};
  std::error_code error;
  const fs::path path = fs::read_symlink(text("/proc/self/fd/", fd), error);
  if (error || ::fstat(fd, &s) != 0 || !path.is_absolute())
    return Reason{
        .what = text(what, " cannot be traced to its folder"), .needs = needs, .hint = "check that /proc is there"};
  if (auto e = exposure_of(s, path, false))
    return Reason{.what = text(what, " could be another user's work: ", path.string(), " ", e->problem),
                  .needs = needs,
                  .hint = e->hint};
  for (fs::path at = path.parent_path();; at = at.parent_path()) {
    if (::lstat(at.c_str(), &s) != 0 || !S_ISDIR(s.st_mode))
      return Reason{
          .what = text(what, " is no longer in the folder ", at.string()), .needs = needs, .hint = "try again"};
    if (auto e = exposure_of(s, at, true))
      return Reason{.what = text(what, " could be another user's work: the folder ", at.string(), " ", e->problem),
                    .needs = needs,
                    .hint = e->hint};
    if (at == at.root_path()) return {};
  }
}

void make_private_folder(const fs::path& folder, const std::string& what) {
  // Each by itself: create_directories would leave their permissions to the umask.
  std::vector<fs::path> missing;
  std::error_code ignored;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, ignored) && at != at.root_path(); at = at.parent_path())
    missing.push_back(at);
  for (auto at = missing.rbegin(); at != missing.rend(); ++at)
    if (::mkdir(at->c_str(), 0700) != 0 && errno != EEXIST) fail_file(*at, "write", errno);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_file(folder, "write", errno);
  std::optional<Reason> reason = exposed_to_others(fd, what);
  ::close(fd);
  if (reason) fail(std::move(*reason));
}

}  // namespace sator
