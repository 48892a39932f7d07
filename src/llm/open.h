// From a Hugging Face folder to a model that runs: configuration, compiled program, weights.
#pragma once

#include <iosfwd>
#include <optional>

#include "engine/corpus.h"
#include "llm/program.h"
#include "passes/to_vm.h"
#include "rules/cpu.h"

namespace sator::llm {

struct OpenOptions {
  Scheme scheme = parse_scheme("f32");
  ProgramOptions program;
  std::optional<int64_t> threads;
  Ref<runtime::ThreadPool> pool;        ///< that models share which run one after the other; null: of its own
  std::optional<fs::path> calibration;  ///< a text, for schemes with static activation scales
  std::string isa = "native";           ///< levels to compile for: "native", "portable", or names
  fs::path debug_dump;                  ///< folder for the module after each phase; compiles anew
  bool each_pass = false;               ///< and after each pass
  fs::path model_lib;                   ///< a compiled program (compile_model) to run; empty: as needed, kept
  std::optional<fs::path> adapter;      ///< a LoRA (adapter.h) that is added to the checkpoint's weights
  fs::path source;                      ///< folder of the checkpoint; empty: the model's own
  bool keep_weights = true;             ///< take them from an earlier start, or keep them, where that took long
  bool verify = false;                  ///< compare converted weights with their md5 sums first
  bool replace = false;                 ///< convert_weights: files in the way of its own
  std::function<void(const std::string&)> progress;  ///< told what takes time
  std::function<void(const std::string&)> remark;    ///< told what may not be meant; null: `progress` is
};

/// A model ready to run under one scheme.
struct OpenModel {
  ModelConfig config;
  Scheme scheme;
  ProgramOptions program;  ///< that it was compiled with
  ModelLimits limits;
  WeightSize size;
  fs::path model_lib;  ///< the compiled program
  std::vector<ParamSpec> specs;
  std::shared_ptr<runtime::VirtualMachine> vm;
  runtime::Value params;  ///< as transform_params returned them
  double load_s = 0;      ///< weights: read, quantized, laid out
  double compile_s = 0;   ///< 0 where the program was compiled before
  /// Bytes of parameters that one decode step reads: all but tables of which it takes a row.
  int64_t bytes_per_token() const;
  Session session() const { return Session(vm, params, limits); }
};

/// The program of a folder under options.scheme and options.program, before any pass. No weights are read.
/// A converted folder's context window holds unless another is asked for; so does its prefill chunk, as far as it is not
/// longer than ours, which changes memory and no result.
/// Errors: the folder is no model; the family or scheme is not supported.
Program program_of(const fs::path& folder, const OpenOptions& options);

/// Compiles what is not compiled yet (kept under $SATOR_HOME, by all that shaped it), reads and quantizes the weights. A
/// folder that convert_weights wrote has its weights quantized already.
/// Errors: the folder is no model; the family or scheme is not supported; static scales without a calibration text; the
/// folder's weights were converted for another scheme, or are damaged; `model_lib` is of another graph (what differs is named),
/// or another user can change it;
/// `verify` without converted weights.
OpenModel open_model(const fs::path& folder, const OpenOptions& options);

/// Whether a folder's weights are converted to a scheme already (by convert_weights, or it has nothing but a chat
/// configuration): no other scheme can be made of them.
bool is_converted(const fs::path& folder);

/// The scheme that keeps the codes of a checkpoint which was quantized elsewhere as they are; nothing where it holds floats.
std::optional<Scheme> stored_scheme(const fs::path& folder);

/// The scheme that config.json says its weights are stored in, for costs where they are not there: all linear layers of the blocks, or all
/// experts, and everything else in the model's dtype; nothing where it says that they are floats.
std::optional<Scheme> implied_scheme(const ModelConfig& config);

/// What a model's folder says of it; a converted folder's context window counts as its positions.
/// Errors: as of read_model_config.
ModelConfig config_of(const fs::path& folder);

/// The scheme that is meant by a name, or, without one, by the folder: that of its converted weights or of its codes
/// (stored_scheme, which takes `+a16` and `+a8` too), else f32, f16 or bf16, as all its floats are, or each as it is: "bf16+f32" (Scheme::is_exact). Of codes other
/// schemes can be made: of the values they stand for.
/// Errors: no such scheme; another one than that of the converted weights.
Scheme scheme_for(const fs::path& folder, const std::optional<std::string>& name);

/// Quantizes a checkpoint and writes MLC-LLM's files of weights to `out`; `folder` has the configuration, and the tokenizer
/// where a scheme needs a calibration text. Errors: as of open_model; the folder cannot be written; it is the model's own or
/// contains it, also through links, or holds a checkpoint.
WeightSize convert_weights(const fs::path& folder, const OpenOptions& options, const fs::path& out,
                           const std::function<void(size_t done, size_t all)>& progress = {});

/// What a compilation decided: how each kernel was scheduled, and the memory for temporary tensors per graph function.
struct CompileReport {
  std::vector<rules::AppliedSchedule> schedules;
  std::map<std::string, passes::MemoryPlan> memory;
};

/// Compiles a folder's program to a model library. config.json or mlc-chat-config.json suffices.
/// Errors: those of the compiler; the file cannot be written.
CompileReport compile_model(const fs::path& folder, const OpenOptions& options, const fs::path& out);

/// Largest |x| of each input feature of each linear layer, over the first 16 windows of a text (512 tokens, or the context
/// where that is shorter), run with the exact weights.
ActivationRanges calibrate(const fs::path& folder, const fs::path& text, const OpenOptions& options);

/// The ids of a model's text with its marks, by the model's own tokenizer (engine/corpus.h). Errors: the text is no UTF-8.
std::vector<int32_t> token_stream_of(const fs::path& folder, const fs::path& text, TextEnd end = TextEnd::marked);
/// The same of a text that is at hand; `source` names it in errors.
std::vector<int32_t> token_stream_of(const fs::path& folder, const std::string& content, const std::string& source,
                                     TextEnd end = TextEnd::marked);

}  // namespace sator::llm
