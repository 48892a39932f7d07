#include "base/threads.h"

#include <system_error>
#include <thread>
#include <vector>

#include "base/object.h"

namespace sator {

void run_on_threads(int threads, FunctionRef<void(int)> work) {
  if (threads <= 1) return work(0);
  const SharedObjects shared;
  std::vector<std::jthread> others;
  try {
    for (int t = 1; t < threads; ++t) others.emplace_back([work, t] { work(t); });
  } catch (const std::system_error&) {  // no memory or leave for more: those that there are do the work
  }
  work(0);
}

}  // namespace sator
