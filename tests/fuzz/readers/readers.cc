#include "fuzz/readers/readers.h"

#include <stdlib.h>

#include <fstream>

#include "base/error.h"
#include "base/text.h"

namespace sator::fuzz {
namespace {

constexpr Reader kReaders[] = {
    {"safetensors", "model.safetensors", "model", read_safetensors},
    {"safetensors_index", "model.safetensors.index.json of two shards", "model", read_safetensors_index},
    {"gguf", "a GGUF file: metadata, tokenizer, weights", "model", read_gguf},
    {"stored_codes",
     "model.safetensors of GPTQ, AWQ, compressed-tensors or 8-bit floats, behind a byte that says how",
     "model",
     read_stored_codes},
    {"config", "config.json", "model", read_config},
    {"generation_config", "generation_config.json", "model", read_generation_config_file},
    {"mlc_config", "mlc-chat-config.json", "model", read_mlc_config_file},
    {"mlc_index", "tensor-cache.json, and perhaps its shard", "model", read_mlc_index},
    {"mlc_codes",
     "tensor-cache.json and its shard of MLC-LLM's codes, behind a byte that says which",
     "model",
     read_mlc_codes},
    {"tokenizer", "tokenizer.json, and texts through it", "tokenizer", read_tokenizer},
    {"tokenizer_model", "tokenizer.model: SentencePiece's, or ranks of tiktoken", "tokenizer", read_tokenizer_model},
    {"tokenizer_config", "tokenizer_config.json beside a small tokenizer", "tokenizer", read_tokenizer_config},
    {"vocab_merges", "vocab.json, merges.txt and what lies beside them", "tokenizer", read_vocab_and_merges},
    {"json_schema", "a JSON schema, and a document of it", "json_schema", read_json_schema},
    {"task", "items of `sator eval`", "json_schema", read_task_file},
    {"reference_run", "logits of an earlier run", "json_schema", read_reference_run},
    {"tvmscript", "programs and graphs as text", "python", read_tvmscript},
    {"schedule", "a script of primitives on a matrix product", "python", read_schedule},
    {"bytecode", "the program in a compiled model", "", read_bytecode},
    {"library_headers", "the headers of a model library, before the loader sees it", "", read_library_headers},
    {"chip", "a described chip", "toml", read_chip},
    {"chip_folder", "a folder's chip.toml, PE array and mapping", "toml", read_chip_folder},
    {"calibration", "a calibration of a chip", "toml", read_calibration_file},
    {"measurements", "rows for calibrate", "study", read_measurements},
    {"study", "study.json, its page and explanations", "study", read_study},
    {"kernels_csv", "kernels.csv of a study", "study", read_kernels_csv},
    {"study_part", "a finished part of a study", "study", read_study_part},
    {"files_list", "the list of files that a command wrote", "study", read_files_list},
    {"cache_entry", "an entry of a cache, with its seal", "study", read_cache_entry},
    {"cache_folder", "names of what lies in a cache's folder", "study", read_cache_folder},
    {"tenet", "TENET's three files", "cost_tools", read_tenet},
    {"timeloop", "Timeloop's architecture, problem and mapping", "cost_tools", read_timeloop},
    {"scalesim", "SCALE-Sim's configuration and topology", "cost_tools", read_scalesim},
    {"maestro", "MAESTRO's mapping and hardware", "cost_tools", read_maestro},
    {"batch", "a line for estimate --batch", "study", read_batch_row},
};

/// A folder in memory, if the machine has one; removed with the object.
class Scratch {
 public:
  Scratch() {
    std::string pattern =
        (fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path().string()) + "/sator_fuzz_XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

std::span<const Reader> readers() { return kReaders; }

const Reader* find_reader(std::string_view name) {
  for (const Reader& r : kReaders)
    if (r.name == name) return &r;
  return nullptr;
}

bool run_reader(const Reader& reader, std::string_view bytes) {
  const Scratch scratch;
  try {
    reader.read(bytes, scratch.path());
  } catch (const Error& error) {
    require(!error.reason.what.empty(), "an error has words");
    return false;
  }
  return true;
}

std::vector<std::string> texts_of(std::string_view bytes, size_t count) {
  constexpr std::string_view kLine = "\n====\n";
  std::vector<std::string> out;
  while (out.size() < count) {
    const size_t end = std::min(bytes.find(kLine), bytes.size());
    out.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + kLine.size(), bytes.size()));
  }
  return out;
}

void put_file(const fs::path& file, std::string_view bytes) { std::ofstream(file, std::ios::binary) << bytes; }

void require(bool holds, std::string_view what) {
  if (!holds) internal_error(text("does not hold: ", what));
}

}  // namespace sator::fuzz
