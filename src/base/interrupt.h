#pragma once

#include "base/file.h"

namespace sator {

/// From now on Ctrl-C (SIGINT) and SIGTERM remove the files being written, say so, and end the process with status 1.
void end_on_interrupt();

/// While this lives, an interrupt removes the file `path`: for output under a temporary name.
class RemoveOnInterrupt {
 public:
  explicit RemoveOnInterrupt(const fs::path& path);
  ~RemoveOnInterrupt();
  RemoveOnInterrupt(const RemoveOnInterrupt&) = delete;
  RemoveOnInterrupt& operator=(const RemoveOnInterrupt&) = delete;

 private:
  std::string path_;
  int slot_ = -1;
};

/// While this lives, an interrupt waits: for a few renames that belong together.
class HoldInterrupts {
 public:
  HoldInterrupts();
  ~HoldInterrupts();
  HoldInterrupts(const HoldInterrupts&) = delete;
  HoldInterrupts& operator=(const HoldInterrupts&) = delete;
};

}  // namespace sator
