// Conversations as the text that a model was trained on.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "base/file.h"
#include "engine/jinja/template.h"

namespace sator {

/// A model's chat template, with the special tokens that it names.
class ChatTemplate {
 public:
  /// Of a Hugging Face folder: chat_template.jinja, chat_template.json, or `chat_template` of tokenizer_config.json, of several
  /// the one called "default". Nothing where there is none. Errors: malformed files; no template.
  static std::optional<ChatTemplate> load(const fs::path& folder);
  /// Of a text. `special_tokens` is an object: "bos_token" and so on.
  static ChatTemplate of(const std::string& source, std::string name, const nlohmann::ordered_json& special_tokens);
  /// Of a file, with the special tokens of a folder, if that has them.
  static ChatTemplate read(const fs::path& file, const fs::path& folder);

  /// The text of a conversation.
  ///   messages  a list of objects: "role", "content", and what else the template reads
  ///   others    what the template is given beside: "tools", "documents", "enable_thinking", ...
  ///   answers   whether the text ends where the assistant begins
  /// Errors: as of jinja::Template::render.
  std::string render(const nlohmann::ordered_json& messages, bool answers, const nlohmann::ordered_json& others) const;

 private:
  ChatTemplate(jinja::Template made, std::string special_tokens)
      : template_(std::move(made)), special_tokens_(std::move(special_tokens)) {}

  jinja::Template template_;
  std::string special_tokens_;  ///< JSON
};

}  // namespace sator
