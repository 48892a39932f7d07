// A conversation with a model.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/chat_template.h"
#include "engine/generate.h"
#include "engine/tokenizer/tokenizer.h"

namespace sator {

/// Messages and answers by turns. What the session holds already of a conversation is not computed again: a turn appends what the
/// template adds to the text, or goes back to where the texts differ.
class Chat {
 public:
  /// An answer and what it took.
  struct Answer {
    std::string text;
    Generated done;
    bool is_whole = true;       ///< as GeneratedText's
    int64_t prompt_tokens = 0;  ///< of the conversation up to the answer
    int64_t held_tokens = 0;    ///< of these, that the session held already
  };

  ///   others  what the template is given beside the messages (ChatTemplate::render): "tools"
  Chat(Session session, Tokenizer tokenizer, ChatTemplate chat_template, GenerateOptions options,
       nlohmann::ordered_json others = nlohmann::ordered_json::object());

  /// Puts a message of that role behind the others, without an answer.
  void add(const std::string& role, const std::string& content);
  /// A message, and the model's answer, whose pieces are handed out as they come (generate_text).
  /// Errors: as of ChatTemplate::render; the conversation is longer than the context. The message is forgotten then.
  Answer say(const std::string& message, FunctionRef<bool(const std::string& piece)> take);
  /// Forgets all messages but those of `add` that came before any answer.
  void restart();

  const nlohmann::ordered_json& messages() const { return messages_; }

 private:
  Session session_;
  Tokenizer tokenizer_;
  ChatTemplate template_;
  GenerateOptions options_;
  nlohmann::ordered_json others_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array(), first_ = messages_;
  bool answered_ = false;
  std::vector<int32_t> held_;  ///< ids of the session's sequence
};

}  // namespace sator
