#include "llm/open.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "driver/compile.h"
#include "engine/corpus.h"
#include "runtime/library.h"

namespace sator::llm {

using runtime::Tensor;
using runtime::Value;

namespace {

constexpr int64_t kCalibrationWindows = 16;

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// This very compiler: another build may make other code.
const std::string& compiler_id() {
  static const std::string id = [] {
    std::error_code ignored;
    fs::path self = fs::read_symlink("/proc/self/exe", ignored);
    auto size = fs::file_size(self, ignored);
    auto time = fs::last_write_time(self, ignored).time_since_epoch().count();
    return hex(hash_bytes(text(self.string(), ":", static_cast<int64_t>(size), ":", static_cast<int64_t>(time))));
  }();
  return id;
}

std::string cache_key(const fs::path& folder, const std::string& what, const OpenOptions& options,
                      const std::vector<const target::CpuLevel*>& levels) {
  std::string levels_text;
  for (const target::CpuLevel* l : levels) levels_text += std::string(l->name) + ",";
  return hex(hash_bytes(text(read_file(folder / "config.json"), "\n", what, "\n", options.scheme.name, "\n",
                             options.program.context_window.value_or(-1), "\n", options.program.prefill_chunk.value_or(-1),
                             "\n", options.program.cache_dtype, "\n", levels_text, "\n", compiler_id())));
}

void say(const OpenOptions& options, const std::string& message) {
  if (options.progress) options.progress(message);
}

/// The library of a program, compiled if it is not there yet.
fs::path library_of(const fs::path& folder, const std::string& what, const Program& program, const OpenOptions& options,
                    double& compile_s) {
  std::vector<const target::CpuLevel*> levels = target::levels_for(options.isa);
  std::string key = cache_key(folder, what, options, levels);
  fs::path path = sator_home() / "models" / key / "model.so";
  if (options.debug_dump.empty() && fs::exists(path)) return path;
  Clock clock;
  driver::CompileOptions compile{.levels = levels,
                                 .bounds = {{"seq_len", program.limits.prefill_chunk}},
                                 .debug_dump = options.debug_dump,
                                 .source_hash = key,
                                 .progress = options.progress};
  nlohmann::json metadata = {{"quantization", options.scheme.name},
                             {"context_window_size", program.limits.context_window},
                             {"prefill_chunk_size", program.limits.prefill_chunk},
                             {"vocab_size", program.limits.vocab_size}};
  compile.metadata_json = metadata.dump();
  say(options, text("compiling ", folder.filename().string(), " for ", options.scheme.name));
  driver::write_library(driver::compile(program.module, compile), compile, path);
  compile_s = clock.seconds();
  return path;
}

Value run_transform(runtime::VirtualMachine& vm, const std::vector<Ref<Tensor>>& params) {
  std::vector<Value> items(params.begin(), params.end());
  Value tuple = runtime::Tuple::of(std::move(items));
  return vm.has_function("transform_params") ? vm.call("transform_params", {tuple}) : tuple;
}

std::function<DType(const std::string&)> dtypes_of(const SafeTensors& checkpoint) {
  return [&checkpoint](const std::string& name) {
    const SafeTensor* t = find_weight(checkpoint, name);
    return t ? t->dtype : f32;
  };
}

std::shared_ptr<runtime::VirtualMachine> machine_of(const fs::path& library, const OpenOptions& options) {
  Ref<runtime::ModelLibrary> loaded = runtime::ModelLibrary::open(library);
  Ref<runtime::ThreadPool> pool;
  if (options.threads) pool = runtime::ThreadPool::create(static_cast<int>(*options.threads));
  return std::make_shared<runtime::VirtualMachine>(loaded->executable(), loaded->kernels(), pool);
}

}  // namespace

int64_t OpenModel::bytes_per_token() const {
  // Tables of which a step takes one row are not read as a whole, unless they are the head as well.
  int64_t bytes = 0;
  for (const ParamSpec& p : specs) {
    bool table = false;
    for (const std::string& name : p.source.tensors)
      table |= name.ends_with("wpe.weight") || (name.ends_with("embed_tokens.weight") && !config.tie_word_embeddings);
    if (!table) bytes += p.bytes();
  }
  return bytes;
}

OpenModel open_model(const fs::path& folder, const OpenOptions& options) {
  OpenModel model;
  model.config = read_model_config(folder);
  model.scheme = options.scheme;
  SafeTensors checkpoint = SafeTensors::open_folder(folder);
  if (options.scheme.needs_calibration() && !options.calibration)
    fail({.what = text(options.scheme.name, " has static activation scales, and no calibration text is given"),
          .needs = "a text like those the model was trained on, not the one it is evaluated on",
          .hint = "pass --calibration FILE"});
  Program program = build_program(model.config, options.scheme, dtypes_of(checkpoint), options.program);
  model.limits = program.limits;
  model.library = library_of(folder, "run", program, options, model.compile_s);
  model.vm = machine_of(model.library, options);
  ActivationRanges ranges;
  if (options.scheme.needs_calibration()) ranges = calibrate(folder, *options.calibration, options, kCalibrationWindows);
  Clock clock;
  say(options, "reading weights");
  model.params = run_transform(*model.vm, make_params(program.params, checkpoint, ranges));
  model.load_s = clock.seconds();
  model.size = weight_size(program.params, checkpoint);
  model.specs = std::move(program.params);
  return model;
}

std::vector<int32_t> token_stream_of(const fs::path& folder, const fs::path& text) {
  Tokenizer tokenizer = Tokenizer::load(folder);
  ModelConfig config = read_model_config(folder);
  std::optional<int32_t> end;
  if (!config.eos_token_ids.empty()) end = static_cast<int32_t>(config.eos_token_ids.front());
  return token_stream(tokenizer, read_file(text), work_marks(tokenizer, end));
}

ActivationRanges calibrate(const fs::path& folder, const fs::path& text_file, const OpenOptions& options,
                           int64_t windows) {
  OpenOptions exact = options;
  exact.scheme = parse_scheme("f32");
  exact.debug_dump.clear();
  say(options, "calibrating activations");
  ModelConfig config = read_model_config(folder);
  SafeTensors checkpoint = SafeTensors::open_folder(folder);
  std::vector<std::string> layers;
  Program program = build_observer(config, dtypes_of(checkpoint), exact.program, layers);
  double compile_s = 0;
  auto vm = machine_of(library_of(folder, "observe", program, exact, compile_s), options);
  Value params = run_transform(*vm, make_params(program.params, checkpoint));
  std::vector<int32_t> stream = token_stream_of(folder, text_file);
  int64_t length = std::min(kWindowTokens, program.limits.prefill_chunk);
  ActivationRanges ranges;
  Value cache = vm->call("create_kv_cache", {});
  auto* kv = cache.as<runtime::PagedKVCache>();
  for (std::span<const int32_t> window : windows_of(stream, kWindowTokens, windows)) {
    kv->clear();
    kv->add_sequence(0);
    for (size_t from = 0; from < window.size(); from += static_cast<size_t>(length)) {
      std::span<const int32_t> chunk = window.subspan(from, std::min(window.size() - from, static_cast<size_t>(length)));
      const int64_t sequence[] = {0}, count[] = {static_cast<int64_t>(chunk.size())};
      Ref<Tensor> ids = Tensor::of(std::vector<int32_t>(chunk.begin(), chunk.end()), {count[0]}, i32);
      kv->begin_forward(sequence, count);
      Value observed = vm->call("observe", {ids, cache, params});
      kv->end_forward();
      const auto* tuple = observed.as<runtime::Tuple>();
      if (!tuple || tuple->fields.size() != layers.size()) internal_error("observe returned another number of ranges");
      for (size_t i = 0; i < layers.size(); ++i) {
        const Tensor* t = tuple->fields[i].as<Tensor>();
        std::vector<float>& range = ranges[layers[i]];
        range.resize(static_cast<size_t>(t->num_elements()));
        for (size_t k = 0; k < range.size(); ++k) range[k] = std::max(range[k], t->data_as<float>()[k]);
      }
    }
  }
  return ranges;
}

}  // namespace sator::llm
