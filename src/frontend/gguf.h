#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace sator {

/// How a tensor's elements lie in a GGUF file: blocks of consecutive elements of a row.
struct GgufType {
  uint32_t id;
  std::string_view name;  ///< as llama.cpp spells it: "Q4_K"
  int64_t block_elements, block_bytes;
};
/// The types that are read, and null for others. Source: the GGUF specification in the ggml repository.
const GgufType* gguf_type(uint32_t id);

/// One tensor. `shape` has the outermost dimension first: a matrix is [rows, cols], a row's elements lie together.
struct GgufTensor {
  std::string name;
  const GgufType* type = nullptr;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

/// A GGUF file (version 2 or 3, little-endian), or all parts of a split one, mapped read-only. Copies share the mapping.
class GgufFile {
 public:
  /// Of "name-00002-of-00005.gguf" all parts are opened, whichever is named.
  /// Errors: no GGUF file; cut off; a version, a type of value or of tensor that is not read, by its name; names given twice;
  /// tensors outside of the file, over each other, or of rows that are no whole blocks; a part that is missing or of another model.
  static GgufFile open(const fs::path& file);
  /// Whether a path is called as such files are.
  static bool is_named_so(const fs::path& path) { return path.extension() == ".gguf"; }

  /// Metadata of the first part: "general.architecture" and so on. Strings are as the file has them, bytes of any kind.
  const std::map<std::string, Json, std::less<>>& metadata() const { return metadata_; }
  const Json* find_value(std::string_view key) const;
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find(std::string_view name) const;
  const std::vector<Ref<MappedFile>>& files() const { return files_; }
  const fs::path& path() const { return path_; }

 private:
  void add_part(const fs::path& path);

  fs::path path_;
  std::map<std::string, Json, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::vector<Ref<MappedFile>> files_;
};

}  // namespace sator
