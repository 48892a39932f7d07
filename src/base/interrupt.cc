#include "base/interrupt.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>

namespace sator {

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

/// What an interrupt has to clear away. Never destroyed: an interrupt may come while the process ends.
struct Registry {
  std::recursive_mutex mutex;
  std::list<fs::path> paths;
  std::list<pid_t> children;
};

Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

void write_words(std::string_view words) {
  while (!words.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, words.data(), words.size());
    if (n <= 0) return;
    words.remove_prefix(static_cast<size_t>(n));
  }
}

std::atomic<bool> catching = false, caught = false;

constexpr auto kBetweenChecks = std::chrono::milliseconds(20);
thread_local void (*ask_for_interrupt)() = nullptr;
thread_local std::chrono::steady_clock::time_point next_check;

/// Runs in a thread of its own, so that it may lock and allocate, which a signal handler may not.
void wait_for(sigset_t signals) {
  int signal = 0;
  do {
    if (::sigwait(&signals, &signal) != 0) return;
    caught = signal == SIGINT;
  } while (signal == SIGINT && catching);
  // From here on a second signal ends the process at once.
  for (int s : kSignals)
    if (sigismember(&signals, s) == 1) ::signal(s, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  end_process(128 + signal, "\nerror: interrupted\n");
}

}  // namespace

void check_interrupt() {
  if (!ask_for_interrupt) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_check) return;
  next_check = now + kBetweenChecks;
  ask_for_interrupt();
}

void let_check_interrupt_ask(void (*ask)()) { ask_for_interrupt = ask; }

void end_on_interrupt() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int s : kSignals) {
    struct sigaction now = {};
    if (::sigaction(s, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&signals, s);
  }
  // Threads inherit the mask, so that the waiting one alone is given the signals.
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    std::thread(wait_for, signals).detach();
  } catch (const std::system_error&) {  // no memory for a thread: then a signal ends the process as it ends any other
    ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  }
}

void end_process(int status, std::string_view words) {
  Registry& all = registry();
  all.mutex.lock();  // and is never given back: from here on nothing temporary comes into being
  for (pid_t child : all.children)
    if (::kill(child, SIGKILL) == 0) ::waitpid(child, nullptr, 0);
  std::error_code ignored;
  for (const fs::path& path : all.paths) fs::remove_all(path, ignored);
  write_words(words);
  ::_exit(status);
}

CatchInterrupts::CatchInterrupts() {
  caught = false;
  catching = true;
}

CatchInterrupts::~CatchInterrupts() { catching = false; }

bool CatchInterrupts::take() { return caught.exchange(false); }

HoldInterrupts::HoldInterrupts() { registry().mutex.lock(); }

HoldInterrupts::~HoldInterrupts() { registry().mutex.unlock(); }

RemoveOnInterrupt::RemoveOnInterrupt(const fs::path& path) {
  HoldInterrupts hold;
  at_ = registry().paths.insert(registry().paths.end(), fs::absolute(path));
}

RemoveOnInterrupt::~RemoveOnInterrupt() {
  HoldInterrupts hold;
  registry().paths.erase(at_);
}

KillOnInterrupt::KillOnInterrupt(pid_t pid) {
  HoldInterrupts hold;
  at_ = registry().children.insert(registry().children.end(), pid);
}

KillOnInterrupt::~KillOnInterrupt() {
  HoldInterrupts hold;
  registry().children.erase(at_);
}

}  // namespace sator
