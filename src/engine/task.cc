#include "engine/task.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/figures.h"
#include "engine/likelihood.h"
#include "engine/statistics.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {

constexpr double kNormal95 = 1.959963984540054;  // of a normal distribution 95 % lie within so many standard deviations

std::optional<JsonAt> first_of(const JsonAt& row, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (auto at = row.find(name)) return at;
  return {};
}

TaskItem read_item(const JsonAt& row, int64_t line) {
  constexpr std::string_view kNames[] = {"context", "query", "choices", "gold", "label", "delimiter", "continuation"};
  if (!row.is_object()) row.fail("is no object", "an item: {\"context\": ..., \"choices\": [...], \"gold\": 0}");
  row.each_member([&](const std::string& name, const JsonAt& at) {
    if (std::ranges::count(kNames, name) == 0) at.fail("is not known", text("one of ", join(kNames, ", ")));
  });
  TaskItem item{.line = line};
  const auto context = first_of(row, {"context", "query"});
  if (!context) row.fail("has no context", "\"context\": what stands before");
  item.context = context->string();
  if (auto continuation = row.find("continuation")) {
    if (row.find("choices")) row.fail("has choices and a continuation", "one of the two");
    item.is_cloze = true;
    item.choices = {continuation->string()};
    item.gold = {0};
    item.delimiter.clear();
    if (item.choices[0].empty()) continuation->fail("is empty", "a text of one character or more");
    return item;
  }
  item.delimiter = row.string_or("delimiter", " ");
  row.at("choices").each([&](const JsonAt& at) {
    if (at.string().empty()) at.fail("is empty", "a text of one character or more");
    item.choices.push_back(at.string());
  });
  const auto gold = first_of(row, {"gold", "label"});
  if (!gold) row.fail("has no gold", "\"gold\": the index of the right choice, from 0");
  const int64_t last = std::ssize(item.choices) - 1;
  if (last < 0) row.at("choices").fail("is empty", "one choice or more");
  if (gold->is_array())
    gold->each([&](const JsonAt& at) { item.gold.push_back(at.integer(0, last)); });
  else
    item.gold.push_back(gold->integer(0, last));
  if (item.gold.empty()) gold->fail("is empty", "the index of a right choice");
  return item;
}

int64_t characters_in(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

/// Where the text without white space at its end ends.
size_t end_without_space(std::string_view text) {
  size_t end = 0;
  for (size_t i = 0; i < text.size();)
    if (!is_white_space(next_char(text, i))) end = i;
  return end;
}

/// Encodes as a Hugging Face tokenizer does unless told otherwise.
std::vector<int32_t> encode_as_text(const Tokenizer& tokenizer, const std::string& text,
                                    std::optional<int32_t> prefix) {
  const std::string mark = prefix ? tokenizer.decode({&*prefix, 1}) : "";
  return tokenizer.encode(text, mark.empty() || !text.starts_with(mark));
}

size_t largest(std::span<const double> of) { return static_cast<size_t>(std::ranges::max_element(of) - of.begin()); }

}  // namespace

