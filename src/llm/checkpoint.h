// The weights of a model as its maker stored them: floats, or codes that another program made.
#pragma once

#include <functional>

#include "frontend/mlc_config.h"
#include "frontend/model_config.h"
#include "frontend/safetensors.h"
#include "llm/quantize.h"

namespace sator::llm {

/// One weight, by the name that a Hugging Face checkpoint has for it. Floats have bytes, codes a reader.
struct StoredWeight {
  std::string name;
  std::vector<int64_t> shape;                   ///< of the values: of codes [rows, cols]
  DType dtype = f32;                            ///< of floats
  std::span<const std::byte> bytes = {};        ///< of floats, row-major, at any address
  std::optional<IntegerFormat> format = {};     ///< of codes
  std::function<QuantizedMatrix()> codes = {};  ///< reads them
  bool transposed = false;                      ///< of floats: the file holds [cols, rows]
  std::function<std::vector<float>()> floats =
      {};                               ///< of floats that are made of something else: makes all, without `bytes`
  std::vector<int64_t> row_order = {};  ///< of floats: row i is the file's row row_order[i]; empty: as it stands
  std::function<void(std::vector<float>&)> change = {};  ///< of floats: what is done to their values
  Float8 float8 = Float8::none;                          ///< of 8-bit floats whose scales no configuration gives

  int64_t elements() const;
};

/// A checkpoint, mapped read-only. Copies share the mapping.
class Checkpoint {
 public:
  /// The safetensors of a folder, with codes where `config` says so, a GGUF file, or the shards of MLC-LLM.
  /// Errors: as of SafeTensors::open_folder and GgufFile::open; tensors of codes, scales or zero points that are missing or do not fit each other.
  static Checkpoint open(const fs::path& model, const ModelConfig& config);
  /// Floats alone.
  ///   stacks  tensors of all experts, and what they are called one by one
  static Checkpoint of(const SafeTensors& tensors, const std::vector<ExpertStack>& stacks = {});

  const std::vector<StoredWeight>& weights() const { return weights_; }
  /// The weight of that name, with or without the `transformer.` or `model.` that some published folders leave out; null if
  /// there is none.
  const StoredWeight* find(std::string_view name) const;
  /// Errors: there is none; the nearest names are listed.
  const StoredWeight& get(std::string_view name) const;

  /// Has the values of a weight changed whenever they are read. Errors: as of get; it holds codes.
  void change(std::string_view name, std::function<void(std::vector<float>&)> by);

  /// How each tensor is stored, where some are codes or the file is GGUF; null: all are floats.
  const std::shared_ptr<const StoredFormats>& formats() const { return formats_; }
  /// The scheme that keeps codes as they are: "gptq-int4-group128". Empty: all are floats.
  const std::string& scheme_name() const { return scheme_name_; }
  /// Whether it holds its model's tensors and no others, so that one that is not used says that the model is not understood.
  bool is_exact() const { return is_exact_; }
  /// What names it in errors.
  const std::string& source() const { return source_; }
  /// The files that it lies in.
  std::vector<fs::path> paths() const;

 private:
  void add(StoredWeight weight);
  /// What has been added is all there is.
  ///   source   names it in errors
  ///   scheme   that keeps everything as it is; empty: none does
  void finish(std::string source, std::string scheme);
  static Checkpoint open_gguf(const fs::path& file, const ModelConfig& config);
  static Checkpoint open_mlc(const fs::path& folder, const ModelConfig& config, const MlcScheme& scheme);

  std::vector<Ref<MappedFile>> files_;
  std::vector<StoredWeight> weights_;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::string source_;
  std::shared_ptr<const StoredFormats> formats_;
  std::string scheme_name_;
  bool is_exact_ = false;
};

/// [rows, cols] -> [cols, rows], both row-major.
std::vector<float> transposed(const std::vector<float>& values, int64_t rows, int64_t cols);
/// The values of a weight as f32, row-major.
std::vector<float> values_of(const StoredWeight& weight);
/// Whether some rows' values can be had without the others'.
bool has_rows(const StoredWeight& weight);
/// Those of `count` rows from `first` on.
std::vector<float> values_of(const StoredWeight& weight, int64_t first, int64_t count);
/// Takes the pages of a weight's bytes from this process: they stay in the file, and are read again where they are touched.
void release(const StoredWeight& weight);

}  // namespace sator::llm
