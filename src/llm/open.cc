#include "llm/open.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/build_id.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/temporary.h"
#include "base/trust.h"
#include "codegen/llvm.h"
#include "driver/compile.h"
#include "engine/corpus.h"
#include "engine/tokenizer/unicode.h"
#include "frontend/gguf.h"
#include "frontend/mlc_config.h"
#include "llm/adapter.h"
#include "llm/identity.h"
#include "llm/mlc_weights.h"
#include "llm/model_cache.h"
#include "llm/packed_weights.h"
#include "llm/stored_codes.h"
#include "relax/print.h"
#include "runtime/library.h"
#include "runtime/memory.h"

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

/// By all that shapes a compiled program: its graph, the instruction sets, the bounds, and what makes the code.
std::string cache_key(const OpenOptions& options, const Program& program) {
  std::string levels;
  for (const target::CpuLevel* l : target::levels_for(options.isa)) levels += std::string(l->name) + ",";
  return digest_of(text("graph ",
                        graph_digest(program),
                        "\nlevels ",
                        levels,
                        "\nprefill chunk ",
                        program.limits.prefill_chunk,
                        "\ncontext ",
                        program.limits.context_window,
                        "\nscheme ",
                        options.scheme.name,
                        "\nprogram ",
                        program_id(),
                        "\nllvm ",
                        codegen::llvm_id()));
}

void say(const OpenOptions& options, const std::string& message) {
  if (options.progress) options.progress(message);
}

void remark(const OpenOptions& options, const std::string& message) {
  options.remark ? options.remark(message) : say(options, message);
}

/// A checkpoint with more than the model of its config.json may be meant for another one.
void say_what_is_unused(const OpenOptions& options, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const size_t shown = std::min<size_t>(names.size(), 3);
  remark(options,
         text("not used, as config.json asks for none: ",
              join(std::span(names).first(shown), ", "),
              names.size() > shown ? text(" and ", names.size() - shown, " more tensors") : ""));
}

/// What is said of activations that a checkpoint wants in 8 bits: "dynamic", "static", or nothing.
///   integers   the name of the scheme that takes them as integers; empty: there is none
std::string remark_on(const std::string& activations, const std::string& integers = "") {
  if (activations.empty()) return "";
  return text(
      "activations stay floats, where the checkpoint asks for 8-bit ones (",
      activations,
      " scales)",
      integers.empty() ? "" : text("; --quantization ", integers, " takes them as integers, with dynamic scales"));
}
/// The same of a checkpoint's `quantization_config`.
std::string remark_on(const StoredQuantization& how, const std::string& scheme) {
  return remark_on(how.activations, how.method == StoredQuantization::Method::fp8 ? "" : scheme + "+a8");
}

/// What MLC-LLM's schemes of 8-bit floats do to activations.
std::string activations_of_mlc(const fs::path& folder) {
  const MlcScheme* scheme = mlc_checkpoint_scheme(folder);
  if (!scheme || (scheme->kind != MlcScheme::Kind::tensor && scheme->kind != MlcScheme::Kind::block)) return "";
  return scheme->kind == MlcScheme::Kind::tensor || scheme->name.ends_with("static_activation") ? "static" : "dynamic";
}

/// A program's kernels, and what is written beside them.
struct CompiledProgram {
  driver::CompileOptions options;
  driver::Compiled compiled;
};

CompiledProgram compiled_of(const Program& program, const ModelConfig& config, const OpenOptions& options) {
  driver::CompileOptions compile{.target = Target::of_levels(target::levels_for(options.isa)),
                                 .bounds = {{"seq_len", program.limits.prefill_chunk}},
                                 .debug_dump = options.debug_dump,
                                 .each_pass = options.each_pass,
                                 .source_hash = cache_key(options, program)};
  driver::Compiled compiled = driver::compile(program.module, compile);
  // The text of phase 3 is kept beside the kernels that it became, with the steps that lead there: what else wants to cost
  // or schedule them starts from it.
  Json kernels = Json::object();
  for (const rules::AppliedSchedule& s : compiled.schedules)
    kernels[s.function] = {{"rule", s.rule}, {"trace", s.trace}};
  Json metadata = {{"quantization", options.scheme.name},
                   {"context_window_size", program.limits.context_window},
                   {"prefill_chunk_size", program.limits.prefill_chunk},
                   {"vocab_size", program.limits.vocab_size},
                   {"kv_cache_dtype", program.attention.front().cache_dtype.name()},
                   {"graph", graph_digest(program)},
                   {"shaped_by", shaped_by(config, options.scheme, program)},
                   {"phase3", relax::to_script(*compiled.phase3)},
                   {"kernels", kernels}};
  compile.metadata_json = metadata.dump();
  return {std::move(compile), std::move(compiled)};
}

