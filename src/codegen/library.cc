#include "codegen/library.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <set>
#include <thread>

#include "base/digest.h"
#include "base/interrupt.h"
#include "base/staged_file.h"
#include "base/temporary.h"
#include "base/threads.h"
#include "codegen/descriptor.h"
#include "codegen/llvm.h"
#include "passes/lower/lower.h"

extern char** environ;

namespace sator::codegen {

namespace {

/// A name for the linker: letters, digits and underscores, then the level.
std::string symbol_of(const std::string& kernel, const target::CpuLevel& level) {
  std::string s = "sator_";
  for (char c : kernel) s += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text(s, ".", level.name);
}

/// Debian's packages put the linker here or there.
std::string find_linker() {
  std::vector<std::string> candidates;
  if (const char* given = std::getenv("SATOR_LINKER"); given && *given) candidates.push_back(given);
  const char* path = std::getenv("PATH");
  for (std::string_view folder : split(path ? path : "/usr/bin", ':')) candidates.push_back(text(folder, "/ld.lld-19"));
  candidates.push_back("/usr/lib/llvm-19/bin/ld.lld");
  for (const std::string& c : candidates)
    if (access(c.c_str(), X_OK) == 0) return c;
  fail({.what = "the linker ld.lld of LLVM 19 is not installed",
        .needs = "ld.lld-19 in PATH",
        .hint = "apt-get install lld-19, or set SATOR_LINKER to it"});
}

/// The child process of a program, ended by an interrupt.
struct Child {
  pid_t pid;
  std::unique_ptr<KillOnInterrupt> guard;
};

/// Starts a program without our signals: what Ctrl-C sends is for us alone, who end it then.
Child start_program(const std::vector<std::string>& arguments, const fs::path& messages) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  HoldInterrupts hold;
  const int error = posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    fail({.what = text("cannot start ", arguments[0], ": ", std::strerror(error)),
          .needs = "a program that runs, and memory for it",
          .hint = "close other programs, or set SATOR_LINKER to another ld.lld"});
  return {pid, std::make_unique<KillOnInterrupt>(pid)};
}

/// Runs a program and waits. Errors: it cannot be started, or ends with another status than 0 (with its messages).
void run_program(const std::vector<std::string>& arguments, const fs::path& messages) {
  Child child = start_program(arguments, messages);
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  int status = 0;
  {
    HoldInterrupts hold;  // once it is waited for, its number may be another process's
    waitpid(child.pid, &status, 0);
    child.guard.reset();
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const std::string ended = WIFSIGNALED(status) ? text(" was ended by signal ", WTERMSIG(status)) : " failed";
  const std::string words = trim(read_file(messages)).empty() ? "" : text(": ", trim(read_file(messages)));
  fail({.what = text(arguments[0], ended, words),
        .needs = "objects that link, space on the disk and memory",
        .hint = text("free some space in ", temporary_place().string(), ", or set TMPDIR to another folder")});
}

/// The shared library of the objects.
std::string linked(const std::vector<std::string>& objects) {
  TemporaryFolder folder;
  std::vector<std::string> arguments = {
      find_linker(), "-shared", "--build-id=none", "--hash-style=gnu", "-z", "noexecstack", "-z", "relro", "-z", "now"};
  for (size_t i = 0; i < objects.size(); ++i) {
    fs::path path = folder.path() / text(i, ".o");
    write_file(path, objects[i]);
    arguments.push_back(path.string());
  }
  fs::path library = folder.path() / "model.so";
  arguments.insert(arguments.end(), {"-o", library.string()});
  run_program(arguments, folder.path() / "messages");
  return read_file(library);
}

/// One compilation: `targets` of the descriptor use its symbol.
struct Job {
  tir::PrimFuncRef func;
  std::string name, symbol;
  const target::CpuLevel* level;
  std::string object;
  std::exception_ptr error;
};

void check_names(const std::vector<LevelSource>& levels) {
  if (levels.empty()) internal_error("a model library without levels");
  for (const LevelSource& level : levels) {
    bool same = level.kernels.size() == levels[0].kernels.size();
    for (size_t i = 0; same && i < level.kernels.size(); ++i) same = level.kernels[i].name == levels[0].kernels[i].name;
    if (!same)
      internal_error(text("levels ", levels[0].level->name, " and ", level.level->name, " have different kernels"));
  }
}

void compile_all(std::vector<Job>& jobs, KernelCache& cache, const LibraryOptions& options) {
  std::atomic<size_t> next{0};
  std::mutex note_mutex;
  auto work = [&](int) {
    for (size_t i = next++; i < jobs.size(); i = next++) {
      Job& job = jobs[i];
      try {
        check_interrupt();
        auto note = [&](const Reason& reason) {
          std::lock_guard lock(note_mutex);
          if (options.note) options.note(job.name, reason);
        };
        job.object = cache.object(job.func, job.symbol, *job.level, note);
      } catch (Error& e) {
        if (e.reason.where.empty()) e.reason.where = text("kernel ", job.name, " for ", job.level->name);
        job.error = std::make_exception_ptr(Error(e.reason));
      } catch (...) {
        job.error = std::current_exception();
        next = jobs.size();  // an interrupt, or no memory: no mistake of this kernel's
      }
    }
  };
  int threads = options.num_threads > 0 ? options.num_threads
                                        : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  run_on_threads(std::min(threads, static_cast<int>(jobs.size())), work);
  for (const Job& job : jobs)
    if (job.error) std::rethrow_exception(job.error);
}

}  // namespace

std::string KernelCache::object(const tir::PrimFuncRef& func, const std::string& symbol, const target::CpuLevel& level,
                                const std::function<void(const Reason&)>& note) {
  tir::PrimFuncRef key = tir::without_symbol(func);
  uint64_t hash = structural_hash(key) ^ hash_bytes(text(symbol, level.name));
  {
    std::lock_guard lock(mutex_);
    auto [begin, end] = entries_.equal_range(hash);
    for (auto at = begin; at != end; ++at)
      if (at->second.symbol == symbol && at->second.level == &level && equal(at->second.func, key))
        return at->second.object;
  }
  passes::LowerOptions options;
  options.note = note;
  std::string object = compile_object(*passes::lower(key, options), symbol, level);
  std::lock_guard lock(mutex_);
  ++num_compiled_;
  entries_.emplace(hash, Entry{key, symbol, object, &level});
  return object;
}

int64_t KernelCache::num_compiled() const {
  std::lock_guard lock(mutex_);
  return num_compiled_;
}

void build_library(const LibrarySource& source, const fs::path& path, const LibraryOptions& options) {
  check_names(source.levels);
  KernelCache own;
  KernelCache& cache = options.cache ? *options.cache : own;
  std::vector<Job> jobs;
  std::vector<DescriptorLevel> descriptor;
  for (const LevelSource& level : source.levels) {
    descriptor.push_back({level.level, {}});
    std::set<std::string> symbols;
    std::unordered_multimap<uint64_t, size_t> seen;  // equal functions share one symbol: the first one's
    for (const KernelSource& k : level.kernels) {
      tir::PrimFuncRef key = tir::without_symbol(k.func);
      uint64_t hash = structural_hash(key);
      const Job* same = nullptr;
      auto [begin, end] = seen.equal_range(hash);
      for (auto at = begin; at != end && !same; ++at)
        if (equal(tir::without_symbol(jobs[at->second].func), key)) same = &jobs[at->second];
      std::string symbol = same ? same->symbol : symbol_of(k.name, *level.level);
      while (!same && !symbols.insert(symbol).second) symbol += "_";
      if (!same) {
        seen.emplace(hash, jobs.size());
        jobs.push_back({k.func, k.name, symbol, level.level, {}, {}});
      }
      descriptor.back().kernels.push_back({k.name, symbol});
    }
  }
  compile_all(jobs, cache, options);
  std::vector<std::string> objects;
  for (Job& job : jobs) objects.push_back(std::move(job.object));
  objects.push_back(descriptor_object(descriptor, source.executable, source.metadata_json, source.source_hash));
  write_file_synced(path, sealed(linked(objects)));
}

}  // namespace sator::codegen
