#include <fcntl.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/file_cache.h"
#include "base/owned_folder.h"
#include "base/text.h"
#include "fuzz/readers/readers.h"
#include "study/parts.h"

namespace sator::fuzz {
namespace {

constexpr std::string_view kKept = "of somebody else";

/// A folder beside a file that is nobody's to touch.
struct Neighbours {
  fs::path file, folder;

  explicit Neighbours(const fs::path& place) : file(place / "file"), folder(place / "folder") {
    put_file(file, kKept);
    fs::create_directory(folder);
  }
  void require_kept() const { require(read_file(file) == kKept, "files outside of the folder stay"); }
};

/// By the first letter of its name a file, a folder with a file, a link to `target`, or a pipe. All are old.
void make(const fs::path& path, const fs::path& target) {
  const std::string name = path.filename().string();
  switch (name.front()) {
    case 'd':
      fs::create_directory(path);
      put_file(path / "model.so", "x");
      break;
    case 'l': fs::create_symlink(target, path); break;
    case 'p': ::mkfifo(path.c_str(), 0600); break;
    default: put_file(path, "x");
  }
  const timespec old[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ::utimensat(AT_FDCWD, path.c_str(), old, AT_SYMLINK_NOFOLLOW);
}

}  // namespace

void read_files_list(std::string_view bytes, const fs::path& folder) {
  const Neighbours at(folder);
  fs::create_directory(at.folder / "sub");
  put_file(at.folder / "sub" / "c.csv", kKept);
  put_file(at.folder / ".sator-study.json", bytes);
  {
    OwnedFolder results(at.folder, "study");
    results.require_free({"a.csv", "sub/d.csv"});
    results.require_free_below({"sub"}, {".py"});
    results.replace({{"a.csv", "1"}, {"sub/d.csv", "2"}});
  }
  require(read_file(at.folder / "a.csv") == "1" && read_file(at.folder / "sub" / "d.csv") == "2", "results are there");
  at.require_kept();
  OwnedFolder(at.folder, "study").replace({});
  require(!fs::exists(at.folder / "a.csv"), "the list that is written is the next run's");
}

void read_cache_entry(std::string_view bytes, const fs::path& folder) {
  const FileCache cache(folder, ".json");
  const fs::path path = cache.path_of("entry", std::string(32, '0'));
  put_file(path, bytes);
  const bool whole = cache.is_whole(cache.entries().at(0));
  const std::optional<std::string> content = cache.read(path, [](const std::string&) {});
  require(whole == content.has_value() && whole == fs::exists(path), "a damaged entry goes, a whole one stays");
  require(!content || sealed(*content) == bytes, "a whole entry is its content and the seal");
}

void read_cache_folder(std::string_view bytes, const fs::path& folder) {
  const Neighbours at(folder);
  for (std::string_view name : split(bytes, '\n'))
    if (!name.empty() && name.size() <= 255 && name != "." && name != ".." && name.find('/') == name.npos &&
        name.find('\0') == name.npos && !fs::exists(fs::symlink_status(at.folder / name)))
      make(at.folder / name, at.file);
  const FileCache cache(at.folder, ".so");
  for (const CacheEntry& e : cache.entries()) {
    require(!cache.is_whole(e), "no entry here has a seal");
    for (const char c : e.path.filename().string()) require(c > ' ' && c <= '~', "names of entries can be printed");
  }
  remove_abandoned(at.folder);
  cache.prune(0, std::chrono::seconds(0));
  require(cache.entries().empty(), "all entries can be removed");
  at.require_kept();
}

void read_study_part(std::string_view bytes, const fs::path& folder) {
  const FileCache files(folder, ".json");
  const study::PartStore parts(folder);
  for (const char* name : {"f16", "f16@edge_npu32", "speeds here"})
    put_file(files.path_of(name, digest_of(text(name, "\nkey"))), sealed(std::string(bytes)));
  parts.find_scheme("f16", "key");
  parts.find_chip("f16", "edge_npu32", "key");
  parts.find_speeds({"f16"}, "key", INT64_MAX);
}

}  // namespace sator::fuzz
