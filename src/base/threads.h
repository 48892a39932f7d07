// Threads that work together on one thing and end with it.
#pragma once

#include "base/function_ref.h"

namespace sator {

/// Calls work(0) on this thread and work(1) .. work(threads - 1) on others, fewer where the system gives no more, and returns when all have
/// returned: the work is shared by what the calls take from it, not by their number.
///   work  throws nothing on other threads than this one
void run_on_threads(int threads, FunctionRef<void(int)> work);

}  // namespace sator
