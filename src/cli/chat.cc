#include "engine/chat.h"

#include <editline/readline.h>
#include <unistd.h>

#include <clocale>
#include <iostream>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/sampling_options.h"
#include "engine/prompt.h"
#include "engine/tokenizer/unicode.h"
#include "frontend/hf_config.h"

namespace sator::cli {

namespace {

struct ChatArguments {
  ModelArguments model;
  SamplingArguments sampling;
  std::optional<std::string> system, chat_template, tools;
  bool print_prompt = false;
};

constexpr const char* kHelp =
    "A line is a message; Ctrl-C stops an answer.\n"
    "/reset begins a new conversation, /exit (or Ctrl-D) ends the program, /help says this.\n"
    "A message that begins with / has a space before it, or a second /.\n";

/// The lines of a terminal, edited and kept for the arrow keys; or of a pipe, one message each.
class Lines {
 public:
  explicit Lines(std::istream& in)
      : in_(in), is_terminal_(&in == &std::cin && ::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO)) {
    if (is_terminal_) std::setlocale(LC_CTYPE, "");
  }
  bool are_typed() const { return is_terminal_; }
  /// Nothing at the end.
  std::optional<std::string> next() {
    std::string line;
    if (!is_terminal_) return std::getline(in_, line) ? std::optional(line) : std::nullopt;
    const std::unique_ptr<char, decltype(&std::free)> typed(::readline("> "), &std::free);
    if (!typed) return {};
    if (*typed) ::add_history(typed.get());
    return std::string(typed.get());
  }

