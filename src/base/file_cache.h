#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace sator {

/// Bytes that a folder of a cache may hold: $SATOR_CACHE_LIMIT, as "500M" or "2G", else 4 GB.
/// Errors: the variable is no size.
int64_t cache_limit_bytes();

/// "512", "500M", "1.5G" in bytes (K, M, G, T are powers of 1000); nothing if it is no size.
std::optional<int64_t> parse_size(std::string_view written);

/// One entry of a cache.
struct CacheEntry {
  fs::path path;
  int64_t bytes = 0;
  fs::file_time_type used;  ///< last
};

/// Files that can be made again, in one folder, under names `NAME.KEY.ENDING` with a key of 32 hexadecimal digits. An entry is
/// sealed (base/digest.h) and on the disk before it takes its name. When a new one is beyond the limit, the least recently
/// used go, but none that was used within the last ten minutes: another process may be about to open it.
/// Other files in the folder are not looked at.
class FileCache {
 public:
  FileCache(fs::path folder, std::string ending) : folder_(std::move(folder)), ending_(std::move(ending)) {}

  const fs::path& folder() const { return folder_; }
  /// Where the entry is, or will be. Of the name, what a file system may not take becomes '_'.
  fs::path path_of(const std::string& name, const std::string& key) const;

  /// Whether the entry is there and as it was written; then it counts as used now. One that is damaged is removed, after
  /// `damaged` was told of it.
  bool find(const fs::path& path, const std::function<void(const std::string& remark)>& damaged) const;
  /// The content of such an entry.
  std::optional<std::string> read(const fs::path& path,
                                  const std::function<void(const std::string& remark)>& damaged) const;
  /// The entry counts as used now.
  static void mark_used(const fs::path& path);
  /// Takes away what stands in an entry's place and is none: a link goes, and not what it leads to. For entries that are not
  /// written by write().
  /// Errors: a folder with files of its own stands there.
  static void free_place(const fs::path& path);
  /// Errors: the folder cannot be written; as of free_place.
  void write(const fs::path& path, std::string bytes) const;

  std::vector<CacheEntry> entries() const;  ///< least recently used first
  bool is_whole(const CacheEntry& entry) const;
  /// Removes least recently used entries until the others have no more than so many bytes, but none within the time
  /// `keep` after its last use. Returns what went.
  std::vector<CacheEntry> prune(int64_t limit_bytes, std::chrono::seconds keep) const;

 private:
  fs::path folder_;
  std::string ending_;  // ".so"
};

/// How long after its last use no entry goes by itself.
inline constexpr std::chrono::minutes kCacheKeeps{10};

}  // namespace sator
