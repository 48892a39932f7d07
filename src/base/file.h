#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/object.h"

namespace sator {

namespace fs = std::filesystem;

/// A file that is read as a whole has at most so many bytes, unless told: a device may have no end.
inline constexpr size_t kMostFileBytes = size_t{1} << 30;

/// A whole file, or what a pipe gives, as text.
/// Errors: it cannot be read (the message names it and says why); it has more than `most_bytes`.
std::string read_file(const fs::path& path, size_t most_bytes = kMostFileBytes);
/// The same of what is found by its name in a folder: a pipe or device there is an error, not waited for.
std::string read_regular_file(const fs::path& path, size_t most_bytes = kMostFileBytes);

/// Writes to a temporary name beside `path`, then renames: readers see the old file or the whole new one.
/// Missing folders are made. Errors: the folder cannot be written.
void write_file(const fs::path& path, std::string_view bytes);

/// A file mapped read-only into memory, unmapped with the last reference.
class MappedFile : public Object {
 public:
  static Ref<MappedFile> open(const fs::path& path);
  ~MappedFile() override;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const fs::path& path() const { return path_; }

 private:
  MappedFile() = default;
  fs::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// Where compiled models are kept: $SATOR_HOME, else .cache/sator in $HOME, else in the home folder that the system knows of.
/// Errors: there is none.
fs::path sator_home();

/// 64-bit hash of bytes (FNV-1a folded through a finaliser): for keys of caches, not against attackers.
uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0);
std::string hex(uint64_t value);

}  // namespace sator
