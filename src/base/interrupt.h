#pragma once

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <string_view>

#include "base/file.h"

namespace sator {

/// From now on Ctrl-C (SIGINT), SIGTERM and SIGHUP remove what is temporary, say so, and end the process with status 128 + the
/// signal's number: 130, 143, 129. A second one ends it at once. A signal that is ignored already (nohup) stays ignored.
/// To be called before the process has a second thread.
void end_on_interrupt();

/// While this lives, Ctrl-C (SIGINT) ends nothing: it is noted, for whoever works to stop. One at a time.
class CatchInterrupts {
 public:
  CatchInterrupts();
  ~CatchInterrupts();
  CatchInterrupts(const CatchInterrupts&) = delete;
  CatchInterrupts& operator=(const CatchInterrupts&) = delete;
  /// Whether one came since the last time that this was asked.
  bool take();
};

/// Whoever works for long calls this between the parts of the work: it throws where somebody wants this thread's work to end.
void check_interrupt();
/// check_interrupt() at each 1,024th call: for the characters of a text.
class RareInterruptCheck {
 public:
  void operator()() {
    if (++calls_ % 1024 == 0) check_interrupt();
  }

 private:
  uint32_t calls_ = 0;
};
/// From now on check_interrupt() of this thread calls `ask`, every 20 ms at most. `ask` throws where the work is to end.
void let_check_interrupt_ask(void (*ask)());

/// Removes what is temporary, as an interrupt does, prints the words on standard error and ends the process.
[[noreturn]] void end_process(int status, std::string_view words);

/// While this lives, an interrupt waits: for steps that belong together. Whatever makes, renames or removes a temporary file or
/// starts a program holds interrupts meanwhile, so that an interrupt finds each of them noted. One thread at a time.
class HoldInterrupts {
 public:
  HoldInterrupts();
  ~HoldInterrupts();
  HoldInterrupts(const HoldInterrupts&) = delete;
  HoldInterrupts& operator=(const HoldInterrupts&) = delete;
};

/// While this lives, an interrupt removes the file or the folder `path`: for output under a temporary name.
class RemoveOnInterrupt {
 public:
  explicit RemoveOnInterrupt(const fs::path& path);
  ~RemoveOnInterrupt();
  RemoveOnInterrupt(const RemoveOnInterrupt&) = delete;
  RemoveOnInterrupt& operator=(const RemoveOnInterrupt&) = delete;

 private:
  std::list<fs::path>::iterator at_;
};

/// While this lives, an interrupt ends the child process `pid` first: it may still write what is to be removed.
class KillOnInterrupt {
 public:
  explicit KillOnInterrupt(pid_t pid);
  ~KillOnInterrupt();
  KillOnInterrupt(const KillOnInterrupt&) = delete;
  KillOnInterrupt& operator=(const KillOnInterrupt&) = delete;

 private:
  std::list<pid_t>::iterator at_;
};

}  // namespace sator