CompileReport report_of(driver::Compiled compiled) {
  CompileReport report{.schedules = std::move(compiled.schedules)};
  for (const auto& [name, func] : compiled.final->functions)
    if (auto plan = passes::memory_plan(*func)) report.memory.emplace(name, *plan);
  return report;
}

/// The library of a program, and the folder that goes with it where it cannot be kept: a loaded library needs its file no longer.
struct Library {
  fs::path path;
  std::unique_ptr<TemporaryFolder> temporary;
};

/// Why the system lets nothing be written into a cache's folder, which is made where it is missing; nothing: it does.
/// Errors: other users could change what is in the folder.
std::optional<std::string> cannot_write_into(const fs::path& folder) {
  try {
    make_private_folder(folder, text("a library from ", folder.string()));
  } catch (const Error& e) {
    std::error_code unknown;
    if (fs::exists(folder, unknown)) throw;
    return e.reason.what;
  }
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return text("cannot write ", folder.string(), ": ", std::strerror(errno));
}

/// The library of a program, compiled if the cache does not have it, or has it damaged.
///   what   "run", "observe": part of the entry's name
Library library_of(const fs::path& folder, const std::string& what, const Program& program, const OpenOptions& options,
                   double& compile_s) {
  const FileCache cache = model_cache();
  std::optional<std::string> problem = cannot_write_into(cache.folder());
  const std::string model = fs::canonical(folder).filename().string();
  const fs::path path = cache.path_of(text(model, "-", options.scheme.name, "-", what), cache_key(options, program));
  const auto damaged = [&](const std::string& words) { remark(options, words); };
  if (options.debug_dump.empty() && cache.find(path, damaged)) return {path, nullptr};
  if (!problem) FileCache::free_place(path);  // before the long work
  Clock clock;
  say(options, text("compiling ", model, " for ", options.scheme.name));
  const CompiledProgram made = compiled_of(program, read_model_config(folder), options);
  if (!problem) try {
      driver::write_library(made.compiled, made.options, path);
      cache.prune(cache_limit_bytes(), kCacheKeeps);
    } catch (const Error& e) {
      problem = e.reason.what;
    }
  Library library{path, nullptr};
  if (problem) {
    library.temporary = std::make_unique<TemporaryFolder>();
    library.path = library.temporary->path() / path.filename();
    driver::write_library(made.compiled, made.options, library.path);
    remark(options,
           text("the compiled model and its weights are not kept for the next start: ",
                *problem,
                "; SATOR_HOME names another folder"));
  }
  compile_s = clock.seconds();
  return library;
}

/// What a given library says of itself.
struct LibraryFacts {
  ProgramOptions program;  ///< that it was compiled with
  ModelLimits limits;
  std::string graph;
  Json shaped_by;
};

LibraryFacts facts_of(const fs::path& library, const Scheme& scheme) {
  const Ref<runtime::ModelLibrary> loaded = runtime::ModelLibrary::open(library);
  const std::string source = text("the metadata of ", library.string());
  const Json tree = parse_json(loaded->metadata_json(), source);
  const JsonAt metadata(tree, source);
  const std::string& compiled_for = metadata.at("quantization").string();
  if (compiled_for != scheme.name)
    fail({.what = text(library.string(), " was compiled for ", compiled_for),
          .needs = scheme.name,
          .hint = text("compile it again with --quantization ", scheme.name)});
  if (!metadata.find("graph") || !metadata.find("shaped_by"))
    fail({.what = text(library.string(), " does not say what shaped it"),
          .needs = "a library that this version of Sator compiled",
          .hint = "compile it again from this folder"});
  LibraryFacts facts{.program = {},
                     .limits = {.context_window = metadata.at("context_window_size").integer(1),
                                .prefill_chunk = metadata.at("prefill_chunk_size").integer(1),
                                .vocab_size = metadata.at("vocab_size").integer(1)},
                     .graph = metadata.at("graph").string(),
                     .shaped_by = metadata.at("shaped_by").json()};
  facts.program.context_window = facts.limits.context_window;
  facts.program.prefill_chunk = facts.limits.prefill_chunk;
  facts.program.cache_dtype = DType::parse(metadata.at("kv_cache_dtype").string());
  return facts;
}

