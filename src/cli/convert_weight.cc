#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/progress.h"
#include "llm/open.h"

namespace sator::cli {

namespace {

struct ConvertArguments {
  std::string config, quantization, output;
  std::optional<std::string> source, calibration;
  std::string device = "auto", model_type = "auto", source_format = "auto";
  bool replace = false;
};

void run(const ConvertArguments& a, Streams& io) {
  const fs::path folder = model_folder(a.config);
  refuse_gguf(folder);
  llm::OpenOptions options{.scheme = llm::parse_scheme(a.quantization), .replace = a.replace};
  if (a.calibration) options.calibration = *a.calibration;
  if (a.source) options.source = *a.source;
  if (a.model_type != "auto" && a.model_type != read_model_config(folder).model_type)
    fail({.what = text("--model-type ", a.model_type, ", but config.json says ", read_model_config(folder).model_type),
          .needs = "the type of config.json, or auto",
          .hint = "leave --model-type out"});
  options.progress = [&io](const std::string& what) { io.notes << what << " ...\n" << std::flush; };
  options.remark = [&io](const std::string& what) { io.notes << "note: " << what << "\n" << std::flush; };
  ProgressLines lines(io.notes);
  llm::WeightSize size = llm::convert_weights(folder, options, a.output, [&](size_t done, size_t all) {
    lines(text("converting parameters, ", done, " of ", all), true);
  });
  lines.end();
  io.json = {{"quantization", options.scheme.name},
             {"bytes", size.bytes},
             {"parameters", size.weights},
             {"bits_per_weight", size.bits_per_weight()},
             {"output", a.output}};
  char line[160];
  std::snprintf(line,
                sizeof line,
                "%s: %.1f MB, %.3f bits per weight\n",
                options.scheme.name.c_str(),
                static_cast<double>(size.bytes) / 1e6,
                size.bits_per_weight());
  io.out << line << "written to " << a.output << "; `sator gen_config` puts configuration and tokenizer beside it\n";
}

}  // namespace

Command convert_weight_command() {
  auto a = std::make_shared<ConvertArguments>();
  return {
      .name = "convert_weight",
      .does = "quantizes a checkpoint and writes the weights in MLC-LLM's format",
      .options = conversion_options(
          a->config,
          a->quantization,
          {{.name = "-o,--output FOLDER",
            .help = "where the weights go",
            .into = &a->output,
            .required = true,
            .writes_into = true},
           {"--replace", "replace files that no conversion wrote and that stand where the weights go", &a->replace},
           {"--source FOLDER", "where the checkpoint is; beside CONFIG unless told", &a->source},
           {.name = "--source-format FORMAT",
            .help = "of the checkpoint",
            .into = &a->source_format,
            .choices = {"auto", "huggingface-safetensor"}},
           {"--model-type TYPE", "auto, or the type that config.json must name", &a->model_type},
           {.name = "--device DEVICE", .help = "what quantizes", .into = &a->device, .choices = {"auto", "cpu"}},
           {"--calibration FILE", "a text, for schemes with static activation scales", &a->calibration}}),
      .run = [a](Streams& io) { run(*a, io); },
      .details =
          "Writes params_shard_<i>.bin and tensor-cache.json. float32 stays float32 (MLC-LLM stores its upper half).",
      .also = {"quantize", "convert", "convert_weights", "quant"}};
}

}  // namespace sator::cli
