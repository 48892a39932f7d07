#include "study/measure.h"

#include <algorithm>
#include <set>

#include "engine/evaluate.h"
#include "frontend/hf_config.h"
#include "llm/open.h"
#include "llm/program.h"
#include "runtime/profiler.h"

namespace sator::study {

namespace {

/// The parameters of a program that is built from config.json alone.
std::vector<llm::ParamSpec> specs_of(const ModelConfig& config, const llm::Scheme& scheme) {
  return llm::build_program(config, scheme, [&](const auto&...) { return config.dtype.value_or(f32); }).params;
}

/// Elements of the weights that a checkpoint of this configuration has: a tied head is the embedding.
int64_t implied_parameters(const ModelConfig& config) {
  int64_t count = 0;
  std::set<llm::WeightSource> counted;
  for (const llm::ParamSpec& spec : specs_of(config, llm::parse_scheme("f32"))) {
    if (!counted.insert(spec.source).second) continue;
    int64_t elements = 1;
    for (int64_t d : spec.shape) elements *= d;
    count += elements;
  }
  return count;
}

SchemeResult sizes_of_shapes(const SchemeJob& job) {
  const ModelConfig config = read_model_config(job.options.model);
  SchemeResult result;
  for (const llm::ParamSpec& spec : specs_of(config, job.scheme)) result.weight_bytes += spec.bytes();
  result.parameters = implied_parameters(config);
  result.bits_per_weight = static_cast<double>(result.weight_bytes) * 8 / static_cast<double>(result.parameters);
  return result;
}

/// The kernel calls that `step` makes, each with the median duration of a few runs; `prepare` runs before each.
void record_calls(Session& session, std::string_view phase, FunctionRef<void()> prepare, FunctionRef<void()> step,
                  std::vector<HostCall>& calls) {
  constexpr int kRuns = 3;
  std::vector<std::vector<HostCall>> runs;
  for (int r = 0; r < kRuns; ++r) {
    prepare();
    runtime::Profiler profiler(session.vm());
    profiler.time([&] { step(); });
    std::vector<HostCall>& run = runs.emplace_back();
    for (const runtime::CallRecord& record : profiler.take().records)
      if (record.is_kernel) run.push_back({std::string(phase), record.function, record.duration_us});
    if (run.size() != runs.front().size()) return;  // not the same calls
  }
  for (size_t c = 0; c < runs.front().size(); ++c) {
    std::vector<double> durations;
    for (const std::vector<HostCall>& run : runs) durations.push_back(run[c].duration_us);
    std::nth_element(durations.begin(), durations.begin() + kRuns / 2, durations.end());
    calls.push_back(runs.front()[c]);
    calls.back().duration_us = durations[kRuns / 2];
  }
}

/// The calls of both phases. A prompt of several chunks is left out: its kernels have several sizes each.
std::vector<HostCall> calls_of(Session& session, const SchemeJob& job) {
  std::vector<HostCall> calls;
  const std::vector<int32_t> ids(static_cast<size_t>(std::max(job.options.prompt_len, job.decode_context)), 0);
  const std::span<const int32_t> all(ids);
  if (job.options.prompt_len <= session.limits().prefill_chunk)
    record_calls(
        session,
        "prefill",
        [&] { session.reset(); },
        [&] { session.append(all.first(static_cast<size_t>(job.options.prompt_len))); },
        calls);
  record_calls(
      session,
      "decode",
      [&] {
        session.reset();
        if (job.decode_context > 1) session.append(all.first(static_cast<size_t>(job.decode_context - 1)));
      },
      [&] { session.append(all.first(1)); },
      calls);
  session.reset();
  return calls;
}

}  // namespace

SchemeResult measure_scheme(const SchemeJob& job, const Progress& progress) {
  if (job.options.shapes_only) return sizes_of_shapes(job);
  llm::OpenOptions open{.scheme = job.scheme, .threads = job.options.threads, .calibration = job.options.calibration};
  open.progress = [&](const std::string& what) { progress(what, true); };
  const llm::OpenModel model = llm::open_model(job.options.model, open);
  SchemeResult result;
  result.weight_bytes = model.size.bytes;
  result.parameters = model.size.weights;
  result.bits_per_weight = model.size.bits_per_weight();
  result.load_s = model.load_s;

  Session session = model.session();
  progress("measuring speed", true);
  result.host_prefill_tokens_per_s = measure_prefill(session, job.options.prompt_len, {});
  result.host_decode_tokens_per_s = measure_decode(session, job.options.prompt_len, job.options.gen_len, {});

  result.host_calls = calls_of(session, job);

  const std::vector<int32_t> stream = llm::token_stream_of(job.options.model, *job.options.text);
  const auto windows = windows_of(stream, job.window_tokens, job.options.windows);
  const Perplexity perplexity = evaluate_perplexity(session, windows, [&](int64_t done) {
    progress(text("perplexity, ", done, " of ", static_cast<int64_t>(windows.size()), " windows"), true);
  });
  result.perplexity = perplexity.perplexity();
  result.standard_error = perplexity.standard_error();
  result.windows = perplexity.windows();
  result.predictions = perplexity.predictions();
  return result;
}

int64_t count_parameters(const StudyOptions& options) {
  const ModelConfig config = read_model_config(options.model);
  if (options.shapes_only) return implied_parameters(config);
  const llm::Scheme exact = llm::parse_scheme("f32");
  return llm::weight_size(specs_of(config, exact), SafeTensors::open_folder(options.model)).weights;
}

}  // namespace sator::study
