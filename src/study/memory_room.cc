#include "study/memory_room.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <variant>

#include "frontend/hf_config.h"
#include "llm/open.h"

namespace sator::study {

namespace {

/// The number at the beginning of a file; `otherwise` if there is none, as where it says "max".
int64_t number_in(const char* file, int64_t otherwise) {
  std::ifstream in(file);
  int64_t value = 0;
  return in >> value ? value : otherwise;
}

int64_t available_kb() {
  std::ifstream info("/proc/meminfo");
  for (std::string name; info >> name;) {
    int64_t kb = 0;
    if (name == "MemAvailable:" && info >> kb) return kb;
  }
  return INT64_MAX / 1024;
}

/// Pages of this process: all it has mapped.
int64_t mapped_bytes() { return number_in("/proc/self/statm", 0) * ::sysconf(_SC_PAGESIZE); }

}  // namespace

int64_t memory_room_bytes() {
  int64_t room = available_kb() * 1024;
  const int64_t most = number_in("/sys/fs/cgroup/memory.max", INT64_MAX);
  if (most != INT64_MAX) room = std::min(room, most - number_in("/sys/fs/cgroup/memory.current", 0));
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    room = std::min(room, static_cast<int64_t>(limit.rlim_cur) - mapped_bytes());
  return std::max<int64_t>(room, 0);
}

int64_t bytes_to_open(const fs::path& folder, const llm::Scheme& scheme) {
  auto program_of = [&](const llm::Scheme& of) {
    return llm::program_of(folder, {.scheme = of, .program = {.alike_once = true}});
  };
  const llm::Program program = program_of(scheme);
  int64_t bytes = 2 * llm::weight_bytes(program);
  if (scheme.needs_calibration())  // the exact model runs first
    bytes = std::max(bytes, 2 * llm::weight_bytes(program_of(llm::parse_scheme("f32"))));
  const int64_t cache = llm::cache_bytes(program, program.limits.context_window);
  const int64_t logits = program.limits.prefill_chunk * program.limits.vocab_size * 4;
  return bytes + cache + 2 * logits;
}

}  // namespace sator::study