/// Errors: the library holds more positions than the model has.
void require_context(const LibraryFacts& facts, const OpenOptions& options, const ModelConfig& config) {
  if (facts.limits.context_window <= config.longest_context()) return;
  fail({.what = text(options.model_lib.string(),
                     " was compiled for another model: context_window_size: library ",
                     facts.limits.context_window,
                     ", model at most ",
                     config.longest_context()),
        .needs = "a library of this very model",
        .hint = "compile it again from this folder"});
}

/// Errors: the library is of another graph than the program; the words name what differs.
void require_same_graph(const LibraryFacts& facts, const OpenOptions& options, const ModelConfig& config,
                        const Program& program) {
  if (facts.graph == graph_digest(program)) return;
  const std::vector<std::string> differ =
      differences(facts.shaped_by, shaped_by(config, options.scheme, program), "library", "model");
  fail(
      {.what = text(options.model_lib.string(),
                    " was compiled for another model: ",
                    differ.empty() ? "what shapes it is the same, but another version of Sator made another graph of it"
                                   : join(differ, "; ")),
       .needs = "a library of this very model: the same configuration, scheme and widths of weights",
       .hint = "compile it again from this folder"});
}

const fs::path& weights_folder(const fs::path& model, const OpenOptions& options) {
  return options.source.empty() ? model : options.source;
}

/// Where the weights of a model are: a checkpoint, quantized as it is read, or converted ones.
class Weights {
 public:
  Weights(const fs::path& folder, const OpenOptions& options, const ModelConfig& config) {
    const fs::path& from = weights_folder(folder, options);
    if (MlcWeights::is_in(from) && !mlc_checkpoint_scheme(from))
      converted_ = MlcWeights::open(from);
    else
      checkpoint_ = Checkpoint::open(from, config);
    if (!options.adapter) return;
    if (converted_)
      fail({.what = text("the weights in ", from.string(), " are converted already"),
            .needs = "the original checkpoint, to which an adapter can be added"});
    const Adapter adapter = Adapter::open(*options.adapter);
    adapter.add_to(*checkpoint_, config);
    adapter_files_ = adapter.paths();
  }

  bool are_converted() const { return converted_.has_value(); }

  /// Errors: what the parameters are made from is missing or has another shape or dtype.
  void require(const std::vector<ParamSpec>& specs) const {
    checkpoint_ ? require_sources(specs, *checkpoint_) : converted_->require(specs);
  }
  std::vector<std::string> unused(const std::vector<ParamSpec>& specs) const {
    return checkpoint_ ? unused_tensors(specs, *checkpoint_) : std::vector<std::string>();
  }
  /// Errors: the weights are not converted, or are not as they were written.
  void verify() const {
    if (!converted_)
      fail({.what = "a checkpoint has no sums that its weights could be compared with",
            .needs = "weights that `sator convert_weight` wrote",
            .hint = "leave --verify out"});
    converted_->verify();
  }

  /// The parameters, one by one; what is given outlives their source.
  Ref<runtime::ParamSource> params(const std::vector<ParamSpec>& specs, const ActivationRanges& ranges,
                                   int threads) const {
    if (!checkpoint_)
      return runtime::ParamSource::of([held = converted_->params(specs)](int64_t i) mutable -> Value {
        return std::exchange(held.at(static_cast<size_t>(i)), nullptr);
      });
    auto stream = std::make_shared<ParamStream>(specs, *checkpoint_, ranges, threads);
    return runtime::ParamSource::of([stream](int64_t i) -> Value { return stream->take(i); });
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out = checkpoint_ ? checkpoint_->paths() : converted_->paths();
    out.insert(out.end(), adapter_files_.begin(), adapter_files_.end());
    return out;
  }

