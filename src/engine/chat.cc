#include "engine/chat.h"

#include <algorithm>

#include "base/error.h"

namespace sator {

Chat::Chat(Session session, Tokenizer tokenizer, ChatTemplate chat_template, GenerateOptions options,
           nlohmann::ordered_json others)
    : session_(std::move(session)),
      tokenizer_(std::move(tokenizer)),
      template_(std::move(chat_template)),
      options_(std::move(options)),
      others_(std::move(others)) {}

void Chat::add(const std::string& role, const std::string& content) {
  messages_.push_back({{"role", role}, {"content", content}});
  if (!answered_) first_ = messages_;
}

void Chat::restart() {
  messages_ = first_;
  answered_ = false;
}

Chat::Answer Chat::say(const std::string& message, FunctionRef<bool(const std::string& piece)> take) {
  nlohmann::ordered_json messages = messages_;
  messages.push_back({{"role", "user"}, {"content", message}});
  const std::vector<int32_t> ids = tokenizer_.encode(template_.render(messages, true, others_));
  const int64_t window = session_.limits().context_window;
  if (ids.empty())
    fail({.what = "the chat template makes no text of the conversation", .needs = "a text that is continued"});
  if (std::ssize(ids) > window)
    fail({.what = text("the conversation has ", ids.size(), " tokens, the context ", window),
          .needs = "a conversation that fits",
          .hint = "begin a new one"});
  // The last token is always computed: its logits are what the answer begins with.
  const auto differ = std::ranges::mismatch(ids, held_);
  const int64_t same = session_.keep(std::min<int64_t>(differ.in1 - ids.begin(), std::ssize(ids) - 1));
  held_.resize(static_cast<size_t>(same));  // whatever an error leaves behind these is dropped by the next message

  GenerateOptions options = options_;
  options.before.assign(ids.begin(), ids.begin() + same);
  GeneratedText made =
      generate_text(session_, tokenizer_, std::span(ids).subspan(static_cast<size_t>(same)), options, take);
  held_ = ids;
  held_.insert(held_.end(), made.ids.begin(), made.ids.end());
  const Answer answer{.text = std::move(made.text),
                      .done = made.done,
                      .is_whole = made.is_whole,
                      .prompt_tokens = std::ssize(ids),
                      .held_tokens = same};
  held_.resize(static_cast<size_t>(session_.position()));
  messages_ = std::move(messages);
  messages_.push_back({{"role", "assistant"}, {"content", answer.text}});
  answered_ = true;
  return answer;
}

}  // namespace sator
