#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace sator {

/// A 128-bit hash (XXH3) of bytes that come part by part. It tells damage and change, and makes keys of caches; it is no
/// defence against someone who makes two files of one digest on purpose.
/// Cost: what reading the bytes costs; some 10 GB/s of memory on one thread.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest& add(std::string_view bytes);
  Digest& add_file(const fs::path& path);
  /// 32 hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string digest_of(std::string_view bytes);
/// Errors: the file cannot be read.
std::string digest_of_file(const fs::path& path);

/// The bytes with a last line that holds their digest. A shared library stays one: its loader reads no further than its
/// headers say.
std::string sealed(std::string bytes);
/// The last line that sealed() adds behind bytes of that digest.
std::string seal_of(const Digest& digest);
/// What was sealed, if it is still as it was; nothing of bytes that are cut off, changed or were never sealed.
std::optional<std::string_view> unsealed(std::string_view bytes);
/// Whether the bytes end in such a line, be it right or wrong.
bool has_seal(std::string_view bytes);

}  // namespace sator
