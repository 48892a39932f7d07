#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/file.h"

namespace sator {

/// 8-bit floats, whose bytes are read as uint8. Source: Micikevicius et al., "FP8 Formats for Deep Learning", 2022.
///   e4m3   4 bits of exponent (bias 7), 3 of mantissa; no infinities, S.1111.111 is NaN
///   e5m2   as float16's upper byte
enum class Float8 { none, e4m3, e5m2 };

/// One tensor of a safetensors file.
///   shape   dims, each >= 0; empty for a scalar
///   bytes   row-major, little-endian elements; a file may place them at any address, so copy before reading
///   as floats
struct SafeTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  Float8 float8 = Float8::none;  ///< with dtype u8

  /// The product of the dims.
  int64_t elements() const;
};

/// The tensors of one safetensors file, or of all shards of a model, mapped read-only: nothing is copied,
/// pages are read when they are touched. Copies share the mapping; spans live as long as one copy does.
class SafeTensors {
 public:
  /// Errors: the file is cut off; its header is longer than the file or than 100 MB, is no JSON of the
  /// format, names a tensor twice; a dtype is unknown or not supported (float4, exponents alone, complex); a dim is
  /// negative or the product overflows; offsets lie outside the file, overlap, leave holes, or disagree with
  /// dtype and shape. Source: the format's description in the safetensors repository ("Format" and "Notes" of
  /// its README).
  static SafeTensors open(const fs::path& file);

  /// Whether open_folder would find a file to read.
  static bool are_in(const fs::path& folder);
  /// `model.safetensors` of a Hugging Face folder or, where there is none, the shards that
  /// `model.safetensors.index.json` lists.
  /// Errors: as open; neither file exists; a shard's path leaves the folder; a listed tensor is missing or
  /// lies in another shard than listed; two shards hold the same name.
  static SafeTensors open_folder(const fs::path& folder);

  /// Of a model of texts and pictures: the tensors of the text part, named as a text model's own (`model.x` for
  /// `language_model.model.x` and `model.language_model.x`, `lm_head.x` for `language_model.lm_head.x`), without those of
  /// pictures. Any other model's as they are.
  /// Errors: two tensors get one name.
  SafeTensors of_text_part() const;

  /// In the order of their bytes, shard after shard.
  const std::vector<SafeTensor>& tensors() const { return tensors_; }
  const SafeTensor* find(std::string_view name) const;
  /// Errors: there is no such tensor (the nearest names are listed).
  const SafeTensor& get(std::string_view name) const;
  /// The header's `__metadata__` of all files.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Sum of the tensors' sizes.
  int64_t size_bytes() const;
  const std::vector<Ref<MappedFile>>& files() const { return files_; }

 private:
  void add_file(const fs::path& file);
  void index_names();

  std::vector<SafeTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
  std::vector<Ref<MappedFile>> files_;
};

/// What a model's text part calls the tensor or layer that a model of texts and pictures calls so; other names as they are.
std::string name_in_text_part(std::string_view name);

/// Writes tensors in the order given; the header is padded with spaces so that the first tensor's bytes are
/// 8-aligned. Readers see the old file or the whole new one. Errors: a tensor's bytes disagree with dtype and
/// shape; a dtype that the format lacks; a name given twice; the file cannot be written.
void write_safetensors(const fs::path& file, std::span<const SafeTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace sator
