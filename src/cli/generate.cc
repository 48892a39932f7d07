#include "engine/generate.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "cli/logprobs.h"
#include "cli/model_options.h"
#include "cli/sampling_options.h"
#include "engine/prompt.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/unicode.h"
#include "frontend/hf_config.h"

namespace sator::cli {

namespace {

struct GenerateArguments {
  ModelArguments model;
  std::optional<std::string> prompt, prompt_file;
  SamplingArguments sampling;
  std::optional<int64_t> logprobs, prompt_logprobs;
};

/// The text to continue, from where the options say.
std::string prompt_of(const GenerateArguments& a, Streams& io) {
  const std::string& given = a.prompt ? *a.prompt : *a.prompt_file;
  if (given == "-") return read_prompt(io.in, "standard input");
  if (a.prompt_file) return read_prompt_file(given);
  require_utf8(given, "--prompt");
  return given;
}

/// The prompt's ids; of an empty one the token that texts begin with.
std::vector<int32_t> prompt_ids(const std::string& prompt, const fs::path& folder, const Tokenizer& tokenizer,
                                const GenerationConfig& suggested) {
  std::vector<int32_t> ids = tokenizer.encode(prompt, true);
  if (!ids.empty()) return ids;
  std::optional<int64_t> begin = tokenizer.bos_id();
  if (!begin) begin = suggested.bos_token_id;
  if (!begin) begin = read_model_config(folder).bos_token_id;
  if (!begin)
    fail({.what = "the prompt is empty, and the model names no token to begin with",
          .needs = "a text that is continued",
          .hint = "pass --prompt TEXT"});
  return {static_cast<int32_t>(*begin)};
}

void run(const GenerateArguments& a, Streams& io) {
  a.sampling.check();
  const fs::path folder = a.model.folder();
  const std::string prompt_text = prompt_of(a, io);
  Tokenizer tokenizer = load_tokenizer(folder);
  const GenerationConfig suggested = read_generation_config(folder);
  say_what_is_not_done(suggested, io);
  const std::vector<int32_t> prompt = prompt_ids(prompt_text, folder, tokenizer, suggested);
  GenerateOptions options{
      .sampling = sampling_of(a.sampling, suggested),
      .max_tokens = a.sampling.max_tokens ? *a.sampling.max_tokens : tokens_suggested(suggested, prompt, io)};
  Sampler check(options.sampling);  // refuses before the model is compiled
  const auto schema = schema_of(a.sampling, io);
  fit_to_model(options, a.sampling, tokenizer, read_model_config(folder), suggested, io);
  llm::OpenModel model = open(a.model, io);
  follow_schema(options, schema, tokenizer, model);
  options.logprobs = a.logprobs, options.prompt_logprobs = a.prompt_logprobs;

  Session session = model.session();
  bool begun = false;  // the prompt is shown once the model has taken it
  auto show = [&](const std::string& piece) {
    if (!begun) io.out << prompt_text;
    begun = true;
    io.out << piece << std::flush;
    return true;
  };
  const GeneratedText made = generate_text(session, tokenizer, prompt, options, show);
  const Generated& done = made.done;
  io.out << "\n";
  io.json = {{"prompt", prompt_text},
             {"prompt_ids", prompt},
             {"ids", made.ids},
             {"text", made.text},
             {"stopped_by", name_of(done.reason)},
             {"quantization", model.scheme.name},
             {"kv_cache_dtype", llm::cache_dtype_of(model.config, model.scheme, model.program).name()},
             {"prefill_tokens_per_s", rate(static_cast<int64_t>(prompt.size()), done.prefill_s)},
             {"decode_tokens_per_s", rate(done.decode_steps, done.decode_s)},
             {"prefill_s", done.prefill_s},
             {"decode_s", done.decode_s},
             {"decode_steps", done.decode_steps},
             {"decode_runs", done.runs},
             {"proposed", done.proposed},
             {"accepted", done.accepted}};
  say_lookup(done, io);
  if (a.prompt_logprobs) {
    io.json["prompt_logprobs"] = logprobs_as_json(done.prompt_logprobs, tokenizer);
    io.out << "\n" << logprob_table("prompt", done.prompt_logprobs, tokenizer);
  }
  if (a.logprobs) {
    io.json["logprobs"] = logprobs_as_json(done.logprobs, tokenizer);
    io.out << "\n" << logprob_table("token", done.logprobs, tokenizer);
  }
  if (done.reason == StopReason::context_full) io.notes << "the context window is full\n";
  say_if_short(options, done, std::ssize(prompt), std::ssize(made.ids), io);
  if (!made.is_whole) io.shortfall = document_is_cut(std::ssize(made.ids));
}

}  // namespace

Command generate_command() {
  auto a = std::make_shared<GenerateArguments>();
  std::vector<Option> options = model_options(a->model);
  auto add = [&](Option option) { options.push_back(std::move(option)); };
  add({.name = "--prompt TEXT",
       .help = "what the text begins with; - for standard input",
       .into = &a->prompt,
       .required = true,
       .also = {"-p"},
       .instead = "--prompt-file FILE"});
  add({.name = "--prompt-file FILE",
       .help = "a file that the text begins with, but for one line end at its end; - for standard input",
       .into = &a->prompt_file,
       .also = {"-f", "--file", "--input"}});
  for (Option& option : sampling_options(a->sampling)) add(std::move(option));
  add({.name = "--logprobs K",
       .help = "show the log-probability of each generated token and of the K most likely ones",
       .into = &a->logprobs,
       .range = between(0, kMostLogprobs)});
  add({.name = "--prompt-logprobs K",
       .help = "the same of the prompt's tokens, from the second on",
       .into = &a->prompt_logprobs,
       .range = between(0, kMostLogprobs)});
  return {
      .name = "generate",
      .does = "continues a text, streaming it",
      .options = std::move(options),
      .run = [a](Streams& io) { run(*a, io); },
      .details =
          "What is not told comes from the model's generation_config.json first; what that asks for and is not done "
          "here is named.\n"
          "Where neither that nor an option asks to sample, the most likely token is always taken. Penalties hold "
          "for both.\n"
          "Log-probabilities are those of the model's own softmax, before penalties, biases, forbidden tokens, "
          "temperature,\n"
          "top-k, top-p and min-p.\n"
          "--json FILE holds the scheme, the dtype of the KV cache, and the speeds of prompt (prefill) and generated "
          "tokens\n"
          "(decode).",
      .also = {"run", "complete", "infer", "predict"}};
}

}  // namespace sator::cli
