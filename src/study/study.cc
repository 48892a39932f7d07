#include "study/study.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <variant>

#include "base/error.h"
#include "engine/corpus.h"
#include "frontend/hf_config.h"
#include "runtime/thread_pool.h"
#include "study/csv.h"
#include "study/json.h"
#include "study/page.h"
#include "study/parts.h"
#include "study/phase.h"
#include "study/sweep.h"
#include "study/tenet_files.h"
#include "study/traces.h"

namespace sator::study {

namespace {

/// Everything that a run is made of, checked before anything takes time.
struct Plan {
  StudyOptions options;  // with text and calibration found
  ModelConfig config;
  std::vector<llm::Scheme> schemes;
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
  if (!o.calibration && fs::is_regular_file(o.model / "calibration.txt")) o.calibration = o.model / "calibration.txt";
  if (!o.text && fs::is_regular_file(o.model / "validation.txt")) o.text = o.model / "validation.txt";
  if (!o.text)
    fail({.what = text(o.model.string(), " has no validation.txt to measure perplexity on"),
          .needs = "a text like those the model was trained on, and not one of them",
          .hint = "pass --text FILE, or --shapes-only to cost without running"});
}

void find_schemes(Plan& plan) {
  const bool chosen = !plan.options.schemes.empty();
  for (const std::string& name : chosen ? plan.options.schemes : llm::default_schemes()) {
    llm::Scheme scheme = llm::parse_scheme(name);
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

void find_chips(Plan& plan) {
  for (const std::string& name : plan.options.chips.empty() ? default_chips() : plan.options.chips) {
    Chip chip = dataflow::described_chip(name, plan.options.changes);
    auto same = std::find_if(plan.chips.begin(), plan.chips.end(), [&](const Chip& c) { return c.name == chip.name; });
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
            .config = read_model_config(options.model),
            .schemes = {},
            .chips = {},
            .chip_texts = {},
            .remarks = {}};
  check_lengths(options, plan.config);
  check_sweep(plan.options, plan.config);
  find_texts(plan.options);
  find_schemes(plan);
  find_chips(plan);
  return plan;
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
                 .layers = std::visit([](const auto& family) { return family.layers; }, plan.config.family),
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
                    .host = host_name(),
                    .version = o.version,
                    .remarks = plan.remarks};
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
    if (o.text) text_ = hex(hash_bytes(read_file(*o.text)));
    if (o.calibration) calibration_ = hex(hash_bytes(read_file(*o.calibration)));
  }
  std::string of_scheme(const llm::Scheme& s) const {
    return text(of(s), "\ntext ", text_, "\nwindows ", plan_.options.windows);
  }
  std::string of_chip(const llm::Scheme& s, size_t chip) const {
    const SweepAxes& sweep = plan_.options.sweep;
    return text(of(s),
                "\nchip ",
                hex(hash_bytes(plan_.chip_texts[chip])),
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
  std::string common_, text_, calibration_;
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

Study run_study(const StudyOptions& options, const Workers& workers, const Progress& progress) {
  const Plan plan = plan_of(options);
  const PartStore parts(options.folder / ".parts");
  Study study = head_of(plan, workers);
  const Keys keys(plan, study);
  for (const std::string& remark : plan.remarks) progress(remark, false);
  for (size_t s = 0; s < plan.schemes.size(); ++s) {
    const llm::Scheme& scheme = plan.schemes[s];
    const std::string where = text("[", s + 1, "/", plan.schemes.size(), "] ", scheme.name);
    const Progress step = [&](const std::string& line, bool passing) { progress(text(where, ": ", line), passing); };
    const SchemeJob job{.scheme = scheme,
                        .options = plan.options,
                        .window_tokens = study.protocol.window_tokens,
                        .decode_context = study.protocol.decode_context};
    try {
      std::optional<SchemeResult> result = parts.find_scheme(scheme.name, keys.of_scheme(scheme));
      if (result) {
        step("measured by an earlier run", false);
      } else {
        result = workers.measure(job, step);
        result->name = scheme.name;
        result->description = llm::describe(scheme);
        parts.keep_scheme(*result, keys.of_scheme(scheme));
      }
      result->chips = cost_scheme(plan, job, keys, parts, workers, step);
      for (ChipResult& chip : result->chips)
        for (const PhaseName& phase : kPhases) add_durations(result->host_calls, phase.name, (chip.*phase.result).rows);
      study.protocol.windows = std::max(study.protocol.windows, result->windows);
      study.schemes.push_back(std::move(*result));
    } catch (const Error& error) {
      Reason reason = error.reason;
      reason.where =
          reason.where.empty() ? text("in scheme ", scheme.name) : text("in scheme ", scheme.name, ", ", reason.where);
      fail(std::move(reason));
    }
  }
  return study;
}

/// Files of an earlier study of other schemes or chips, which would pass for this one's.
static void remove_others(const fs::path& folder, const std::set<fs::path>& keep) {
  static constexpr std::string_view kOurs[] = {".py", ".p", ".m", ".s", ".csv", ".json"};
  std::error_code ignored;
  std::vector<fs::path> old;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, ignored))
    if (entry.is_regular_file() && std::ranges::count(kOurs, entry.path().extension().string()) > 0 &&
        !keep.contains(entry.path()))
      old.push_back(entry.path());
  for (const fs::path& path : old) fs::remove(path, ignored);
}

void write_study(const Study& study, const fs::path& folder, bool traces) {
  write_file(folder / "study.json", to_json(study).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  write_file(folder / "study.csv", study_csv(study));
  write_file(folder / "kernels.csv", kernels_csv(study));
  if (!sweep_table(study).empty())
    write_file(folder / "sweep.csv", sweep_csv(study));
  else
    fs::remove(folder / "sweep.csv");
  std::set<fs::path> written;
  using Files = std::vector<std::pair<std::string, std::string>>;
  for (const Files& files : {schedule_files(study), tenet_files(study), traces ? trace_files(study) : Files{}})
    for (const auto& [name, words] : files) {
      write_file(folder / name, words);
      written.insert(folder / name);
    }
  for (const char* own : {"schedules", "tenet", "chakra"}) remove_others(folder / own, written);
  write_file(folder / "index.html", html_page(study));
}

}  // namespace sator::study
