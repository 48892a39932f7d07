#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/interrupt.h"

namespace sator {

/// Whether a file is on the disk itself before it takes its name: then it is whole even after a loss of power. It costs some
/// milliseconds; without it a process may be killed at any time, no more.
enum class Sync { no, yes };

/// A file that is written part by part under a temporary name beside `path`, and renamed when it is whole: readers see the
/// old file or the new one, under the permissions the old one had. An end without finish(), by an error or an interrupt,
/// leaves nothing behind. What a link leads to is replaced, not the link; a device or a pipe is written as it is.
class StagedFile {
 public:
  /// Missing folders are made. Errors: the folder cannot be written.
  explicit StagedFile(const fs::path& path, Sync sync = Sync::no);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  /// Errors: no room, as a Reason that names `path`.
  void write(std::string_view bytes);
  void finish();

 private:
  void put(std::string_view bytes);

  fs::path path_, target_;  // as asked for; where its links lead
  fs::path partial_;        // empty where nothing is renamed
  std::optional<RemoveOnInterrupt> guard_;
  std::string held_;  // small parts go to the system together
  Sync sync_;
  int file_ = -1;
  bool finished_ = false;
};

/// write_file, whole even after a loss of power: for what takes long to make again.
void write_file_synced(const fs::path& path, std::string_view bytes);

/// Puts the names in a folder on the disk. Errors: as of writing `path`, which lies in it.
void sync_folder_of(const fs::path& path);
/// Puts everything that was written to the folder's file system on the disk: for many files at once.
void sync_all(const fs::path& folder);

/// Throws the Error of a system call that failed: "cannot write PATH: No space left on device".
///   verb   "read", "write"
///   code   errno
[[noreturn]] void fail_file(const fs::path& path, std::string_view verb, int code);

}  // namespace sator
