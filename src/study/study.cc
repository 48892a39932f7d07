#include "study/study.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/build_id.h"
#include "base/digest.h"
#include "base/error.h"
#include "codegen/llvm.h"
#include "dataflow/mapping/precision.h"
#include "engine/corpus.h"
#include "frontend/gguf.h"
#include "frontend/hf_config.h"
#include "llm/open.h"
#include "runtime/thread_pool.h"
#include "study/clock.h"
#include "study/compare.h"
#include "study/csv.h"
#include "study/json.h"
#include "study/page.h"
#include "study/parts.h"
#include "study/phase.h"
#include "study/route_table.h"
#include "study/sweep.h"
#include "study/tenet_files.h"
#include "study/traces.h"

namespace sator::study {

namespace {

constexpr const char* kCommand = "study";  // whose list of files it is

/// Everything that a run is made of, checked before anything takes time.
struct Plan {
  StudyOptions options;  // with text and calibration found
  ModelConfig config;
  std::vector<llm::Scheme> schemes;
  std::optional<llm::Scheme> reference;  // of quality; none where the weights are converted already
  std::vector<Chip> chips;
  std::vector<std::string> chip_texts;  // the files, for keys
  std::vector<std::string> remarks;
};

void check_lengths(const StudyOptions& o, const ModelConfig& config) {
  struct Length {
    const char* option;
    int64_t value;
  };
  for (const Length& l : {Length{"--prompt-len", o.prompt_len},
                          Length{"--gen-len", o.gen_len},
                          Length{"--windows", o.windows},
                          Length{"--threads", o.threads.value_or(1)}})
    if (l.value < 1)
      fail({.what = text(l.option, " ", l.value),
            .needs = "at least 1",
            .hint = text("leave ", l.option, " out for its default")});
  if (o.prompt_len > config.max_positions || o.gen_len > config.max_positions - o.prompt_len)
    fail({.what = text("a prompt of ",
                       o.prompt_len,
                       " and ",
                       o.gen_len,
                       " generated tokens are more than the ",
                       config.max_positions,
                       " positions of the model"),
          .needs = "prompt and generation within the model's context",
          .hint = text("for instance --prompt-len ",
                       std::max<int64_t>(config.max_positions / 2, 1),
                       " --gen-len ",
                       std::max<int64_t>(config.max_positions / 4, 1))});
}

/// Fills in what the options leave open. A context includes the token that its decode step appends.
void check_sweep(StudyOptions& o, const ModelConfig& config) {
  SweepAxes& axes = o.sweep;
  if (axes.empty()) return;
  if (axes.batches.empty()) axes.batches = {1};
  if (axes.contexts.empty()) axes.contexts = {o.prompt_len + (o.gen_len + 1) / 2};
  for (int64_t batch : axes.batches)
    if (batch < 1 || batch > config.max_positions)
      fail({.what = text("--batch ", batch),
            .needs = text("from 1 to ", config.max_positions, " sequences"),
            .hint = "as in --batch 1,4,16"});
  for (int64_t context : axes.contexts)
    if (context < 1 || context > config.max_positions)
      fail({.what = text("--context ", context),
            .needs = text("from 1 to ", config.max_positions, " tokens, the positions of the model"),
            .hint = "as in --context 128,256"});
}

void find_texts(StudyOptions& o) {
  for (const auto& given : {o.text, o.calibration})
    if (given && !fs::is_regular_file(*given))
      fail({.what = text("there is no file ", given->string()), .needs = "a text", .hint = "check the path"});
  if (o.shapes_only) {
    o.text.reset(), o.calibration.reset();
    return;
  }
  const fs::path folder = fs::is_directory(o.model) ? o.model : o.model.parent_path();
  if (!o.calibration && fs::is_regular_file(folder / "calibration.txt")) o.calibration = folder / "calibration.txt";
  if (!o.text && fs::is_regular_file(folder / "validation.txt")) o.text = folder / "validation.txt";
  if (!o.text)
    fail({.what = text(o.model.string(), " has no validation.txt to measure perplexity on"),
          .needs = "a text like those the model was trained on, and not one of them",
          .hint = "pass --text FILE, or --shapes-only to cost without running"});
}

/// The schemes of a folder whose weights are converted: its own, and those with the same weights. The original weights are
/// not there, so neither is f32, which others are compared with.
void find_converted_schemes(Plan& plan) {
  const StudyOptions& o = plan.options;
  if (o.schemes.empty()) plan.schemes.push_back(llm::scheme_for(o.model, std::nullopt));
  for (const std::string& name : o.schemes) {
    llm::Scheme scheme = llm::scheme_for(o.model, name);
    if (std::ranges::find(plan.schemes, scheme.name, &llm::Scheme::name) == plan.schemes.end())
      plan.schemes.push_back(std::move(scheme));
  }
  plan.remarks.push_back(text("the weights are converted to ",
                              llm::scheme_for(o.model, std::nullopt).name,
                              ": other schemes, and the difference to f32, need the original weights"));
}

/// Of a checkpoint that another program quantized: its codes as they are, and other schemes made of their values where they
/// are asked for.
void find_stored_schemes(Plan& plan, const llm::Scheme& own) {
  const StudyOptions& o = plan.options;
  if (o.schemes.empty()) plan.schemes.push_back(own);
  for (const std::string& name : o.schemes) {
    llm::Scheme scheme = llm::scheme_for(o.model, name);
    if (std::ranges::find(plan.schemes, scheme.name, &llm::Scheme::name) == plan.schemes.end())
      plan.schemes.push_back(std::move(scheme));
  }
  if (o.shapes_only) return;
  plan.reference = own;
  plan.remarks.push_back(text("the checkpoint holds codes (",
                              own.name,
                              "): what others are compared with are their values, not the original weights"));
}

/// The defaults, and beside f16 what ratios on chips of 16 bits refer to, if there are such chips.
std::vector<std::string> default_schemes_for(const std::vector<Chip>& chips) {
  std::vector<std::string> names = llm::default_schemes();
  if (std::ranges::any_of(chips, dataflow::multiplies_16_bits_at_speed))
    names.insert(std::ranges::find(names, "f16") + 1, kBaseline16Bit);
  return names;
}

void find_schemes(Plan& plan) {
  if (llm::is_converted(plan.options.model)) return find_converted_schemes(plan);
  // Of codes the file says how each tensor is stored; where there is a configuration alone, nothing does.
  const fs::path& model = plan.options.model;
  const bool has_weights = !plan.options.shapes_only || GgufFile::is_named_so(model) ||
                           fs::exists(model / "model.safetensors") ||
                           fs::exists(model / "model.safetensors.index.json");
  if (const auto own = has_weights ? llm::stored_scheme(model) : std::nullopt) return find_stored_schemes(plan, *own);
  const std::optional<llm::Scheme> implied = has_weights ? std::nullopt : llm::implied_scheme(plan.config);
  if (implied)
    plan.remarks.push_back(
        text("config.json says that the weights are stored as codes, which are not there: ",
             implied->name,
             implied->experts_only ? " is taken for all experts" : " is taken for all linear layers of the blocks"));
  if (!plan.options.shapes_only) plan.reference = llm::parse_scheme("f32");
  const bool chosen = !plan.options.schemes.empty();
  std::vector<std::string> names = chosen ? plan.options.schemes : default_schemes_for(plan.chips);
  if (implied && !chosen) names.insert(names.begin(), implied->name);
  for (const std::string& name : names) {
    const std::optional<llm::Scheme> of_codes = implied ? llm::stored_scheme_named(*implied, name) : std::nullopt;
    llm::Scheme scheme = of_codes ? *of_codes : llm::parse_scheme(name);
    if (std::any_of(plan.schemes.begin(), plan.schemes.end(), [&](const auto& s) { return s.name == scheme.name; }))
      continue;
    if (scheme.needs_calibration() && !plan.options.calibration && !plan.options.shapes_only) {
      if (chosen)
        fail({.what = text(scheme.name, " has static activation scales, and there is no calibration text"),
              .needs = "a text like those the model was trained on, not the one it is evaluated on",
              .hint = "pass --calibration FILE"});
      plan.remarks.push_back(text(scheme.name, " left out: its static activation scales need --calibration FILE"));
      continue;
    }
    plan.schemes.push_back(std::move(scheme));
  }
}

/// Folders of results are called by the chips.
void find_chips(Plan& plan) {
  for (const std::string& name : plan.options.chips.empty() ? default_chips() : plan.options.chips) {
    Chip chip = dataflow::described_chip(name, plan.options.changes);
    check_goal(chip, plan.options.goal);
    if (chip.name.empty() || chip.name.starts_with('.') || chip.name.find('/') != chip.name.npos)
      fail({.what = text("a chip is named ", string_literal(chip.name), ": ", chip.file),
            .needs = "a name that a folder can have: without '/', and not beginning with '.'",
            .hint = "change the name in the file"});
    auto same = std::find_if(plan.chips.begin(), plan.chips.end(), [&](const Chip& c) {
      return lower_case(c.name) == lower_case(chip.name);
    });
    std::string file_text = identity_of(chip);
    if (same != plan.chips.end()) {
      if (plan.chip_texts[static_cast<size_t>(same - plan.chips.begin())] == file_text) continue;
      fail({.what = text("two chips are named ", chip.name, ": ", same->file, " and ", chip.file),
            .needs = "one name per chip",
            .hint = "change the name in one of the files"});
    }
    plan.chip_texts.push_back(std::move(file_text));
    plan.chips.push_back(std::move(chip));
  }
}

Plan plan_of(const StudyOptions& options) {
  Plan plan{.options = options,
            .config = llm::config_of(options.model),
            .schemes = {},
            .reference = {},
            .chips = {},
            .chip_texts = {},
            .remarks = {}};
  check_lengths(options, plan.config);
  check_sweep(plan.options, plan.config);
  find_texts(plan.options);
  find_chips(plan);
  find_schemes(plan);
  return plan;
}

/// Errors: what no study wrote stands where results will go. Names of kernels are not known yet: below the folders of the chips
/// every file counts that ends like theirs.
void require_place(const OwnedFolder& folder, const Plan& plan) {
  std::vector<std::string> names = {
      "study.json", "study.csv", "kernels.csv", "index.html", "tenet/metrics.csv", ".parts/"};
  if (!plan.options.sweep.empty()) names.emplace_back("sweep.csv");
  if (plan.options.routes) names.emplace_back("routes.csv");
  folder.require_free(names);
  std::vector<std::string> below;
  for (const Chip& chip : plan.chips)
    for (const char* kind : {"schedules/", "tenet/", "chakra/"}) below.push_back(kind + chip.name);
  folder.require_free_below(below, {".py", ".p", ".m", ".s", ".json"});
}

std::string name_of_model(const fs::path& folder) {
  std::error_code ignored;
  const fs::path whole = fs::canonical(folder, ignored);
  return (whole.empty() ? folder : whole).filename().string();
}

Study head_of(const Plan& plan, const Workers& workers) {
  const StudyOptions& o = plan.options;
  Study study;
  study.model = {.name = name_of_model(o.model),
                 .folder = o.model.string(),
                 .type = plan.config.model_type,
                 .layers = plan.config.layers,
                 .vocab_size = plan.config.vocab_size,
                 .max_positions = plan.config.max_positions,
                 .parameters = workers.parameters(o)};
  study.protocol = {.shapes_only = o.shapes_only,
                    .text = o.text ? o.text->filename().string() : "",
                    .calibration = o.calibration ? o.calibration->filename().string() : "",
                    .prompt_len = o.prompt_len,
                    .gen_len = o.gen_len,
                    // Steps of the generation attend to prompt_len + 1 ... prompt_len + gen_len tokens.
                    .decode_context = o.prompt_len + (o.gen_len + 1) / 2,
                    .threads = o.threads.value_or(runtime::default_num_threads()),
                    .parallel = o.changes.chips,
                    .objective = name_of(o.goal),
                    .host = host_name(),
                    .version = o.version,
                    .remarks = plan.remarks};
  if (plan.reference) study.protocol.reference = plan.reference->name;
  if (!o.shapes_only) study.protocol.window_tokens = std::min(kWindowTokens, plan.config.max_positions);
  for (const Chip& chip : plan.chips) {
    study.chips.push_back(facts_of(chip));
    study.chips.back().is_host = is_host(chip, study.protocol.threads);
  }
  return study;
}

/// What shaped a part, one fact per line.
class Keys {
 public:
  Keys(const Plan& plan, const Study& study) : plan_(plan) {
    const StudyOptions& o = plan.options;
    common_ = text("model ",
                   model_hash(o.model, o.shapes_only),
                   "\nprogram ",
                   program_id(),
                   "\nllvm ",
                   codegen::llvm_id(),
                   "\nprompt ",
                   o.prompt_len,
                   "\ngeneration ",
                   o.gen_len,
                   "\nshapes ",
                   o.shapes_only,
                   "\nhost ",
                   study.protocol.host,
                   "\nthreads ",
                   study.protocol.threads);
    reference_ = study.protocol.reference;
    if (o.text) text_ = digest_of_file(*o.text);
    if (o.calibration) calibration_ = digest_of_file(*o.calibration);
  }
  std::string of_scheme(const llm::Scheme& s) const {
    return text(of(s), "\ntext ", text_, "\nwindows ", plan_.options.windows, "\nreference ", reference_);
  }
  /// Of the speeds of any schemes.
  std::string of_speeds() const { return text(common_, "\ncalibration ", calibration_); }
  std::string of_chip(const llm::Scheme& s, size_t chip) const {
    const SweepAxes& sweep = plan_.options.sweep;
    return text(of(s),
                "\nchip ",
                digest_of(plan_.chip_texts[chip]),
                "\nobjective ",
                name_of(plan_.options.goal),
                "\nsweep ",
                join(sweep.batches, ","),
                " x ",
                join(sweep.contexts, ","));
  }

