#pragma once

#include <optional>

#include "base/interrupt.h"

namespace sator {

/// Where temporary files belong: $TMPDIR, else /tmp.
fs::path temporary_place();

/// A new folder of this user alone that goes with the object, or with an interrupt. Whoever finds it after a process that was
/// killed removes it (remove_abandoned).
class TemporaryFolder {
 public:
  /// Errors: no folder can be made in `parent`.
  explicit TemporaryFolder(const fs::path& parent = temporary_place());
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  std::optional<RemoveOnInterrupt> guard_;
  int lock_ = -1;  // of the folder, held as long as it is in use
};

/// A new file `NAME.sator-XXXXXX.partial` beside `path`, open for writing, locked as long as it is open. -1 and errno where none can
/// be made.
int open_partial(const fs::path& path, fs::path& partial);

/// Removes the temporary files and folders in `folder` that killed processes of this user left: those that no process has
/// locked, ten minutes old or older. Looks at each folder once in a process.
void remove_abandoned(const fs::path& folder);

/// Whether a file or folder is called as open_partial or TemporaryFolder name theirs.
bool is_temporary_name(const std::string& name);

}  // namespace sator
