#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "base/figures.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/progress.h"
#include "engine/prompt.h"
#include "engine/reference_run.h"
#include "engine/task.h"
#include "frontend/hf_config.h"

namespace sator::cli {

namespace {

struct EvalArguments {
  ModelArguments model;
  std::string task;
  std::optional<std::string> reference, reference_scheme, write_reference;
  std::optional<int64_t> items;
};

nlohmann::json as_json(const Share& s) { return {{"value", s.value}, {"low", s.low}, {"high", s.high}}; }
nlohmann::json as_json(const MeanInterval& m) {
  nlohmann::json row = {{"value", m.value}, {"low", nullptr}, {"high", nullptr}};
  if (m.low) row["low"] = *m.low, row["high"] = *m.high;
  return row;
}

std::string line_of(std::string_view name, const std::string& value, const std::string& low, const std::string& high,
                    std::string_view how) {
  return text(pad_right(name, 14), pad_left(value, 12), pad_left(low, 12), pad_left(high, 12), "  ", how, "\n");
}
std::string line_of(std::string_view name, const Share& s) {
  return line_of(name, fixed(s.value, 4), fixed(s.low, 4), fixed(s.high, 4), "Wilson");
}
std::string line_of(std::string_view name, const MeanInterval& m) {
  return line_of(
      name, significant(m.value), or_dash(m.low, significant), or_dash(m.high, significant), "1.96 standard errors");
}

/// Compares each prediction of a run with a reference's, which comes from a file or from a second model that runs beside it.
class Comparison {
 public:
  void begin_item() { kl_ = 0, predictions_ = 0; }
  void add(std::span<const float> reference, std::span<const float> logits) {
    const Divergence d = meter_.measure(reference, softmax_of(reference), logits, softmax_of(logits));
    kl_ += d.kl, same_top_ += d.same_top;
    ++predictions_, ++all_;
  }
  void end_item() { items_.push_back(kl_ / static_cast<double>(predictions_)); }
  MeanInterval kl() const { return mean_interval(items_); }
  Share same_top() const { return wilson(same_top_, all_); }

