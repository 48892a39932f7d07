// Compiled functions, program and metadata as one shared library (runtime/abi.h).
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "target/cpu.h"
#include "tir/nodes.h"

namespace sator::codegen {

/// A scheduled function under the name by which the program calls it.
struct KernelSource {
  std::string name;
  tir::PrimFuncRef func;
};

/// All kernels, scheduled for one instruction-set level.
struct LevelSource {
  const target::CpuLevel* level;
  std::vector<KernelSource> kernels;
};

/// What a model library is made of.
struct LibrarySource {
  std::vector<LevelSource> levels;  ///< best first; each has kernels of the same names
  std::string executable;           ///< bytes of runtime::Executable::save
  std::string metadata_json;
  std::string source_hash;  ///< of everything that shaped the library
};

/// Objects of kernels that were compiled in this process, so that equal functions are compiled once: within a library
/// (the layers of a model) and from one library to the next (the schemes of a study). Several threads may use it.
class KernelCache {
 public:
  /// The object of a scheduled function under `symbol`, compiled at the first request.
  /// Errors: as lower and compile_object.
  std::string object(const tir::PrimFuncRef& func, const std::string& symbol, const target::CpuLevel& level,
                     const std::function<void(const Reason&)>& note);
  int64_t num_compiled() const;

 private:
  struct Entry {
    tir::PrimFuncRef func;
    std::string symbol, object;
    const target::CpuLevel* level;
  };
  mutable std::mutex mutex_;
  std::unordered_multimap<uint64_t, Entry> entries_;  // by the structural hash
  int64_t num_compiled_ = 0;
};

struct LibraryOptions {
  int num_threads = 0;           ///< that compile; 0: as many as the machine has
  KernelCache* cache = nullptr;  ///< null: one for this library alone
  std::function<void(const std::string& kernel, const Reason&)>
      note;  ///< requests of a schedule that were not followed
};

/// Lowers, compiles and links; `path` appears whole or not at all, with its digest at the end (base/digest.h). Equal source
/// gives equal bytes.
/// Errors: a kernel that cannot be lowered or compiled, by its name; the linker is missing; the file cannot be written.
/// Cost: some 50 to 200 ms of one thread per kernel and level that is not in the cache.
void build_library(const LibrarySource& source, const std::filesystem::path& path, const LibraryOptions& options = {});

}  // namespace sator::codegen