std::vector<TaskItem> read_task(const std::string& text_of_file, const std::string& source) {
  std::vector<TaskItem> items;
  int64_t number = 0;
  for (std::string_view line : split(text_of_file, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const std::string where = text(source, " line ", number);
    const Json row = parse_json(line, where);
    items.push_back(read_item(JsonAt(row, where), number));
    if (items.back().is_cloze != items.front().is_cloze)
      fail({.what =
                text(where, " is ", items.back().is_cloze ? "a cloze" : "a multiple choice", ", the first item is not"),
            .needs = "items of one kind in a file"});
  }
  if (items.empty())
    fail({.what = text(source, " has no item"),
          .needs = "a line for each: {\"context\": ..., \"choices\": [...], \"gold\": 0}, or {\"context\": ..., "
                   "\"continuation\": ...}"});
  return items;
}

ContinuationIds encode_continuation(const Tokenizer& tokenizer, const std::string& context,
                                    const std::string& continuation) {
  const std::optional<int32_t> prefix = tokenizer.bos_id() ? tokenizer.bos_id() : tokenizer.eos_id();
  const size_t end = end_without_space(context);
  const std::string before = context.substr(0, end), behind = context.substr(end) + continuation;
  ContinuationIds out;
  if (before.empty()) {
    if (!prefix)
      fail({.what = "the context is empty, and the tokenizer names no token that texts begin or end with",
            .needs = "a context of one character or more"});
    out.continuation = tokenizer.encode(behind);
    // A continuation that begins with the mark itself has it as its context.
    out.context = {*prefix};
    if (!out.continuation.empty() && out.continuation[0] == *prefix) out.continuation.erase(out.continuation.begin());
  } else {
    out.context = encode_as_text(tokenizer, before, prefix);
    const std::vector<int32_t> whole = encode_as_text(tokenizer, before + behind, prefix);
    out.continuation.assign(whole.begin() + std::min(std::ssize(out.context), std::ssize(whole)), whole.end());
  }
  if (out.context.empty() || out.continuation.empty())
    fail({.what = text(string_literal(behind), " is no token of its own behind ", string_literal(before)),
          .needs = "a continuation that the tokenizer does not join with the context"});
  return out;
}

std::vector<ScoredContinuation> score_item(Session& session, const Tokenizer& tokenizer, const TaskItem& item,
                                           LogitVisitor visit) {
  std::vector<ScoredContinuation> scored;
  const int64_t window = session.limits().context_window;
  session.reset();
  std::vector<int32_t> held;
  for (const std::string& choice : item.choices) {
    ContinuationIds ids;
    try {
      ids = encode_continuation(tokenizer, item.context, item.delimiter + choice);
    } catch (const Error& e) {
      Reason reason = e.reason;
      reason.where = text("line ", item.line, " of the task");
      fail(std::move(reason));
    }
    const int64_t length = std::ssize(ids.continuation);
    if (length > window)
      fail({.what = text("line ",
                         item.line,
                         " of the task: a continuation has ",
                         counted(length, "token"),
                         ", the context window ",
                         window),
            .needs = "continuations that fit"});
    std::vector<int32_t> input = ids.context;
    input.insert(input.end(), ids.continuation.begin(), ids.continuation.end() - 1);
    if (std::ssize(input) > window) input.erase(input.begin(), input.end() - window);
    // What the session holds of an earlier choice stays, but for the token whose logits are the first that count.
    const int64_t first = std::ssize(input) - length;
    const auto common = std::ranges::mismatch(held, input).in1 - held.begin();
    session.keep(std::min<int64_t>(common, first));
    if (session.position() < first)
      session.append(std::span(input).subspan(static_cast<size_t>(session.position()),
                                              static_cast<size_t>(first - session.position())));
    ScoredContinuation result{.tokens = length};
    session.append_all(std::span(input).subspan(static_cast<size_t>(first)),
                       [&](int64_t i, std::span<const float> logits) {
                         const int32_t target = ids.continuation[static_cast<size_t>(i)];
                         const Softmax softmax = softmax_of(logits);
                         result.log_likelihood -= negative_log_likelihood(softmax, logits, target);
                         result.is_greedy = result.is_greedy && softmax.top == target;
                         visit(logits);
                       });
    held = std::move(input);
    scored.push_back(result);
  }
  return scored;
}

Share wilson(int64_t hits, int64_t of) {
  const auto n = static_cast<double>(of);
  const double p = static_cast<double>(hits) / n, z2 = kNormal95 * kNormal95;
  const double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kNormal95 / (1 + z2 / n) * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  return {.value = p,
          .low = hits == 0 ? 0 : std::max(0.0, middle - half),
          .high = hits == of ? 1 : std::min(1.0, middle + half)};
}

MeanInterval mean_interval(std::span<const double> figures) {
  const WindowMean mean = mean_over(figures);
  if (!mean.error) return {.value = mean.value};
  return {
      .value = mean.value, .low = mean.value - kNormal95 * *mean.error, .high = mean.value + kNormal95 * *mean.error};
}

void TaskScore::add(const TaskItem& item, std::span<const ScoredContinuation> scored) {
  is_cloze_ = item.is_cloze;
  ++items_;
  if (item.is_cloze) {
    right_ += scored[0].is_greedy;
    losses_.push_back(-scored[0].log_likelihood);
    return;
  }
  std::vector<double> plain, by_characters, by_bytes;
  for (size_t i = 0; i < scored.size(); ++i) {
    const std::string& choice = item.choices[i];
    plain.push_back(scored[i].log_likelihood);
    by_characters.push_back(scored[i].log_likelihood / static_cast<double>(characters_in(choice)));
    by_bytes.push_back(scored[i].log_likelihood / static_cast<double>(choice.size()));
  }
  auto is_right = [&](const std::vector<double>& by) {
    return std::ranges::count(item.gold, static_cast<int64_t>(largest(by))) > 0;
  };
  right_ += is_right(plain), right_by_characters_ += is_right(by_characters), right_by_bytes_ += is_right(by_bytes);
}

MeanInterval TaskScore::perplexity() const {
  MeanInterval mean = mean_interval(losses_);
  mean.value = std::exp(mean.value);
  if (mean.low) mean.low = std::exp(*mean.low), mean.high = std::exp(*mean.high);
  return mean;
}

}  // namespace sator
