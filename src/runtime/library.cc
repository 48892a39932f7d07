#include "runtime/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/digest.h"
#include "base/trust.h"
#include "runtime/isa.h"
#include "runtime/library_file.h"

namespace sator::runtime {

namespace {

class OpenFile final : public Object {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() override { ::close(fd_); }
  int fd() const { return fd_; }
  /// Leads to this very file.
  fs::path path() const { return text("/proc/self/fd/", fd_); }
  /// The same in a spelling that no call had before. The loader takes a library that it has for any path under which it was asked
  /// for it, and a descriptor that is closed is soon another file's.
  std::string path_for_loader() const {
    static std::atomic<uint32_t> calls = 0;
    std::string spelling;
    for (uint32_t bits = ++calls; bits != 0; bits /= 2) spelling += bits % 2 == 1 ? "/." : "/";
    return text("/proc/self/fd", spelling, "/", fd_);
  }

 private:
  int fd_;
};

/// The file stays open as long as the library is loaded.
class DynamicLibrary final : public Object {
 public:
  DynamicLibrary(void* handle, Ref<OpenFile> file) : handle_(handle), file_(std::move(file)) {}
  ~DynamicLibrary() override { dlclose(handle_); }
  void* symbol(const char* name) const { return dlsym(handle_, name); }

 private:
  void* handle_;
  Ref<OpenFile> file_;
};

[[noreturn]] void refuse(const std::string& library, std::string what, std::string needs, std::string hint) {
  fail({.what = text("model library ", library, ' ', what), .needs = std::move(needs), .hint = std::move(hint)});
}

std::string level_names(const SatorModel& model) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < model.num_levels; ++i) names.emplace_back(model.levels[i]->isa);
  return join(names, ", ");
}

/// "; avx512_bf16 needs ..., avx2 needs ..."
std::string needs_of_levels(const SatorModel& model) {
  std::vector<std::string> needs;
  for (uint32_t i = 0; i < model.num_levels; ++i)
    if (const IsaLevel* level = find_isa_level(model.levels[i]->isa))
      needs.push_back(text(level->name, " needs ", level->needs));
  return needs.empty() ? "" : text("; ", join(needs, ", "));
}

bool can_run(const char* isa) {
  const IsaLevel* level = find_isa_level(isa);
  return level != nullptr && level->available();
}

// The level to use: the one that $SATOR_ISA names, else the first that runs here.
const SatorKernelTable* pick_level(const SatorModel& model, const std::string& library) {
  const char* wanted = std::getenv("SATOR_ISA");
  if (wanted == nullptr || *wanted == '\0') {
    for (uint32_t i = 0; i < model.num_levels; ++i)
      if (can_run(model.levels[i]->isa)) return model.levels[i];
    refuse(library,
           text("has kernels for ", level_names(model), "; this machine runs ", available_isa_text()),
           text("a level that this machine runs", needs_of_levels(model)),
           "compile the model here, or with --isa portable");
  }
  std::vector<std::string> known;
  for (const IsaLevel& level : isa_levels()) known.emplace_back(level.name);
  const IsaLevel* level = find_isa_level(wanted);
  if (level == nullptr)
    fail({.what = text("SATOR_ISA names the unknown level ", string_literal(wanted)),
          .needs = text("one of ", join(known, ", "))});
  for (uint32_t i = 0; i < model.num_levels; ++i) {
    if (model.levels[i]->isa != level->name) continue;
    if (level->available()) return model.levels[i];
    fail({.what = text("SATOR_ISA asks for ", wanted, ", which this machine does not run"),
          .needs = std::string(level->needs),
          .hint = text("this machine runs ", available_isa_text())});
  }
  refuse(library,
         text("has kernels for ", level_names(model), ", but SATOR_ISA asks for ", wanted),
         "a level that it has",
         "unset SATOR_ISA, or compile with --isa portable");
}

void check_tables(const SatorModel& model, const std::string& library) {
  bool complete = model.levels != nullptr && model.num_levels > 0 && model.executable != nullptr &&
                  model.source_hash != nullptr && model.metadata_json != nullptr;
  for (uint32_t i = 0; complete && i < model.num_levels; ++i) {
    const SatorKernelTable* level = model.levels[i];
    complete = level != nullptr && level->isa != nullptr && level->num_kernels >= 0 &&
               (level->kernels != nullptr || level->num_kernels == 0);
    for (int32_t k = 0; complete && k < level->num_kernels; ++k)
      complete = level->kernels[k].name != nullptr && level->kernels[k].run != nullptr;
  }
  if (!complete) refuse(library, "has empty tables", "a library written by this compiler", "compile the model again");
}

}  // namespace

