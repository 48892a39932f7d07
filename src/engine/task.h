// Tasks with known answers: texts whose continuations are scored, as EleutherAI's lm-evaluation-harness scores them (lm_eval/api/model.py,
// lm_eval/models/huggingface.py, lm_eval/api/task.py).
#pragma once

#include <optional>

#include "engine/divergence.h"
#include "engine/session.h"
#include "engine/tokenizer/tokenizer.h"

namespace sator {

/// One item: a context and what may follow it. Of a multiple choice one or more choices are right; of a cloze there is one choice, the right one.
struct TaskItem {
  std::string context;
  std::vector<std::string> choices;
  std::string delimiter = " ";  ///< between the context and a choice; of a cloze none
  std::vector<int64_t> gold;    ///< indices of right choices
  bool is_cloze = false;
  int64_t line = 0;  ///< of the file
};

/// A line per item: {"context": "...", "choices": ["...", ...], "gold": 1} or {"context": "...", "continuation": " ..."}.
/// `gold` may be a list; `delimiter` is " " unless given; "query" and "label" stand for "context" and "gold" too. Empty lines do not count.
/// Errors, by line: no JSON; members that are missing, of another type, or unknown; a gold that is no index; no choice, or an empty one; items of both
/// kinds; no item.
std::vector<TaskItem> read_task(const std::string& text, const std::string& source);

/// A context and one continuation as tokens.
struct ContinuationIds {
  std::vector<int32_t> context, continuation;
};

/// As the harness encodes them: spaces at the context's end go to the continuation; both together are encoded, with the marks that the
/// tokenizer puts around texts (not where the context begins with the text of the mark), and the tokens behind as many as the context
/// alone has are the continuation's. Before a continuation without context stands the token that texts begin with, or end with; it counts as context.
/// Errors: the continuation has no token; there is no such token.
ContinuationIds encode_continuation(const Tokenizer& tokenizer, const std::string& context,
                                    const std::string& continuation);

/// What a model says of one continuation.
struct ScoredContinuation {
  double log_likelihood = 0;  ///< the sum of ln p of its tokens
  bool is_greedy = true;      ///< whether each of its tokens was the most likely one
  int64_t tokens = 0;
};

/// Told of each prediction of a continuation's token: the logits, in the order of items, choices and tokens.
using LogitVisitor = FunctionRef<void(std::span<const float> logits)>;

/// The continuations of an item. Text beyond the context window is cut off at the left.
/// Errors: of encode_continuation, by line; a continuation longer than the context window; as of Session::append.
std::vector<ScoredContinuation> score_item(Session& session, const Tokenizer& tokenizer, const TaskItem& item,
                                           LogitVisitor visit);

/// A share, with the interval that holds the true one in 95 of 100 samples: Wilson's.
/// Source: Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", 1927.
struct Share {
  double value = 0, low = 0, high = 0;
};
Share wilson(int64_t hits, int64_t of);

/// A mean with value +- 1.96 standard errors; no interval for one figure.
struct MeanInterval {
  double value = 0;
  std::optional<double> low, high;
};
MeanInterval mean_interval(std::span<const double> figures);

/// What items say together.
class TaskScore {
 public:
  void add(const TaskItem& item, std::span<const ScoredContinuation> scored);

  bool is_cloze() const { return is_cloze_; }
  int64_t items() const { return items_; }
  /// Of multiple choices: the largest log-likelihood is a right choice's. Of clozes: the continuation is what the model writes by itself.
  Share acc() const { return wilson(right_, items_); }
  /// The same of the log-likelihood per character, and per byte, of the choice without its delimiter.
  Share acc_norm() const { return wilson(right_by_characters_, items_); }
  Share acc_bytes() const { return wilson(right_by_bytes_, items_); }
  /// Of clozes: exp(-mean log-likelihood of an item). Its interval is that of the mean.
  MeanInterval perplexity() const;

 private:
  bool is_cloze_ = false;
  int64_t items_ = 0, right_ = 0, right_by_characters_ = 0, right_by_bytes_ = 0;
  std::vector<double> losses_;
};

}  // namespace sator
