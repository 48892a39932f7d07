#include "base/owned_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"
#include "base/staged_file.h"
#include "base/temporary.h"

namespace sator {

namespace {

constexpr int64_t kVersion = 1;  // of the list's form

/// Whether a name stays within its folder.
bool is_within(const std::string& name) {
  const auto parts = split(name, '/');
  return !name.empty() && name.find('\0') == name.npos &&
         std::ranges::none_of(parts, [](std::string_view p) { return p.empty() || p == "." || p == ".."; });
}

/// The folders on the way to a name: "a", "a/b" of "a/b/c".
std::vector<std::string> folders_of(const std::string& name) {
  std::vector<std::string> out;
  for (size_t at = name.find('/'); at != name.npos; at = name.find('/', at + 1)) out.push_back(name.substr(0, at));
  return out;
}

bool is_there(const fs::path& path, struct stat& s) { return ::lstat(path.c_str(), &s) == 0; }

}  // namespace

OwnedFolder::OwnedFolder(fs::path folder, std::string command, bool replace)
    : folder_(std::move(folder)), command_(std::move(command)), replace_(replace) {
  list_file_ = folder_ / text(".sator-", command_, ".json");
  std::error_code error;
  fs::create_directories(folder_, error);
  const fs::path named = folder_ / "";  // "OUT/", a folder
  if (error) fail_file(named, "write", error.value());
  lock_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) fail_file(named, "write", errno);
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(lock_);
    fail({.what = text("another process is writing its results to ", folder_.string()),
          .needs = "one at a time in a folder",
          .hint = "wait for it, or choose another folder with -o"});
  }
  try {
    read_list();
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

OwnedFolder::~OwnedFolder() { ::close(lock_); }

void OwnedFolder::read_list() {
  struct stat s{};
  if (!is_there(list_file_, s)) return;
  const std::string source = list_file_.string();
  const std::string hint = text("choose another folder with -o, or remove ", source, " and the results beside it");
  if (!S_ISREG(s.st_mode))
    fail({.what = text(source, " is no file"), .needs = "the list of files that the command wrote", .hint = hint});
  const Json tree = parse_json(read_regular_file(list_file_), source);
  const JsonAt list(tree, source);
  if (const JsonAt version = list.at("version"); version.integer() != kVersion)
    version.fail(text("is ", version.integer()), text(kVersion), hint);
  list.at("files").each([&](const JsonAt& file) {
    const std::string& name = file.at("name").string();
    if (!is_within(name)) file.at("name").fail(text("is ", string_literal(name)), "a name within the folder", hint);
    list_[name].push_back({file.at("bytes").integer(0), file.at("digest").string()});
  });
}

void OwnedFolder::write_list(const List& list) const {
  Json files = Json::array();
  for (const auto& [name, versions] : list)
    for (const Version& v : versions) files.push_back({{"name", name}, {"bytes", v.bytes}, {"digest", v.digest}});
  const Json tree = {{"version", kVersion}, {"command", command_}, {"files", files}};
  write_file_synced(list_file_, tree.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

bool OwnedFolder::is_as_listed(const std::string& name) const {
  const auto at = list_.find(name);
  if (at == list_.end()) return false;
  struct stat s{};
  for (const std::string& on_the_way : folders_of(name))
    if (!is_there(folder_ / on_the_way, s) || !S_ISDIR(s.st_mode)) return false;
  if (!is_there(folder_ / name, s) || !S_ISREG(s.st_mode)) return false;
  const auto same_size = [&](const Version& v) { return v.bytes == s.st_size; };
  if (std::ranges::none_of(at->second, same_size)) return false;
  const Version found{s.st_size, digest_of_file(folder_ / name)};
  return std::ranges::count(at->second, found) > 0;
}

std::optional<std::string> OwnedFolder::in_the_way(const std::string& name) const {
  struct stat s{};
  for (const std::string& on_the_way : folders_of(name)) {
    const fs::path path = folder_ / on_the_way;
    if (!is_there(path, s)) return {};
    if (!S_ISDIR(s.st_mode)) return text(path.string(), S_ISLNK(s.st_mode) ? " is a link" : " is no folder");
  }
  if (name.ends_with('/') || !is_there(folder_ / name, s) || is_as_listed(name)) return {};
  const std::string path = (folder_ / name).string();
  if (S_ISLNK(s.st_mode)) return text(path, " is a link");
  if (!S_ISREG(s.st_mode)) return text(path, " is no file");
  if (replace_) return {};
  return text(path,
              list_.contains(name) ? " was changed since `sator " : " is not on the list of files that `sator ",
              command_,
              list_.contains(name) ? "` wrote it" : "` wrote here");
}

void OwnedFolder::require_free(const std::vector<std::string>& names) const {
  std::set<std::string> all;
  for (const std::string& name : names)
    if (auto words = in_the_way(name)) all.insert(*words);
  if (all.empty()) return;
  fail({.what = text(*all.begin(),
                     ", and stands where a result goes",
                     all.size() > 1 ? text("; so do ", all.size() - 1, " more") : ""),
        .needs = "results of an earlier run as it left them, or a free place",
        .hint = "choose another folder with -o, move the file away, or give --replace to have such files replaced"});
}

void OwnedFolder::require_free_below(const std::vector<std::string>& folders,
                                     const std::vector<std::string>& endings) const {
  std::vector<std::string> names;
  for (const std::string& folder : folders) {
    names.push_back(folder + "/");
    struct stat s{};
    if (!is_there(folder_ / folder, s) || !S_ISDIR(s.st_mode)) continue;
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder_ / folder, error), end; !error && at != end; at.increment(error))
      if (std::ranges::count(endings, at->path().extension().string()) > 0)
        names.push_back(fs::relative(at->path(), folder_).generic_string());
  }
  require_free(names);
}

void OwnedFolder::remove_stale() const {
  std::set<std::string, std::greater<>> folders;  // inner ones first
  for (const auto& [name, versions] : list_) {
    if (now_.contains(name) || !is_as_listed(name)) continue;
    std::error_code ignored;
    fs::remove(folder_ / name, ignored);
    for (const std::string& folder : folders_of(name)) folders.insert(folder);
  }
  for (const std::string& folder : folders) ::rmdir((folder_ / folder).c_str());  // if it is empty now
}

void OwnedFolder::adopt(const std::string& name) {
  const fs::path path = folder_ / name;
  list_[name].push_back({static_cast<int64_t>(fs::file_size(path)), digest_of_file(path)});
}

bool OwnedFolder::is_there_already(const std::string& name, std::string_view bytes) const {
  struct stat s{};
  const fs::path path = folder_ / name;
  return !list_.contains(name) && is_there(path, s) && S_ISREG(s.st_mode) &&
         s.st_size == static_cast<off_t>(bytes.size()) && digest_of_file(path) == digest_of(bytes);
}

void OwnedFolder::put(const std::string& name, std::string_view bytes) {
  if (!is_within(name)) internal_error(text("a result is called ", name));
  if (is_there_already(name, bytes)) return;
  require_free({name});
  if (!now_.try_emplace(name, 1, Version{static_cast<int64_t>(bytes.size()), digest_of(bytes)}).second)
    internal_error(text("two results are called ", name));
  if (!at_) at_.emplace(folder_);
  const fs::path path = at_->path() / text(staged_.size());
  staged_.push_back(name);
  write_file(path, bytes);
  struct stat old{};
  if (is_there(folder_ / name, old)) ::chmod(path.c_str(), old.st_mode & 07777);
}

void OwnedFolder::finish(const std::vector<std::string>& gone_first) {
  List both = list_;
  for (const auto& [name, versions] : now_)
    if (std::ranges::count(both[name], versions[0]) == 0) both[name].push_back(versions[0]);
  sync_all(folder_);
  write_list(both);
  {
    HoldInterrupts together;
    std::error_code error;
    for (const std::string& name : gone_first) {
      if (is_as_listed(name)) fs::remove(folder_ / name, error);
      if (error) fail_file(folder_ / name, "write", error.value());
    }
    for (size_t i = 0; i < staged_.size(); ++i) {
      const fs::path target = folder_ / staged_[i];
      fs::create_directories(target.parent_path(), error);
      if (error) fail_file(target, "write", error.value());
      if (::rename((at_->path() / text(i)).c_str(), target.c_str()) != 0) fail_file(target, "write", errno);
    }
    remove_stale();
  }
  write_list(now_);
  at_.reset();
  staged_.clear();
  list_ = std::move(now_);
  now_.clear();
}

void OwnedFolder::replace(const Files& files) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files)
    if (!is_there_already(name, bytes)) names.push_back(name);
  require_free(names);  // all of them, before any is written
  for (const auto& [name, bytes] : files) put(name, bytes);
  finish();
}

}  // namespace sator