  WeightSize size(const std::vector<ParamSpec>& specs) const {
    if (checkpoint_) return weight_size(specs, *checkpoint_);
    WeightSize size{.weights = converted_->original_weights()};
    for (const ParamSpec& s : specs) size.bytes += s.bytes();
    return size;
  }

 private:
  std::optional<Checkpoint> checkpoint_;
  std::optional<MlcWeights> converted_;
  std::vector<fs::path> adapter_files_;
};

/// What the chat configuration of a folder with converted weights (or with nothing else) decides.
std::optional<MlcModel> converted_model(const fs::path& folder) {
  if (!fs::is_directory(folder)) return {};
  const bool converted = MlcWeights::is_in(folder) || !fs::exists(folder / "config.json");
  return converted ? read_mlc_model(folder) : std::nullopt;
}

/// With what a converted folder decides, where nothing else is asked for.
ProgramOptions program_options(const fs::path& folder, ProgramOptions options) {
  const std::optional<MlcModel> converted = converted_model(folder);
  if (!converted) return options;
  if (!options.context_window) options.context_window = converted->context_window_size;
  if (!options.prefill_chunk && converted->prefill_chunk_size)
    options.prefill_chunk =
        std::min({*converted->prefill_chunk_size, kPrefillChunk, options.context_window.value_or(kPrefillChunk)});
  return options;
}

void require_calibration(const OpenOptions& options) {
  if (options.scheme.needs_calibration() && !options.calibration)
    fail({.what = text(options.scheme.name, " has static activation scales, and no calibration text is given"),
          .needs = "a text like those the model was trained on, not the one it is evaluated on",
          .hint = "pass --calibration FILE"});
}

/// The tensors that are smaller than a huge page, one after the other in storage of huge pages: a step reads all of them, and
/// on pages of 4 KB it would wait for translations. The others have such storage already.
Value in_huge_pages(const runtime::Tuple& params) {
  auto small = [](const Value& v) -> Ref<Tensor> {
    Ref<Tensor> tensor = v.ref<Tensor>();
    return tensor && tensor->size_bytes() < runtime::kHugePage ? tensor : nullptr;
  };
  auto padded = [](int64_t bytes) {
    return (bytes + runtime::kAlignment - 1) / runtime::kAlignment * runtime::kAlignment;
  };
  int64_t bytes = 0, at = 0;
  for (const Value& v : params.fields) {
    if (Ref<Tensor> tensor = small(v)) bytes += padded(tensor->size_bytes());
  }
  Ref<runtime::Storage> storage = runtime::Storage::allocate(bytes);
  std::vector<Value> out;
  for (const Value& v : params.fields) {
    Ref<Tensor> tensor = small(v);
    out.push_back(v);
    if (!tensor) continue;
    Ref<Tensor> moved = Tensor::view(storage, at, tensor->shape(), tensor->dtype());
    std::memcpy(moved->data(), tensor->data(), static_cast<size_t>(tensor->size_bytes()));
    at += padded(tensor->size_bytes());
    out.back() = moved;
  }
  return runtime::Tuple::of(std::move(out));
}

/// The parameters as the program reads them, of `count` given ones.
Value run_transform(runtime::VirtualMachine& vm, const Ref<runtime::ParamSource>& source, size_t count) {
  if (vm.has_function("transform_params"))
    return in_huge_pages(*vm.call("transform_params", {Value(source)}).as<runtime::Tuple>());
  std::vector<Value> items;
  for (size_t i = 0; i < count; ++i) items.push_back(source->take(static_cast<int64_t>(i)));
  return in_huge_pages(*runtime::Tuple::of(std::move(items)));
}

std::shared_ptr<runtime::VirtualMachine> machine_of(const fs::path& library, const OpenOptions& options) {
  Ref<runtime::ModelLibrary> loaded = runtime::ModelLibrary::open(library);
  Ref<runtime::ThreadPool> pool = options.pool;
  if (!pool && options.threads) pool = runtime::ThreadPool::create(static_cast<int>(*options.threads));
  return std::make_shared<runtime::VirtualMachine>(loaded->executable(), loaded->kernels(), pool);
}

}  // namespace

Program program_of(const fs::path& folder, const OpenOptions& options) {
  return build_program(read_model_config(folder), options.scheme, program_options(folder, options.program));
}