Ref<ModelLibrary> ModelLibrary::from_memory(const SatorModel* model, std::string name, Ref<Object> owner) {
  if (model == nullptr) refuse(name, "gives no model", "a library written by this compiler", "compile the model again");
  if (model->abi_version != SATOR_ABI_VERSION)
    refuse(name,
           text("has interface version ", model->abi_version),
           text("version ", SATOR_ABI_VERSION),
           "compile the model again");
  check_tables(*model, name);
  Ref<ModelLibrary> library(new ModelLibrary());
  library->kernels_ = pick_level(*model, name);
  library->isa_ = library->kernels_->isa;
  library->metadata_json_ = model->metadata_json;
  library->source_hash_ = model->source_hash;
  library->executable_ = Executable::load(std::as_bytes(std::span(model->executable, model->executable_bytes)));
  library->owner_ = std::move(owner);
  return library;
}

#ifdef __aarch64__
constexpr auto kOwnMachine = EM_AARCH64;
#else
constexpr auto kOwnMachine = EM_X86_64;
#endif

/// The file of a library, opened once: what is checked is what is loaded, whatever happens to its name meanwhile.
static int open_library(const fs::path& path) {
  // O_NONBLOCK: a pipe of that name must not stop us.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat s{};
  if (fd >= 0 && ::fstat(fd, &s) == 0 && S_ISREG(s.st_mode)) return fd;
  const std::string why = fd < 0 ? std::strerror(errno) : "it is no file";
  if (fd >= 0) ::close(fd);
  fail({.what = text("model library ", path.string(), " cannot be loaded: ", why),
        .needs = "a library that `sator build` or `sator compile` wrote",
        .hint = "check the path, or write it again"});
}

Ref<ModelLibrary> ModelLibrary::open(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  Ref<OpenFile> file(new OpenFile(open_library(path)));
  if (auto reason = exposed_to_others(file->fd(), text("model library ", path.string()))) fail(std::move(*reason));
  {
    const Ref<MappedFile> mapped = MappedFile::open(file->path());
    const std::string_view bytes(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size());
    if (is_cut_off(mapped->bytes()))
      refuse(path.string(), "is cut off", "a whole file", "compile the model again, or copy the file again");
    if (bytes.size() >= sizeof(Elf64_Ehdr) && bytes.starts_with(ELFMAG)) {
      const auto machine = reinterpret_cast<const Elf64_Ehdr*>(bytes.data())->e_machine;
      if (machine != kOwnMachine)
        refuse(path.string(),
               text("is for ",
                    machine == EM_AARCH64  ? "AArch64"
                    : machine == EM_X86_64 ? "x86-64"
                                           : "another processor"),
               text("a library for this machine, ", kOwnMachine == EM_AARCH64 ? "AArch64" : "x86-64"),
               "build for \"llvm\" to run here; `sator build -o` writes libraries for other machines");
    }
    if (has_seal(bytes) && !unsealed(bytes))
      refuse(path.string(),
             "is damaged: its bytes are not those that were written",
             "a whole file",
             "compile the model again, or copy the file again");
  }
  void* handle = dlopen(file->path_for_loader().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    const std::string why = reason ? reason : "no reason given";
    Reason r{.what = text("model library ", path.string(), " cannot be loaded: ", why),
             .needs = "a shared library for this machine",
             .hint = "compile the model again"};
    if (why.find("undefined symbol") != std::string::npos) {
      r.needs = "a process that has the functions which the library's kernels call";
      r.hint = why.ends_with("sator_call_python")
                   ? "its kernels call functions of Python's: open it there, sator.runtime.load_module(path)"
                   : "load the library that has the function before";
    }
    fail(std::move(r));
  }
  Ref<DynamicLibrary> loaded(new DynamicLibrary(handle, file));
  auto entry = reinterpret_cast<SatorModelEntry>(loaded->symbol("sator_model"));
  if (entry == nullptr)
    refuse(
        name, "does not export sator_model", "a library written by this compiler", "give the path of a model library");
  return from_memory(entry(), name, loaded);
}

KernelTable ModelLibrary::kernels() const {
  KernelTable table;
  for (int32_t k = 0; k < kernels_->num_kernels; ++k) table.add(kernels_->kernels[k].name, kernels_->kernels[k].run);
  table.keep_alive = owner_;
  return table;
}

}  // namespace sator::runtime
