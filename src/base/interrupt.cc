#include "base/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace sator {

// A signal handler may only read atomics and call functions such as unlink and write; so the paths stand in fixed slots.
// More files than slots at once: the surplus stays behind under its temporary name, which no reader takes for a whole file.
static constexpr int kSlots = 1024;
static std::atomic<const char*> slots[kSlots];
static std::atomic<int> holds = 0;
static std::atomic<bool> waiting = false;
static_assert(std::atomic<const char*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

static void on_interrupt(int) {
  if (holds.load() > 0) {
    waiting.store(true);
    return;
  }
  for (auto& slot : slots)
    if (const char* path = slot.load()) ::unlink(path);
  static constexpr char kWords[] = "\nerror: interrupted\n";
  [[maybe_unused]] ssize_t n = ::write(2, kWords, sizeof kWords - 1);
  ::_exit(1);
}

void end_on_interrupt() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

RemoveOnInterrupt::RemoveOnInterrupt(const fs::path& path) : path_(path.string()) {
  for (int i = 0; i < kSlots && slot_ < 0; ++i) {
    const char* empty = nullptr;
    if (slots[i].compare_exchange_strong(empty, path_.c_str())) slot_ = i;
  }
}

RemoveOnInterrupt::~RemoveOnInterrupt() {
  if (slot_ >= 0) slots[slot_].store(nullptr);
}

HoldInterrupts::HoldInterrupts() { ++holds; }

HoldInterrupts::~HoldInterrupts() {
  if (--holds == 0 && waiting.load()) on_interrupt(SIGINT);
}

}  // namespace sator
