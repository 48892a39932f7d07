#pragma once

#include <filesystem>

#include "runtime/vm.h"

namespace sator::runtime {

/// A compiled model, loaded: program, kernels of one instruction-set level, metadata.
///
///   Ref<ModelLibrary> library = ModelLibrary::open("model.so");
///   VirtualMachine vm(library->executable(), library->kernels(), pool);
class ModelLibrary final : public Object {
 public:
  /// Loads a model library and picks the best of its levels that this CPU can run, or the one that $SATOR_ISA names.
  /// Errors: another user can change the file (base/trust.h); it cannot be loaded, is damaged or no model library; its
  /// interface is of another version; none of its levels, or not the named one, can run here.
  static Ref<ModelLibrary> open(const std::filesystem::path& path);
  /// The same for a model that is already in memory (a just-in-time compiler, a test); `owner` keeps it there.
  static Ref<ModelLibrary> from_memory(const SatorModel* model, std::string name, Ref<Object> owner = {});

  const Ref<Executable>& executable() const { return executable_; }
  /// The kernels of the level that was picked. They keep the library loaded.
  KernelTable kernels() const;
  const std::string& isa() const { return isa_; }
  const std::string& metadata_json() const { return metadata_json_; }
  /// Of everything that shaped the library.
  const std::string& source_hash() const { return source_hash_; }

 private:
  ModelLibrary() = default;
  Ref<Executable> executable_;
  const SatorKernelTable* kernels_ = nullptr;
  std::string isa_, metadata_json_, source_hash_;
  Ref<Object> owner_;
};

}  // namespace sator::runtime