 private:
  std::string of(const llm::Scheme& s) const {
    return text(common_, "\nscheme ", s.name, "\ncalibration ", s.needs_calibration() ? calibration_ : "");
  }
  const Plan& plan_;
  std::string common_, text_, calibration_, reference_;
};

/// The scheme's results on all chips of the plan: those of earlier runs, the others costed now.
std::vector<ChipResult> cost_scheme(const Plan& plan, const SchemeJob& job, const Keys& keys, const PartStore& parts,
                                    const Workers& workers, const Progress& progress) {
  std::vector<ChipResult> results(plan.chips.size());
  std::vector<size_t> missing;
  std::vector<Chip> to_cost;
  for (size_t c = 0; c < plan.chips.size(); ++c) {
    if (auto known = parts.find_chip(job.scheme.name, plan.chips[c].name, keys.of_chip(job.scheme, c)))
      results[c] = std::move(*known);
    else
      missing.push_back(c), to_cost.push_back(plan.chips[c]);
  }
  if (missing.empty()) return results;
  std::vector<ChipResult> costed = workers.cost(job, to_cost, progress);
  if (costed.size() != missing.size()) internal_error("costs came back for another number of chips");
  for (size_t i = 0; i < missing.size(); ++i) {
    parts.keep_chip(job.scheme.name, costed[i], keys.of_chip(job.scheme, missing[i]));
    results[missing[i]] = std::move(costed[i]);
  }
  return results;
}

}  // namespace

const std::vector<std::string>& default_chips() {
  static const std::vector<std::string> names = {"tpuv1", "gemmini16", "edge_npu32"};
  return names;
}

/// An error of a scheme, with its name.
[[noreturn]] static void fail_in(const std::string& scheme, Reason reason) {
  reason.where = reason.where.empty() ? text("in scheme ", scheme) : text("in scheme ", scheme, ", ", reason.where);
  fail(std::move(reason));
}

/// Takes over the figures of speed.
static void add_speed(SchemeResult& scheme, const SchemeResult& speed) {
  scheme.host_prefill = speed.host_prefill;
  scheme.host_decode = speed.host_decode;
  scheme.load_s = speed.load_s;
  scheme.host_calls = speed.host_calls;
}

/// The schemes' own figures, without chips: those of earlier runs, the others measured now.
static std::vector<SchemeResult> measured_schemes(const Plan& plan, Study& study, const Keys& keys,
                                                  const PartStore& parts, const Workers& workers,
                                                  const Progress& progress) {
  Protocol& protocol = study.protocol;
  MeasureJob job{.options = plan.options,
                 .requests = {},
                 .reference = plan.reference,
                 .window_tokens = protocol.window_tokens,
                 .decode_context = protocol.decode_context,
                 .memory_bytes = {}};
  std::vector<SchemeResult> results(plan.schemes.size());
  std::vector<std::string> names;
  for (const llm::Scheme& s : plan.schemes) names.push_back(s.name);
  std::optional<SpeedRun> speeds;
  if (!plan.options.shapes_only) speeds = parts.find_speeds(names, keys.of_speeds(), plan.options.speed_age_s);
  std::vector<std::string> known;
  for (size_t s = 0; s < names.size(); ++s) {
    std::optional<SchemeResult> quality = parts.find_scheme(names[s], keys.of_scheme(plan.schemes[s]));
    if (quality) known.push_back(names[s]);
    const bool speed = !speeds && !plan.options.shapes_only;
    if (!quality || speed) job.requests.push_back({plan.schemes[s], !quality, speed});
    if (quality) results[s] = std::move(*quality);
  }
  if (!known.empty()) progress(text("quality measured by an earlier run: ", join(known, ", ")), false);
  if (speeds)
    progress(
        text("speeds here measured ", ago_words(*seconds_since(speeds->measured_at)), "; --again measures them anew"),
        false);
  std::vector<Measured> failed;
  if (!job.requests.empty()) {
    SpeedRun now{.schemes = {}, .measured_at = utc_now(), .rounds = 0};
    auto take = [&](Measured m) {
      const auto s = static_cast<size_t>(std::ranges::find(names, m.scheme) - names.begin());
      if (s == names.size()) internal_error(text("measured is ", m.scheme, ", which was not asked for"));
      if (m.failed) return failed.push_back(std::move(m));
      if (m.speed) now.schemes.push_back(std::move(*m.speed));
      if (!m.quality) return;
      results[s] = std::move(*m.quality);
      results[s].name = names[s];
      results[s].description = llm::describe(plan.schemes[s]);
      parts.keep_scheme(results[s], keys.of_scheme(plan.schemes[s]));
    };
    try {
      now.rounds = workers.measure(job, take, progress);
    } catch (const Error& error) {
      fail_in(job.reference ? job.reference->name : job.requests.front().scheme.name, error.reason);
    }
    if (!failed.empty()) fail_in(failed.front().scheme, *failed.front().failed);
    if (!speeds && !plan.options.shapes_only) {
      parts.keep_speeds(now, keys.of_speeds());
      speeds = std::move(now);
    }
  }
  if (speeds) {
    protocol.measured_at = speeds->measured_at;
    protocol.rounds = speeds->rounds;
    for (const SchemeResult& speed : speeds->schemes)
      if (const auto at = std::ranges::find(names, speed.name); at != names.end())
        add_speed(results[static_cast<size_t>(at - names.begin())], speed);
  }
  return results;
}

Study run_study(const StudyOptions& options, const Workers& workers, const Progress& progress) {
  const Plan plan = plan_of(options);
  const OwnedFolder folder(options.folder, kCommand, options.replace);
  require_place(folder, plan);
  const PartStore parts(options.folder / ".parts", [&](const std::string& remark) { progress(remark, false); });
  Study study = head_of(plan, workers);
  const Keys keys(plan, study);
  for (const std::string& remark : plan.remarks) progress(remark, false);
  std::vector<SchemeResult> results = measured_schemes(plan, study, keys, parts, workers, progress);
  for (size_t s = 0; s < plan.schemes.size(); ++s) {
    const llm::Scheme& scheme = plan.schemes[s];
    const std::string where = text("[", s + 1, "/", plan.schemes.size(), "] ", scheme.name);
    const Progress step = [&](const std::string& line, bool passing) { progress(text(where, ": ", line), passing); };
    const SchemeJob job{.scheme = scheme, .options = plan.options, .decode_context = study.protocol.decode_context};
    SchemeResult& result = results[s];
    try {
      result.chips = cost_scheme(plan, job, keys, parts, workers, step);
    } catch (const Error& error) {
      fail_in(scheme.name, error.reason);
    }
    for (ChipResult& chip : result.chips)
      for (const PhaseName& phase : kPhases) add_durations(result.host_calls, phase.name, (chip.*phase.result).rows);
    study.protocol.windows = std::max(study.protocol.windows, result.windows);
    study.schemes.push_back(std::move(result));
  }
  return study;
}

void write_study(const Study& study, const fs::path& folder, const WriteOptions& options) {
  OwnedFolder::Files files = {{"study.json", to_json(study).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"},
                              {"study.csv", study_csv(study)},
                              {"kernels.csv", kernels_csv(study)}};
  if (!sweep_table(study).empty()) files.emplace_back("sweep.csv", sweep_csv(study));
  if (!study.routes.empty()) files.emplace_back("routes.csv", routes_csv(study.routes));
  for (OwnedFolder::Files more :
       {schedule_files(study), tenet_files(study), options.traces ? trace_files(study) : OwnedFolder::Files{}})
    files.insert(files.end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
  files.emplace_back("index.html", html_page(study));  // last: who sees it finds the others
  OwnedFolder(folder, kCommand, options.replace).replace(files);
}

}  // namespace sator::study