int64_t OpenModel::bytes_per_token() const {
  // Tables of which a step takes one row are not read as a whole, unless they are the head as well.
  double bytes = 0;
  for (const ParamSpec& p : specs)
    if (!p.is_table) bytes += static_cast<double>(p.bytes()) * p.read_share;
  return std::llround(bytes);
}

/// What takes longer than this to make is kept for the next start.
static constexpr double kQuick_s = 0.5;

/// Where the weights of a model are kept; nothing where no cache can be had, which a given library does without.
static std::optional<fs::path> place_of_packed(const OpenModel& model, const fs::path& folder,
                                               const OpenOptions& options, const Weights& weights, bool calibrated) {
  try {
    const std::string key =
        packed_weights_key(model.model_lib, weights.files(), calibrated ? options.calibration : std::nullopt);
    return weights_cache().path_of(text(fs::canonical(folder).filename().string(), "-", options.scheme.name), key);
  } catch (const Error&) {
    return {};
  }
}

/// The weights as the program reads them: from an earlier start, or made from the checkpoint.
static void load_weights(OpenModel& model, const fs::path& folder, const OpenOptions& options, const Weights& weights,
                         const Program& program) {
  const bool calibrated = options.scheme.needs_calibration() && !weights.are_converted();
  const auto note = [&](const std::string& words) { remark(options, words); };
  const std::optional<fs::path> kept =
      options.keep_weights ? place_of_packed(model, folder, options, weights, calibrated) : std::nullopt;
  const int threads = static_cast<int>(options.threads.value_or(std::thread::hardware_concurrency()));
  Clock clock;
  if (auto params = kept ? read_packed_weights(*kept, threads, note) : std::nullopt) {
    model.params = *params;
    model.load_s = clock.seconds();
    return;
  }
  ActivationRanges ranges;
  if (calibrated) ranges = calibrate(folder, *options.calibration, options);
  clock = Clock();
  say(options, "reading weights");
  model.params = run_transform(*model.vm, weights.params(program.params, ranges, threads), program.params.size());
  model.load_s = clock.seconds();
  if (kept && model.load_s > kQuick_s) keep_packed_weights(*kept, *model.params.as<runtime::Tuple>(), note);
}

OpenModel open_model(const fs::path& folder, const OpenOptions& given) {
  OpenOptions options = given;
  options.program = program_options(folder, given.program);
  OpenModel model;
  model.config = read_model_config(folder);
  model.scheme = options.scheme;
  model.program = options.program;
  const Weights weights(folder, options, model.config);
  if (!weights.are_converted()) require_calibration(options);
  if (options.verify) weights.verify();
  // A given library decides the lengths: what it can hold, and how many tokens it takes at once.
  std::optional<LibraryFacts> facts;
  if (!options.model_lib.empty()) {
    facts = facts_of(options.model_lib, options.scheme);
    require_context(*facts, options, model.config);
    // Asked for by name, the cache's dtype is not the library's to choose: another one is a difference.
    if (options.program.cache_dtype) facts->program.cache_dtype = options.program.cache_dtype;
    model.program = options.program = facts->program;
  }
  Program program = build_program(model.config, options.scheme, options.program);
  weights.require(program.params);
  say_what_is_unused(options, weights.unused(program.params));
  if (!options.scheme.remark.empty()) remark(options, options.scheme.remark);
  if (const auto& stored = model.config.quantization; stored && !stored->unread.empty())
    remark(options, text("not read of quantization_config: ", join(stored->unread, ", ")));
  if (const auto mlc = converted_model(folder); mlc && mlc->devices > 1)
    remark(options,
           text(kMlcConfigFile,
                " is for ",
                mlc->devices,
                " devices (tensor_parallel_shards, pipeline_parallel_stages); the model runs on one"));
  model.limits = facts ? facts->limits : program.limits;
  if (facts) require_same_graph(*facts, options, model.config, program);
  const Library library =
      facts ? Library{options.model_lib, nullptr} : library_of(folder, "run", program, options, model.compile_s);
  model.model_lib = library.path;
  model.vm = machine_of(model.model_lib, options);
  if (library.temporary) options.keep_weights = false;
  load_weights(model, folder, options, weights, program);
  model.size = weights.size(program.params);
  model.specs = std::move(program.params);
  return model;
}

