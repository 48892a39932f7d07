#include "cli/model_options.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "frontend/gguf.h"

namespace sator::cli {

const std::vector<std::string> kQuantizationNames = {"--quant", "--quantize", "-q", "--scheme"};

Option cache_option(std::optional<std::string>& dtype) {
  return {.name = "--kv-cache DTYPE",
          .help =
              "dtype of the KV cache; the model's own, bfloat16 beside inputs of integers, float32 under f32 and for "
              "floats without --quantization, unless told",
          .into = &dtype,
          .choices = {"float32", "float16", "bfloat16"}};
}

std::vector<Option> model_options(ModelArguments& a) {
  return {
      {.name = "MODEL",
       .help = "a Hugging Face folder, a GGUF file, or a folder that convert_weight and gen_config wrote (or the "
               "configuration in it)",
       .into = &a.model,
       .required = true},
      {.name = "--quantization SCHEME",
       .help = "how weights (and activations) are stored; `sator schemes` lists them; as the checkpoint has them "
               "unless told",
       .into = &a.quantization,
       .also = kQuantizationNames},
      {"--threads N", "worker threads; all cores unless told", &a.threads, false, {}, between(1, 1024)},
      {"--calibration FILE", "a text, for schemes with static activation scales", &a.calibration},
      {"--isa LEVELS", "what to compile for: native, portable, or names separated by commas", &a.isa},
      {"--model-lib FILE", "the library that `sator compile` wrote; compiled as needed unless told", &a.model_lib},
      {"--debug-dump DIR", "write the program after each phase there, and passes.txt (compiles anew)", &a.debug_dump},
      cache_option(a.cache_dtype),
      {"--adapter FOLDER", "a LoRA as PEFT saves it, added to the weights", &a.adapter},
      {"--verify", "compare converted weights with their md5 sums before they are used", &a.verify},
  };
}

std::vector<Option> conversion_options(std::string& config, std::string& scheme, std::vector<Option> others) {
  std::vector<Option> all = {
      {.name = "CONFIG", .help = "a Hugging Face folder, or its config.json", .into = &config, .required = true},
      {.name = "--quantization SCHEME", .help = "`sator schemes` lists them", .into = &scheme, .required = true}};
  std::ranges::move(others, std::back_inserter(all));
  return all;
}

llm::OpenModel open(const ModelArguments& a, Streams& io) {
  const fs::path folder = a.folder();
  llm::OpenOptions options{
      .scheme = llm::scheme_for(folder, a.quantization), .threads = a.threads, .isa = a.isa, .verify = a.verify};
  if (a.adapter) {
    options.adapter = *a.adapter;
    if (options.scheme.is_exact) options.scheme = llm::parse_scheme("f32");  // sums of 16-bit floats may have more bits
  }
  if (a.calibration) options.calibration = *a.calibration;
  if (a.cache_dtype) options.program.cache_dtype = *DType::parse(*a.cache_dtype);
  if (a.model_lib) options.model_lib = *a.model_lib;
  if (a.debug_dump) options.debug_dump = *a.debug_dump;
  options.progress = [&io](const std::string& what) { io.notes << what << " ...\n" << std::flush; };
  options.remark = [&io](const std::string& what) { io.notes << "note: " << what << "\n" << std::flush; };
  return llm::open_model(folder, options);
}

void refuse_gguf(const fs::path& model) {
  if (GgufFile::is_named_so(model))
    fail({.what = text(model.string(), " is a GGUF file, which runs as it is"),
          .needs = "a Hugging Face folder: what a conversion to GGUF changed in the weights, no config.json says",
          .hint = text("leave the conversion out: `sator generate ",
                       model.string(),
                       "`; `sator compile` makes a library of it")});
}

}  // namespace sator::cli
