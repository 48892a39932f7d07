#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/interrupt.h"

namespace sator {

/// A file that is written part by part under a temporary name beside `path`, and renamed when it is whole: readers see the
/// old file or the new one, under the permissions the old one had. An end without finish(), by an error or an interrupt,
/// leaves nothing behind. What a link leads to is replaced, not the link; a device or a pipe is written as it is.
class StagedFile {
 public:
  /// Missing folders are made. Errors: the folder cannot be written.
  explicit StagedFile(const fs::path& path);
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
  int file_ = -1;
  bool finished_ = false;
};

}  // namespace sator