std::optional<Scheme> stored_scheme(const fs::path& folder) {
  const ModelConfig config = read_model_config(folder);
  if (!config.quantization && !GgufFile::is_named_so(folder) && !mlc_checkpoint_scheme(folder)) return {};
  const Checkpoint checkpoint = Checkpoint::open(folder, config);
  return Scheme{.name = checkpoint.scheme_name(),
                .storage = f32,
                .remark = config.quantization ? remark_on(*config.quantization, checkpoint.scheme_name())
                                              : remark_on(activations_of_mlc(folder)),
                .stored = checkpoint.formats()};
}

std::optional<Scheme> implied_scheme(const ModelConfig& config) {
  if (!config.quantization) return {};
  const StoredQuantization& how = *config.quantization;
  const std::string name = scheme_name_of(how);
  return Scheme{.name = name,
                .storage = config.dtype,
                .linear = format_of(how, config.dtype),
                .experts_only = how.method == StoredQuantization::Method::mxfp4,
                .remark = remark_on(how, name)};
}

bool is_converted(const fs::path& folder) {
  return converted_model(folder).has_value() && !mlc_checkpoint_scheme(folder);
}

ModelConfig config_of(const fs::path& folder) {
  ModelConfig config = read_model_config(folder);
  const std::optional<MlcModel> converted = converted_model(folder);
  if (converted && converted->context_window_size)
    config.max_positions = std::min(config.max_positions, *converted->context_window_size);
  return config;
}

/// Of a checkpoint of floats: each as it is, which changes no value. Without weights config.json says what they will be.
static Scheme exact_scheme(const fs::path& folder) {
  const ModelConfig config = read_model_config(folder);
  auto scheme_of = [](DType dtype) { return dtype == f16 ? "f16" : dtype == bf16 ? "bf16" : "f32"; };
  DType dtype = config.dtype;
  std::set<std::string> schemes;
  auto stored = std::make_shared<StoredFormats>();
  if (SafeTensors::are_in(folder)) {
    const Checkpoint checkpoint = Checkpoint::open(folder, config);
    for (const StoredWeight& w : checkpoint.weights()) {
      if (follows_from_config(w.name) || !is_storage_dtype(w.dtype)) continue;
      schemes.insert(scheme_of(dtype = w.dtype));
      stored->plain.emplace(bare_name(w.name), w.dtype);
    }
  }
  if (schemes.size() > 1)
    return {.name = join(std::vector(schemes.begin(), schemes.end()), "+"),
            .storage = f32,
            .stored = std::move(stored),
            .is_exact = true};
  Scheme scheme = parse_scheme(scheme_of(dtype));
  scheme.is_exact = true;
  return scheme;
}

Scheme scheme_for(const fs::path& folder, const std::optional<std::string>& name) {
  const std::optional<MlcModel> converted = is_converted(folder) ? converted_model(folder) : std::nullopt;
  if (const std::optional<Scheme> own = converted ? std::nullopt : stored_scheme(folder)) {
    if (!name) return *own;
    if (std::optional<Scheme> named = stored_scheme_named(*own, *name)) return *std::move(named);
    try {
      return parse_scheme(*name);
    } catch (const Error& e) {
      Reason reason = e.reason;
      reason.hint = text("the checkpoint's own scheme is ", own->name, "; ", reason.hint);
      fail(std::move(reason));
    }
  }
  if (!name && !converted) return exact_scheme(folder);
  Scheme scheme = parse_scheme(name ? *name : converted->quantization);
  if (converted && !have_same_weights(parse_scheme(converted->quantization), scheme))
    fail({.what = text("the weights in ", folder.string(), " are converted to ", converted->quantization),
          .needs = converted->quantization,
          .hint = text("convert the original checkpoint with --quantization ", scheme.name)});
  return scheme;
}

