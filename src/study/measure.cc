#include "study/measure.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <set>

#include "base/error.h"
#include "engine/evaluate.h"
#include "frontend/hf_config.h"
#include "llm/mlc_weights.h"
#include "llm/open.h"
#include "llm/program.h"
#include "runtime/profiler.h"
#include "study/memory_room.h"
#include "study/speed.h"

namespace sator::study {

namespace {

/// Elements of the weights that a checkpoint of this configuration has: a tied head is the embedding.
int64_t implied_parameters(const ModelConfig& config) {
  const llm::Program program = llm::build_program(config, llm::parse_scheme("f32"), {.alike_once = true});
  int64_t count = 0;
  std::set<llm::WeightSource> counted;
  for (const llm::ParamSpec& spec : program.params) {
    if (!counted.insert(spec.source).second) continue;
    int64_t elements = program.repeats.times(spec.name);
    for (int64_t d : spec.shape) elements *= d;
    count += elements;
  }
  return count;
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
std::vector<HostCall> calls_of(Session& session, const MeasureJob& job) {
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

/// A scheme that is open.
struct Running {
  const MeasureJob::Request* request = nullptr;
  llm::OpenModel model;
  std::optional<Reason> failed;
};

/// What was thrown, as a reason; an internal error goes on.
Reason thrown_reason() {
  try {
    throw;
  } catch (const Error& error) {
    return error.reason;
  } catch (const std::bad_alloc&) {
    return {.what = "memory ran out", .needs = "room for the model and its workspace", .hint = "close other programs"};
  }
}

llm::OpenModel open_scheme(const MeasureJob& job, const llm::Scheme& scheme, const Ref<runtime::ThreadPool>& pool,
                           const Progress& progress) {
  llm::OpenOptions open{.scheme = scheme,
                        .pool = pool,
                        .calibration = job.options.calibration,
                        .keep_weights = false};  // loads are timed alike
  open.progress = [&](const std::string& what) { progress(text(scheme.name, ": ", what), true); };
  return llm::open_model(job.options.model, open);
}

/// A model and the schemes beside it that memory holds.
class OpenSchemes {
 public:
  OpenSchemes(const MeasureJob& job, const Ref<runtime::ThreadPool>& pool, const Progress& progress)
      : job_(job), pool_(pool), progress_(progress) {}

  /// Opens the reference and then the requests from the first on; at least one beside it. Returns how many.
  size_t open(const MeasureJob::Request* reference, std::span<const MeasureJob::Request* const> requests) {
    if (reference) {
      has_room_for(reference->scheme);
      models_.push_back({reference, open_scheme(job_, reference->scheme, pool_, progress_), {}});
    }
    size_t taken = 0;
    for (const MeasureJob::Request* request : requests) {
      if (!has_room_for(request->scheme) && taken > 0) break;
      ++taken;
      try {
        models_.push_back({request, open_scheme(job_, request->scheme, pool_, progress_), {}});
      } catch (const InternalError&) {
        throw;
      } catch (...) {
        failures_.push_back({.scheme = request->scheme.name, .quality = {}, .speed = {}, .failed = thrown_reason()});
      }
    }
    for (Running& r : models_) sessions_.push_back(r.model.session());
    return taken;
  }

  std::vector<Running>& models() { return models_; }
  std::vector<Session>& sessions() { return sessions_; }
  const std::vector<Measured>& failures() const { return failures_; }

 private:
  /// Counts the scheme in.
  bool has_room_for(const llm::Scheme& scheme) {
    const int64_t bytes = bytes_to_open(job_.options.model, scheme);
    taken_bytes_ += bytes;
    if (job_.memory_bytes) return taken_bytes_ <= *job_.memory_bytes;
    return bytes + bytes / 8 <= memory_room_bytes();
  }

  const MeasureJob& job_;
  const Ref<runtime::ThreadPool>& pool_;
  const Progress& progress_;
  std::vector<Running> models_;
  std::vector<Session> sessions_;
  std::vector<Measured> failures_;
  int64_t taken_bytes_ = 0;
};

/// A prompt and a generation, timed once. A short prompt runs several times: a few milliseconds are not measured well.
SpeedProbe probe_of(Session& session, const MeasureJob& job) {
  const int64_t prompt = job.options.prompt_len, generated = job.options.gen_len;
  constexpr double kLong_s = 0.04;
  const double first = measure_prefill(session, prompt, {.repeats = 1});
  const double runs = std::ceil(kLong_s * first / static_cast<double>(prompt));
  const int repeats = static_cast<int>(std::clamp(runs, 1.0, 9.0));
  return [&session, prompt, generated, repeats]() -> std::array<double, 2> {
    return {measure_prefill(session, prompt, {.repeats = repeats, .warm_up = false}),
            measure_decode(session, prompt, generated, {.repeats = 1, .warm_up = false})};
  };
}

void measure_speeds(OpenSchemes& group, const MeasureJob& job, const TakeMeasured& take, const Progress& progress) {
  if (std::ranges::none_of(group.models(), [](const Running& r) { return r.request->speed; })) return;
  // An evaluation that failed ends the study, in its own words.
  if (std::ranges::any_of(group.models(), [](const Running& r) { return r.failed.has_value(); })) return;
  progress("measuring speeds in turns", true);
  std::vector<SpeedProbe> probes;
  for (Session& session : group.sessions()) probes.push_back(probe_of(session, job));
  const auto speeds = measure_in_turns(probes);
  for (size_t i = 0; i < speeds.size(); ++i) {
    const Running& r = group.models()[i];
    if (!r.request->speed) continue;
    SchemeResult result{.name = r.request->scheme.name};
    result.host_prefill = speeds[i][0];
    result.host_decode = speeds[i][1];
    result.load_s = r.model.load_s;
    result.host_calls = calls_of(group.sessions()[i], job);
    take({.scheme = result.name, .quality = {}, .speed = result, .failed = {}});
  }
}

/// What a scheme's windows say, beside those of the reference.
SchemeResult quality_of(const Running& r, const ComparedQuality& own, const ComparedQuality* reference) {
  SchemeResult result{.name = r.request->scheme.name};
  result.weight_bytes = r.model.size.bytes;
  result.parameters = r.model.size.weights;
  result.bits_per_weight = r.model.size.bits_per_weight();
  result.perplexity = own.perplexity.perplexity();
  result.standard_error = own.perplexity.standard_error();
  result.windows = own.perplexity.windows();
  result.predictions = own.perplexity.predictions();
  result.window_nats = own.perplexity.window_means();
  if (reference)
    result.compared =
        Compared{.perplexity = perplexity_difference(result.window_nats, reference->perplexity.window_means()),
                 .kl = mean_over(own.window_kl),
                 .same_top = static_cast<double>(own.same_top) / static_cast<double>(result.predictions)};
  return result;
}

void measure_quality(OpenSchemes& group, const MeasureJob& job, std::span<const Window> windows,
                     const TakeMeasured& take, const Progress& progress) {
  std::vector<Session> sessions;
  std::vector<Running*> models;
  std::vector<Session*> lent;  // compared side by side, they lie in a row
  for (size_t i = 0; i < group.models().size(); ++i) {
    if (!group.models()[i].request->quality && !(i == 0 && job.reference)) continue;
    models.push_back(&group.models()[i]);
    lent.push_back(&group.sessions()[i]);
  }
  if (std::ranges::none_of(models, [](const Running* r) { return r->request->quality; })) return;
  for (Session* s : lent) sessions.push_back(std::move(*s));
  const auto all = static_cast<int64_t>(windows.size());
  const auto schemes = static_cast<int64_t>(models.size());
  const std::vector<ComparedQuality> qualities = compare_quality(
      sessions,
      windows,
      [&](int64_t done) {
        progress(
            text("perplexity of ", schemes, schemes == 1 ? " scheme, " : " schemes, ", done, " of ", all, " windows"),
            true);
      },
      [&](size_t s) { models[s]->failed = thrown_reason(); });
  for (size_t i = 0; i < sessions.size(); ++i) *lent[i] = std::move(sessions[i]);
  for (size_t i = 0; i < models.size(); ++i) {
    Measured done{.scheme = models[i]->request->scheme.name, .quality = {}, .speed = {}, .failed = models[i]->failed};
    if (!models[i]->request->quality) continue;
    if (!done.failed)
      done.quality = quality_of(*models[i], qualities[i], i > 0 && job.reference ? &qualities[0] : nullptr);
    take(std::move(done));
  }
}

}  // namespace

SchemeResult sizes_of_shapes(const fs::path& model, const llm::Scheme& scheme) {
  const ModelConfig config = read_model_config(model);
  SchemeResult result;
  result.weight_bytes = llm::weight_bytes(llm::build_program(config, scheme, {.alike_once = true}));
  result.parameters = implied_parameters(config);
  result.bits_per_weight = static_cast<double>(result.weight_bytes) * 8 / static_cast<double>(result.parameters);
  return result;
}

int64_t measure_schemes(const MeasureJob& job, const TakeMeasured& take, const Progress& progress) {
  if (job.options.shapes_only) {
    for (const MeasureJob::Request& r : job.requests)
      take({.scheme = r.scheme.name,
            .quality = sizes_of_shapes(job.options.model, r.scheme),
            .speed = {},
            .failed = {}});
    return 0;
  }
  const std::vector<int32_t> stream = llm::token_stream_of(job.options.model, *job.options.text);
  const std::vector<Window> windows = windows_of(stream, job.window_tokens, job.options.windows);
  const auto pool = runtime::ThreadPool::create(static_cast<int>(job.options.threads.value_or(0)));
  // The reference is asked for, or runs beside what is; without one, the first request stands there alone.
  const MeasureJob::Request unasked{.scheme = job.reference.value_or(llm::Scheme{}), .quality = false, .speed = false};
  const MeasureJob::Request* reference = job.reference ? &unasked : nullptr;
  std::vector<const MeasureJob::Request*> left;
  for (const MeasureJob::Request& r : job.requests)
    if (job.reference && r.scheme.name == job.reference->name)
      reference = &r;
    else
      left.push_back(&r);
  const bool compares = std::ranges::any_of(left, [](const auto* r) { return r->quality; });
  size_t groups = 0;
  do {
    OpenSchemes group(job, pool, progress);
    const bool beside = reference && (reference != &unasked || compares || groups > 0);
    const size_t taken = group.open(beside ? reference : nullptr, left);
    for (const Measured& failure : group.failures()) take(failure);
    measure_quality(group, job, windows, take, progress);  // kept as soon as it is known, an interruption may follow
    measure_speeds(group, job, take, progress);
    left.erase(left.begin(), left.begin() + static_cast<ptrdiff_t>(taken));
    if (!left.empty())
      progress(text("memory holds ", group.models().size(), " schemes at a time: the others follow"), false);
    if (reference) reference = &unasked;  // it is measured; beside further groups it runs for comparison
    ++groups;
  } while (!left.empty());
  return kRounds;
}

int64_t count_parameters(const StudyOptions& options) {
  const ModelConfig config = read_model_config(options.model);
  if (options.shapes_only) return implied_parameters(config);
  if (llm::MlcWeights::is_in(options.model)) return llm::MlcWeights::open(options.model).original_weights();
  const std::vector<llm::ParamSpec> specs = llm::build_program(config, llm::parse_scheme("f32")).params;
  return llm::weight_size(specs, llm::Checkpoint::open(options.model, config)).weights;
}

}  // namespace sator::study
