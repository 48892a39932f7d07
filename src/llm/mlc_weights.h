// Weights on disk as MLC-LLM keeps them: tensor-cache.json and params_shard_<i>.bin.
#pragma once

#include "base/owned_folder.h"
#include "llm/params.h"

namespace sator::llm {

/// Writes parameters in shards of at most 32 MiB (a tensor of 16 MiB or more has its own), and their index. Unlike
/// MLC-LLM's, float32 stays float32 (format "raw").
/// Weights that the folder had from an earlier conversion are kept until all new files lie beside them under temporary names;
/// these then take their places. Whenever it ends before, by an error or an interrupt, the folder is as it was; one that is
/// killed or loses power amid the renames is without an index, and so without weights.
class MlcWriter {
 public:
  ///   replace   shards and indices of others too
  /// Errors: the folder cannot be written, or has shards or an index that no conversion of ours wrote.
  explicit MlcWriter(const fs::path& folder, bool replace = false);
  ///   weights   elements of the checkpoint, for BitsPerParam
  /// Errors: the folder cannot be written.
  void write(const std::vector<ParamSpec>& specs, const std::vector<Ref<runtime::Tensor>>& params, int64_t weights);

 private:
  OwnedFolder files_;
};

/// Weights in such a folder, mapped read-only.
class MlcWeights {
 public:
  /// Reads `tensor-cache.json` or, in older folders, `ndarray-cache.json`.
  /// Errors: neither is there; the index is malformed; a record lies outside of its shard or disagrees with its shape.
  static MlcWeights open(const fs::path& folder);
  /// Whether the folder has an index.
  static bool is_in(const fs::path& folder);

  /// Whether the records are those of the specs. Errors: one is missing, or has another shape or dtype; one is of no spec.
  void require(const std::vector<ParamSpec>& specs) const;
  /// The parameters in the order of the specs. Errors: as of require, and of require_finite.
  std::vector<Ref<runtime::Tensor>> params(const std::vector<ParamSpec>& specs) const;
  /// What is stored under a name: its bytes in a shard, by the dtype in which they lie there.
  struct Stored {
    std::string name;
    std::vector<int64_t> shape;
    DType dtype;
    Float8 float8 = Float8::none;
    std::span<const std::byte> bytes;
  };
  /// All records, by their names.
  std::vector<Stored> stored() const;
  std::vector<Ref<MappedFile>> files() const;
  /// Elements of the original checkpoint: 8 * bytes / BitsPerParam.
  int64_t original_weights() const { return original_weights_; }
  /// The index and the shards.
  std::vector<fs::path> paths() const;
  /// Checks the md5 sums of all shards. Errors: the first that differs, by name.
  void verify() const;

 private:
  struct Record {
    runtime::Dims shape;
    DType dtype;
    Float8 float8 = Float8::none;  ///< with dtype u8
    bool is_bf16 = false;          ///< float32 whose upper halves alone are stored
    size_t shard = 0;
    int64_t offset = 0, bytes = 0;
  };
  struct Shard {
    Ref<MappedFile> file;
    std::string md5;
  };
  const Record& record_of(const ParamSpec& spec) const;
  Ref<runtime::Tensor> load(const Record& record) const;

  fs::path index_;
  std::map<std::string, Record> records_;
  std::vector<Shard> shards_;
  int64_t original_weights_ = 0;
};

}  // namespace sator::llm
