#include "study/measure.h"

#include <set>

#include "engine/evaluate.h"
#include "frontend/hf_config.h"
#include "llm/open.h"
#include "llm/program.h"

namespace sator::study {

namespace {

/// The parameters of a program that is built from config.json alone.
std::vector<llm::ParamSpec> specs_of(const ModelConfig& config, const llm::Scheme& scheme) {
  return llm::build_program(config, scheme, [&](const std::string&) { return config.dtype.value_or(f32); }).params;
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
