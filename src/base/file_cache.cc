#include "base/file_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/digest.h"
#include "base/error.h"
#include "base/staged_file.h"

namespace sator {

namespace {

constexpr int64_t kLimitBytes = 4'000'000'000;
constexpr size_t kKeyDigits = 32, kLongestPlainName = 100;

bool is_hex(std::string_view s) {
  return std::ranges::all_of(s, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// Letters of the names of entries: none that a terminal or a file system takes for anything else.
bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '+' || c == '@' || c == '_';
}

/// NAME.KEY.ENDING, as path_of makes it. Whatever else lies in the folder is not ours, and its name is not to be printed as it is.
bool is_entry_name(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return false;
  name.remove_suffix(ending.size());
  if (name.size() <= kKeyDigits + 1 || !is_hex(name.substr(name.size() - kKeyDigits))) return false;
  name.remove_suffix(kKeyDigits);
  return name.ends_with('.') && name.size() <= kLongestPlainName + 1 &&
         std::ranges::all_of(name.substr(0, name.size() - 1), is_plain);
}

std::string_view chars(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

std::optional<int64_t> parse_size(std::string_view written) {
  static constexpr std::pair<char, double> kUnits[] = {{'K', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}};
  double unit = 1, value = 0;
  for (const auto& [letter, factor] : kUnits)
    if (!written.empty() && written.back() == letter) unit = factor;
  if (unit != 1) written.remove_suffix(1);
  const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (written.empty() || error != std::errc() || end != written.data() + written.size()) return {};
  if (!(value >= 0) || value * unit > 9e18) return {};
  return static_cast<int64_t>(std::llround(value * unit));
}

int64_t cache_limit_bytes() {
  const char* given = std::getenv("SATOR_CACHE_LIMIT");
  if (given == nullptr || *given == '\0') return kLimitBytes;
  const std::optional<int64_t> bytes = parse_size(given);
  if (!bytes)
    fail({.what = text("SATOR_CACHE_LIMIT is ", string_literal(given)),
          .needs = "a size in bytes, with K, M, G or T behind it where it is large",
          .hint = "as in SATOR_CACHE_LIMIT=2G; unset it for 4G"});
  return *bytes;
}

fs::path FileCache::path_of(const std::string& name, const std::string& key) const {
  std::string safe;
  for (char c : name.substr(0, kLongestPlainName)) safe += is_plain(c) ? c : '_';
  return folder_ / text(safe.empty() ? "_" : safe, ".", key, ending_);
}

std::optional<std::string> FileCache::read(const fs::path& path,
                                           const std::function<void(const std::string&)>& damaged) const {
  std::error_code gone;
  if (!fs::is_regular_file(fs::symlink_status(path, gone))) return {};
  std::string bytes = read_regular_file(path);
  const std::optional<std::string_view> content = unsealed(bytes);
  if (!content) {
    damaged(text(path.string(), " is damaged and made anew"));
    fs::remove(path, gone);
    return {};
  }
  mark_used(path);
  bytes.resize(content->size());
  return bytes;
}

void FileCache::mark_used(const fs::path& path) { ::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); }

bool FileCache::find(const fs::path& path, const std::function<void(const std::string&)>& damaged) const {
  return read(path, damaged).has_value();
}

void FileCache::free_place(const fs::path& path) {
  std::error_code error;
  const fs::file_status found = fs::symlink_status(path, error);
  if (!fs::exists(found) || fs::is_regular_file(found) || fs::remove(path, error)) return;
  fail({.what =
            text(path.string(), ", which stands in the place of a cache's entry, cannot be removed: ", error.message()),
        .needs = "a free place",
        .hint = fs::is_directory(found)
                    ? "the folder is not empty: move it away, or choose another cache with SATOR_HOME"
                    : "move it away, or choose another cache with SATOR_HOME"});
}

void FileCache::write(const fs::path& path, std::string bytes) const {
  free_place(path);
  write_file_synced(path, sealed(std::move(bytes)));
  prune(cache_limit_bytes(), kCacheKeeps);
}

std::vector<CacheEntry> FileCache::entries() const {
  std::vector<CacheEntry> out;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (!is_entry_name(at->path().filename().string(), ending_) || !at->is_regular_file(gone) || at->is_symlink(gone))
      continue;
    CacheEntry entry{at->path(), static_cast<int64_t>(at->file_size(gone)), at->last_write_time(gone)};
    if (!gone) out.push_back(std::move(entry));
  }
  std::ranges::sort(out, {}, [](const CacheEntry& e) { return std::pair(e.used, e.path); });
  return out;
}

bool FileCache::is_whole(const CacheEntry& entry) const {
  try {
    return unsealed(chars(*MappedFile::open(entry.path))).has_value();
  } catch (const Error&) {
    return false;
  }
}

std::vector<CacheEntry> FileCache::prune(int64_t limit_bytes, std::chrono::seconds keep) const {
  std::vector<CacheEntry> gone, all = entries();
  int64_t bytes = 0;
  for (const CacheEntry& e : all) bytes += e.bytes;
  const auto latest = fs::file_time_type::clock::now() - keep;
  for (CacheEntry& e : all) {
    if (bytes <= limit_bytes || e.used > latest) break;
    std::error_code error;
    if (!fs::remove(e.path, error) || error) continue;
    bytes -= e.bytes;
    gone.push_back(std::move(e));
  }
  return gone;
}

}  // namespace sator
