#include "engine/chat_template.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {

using Ordered = nlohmann::ordered_json;

Json parsed(const fs::path& file) {
  return parse_json(read_regular_file(file), file.string(), DuplicateNames::last_wins);
}

/// The tokens that tokenizer_config.json, or special_tokens_map.json, calls by name: "bos_token": "<s>".
Ordered special_tokens_of(const fs::path& folder) {
  Ordered out = Ordered::object();
  for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"}) {
    if (!fs::exists(folder / name)) continue;
    const Json tree = parsed(folder / name);
    if (!tree.is_object()) continue;
    for (const auto& [key, value] : tree.items()) {
      const Json& token = value.is_object() && value.contains("content") ? value.at("content") : value;
      if (key.ends_with("_token") && token.is_string()) out[key] = token.get<std::string>();
    }
  }
  return out;
}

/// `chat_template` of a tree: a text, or one for each use.
std::optional<std::string> template_in(const Json& tree, const std::string& source) {
  if (!tree.is_object() || !tree.contains("chat_template") || tree.at("chat_template").is_null()) return {};
  const JsonAt given = JsonAt(tree, source).at("chat_template");
  if (given.is_string()) return given.string();
  std::vector<std::string> names;
  std::optional<std::string> found;
  given.each([&](const JsonAt& one) {
    names.push_back(one.at("name").string());
    if (names.back() == "default") found = one.at("template").string();
  });
  if (!found)
    given.fail(text("has templates for ", names.empty() ? "nothing" : join(names, ", ")),
               "one called default",
               "pass the one that is meant by --chat-template FILE");
  return found;
}

}  // namespace

ChatTemplate ChatTemplate::of(const std::string& source, std::string name, const Ordered& special_tokens) {
  require_utf8(source, name);
  return {jinja::Template::read(source, std::move(name)), special_tokens.dump()};
}

ChatTemplate ChatTemplate::read(const fs::path& file, const fs::path& folder) {
  return of(read_file(file), file.string(), special_tokens_of(folder));
}

std::optional<ChatTemplate> ChatTemplate::load(const fs::path& folder) {
  if (fs::exists(folder / "chat_template.jinja")) return read(folder / "chat_template.jinja", folder);
  for (const char* name : {"chat_template.json", "tokenizer_config.json"}) {
    const fs::path file = folder / name;
    if (!fs::exists(file)) continue;
    if (const auto source = template_in(parsed(file), file.string()))
      return of(*source, text(file.string(), ": chat_template"), special_tokens_of(folder));
  }
  return {};
}

std::string ChatTemplate::render(const Ordered& messages, bool answers, const Ordered& others) const {
  Ordered variables = Ordered::parse(special_tokens_);
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  variables.update(others);
  variables["messages"] = messages;
  variables["add_generation_prompt"] = answers;
  return template_.render(variables);
}

}  // namespace sator