 private:
  DivergenceMeter meter_;
  std::vector<double> items_;
  double kl_ = 0;
  int64_t predictions_ = 0, same_top_ = 0, all_ = 0;
};

std::string digest_of_task(const Tokenizer& tokenizer, std::span<const TaskItem> items) {
  std::string ids;
  for (const TaskItem& item : items)
    for (const std::string& choice : item.choices) {
      const ContinuationIds encoded = encode_continuation(tokenizer, item.context, item.delimiter + choice);
      for (const auto* part : {&encoded.context, &encoded.continuation}) {
        for (int32_t id : *part) ids += text(id, " ");
        ids += "\n";
      }
    }
  return hex(hash_bytes(ids));
}

nlohmann::json item_as_json(const TaskItem& item, std::span<const ScoredContinuation> scored) {
  nlohmann::json row = {
      {"line", item.line}, {"log_likelihoods", nlohmann::json::array()}, {"greedy", nlohmann::json::array()}};
  for (const ScoredContinuation& s : scored) {
    row["log_likelihoods"].push_back(s.log_likelihood);
    row["greedy"].push_back(s.is_greedy);
  }
  return row;
}

void run(const EvalArguments& a, Streams& io) {
  if (a.reference && a.reference_scheme)
    fail({.what = "--reference beside --reference-scheme", .needs = "one of the two"});
  const fs::path folder = a.model.folder();
  std::vector<TaskItem> items = read_task(read_text_file(a.task, "a task"), a.task);
  if (a.items && *a.items < std::ssize(items)) items.resize(static_cast<size_t>(*a.items));
  const Tokenizer tokenizer = load_tokenizer(folder);
  const std::string digest = digest_of_task(tokenizer, items);
  std::optional<llm::OpenModel> other;
  if (a.reference_scheme) {
    ModelArguments arguments = a.model;
    arguments.quantization = a.reference_scheme;
    other = open(arguments, io);
  }
  llm::OpenModel model = open(a.model, io);
  Session session = model.session();
  const int64_t vocab = model.limits.vocab_size;
  std::optional<ReferenceRun> reference;
  if (a.reference) reference.emplace(*a.reference, vocab, digest);
  std::optional<ReferenceWriter> writer;
  if (a.write_reference) writer.emplace(*a.write_reference, vocab, digest);
  std::optional<Session> other_session;
  if (other) other_session = other->session();

  TaskScore score;
  Comparison comparison;
  int64_t prediction = 0, choices = 0;
  ProgressLines lines(io.notes);
  nlohmann::json rows = nlohmann::json::array();
  for (const TaskItem& item : items) {
    std::vector<std::vector<float>> kept;  // the second model's logits of this item
    if (other_session)
      score_item(*other_session, tokenizer, item, [&](std::span<const float> logits) {
        kept.emplace_back(logits.begin(), logits.end());
      });
    comparison.begin_item();
    size_t at = 0;
    const std::vector<ScoredContinuation> scored =
        score_item(session, tokenizer, item, [&](std::span<const float> logits) {
          if (writer) writer->add(logits);
          if (reference) comparison.add(reference->logits(prediction), logits);
          if (other_session) comparison.add(kept[at++], logits);
          ++prediction;
        });
    comparison.end_item();
    score.add(item, scored);
    choices += std::ssize(scored);
    rows.push_back(item_as_json(item, scored));
    lines(text("scoring items, ", score.items(), " of ", items.size()), true);
  }
  lines.end();
  if (writer) writer->finish();

  io.json = {{"task", a.task},
             {"items", score.items()},
             {"quantization", model.scheme.name},
             {"acc", as_json(score.acc())},
             {"scored", rows}};
  io.out << text(fs::path(a.task).filename().string(),
                 ": ",
                 score.items(),
                 score.is_cloze() ? " clozes" : " multiple choices",
                 ", ",
                 choices,
                 " continuations of ",
                 prediction,
                 " tokens, ",
                 model.scheme.name,
                 "\n");
  io.out << line_of("", "value", "95 % from", "to", "") << line_of("acc", score.acc());
  if (score.is_cloze()) {
    io.json["perplexity"] = as_json(score.perplexity());
    io.out << line_of("perplexity", score.perplexity());
  } else {
    io.json["acc_norm"] = as_json(score.acc_norm());
    io.json["acc_bytes"] = as_json(score.acc_bytes());
    io.out << line_of("acc_norm", score.acc_norm()) << line_of("acc_bytes", score.acc_bytes());
  }
  if (reference || other_session) {
    io.json["kl"] = as_json(comparison.kl());
    io.json["same_top"] = as_json(comparison.same_top());
    io.out << line_of("KL", comparison.kl()) << line_of("same top", comparison.same_top());
  }
  if (a.write_reference)
    io.notes << prediction << " predictions of " << vocab << " logits in " << *a.write_reference << "\n";
}

}  // namespace

Command eval_command() {
  auto a = std::make_shared<EvalArguments>();
  std::vector<Option> options = model_options(a->model);
  auto add = [&](Option option) { options.push_back(std::move(option)); };
  add({.name = "--task FILE",
       .help = "items, one JSON object a line",
       .into = &a->task,
       .required = true,
       .also = {"--tasks"}});
  add({.name = "--items N",
       .help = "only the first N; all unless told",
       .into = &a->items,
       .range = at_least(1),
       .also = {"--limit"}});
  add({.name = "--write-reference FILE",
       .help = "keep the logits of each prediction, 4 bytes each, for --reference",
       .into = &a->write_reference,
       .writes = true});
  add({.name = "--reference FILE",
       .help = "compare with an earlier run: KL and the same most likely token",
       .into = &a->reference});
  add({.name = "--reference-scheme SCHEME",
       .help = "the same with this model under another scheme, run beside it",
       .into = &a->reference_scheme});
  return {.name = "eval",
          .does = "scores a model on multiple choices or clozes",
          .options = std::move(options),
          .run = [a](Streams& io) { run(*a, io); },
          .details =
              "  {\"context\": \"Question: ... Answer:\", \"choices\": [\"a dog\", \"a cat\"], \"gold\": 1}\n"
              "  {\"context\": \"The sun rose in the\", \"continuation\": \" east\"}\n"
              "As lm-evaluation-harness: acc is the choice with the largest log-likelihood; acc_norm the largest per "
              "character, acc_bytes per\n"
              "byte; of clozes acc is whether the model would write the continuation, perplexity exp(-mean "
              "log-likelihood).\n"
              "docs/evaluation.md says how texts are encoded.",
          .also = {"evaluate", "benchmark-tasks", "lm_eval", "score"}};
}

}  // namespace sator::cli
