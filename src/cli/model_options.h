// The options that all commands on a model share.
#pragma once

#include <memory>
#include <ostream>

#include "cli/command.h"
#include "llm/open.h"

namespace sator::cli {

struct ModelArguments {
  std::string model;
  std::optional<std::string> quantization;
  std::optional<std::string> model_lib;
  std::optional<int64_t> threads;
  std::optional<std::string> calibration;
  std::string isa = "native";
  std::optional<std::string> cache_dtype;
  std::optional<std::string> debug_dump;
  std::optional<std::string> adapter;
  bool verify = false;

  fs::path folder() const { return model_folder(model); }
};

/// What --quantization is called elsewhere.
extern const std::vector<std::string> kQuantizationNames;
/// --kv-cache.
Option cache_option(std::optional<std::string>& dtype);

/// MODEL and the options that say how it is opened.
std::vector<Option> model_options(ModelArguments& arguments);

/// CONFIG and --quantization of the commands that write a model's files as MLC-LLM's do, before their other options.
std::vector<Option> conversion_options(std::string& config, std::string& scheme, std::vector<Option> others);

/// The model that ModelArguments mean; progress goes to the notes.
llm::OpenModel open(const ModelArguments& arguments, Streams& io);

/// Errors: the model is a GGUF file, whose weights no configuration beside it would describe.
void refuse_gguf(const fs::path& model);

}  // namespace sator::cli