/// Refuses an output that would spoil the checkpoint that it is made from, or another one: a folder with converted weights is
/// read as these alone.
static void require_apart(const fs::path& folder, const fs::path& out) {
  auto place = [](const fs::path& path) {
    fs::path at = fs::weakly_canonical(fs::absolute(path));
    return at.has_filename() ? at : at.parent_path();  // "m/new/.." is "m/" where there is no "new"
  };
  const fs::path in = place(folder), to = place(out);
  auto contains = [](const fs::path& outer, const fs::path& inner) {
    const auto [at, ignored] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
    return at == outer.end();
  };
  const char* how = in == to           ? " is the model's own folder"
                    : contains(to, in) ? " contains the model's folder"
                                       : nullptr;
  if (!how && SafeTensors::are_in(to)) how = " holds another checkpoint";
  if (how)
    fail({.what = text("the output ", out.string(), how),
          .needs = "a folder of its own: converted weights in it would stand for the checkpoint",
          .hint = text("for instance -o ", in.filename().string(), "-MLC")});
}

WeightSize convert_weights(const fs::path& folder, const OpenOptions& options, const fs::path& out,
                           const std::function<void(size_t done, size_t all)>& progress) {
  require_apart(folder, out);
  require_apart(weights_folder(folder, options), out);
  require_calibration(options);
  const Checkpoint checkpoint = Checkpoint::open(weights_folder(folder, options), read_model_config(folder));
  const Program program = program_of(folder, options);
  require_sources(program.params, checkpoint);
  say_what_is_unused(options, unused_tensors(program.params, checkpoint));
  MlcWriter writer(out, options.replace);
  ActivationRanges ranges;
  if (options.scheme.needs_calibration()) ranges = calibrate(folder, *options.calibration, options);
  const size_t all = program.params.size();
  std::vector<Ref<Tensor>> params = make_params(program.params, checkpoint, ranges, [&](size_t done) {
    if (progress) progress(done, all);
  });
  const WeightSize size = weight_size(program.params, checkpoint);
  writer.write(program.params, params, size.weights);
  return size;
}

CompileReport compile_model(const fs::path& folder, const OpenOptions& options, const fs::path& out) {
  const Program program = program_of(folder, options);
  CompiledProgram made = compiled_of(program, read_model_config(folder), options);
  driver::write_library(made.compiled, made.options, out);
  return report_of(std::move(made.compiled));
}

std::vector<int32_t> token_stream_of(const fs::path& folder, const std::string& content, const std::string& source,
                                     TextEnd text_end) {
  Tokenizer tokenizer = load_tokenizer(folder);
  ModelConfig config = read_model_config(folder);
  std::optional<int32_t> end;
  if (!config.eos_token_ids.empty()) end = static_cast<int32_t>(config.eos_token_ids.front());
  require_utf8(content, source);
  return token_stream(tokenizer, content, work_marks(tokenizer, end), text_end);
}

std::vector<int32_t> token_stream_of(const fs::path& folder, const fs::path& text, TextEnd text_end) {
  return token_stream_of(folder, read_file(text), text.string(), text_end);
}

ActivationRanges calibrate(const fs::path& folder, const fs::path& text_file, const OpenOptions& options) {
  OpenOptions exact = options;
  exact.scheme = parse_scheme("f32");
  exact.debug_dump.clear();
  say(options, "calibrating activations");
  ModelConfig config = read_model_config(folder);
  const Weights weights(folder, options, config);
  std::vector<std::string> layers;
  Program program = build_observer(config, exact.program, layers);
  double compile_s = 0;
  const Library library = library_of(folder, "observe", program, exact, compile_s);
  auto vm = machine_of(library.path, options);
  const ActivationRanges none;
  Value params = run_transform(*vm, weights.params(program.params, none, 1), program.params.size());
  std::vector<int32_t> stream = token_stream_of(folder, text_file);
  int64_t length = std::min(kWindowTokens, program.limits.prefill_chunk);
  ActivationRanges ranges;
  Value cache = vm->call("create_kv_cache", {});
  auto* kv = cache.as<runtime::PagedKVCache>();
  const int64_t window_tokens = std::min(kWindowTokens, program.limits.context_window);
  for (const auto& [window, scored] : windows_of(stream, window_tokens, kCalibrationWindows)) {
    kv->clear();
    kv->add_sequence(0);
    for (size_t from = 0; from < window.size(); from += static_cast<size_t>(length)) {
      std::span<const int32_t> chunk =
          window.subspan(from, std::min(window.size() - from, static_cast<size_t>(length)));
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