 private:
  std::istream& in_;
  bool is_terminal_;
};

ChatTemplate template_of(const ChatArguments& a, const fs::path& model) {
  if (a.chat_template) return ChatTemplate::read(*a.chat_template, model);
  if (std::optional<ChatTemplate> own = load_chat_template(model)) return *own;
  fail({.what = text(model.string(), " has no chat template: it was not trained for conversations, or lost it"),
        .needs = "chat_template in tokenizer_config.json, or chat_template.jinja",
        .hint = "pass --chat-template FILE, or continue a text: sator generate"});
}

/// What the template is given beside the messages. Members keep the order that the file has, which templates print.
nlohmann::ordered_json others_of(const ChatArguments& a) {
  nlohmann::ordered_json others = nlohmann::ordered_json::object();
  if (!a.tools) return others;
  const std::string source = read_text_file(*a.tools, "a list of tools");
  const Json tree = parse_json(source, *a.tools, DuplicateNames::refused, Decimals::nearest_but_integers);
  if (!tree.is_array() || !std::ranges::all_of(tree, [](const Json& tool) { return tool.is_object(); }))
    fail({.what = text(*a.tools, " is no list of objects"),
          .needs = "the tools as a JSON list of their definitions",
          .hint = R"([{"type": "function", "function": {"name": "f", "description": "...", "parameters": {...}}}])"});
  others["tools"] = nlohmann::ordered_json::parse(source);
  return others;
}

/// A line as a message: spaces are part of it, but for the one that says that a slash is.
std::string message_of(const std::string& line) {
  std::string message = line.starts_with(" /") ? line.substr(1) : line;
  if (message.ends_with('\r')) message.pop_back();
  require_utf8(message, "the message");
  return message;
}

bool is_command(const std::string& line) { return line.starts_with('/') && !line.starts_with("//"); }
constexpr const char* kSpaceBeforeSlash = "put a space before a message that begins with /";

/// Shows the text that the model would be given of the first message.
void print_prompt(const ChatArguments& a, const ChatTemplate& chat_template, const Tokenizer& tokenizer, Streams& io) {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  if (a.system) messages.push_back({{"role", "system"}, {"content", *a.system}});
  Lines lines(io.in);
  std::optional<std::string> line = lines.next();
  while (line && trim(*line).empty()) line = lines.next();
  if (line && is_command(*line))
    fail({.what = text(trim(*line), " is no message"), .needs = "the first message", .hint = kSpaceBeforeSlash});
  if (line) messages.push_back({{"role", "user"}, {"content", message_of(*line)}});
  const std::string prompt = chat_template.render(messages, true, others_of(a));
  io.out << prompt << "\n";
  io.json = {{"prompt", prompt}, {"prompt_ids", tokenizer.encode(prompt)}};
}

/// What all answers took.
struct Totals {
  int64_t answers = 0, computed = 0, held = 0, steps = 0;
  double prefill_s = 0, decode_s = 0;
};

void say_speeds(const Totals& t, std::ostream& out) {
  auto per_second = [](int64_t tokens, double seconds) {
    return seconds > 0 ? text(std::llround(static_cast<double>(tokens) / seconds)) : std::string("-");
  };
  out << t.answers << (t.answers == 1 ? " answer: " : " answers: ") << t.computed << " tokens read at "
      << per_second(t.computed, t.prefill_s) << " tok/s (" << t.held << " were there already), " << t.steps
      << " written at " << per_second(t.steps, t.decode_s) << " tok/s\n";
}

void run(const ChatArguments& a, Streams& io) {
  a.sampling.check();
  const fs::path folder = a.model.folder();
  const Tokenizer tokenizer = load_tokenizer(folder);
  ChatTemplate chat_template = template_of(a, folder);
  if (a.system) require_utf8(*a.system, "--system");
  if (a.print_prompt) return print_prompt(a, chat_template, tokenizer, io);
  nlohmann::ordered_json others = others_of(a);
  const GenerationConfig suggested = read_generation_config(folder);
  say_what_is_not_done(suggested, io);
  GenerateOptions options{.sampling = sampling_of(a.sampling, suggested)};
  Sampler check(options.sampling);  // refuses before the model is compiled
  const auto schema = schema_of(a.sampling, io);
  fit_to_model(options, a.sampling, tokenizer, read_model_config(folder), suggested, io);
  llm::OpenModel model = open(a.model, io);
  if (auto end = tokenizer.eos_id(); end && std::ranges::find(options.stop_ids, *end) == options.stop_ids.end())
    options.stop_ids.push_back(*end);
  options.max_tokens = a.sampling.max_tokens.value_or(suggested.max_new_tokens.value_or(model.limits.context_window));
  follow_schema(options, schema, tokenizer, model);
  Chat chat(model.session(), tokenizer, std::move(chat_template), options, std::move(others));
  if (a.system) chat.add("system", *a.system);

  Lines lines(io.in);
  if (lines.are_typed()) io.notes << kHelp;
  std::optional<CatchInterrupts> interrupts;  // of a pipe they end the program, as everywhere else
  if (lines.are_typed()) interrupts.emplace();
  auto interrupted = [&] { return interrupts && interrupts->take(); };
  Totals totals;
  io.json = {{"answers", nlohmann::json::array()},
             {"quantization", model.scheme.name},
             {"kv_cache_dtype", llm::cache_dtype_of(model.config, model.scheme, model.program).name()}};
  while (const std::optional<std::string> line = lines.next()) {
    const std::string command(trim(*line));
    if (command.empty()) continue;
    const bool has_command = is_command(*line);
    if (has_command && (command == "/exit" || command == "/quit" || command == "/bye")) break;
    if (has_command && command == "/help") {
      io.notes << kHelp;
      continue;
    }
    if (has_command && command == "/reset") {
      chat.restart();
      io.notes << "a new conversation\n";
      continue;
    }
    interrupted();
    try {
      if (has_command)
        fail({.what = text(command.substr(0, command.find(' ')), " is no command"),
              .needs = "/reset, /exit, /help, or a message",
              .hint = kSpaceBeforeSlash});
      const std::string message = message_of(*line);
      const Chat::Answer answer = chat.say(message, [&](const std::string& piece) {
        io.out << piece << std::flush;
        return !interrupted();
      });
      io.out << "\n" << std::flush;
      say_lookup(answer.done, io);
      if (answer.done.reason == StopReason::context_full) io.notes << "the context is full: /reset begins anew\n";
      say_if_short(options, answer.done, answer.prompt_tokens, answer.done.decode_steps + 1, io);
      if (!answer.is_whole) {
        const Reason cut = document_is_cut(answer.done.decode_steps + 1);
        if (lines.are_typed())
          io.notes << cut.what << "\n";
        else
          io.shortfall = cut;
      }
      ++totals.answers;
      totals.computed += answer.prompt_tokens - answer.held_tokens, totals.held += answer.held_tokens;
      totals.steps += answer.done.decode_steps;
      totals.prefill_s += answer.done.prefill_s, totals.decode_s += answer.done.decode_s;
      io.json["answers"].push_back(
          {{"message", message},
           {"text", answer.text},
           {"stopped_by", name_of(answer.done.reason)},
           {"prompt_tokens", answer.prompt_tokens},
           {"held_tokens", answer.held_tokens},
           {"prefill_tokens_per_s", rate(answer.prompt_tokens - answer.held_tokens, answer.done.prefill_s)},
           {"decode_tokens_per_s", rate(answer.done.decode_steps, answer.done.decode_s)}});
    } catch (const Error& e) {
      if (!lines.are_typed()) {
        io.shortfall = e.reason;  // once the answers before it are written
        break;
      }
      io.notes << e.what() << "\n";  // the conversation goes on without that message
    }
  }
  if (lines.are_typed()) io.out << "\n";
  if (totals.answers > 0) say_speeds(totals, io.notes);
}

}  // namespace

Command chat_command() {
  auto a = std::make_shared<ChatArguments>();
  std::vector<Option> options = model_options(a->model);
  options.push_back({.name = "--system TEXT",
                     .help = "what the model is told before the conversation",
                     .into = &a->system,
                     .also = {"--system-prompt"}});
  options.push_back({.name = "--chat-template FILE",
                     .help = "a Jinja template instead of the model's own",
                     .into = &a->chat_template});
  options.push_back({.name = "--tools FILE",
                     .help = "a JSON list of tools, for templates that tell the model of them",
                     .into = &a->tools,
                     .also = {"--functions"}});
  options.push_back({"--print-prompt",
                     "only print the text that the template makes of --system, --tools and the first message",
                     &a->print_prompt});
  for (Option& option : sampling_options(a->sampling)) options.push_back(std::move(option));
  return {
      .name = "chat",
      .does = "talks with a model, streaming its answers",
      .options = std::move(options),
      .run = [a](Streams& io) { run(*a, io); },
      .details = text(
          kHelp,
          "Lines that are piped in are messages too. What the model has read of a conversation is not computed again.\n"
          "Answers end where the model ends them, at most at --max-tokens or the end of the context."),
      .also = {"talk", "converse"}};
}

}  // namespace sator::cli
