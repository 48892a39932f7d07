// From a Hugging Face folder to a model that runs: configuration, compiled program, weights.
#pragma once

#include <iosfwd>

#include "llm/program.h"

namespace sator::llm {

struct OpenOptions {
  Scheme scheme = parse_scheme("f32");
  ProgramOptions program;
  std::optional<int64_t> threads;
  std::optional<fs::path> calibration;  ///< a text, for schemes with static activation scales
  std::string isa = "native";           ///< levels to compile for: "native", "portable", or names
  fs::path debug_dump;                  ///< folder for the module after each phase; compiles anew
  std::function<void(const std::string&)> progress;  ///< told what takes time
};

/// A model ready to run under one scheme.
struct OpenModel {
  ModelConfig config;
  Scheme scheme;
  ModelLimits limits;
  WeightSize size;
  fs::path library;                               ///< the compiled program
  std::vector<ParamSpec> specs;
  std::shared_ptr<runtime::VirtualMachine> vm;
  runtime::Value params;                          ///< as transform_params returned them
  double load_s = 0;                              ///< weights: read, quantized, laid out
  double compile_s = 0;                           ///< 0 where the program was compiled before
  /// Bytes of parameters that one decode step reads: all but tables of which it takes a row.
  int64_t bytes_per_token() const;
  Session session() const { return Session(vm, params, limits); }
};

/// Compiles what is not compiled yet (kept under $SATOR_HOME, by all that shaped it), reads and quantizes the weights.
/// Errors: the folder is no model; the family or scheme is not supported; static scales without a calibration text.
OpenModel open_model(const fs::path& folder, const OpenOptions& options);

/// Largest |x| of each input feature of each linear layer, over the first `windows` windows of 512 tokens of a text, run
/// with the exact weights.
ActivationRanges calibrate(const fs::path& folder, const fs::path& text, const OpenOptions& options,
                           int64_t windows = 16);

/// The ids of a model's text with its marks, by the model's own tokenizer (engine/corpus.h).
std::vector<int32_t> token_stream_of(const fs::path& folder, const fs::path& text);

}  // namespace sator::llm
