// `sator generate`: what a model's makers suggest, and what is told of the run.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli/command_run.h"
#include "reference_data.h"

namespace sator::cli {
namespace {

const fs::path kExample = fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories";

/// The example with other contents in some of its files.
fs::path variant(const TempFolder& folder, const std::map<std::string, std::string>& changed) {
  const fs::path model = folder.path() / "model";
  fs::create_directories(model);
  for (const auto& entry : fs::directory_iterator(kExample))
    if (!changed.contains(entry.path().filename().string()))
      fs::create_symlink(entry.path(), model / entry.path().filename());
  for (const auto& [name, text] : changed) write_file(model / name, text);
  return model;
}

/// The example's tokenizer without its last merges, and without the tokens that they make: as if the vocabulary were padded.
std::string smaller_tokenizer(size_t fewer, std::vector<int32_t>& gone) {
  Json tokenizer = parse_json(read_file(kExample / "tokenizer.json"), "tokenizer.json");
  Json& merges = tokenizer["model"]["merges"];
  Json& vocab = tokenizer["model"]["vocab"];
  for (size_t i = 0; i < fewer; ++i) {
    const Json merge = merges.back();
    std::string token;
    if (merge.is_string()) {
      token = merge.get<std::string>();
      token.erase(token.find(' '), 1);
    } else {
      token = merge[0].get<std::string>() + merge[1].get<std::string>();
    }
    gone.push_back(vocab.at(token).get<int32_t>());
    vocab.erase(token);
    merges.erase(merges.size() - 1);
  }
  return tokenizer.dump();
}

class Generate : public testing::Test {
 protected:
  Generate() { ::setenv("SATOR_HOME", (folder_.path() / "home").c_str(), 1); }
  CommandRun run(const fs::path& model, std::vector<std::string> options, const char* tokens = "40") {
    options.insert(options.begin(),
                   {"generate", model.string(), "--prompt", "Once upon a time", "--max-tokens", tokens});
    return run_command(std::move(options), folder_);
  }
  TempFolder folder_;
};

TEST_F(Generate, TellsTheSpeedsOfPromptAndGeneration) {
  const CommandRun r = run(kExample, {});
  EXPECT_GT(r.json.at("prefill_tokens_per_s").get<double>(), 0);
  EXPECT_GT(r.json.at("decode_tokens_per_s").get<double>(), 0);
  EXPECT_EQ(r.json.at("decode_steps"), 39);  // the last token is not fed back
  EXPECT_NEAR(r.json.at("decode_tokens_per_s").get<double>() * r.json.at("decode_s").get<double>(), 39, 1e-6);
  EXPECT_TRUE(run(kExample, {}, "1").json.at("decode_tokens_per_s").is_null());
}

TEST_F(Generate, TellsWhatRan) {
  const CommandRun stored = run(kExample, {}, "1"), chosen = run(kExample, {"--quantization", "int8-channel+a8"}, "1"),
                   asked = run(kExample, {"--kv-cache", "float32"}, "1");
  EXPECT_EQ(stored.json.at("quantization"), "f16");
  EXPECT_EQ(chosen.json.at("quantization"), "int8-channel+a8");
  EXPECT_EQ(chosen.json.at("kv_cache_dtype"), "bfloat16");
  EXPECT_EQ(asked.json.at("kv_cache_dtype"), "float32");
}

TEST_F(Generate, DoesWhatItsMakersSuggestOrSaysSo) {
  const fs::path model = variant(
      folder_, {{"generation_config.json", R"({"no_repeat_ngram_size": 2, "num_beams": 4, "eos_token_id": 0})"}});
  const CommandRun suggested = run(model, {});
  EXPECT_NE(suggested.notes.find("generation_config.json asks for what is not done here: num_beams 4"),
            std::string::npos)
      << suggested.notes;
  auto repeats = [](const CommandRun& r) {
    std::vector<int32_t> ids = r.json.at("prompt_ids").get<std::vector<int32_t>>();
    for (int32_t id : r.json.at("ids")) ids.push_back(id);
    std::map<std::pair<int32_t, int32_t>, int> pairs;
    int twice = 0;
    for (size_t i = 1; i < ids.size(); ++i) twice += ++pairs[{ids[i - 1], ids[i]}] == 2;
    return twice;
  };
  EXPECT_EQ(repeats(suggested), 0);
  EXPECT_GT(repeats(run(model, {"--no-repeat-ngram-size", "0"})),
            0);  // as in README: "who was so much surprised" twice
  EXPECT_NE(run(kExample, {"--repetition-penalty", "1.3"}).json.at("ids"), run(kExample, {}).json.at("ids"));
}

TEST_F(Generate, ALengthOfTheWholeTextCountsThePrompt) {
  TempFolder longer;
  const fs::path model = variant(folder_, {{"generation_config.json", R"({"max_length": 7})"}}),
                 two_hundred = variant(longer, {{"generation_config.json", R"({"max_length": 200})"}});
  auto counts = [&](std::vector<std::string> options, const fs::path& of) {
    options.insert(options.begin(), {"generate", of.string(), "--prompt", "Once upon a time"});
    const CommandRun r = run_command(std::move(options), folder_);
    return std::pair(r.json.at("prompt_ids").size(), r.json.at("ids").size());
  };
  const auto [prompt, generated] = counts({}, model);
  EXPECT_EQ(prompt + generated, 7u);
  EXPECT_EQ(counts({"--max-tokens", "9"}, model).second, 9u);
  EXPECT_EQ(prompt + counts({}, two_hundred).second, 200u);  // more than the 128 of a folder that says nothing
}

TEST_F(Generate, NeverDrawsIdsWithoutAToken) {
  std::vector<int32_t> gone;
  const fs::path model = variant(folder_, {{"tokenizer.json", smaller_tokenizer(4000, gone)}});
  const CommandRun r = run(model, {"--temperature", "3", "--seed", "5"});
  EXPECT_NE(r.notes.find("4000 of the vocabulary's 8192 ids have no token, and are never drawn"), std::string::npos)
      << r.notes;
  for (int32_t id : r.json.at("ids")) EXPECT_EQ(std::ranges::count(gone, id), 0) << id;
  const CommandRun whole = run(kExample, {"--temperature", "3", "--seed", "5"});
  int drawn = 0;
  for (int32_t id : whole.json.at("ids")) drawn += static_cast<int>(std::ranges::count(gone, id));
  EXPECT_GT(drawn, 0);  // half of the vocabulary, at a temperature that makes all tokens likely
}

TEST_F(Generate, EndsBeforeAStopString) {
  TempFolder folder;
  auto words = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> all = {
        "generate", kExample.string(), "--prompt", "Once upon a time", "--max-tokens", "40"};
    all.insert(all.end(), more);
    return all;
  };
  const CommandRun whole = run_command(words({}), folder);
  const std::string text = whole.json.at("text");
  const std::string stop = text.substr(text.size() / 2, 7);
  const CommandRun cut = run_command(words({"--stop", stop, "--stop", "never there"}), folder);
  EXPECT_EQ(cut.json.at("text"), text.substr(0, text.find(stop)));
  EXPECT_EQ(cut.json.at("stopped_by"), "stop_string");
  EXPECT_EQ(cut.out, "Once upon a time" + text.substr(0, text.find(stop)) + "\n");
  EXPECT_EQ(run_command(words({"--stop", "never there"}), folder).json.at("text"), text);
}

// What the makers suggest holds unless the user says otherwise; ids that they suppress are never drawn.
TEST_F(Generate, StopStringsAndSuppressedTokensOfTheMakers) {
  const CommandRun plain = run(kExample, {});
  const std::string text = plain.json.at("text"), stop = text.substr(text.size() / 2, 7);
  const int32_t first = plain.json.at("ids").at(0);
  TempFolder other, third;
  const fs::path stops = variant(other, {{"generation_config.json", Json{{"stop_strings", {stop}}}.dump()}});
  const CommandRun cut = run(stops, {});
  EXPECT_EQ(cut.json.at("text"), text.substr(0, text.find(stop)));
  EXPECT_EQ(cut.notes.find("is not done here"), std::string::npos) << cut.notes;
  EXPECT_EQ(run(stops, {"--stop", "never there"}).json.at("text"), text);
  const fs::path never = variant(third, {{"generation_config.json", Json{{"suppress_tokens", {first}}}.dump()}});
  const CommandRun without = run(never, {});
  for (int32_t id : without.json.at("ids").get<std::vector<int32_t>>()) EXPECT_NE(id, first);
}

/// A file with the text "Once upon a time", as an editor leaves it.
fs::path prompt_file(const TempFolder& folder, const std::string& content) {
  write_file(folder.path() / "prompt.txt", content);
  return folder.path() / "prompt.txt";
}

TEST_F(Generate, TakesThePromptFromAFile) {
  auto text_of = [&](const std::string& content) {
    return run_command({"generate",
                        kExample.string(),
                        "--prompt-file",
                        prompt_file(folder_, content).string(),
                        "--max-tokens",
                        "5"},
                       folder_)
        .out;
  };
  const std::string wanted = run(kExample, {}, "5").out;
  EXPECT_EQ(text_of("Once upon a time\n"), wanted);
  EXPECT_EQ(text_of("Once upon a time\r\n"), wanted);
  EXPECT_EQ(text_of("Once upon a time"), wanted);
  // Spaces are part of it.
  EXPECT_EQ(text_of("  Once upon a time \n\n").substr(0, 20), "  Once upon a time \n");
}

// transformers on the same weights, in float64 (tools/make_generation_references.py).
TEST_F(Generate, LogprobsAreThoseOfTransformers) {
  const Json wanted = parse_json(read_file(reference_data("generation/logprobs.json")), "logprobs.json");
  const CommandRun r = run_command({"generate",
                                    kExample.string(),
                                    "--prompt",
                                    wanted.at("prompt").get<std::string>(),
                                    "--max-tokens",
                                    "12",
                                    "--logprobs",
                                    "3",
                                    "--prompt-logprobs",
                                    "3",
                                    "--repetition-penalty",  // changes nothing of what is shown
                                    "1.0000001"},
                                   folder_);
  for (const char* name : {"prompt_logprobs", "logprobs"}) {
    ASSERT_EQ(r.json.at(name).size(), wanted.at(name).size());
    for (size_t i = 0; i < wanted.at(name).size(); ++i) {
      const Json &got = r.json.at(name).at(i), &want = wanted.at(name).at(i);
      EXPECT_EQ(got.at("id"), want.at("id"));
      EXPECT_EQ(got.at("rank"), want.at("rank"));
      EXPECT_NEAR(got.at("logprob").get<double>(), want.at("logprob").get<double>(), 1e-4);
      ASSERT_EQ(got.at("best").size(), 3u);
      for (size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(got.at("best").at(k).at("id"), want.at("best").at(k).at("id"));
        EXPECT_NEAR(
            got.at("best").at(k).at("logprob").get<double>(), want.at("best").at(k).at("logprob").get<double>(), 1e-4);
      }
    }
  }
  std::string joined;
  for (const Json& token : r.json.at("logprobs")) joined += token.at("token").get<std::string>();
  EXPECT_EQ(r.json.at("text"), joined);
  EXPECT_NE(r.out.find("ln p"), std::string::npos) << r.out;
}

TEST_F(Generate, TheMakersMinimumAndTheirBadWordsHold) {
  const CommandRun plain = run(kExample, {}, "12");
  const std::vector<int32_t> ids = plain.json.at("ids");
  auto ids_with = [&](const Json& suggested, std::vector<std::string> options = {}) {
    TempFolder other;
    const CommandRun r = run(variant(other, {{"generation_config.json", suggested.dump()}}), std::move(options), "12");
    EXPECT_EQ(r.notes.find("is not done here"), std::string::npos) << r.notes;
    return r.json.at("ids").get<std::vector<int32_t>>();
  };
  // A text that ends where its second token would be, ends later.
  EXPECT_EQ(ids_with({{"eos_token_id", ids[1]}}).size(), 1u);
  EXPECT_GE(ids_with({{"eos_token_id", ids[1]}, {"min_new_tokens", 5}}).size(), 5u);
  EXPECT_GE(ids_with({{"eos_token_id", ids[1]}}, {"--min-tokens", "5"}).size(), 5u);
  EXPECT_NE(ids_with({{"bad_words_ids", {{ids[0], ids[1]}}}})[1], ids[1]);
  EXPECT_EQ(ids_with({{"bad_words_ids", {{ids[1], ids[0]}}}})[1], ids[1]);
  EXPECT_EQ(ids_with({{"sequence_bias", {{{ids[0], 7}, 1e6}}}})[1], 7);
}

TEST_F(Generate, MoreTokensAtLeastThanAtMostAreRefused) {
  const CommandRun r = run_command(
      {"generate", kExample.string(), "--prompt", "a", "--min-tokens", "12", "--max-tokens", "11"}, folder_, 1);
  EXPECT_NE(r.notes.find("--min-tokens 12 and --max-tokens 11"), std::string::npos) << r.notes;
}

// The text is the same, token by token, drawn or not, whatever the scheme; and it takes fewer runs of the model.
TEST_F(Generate, ALookupChangesNothing) {
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{},
                                             {"--quantization", "int8-channel+a8"},
                                             {"--quantization", "int4-group32", "--temperature", "0.5", "--seed", "4"},
                                             {"--no-repeat-ngram-size", "4", "--stop", " the "},
                                             {"--logprobs", "1"}}) {
    const CommandRun plain = run(kExample, options, "200");
    EXPECT_EQ(plain.json.at("decode_runs"), plain.json.at("decode_steps"));
    for (const char* n : {"1", "2", "10"}) {
      std::vector<std::string> with = options;
      with.insert(with.end(), {"--prompt-lookup", n});
      const CommandRun ahead = run(kExample, with, "200");
      for (const char* same : {"ids", "text", "stopped_by", "decode_steps"})
        EXPECT_EQ(ahead.json.at(same), plain.json.at(same)) << n;
      if (plain.json.contains("logprobs")) EXPECT_EQ(ahead.json.at("logprobs"), plain.json.at("logprobs"));
      EXPECT_EQ(ahead.json.at("decode_runs").get<int>() + ahead.json.at("accepted").get<int>(),
                ahead.json.at("decode_steps"));
      if (options.empty())
        EXPECT_GT(ahead.json.at("accepted"), 20) << n;  // greedy texts of small models repeat themselves
    }
  }
}

TEST_F(Generate, DocumentsOfASchema) {
  write_file(folder_.path() / "schema.json",
             R"({"type": "object", "properties": {"name": {"type": "string", "minLength": 2, "maxLength": 9},
  "age": {"type": "integer", "minimum": 18, "maximum": 99}, "kind": {"enum": ["old", "young"]}}, "required": ["name", "age", "kind"],
  "additionalProperties": false, "format": "person"})");
  const std::string schema = (folder_.path() / "schema.json").string();
  for (const char* tokens : {"40", "100"})  // the first is hardly more than the shortest document takes
    for (const char* temperature : {"0", "1.5"}) {
      const CommandRun r = run(kExample, {"--json-schema", schema, "--temperature", temperature}, tokens);
      EXPECT_NE(r.notes.find("not enforced: format"), std::string::npos) << r.notes;
      EXPECT_EQ(r.json.at("stopped_by"), "complete");
      const std::string text = r.json.at("text");
      const Json person = parse_json(text, "the text");
      ASSERT_EQ(person.size(), 3u) << text;
      EXPECT_GE(person.at("age").get<int>(), 18);
      EXPECT_LE(person.at("age").get<int>(), 99);
      EXPECT_TRUE(person.at("kind") == "old" || person.at("kind") == "young");
      EXPECT_GE(person.at("name").get<std::string>().size(), 2u);
    }
}

// The model uses up its tokens in the first name; the second member still has room.
TEST_F(Generate, MembersOfAPatternAreAllWritten) {
  write_file(
      folder_.path() / "schema.json",
      R"({"type": "object", "patternProperties": {"^S_": {"type": "integer"}}, "additionalProperties": false, "minProperties": 2})");
  const std::string schema = (folder_.path() / "schema.json").string();
  for (const char* tokens : {"16", "50"})  // the shortest has 16 bytes
    for (const char* temperature : {"0", "1.5"}) {
      const CommandRun r = run(kExample, {"--json-schema", schema, "--temperature", temperature}, tokens);
      EXPECT_EQ(r.json.at("stopped_by"), "complete");
      EXPECT_GE(parse_json(r.json.at("text").get<std::string>(), "the text").size(), 2u);
    }
}

// What has no room is refused at once, however large the minimum is.
TEST_F(Generate, ADocumentThatHasNoRoomIsRefused) {
  for (const auto& [schema, bytes] :
       {std::pair(R"({"type": "array", "minItems": 60, "items": {"enum": [true]}})", "bytes, 301,"),
        std::pair(R"({"type": "array", "minItems": 1e9, "items": {"type": "array", "minItems": 1e9}})", "bytes, "),
        std::pair(R"({"type": "string", "minLength": 1e9})", "bytes, 1000000002,")}) {
    write_file(folder_.path() / "schema.json", schema);
    TempFolder folder;
    const std::string file = (folder_.path() / "schema.json").string();
    const CommandRun r = run_command(
        {"generate", kExample.string(), "--prompt", "Once", "--max-tokens", "9", "--json-schema", file}, folder, 1);
    EXPECT_NE(r.notes.find(bytes), std::string::npos) << r.notes;
    EXPECT_NE(r.notes.find("does not fit into 9 tokens"), std::string::npos) << r.notes;
  }
}

// Whether a document fits is judged by the tokens that its texts take, not by their bytes.
TEST_F(Generate, ALongTextFitsIntoFewTokens) {
  const std::string file = (folder_.path() / "schema.json").string();
  for (const char* schema :
       {R"({"type": "string", "minLength": 150})", R"({"type": "string", "pattern": "^[a-z ]{150}$"})"}) {
    write_file(file, schema);
    for (const char* temperature : {"0", "1.5"}) {
      const CommandRun r = run(kExample, {"--json-schema", file, "--temperature", temperature}, "60");
      EXPECT_EQ(r.json.at("stopped_by"), "complete");
      EXPECT_GE(parse_json(r.json.at("text").get<std::string>(), "the text").get<std::string>().size(), 150U);
    }
  }
}

// A document goes on up to the minimum as long as anything but whitespace and digits may follow; else a note says so.
TEST_F(Generate, ADocumentGoesOnToTheMinimumOrSaysSo) {
  const std::string file = (folder_.path() / "schema.json").string();
  int64_t shortest = 30;
  for (const auto& [schema, goes_on] :
       {std::pair(R"({"type": "array", "items": {"type": "integer", "maximum": 99, "minimum": 0}})", true),
        std::pair(R"({"type": "string"})", true),
        std::pair(R"({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
                      "additionalProperties": false})",
                  true),
        std::pair(R"({"type": "object", "additionalProperties": {"type": "boolean"}})", true),
        std::pair(R"({"const": {"a": 1}})", false),
        std::pair(R"({"type": "number"})", false)}) {
    write_file(file, schema);
    for (const char* temperature : {"0", "1.5"})
      for (const char* tokens : {"60", "30"}) {
        const CommandRun r =
            run(kExample, {"--json-schema", file, "--min-tokens", "30", "--temperature", temperature}, tokens);
        const int64_t made = std::ssize(r.json.at("ids"));
        EXPECT_NO_THROW(parse_json(r.json.at("text").get<std::string>(), "the text"));
        if (goes_on) EXPECT_GE(made, 30) << schema << r.json.at("text");
        const std::string note = text("the JSON document ends after ", made, made == 1 ? " token," : " tokens,");
        EXPECT_EQ(r.notes.find(note) != std::string::npos, made < 30) << schema << r.notes;
        shortest = std::min(shortest, made);
      }
  }
  EXPECT_LT(shortest, 6);
  // What has only its end behind it comes before the end.
  write_file(file, R"({"enum": ["a", "ab", "abc"]})");
  for (const char* temperature : {"0", "1.5"})
    EXPECT_EQ(
        parse_json(run(kExample, {"--json-schema", file, "--min-tokens", "15", "--temperature", temperature}, "60")
                       .json.at("text")
                       .get<std::string>(),
                   "the text"),
        "abc");
}

// What a command reads, and what it writes elsewhere, it does not write over.
TEST_F(Generate, ResultsHaveAFileOfTheirOwn) {
  const std::string prompt = (folder_.path() / "text.txt").string(), link = (folder_.path() / "link").string();
  write_file(prompt, "Once upon a time");
  fs::create_symlink(prompt, link);
  auto notes = [&](std::vector<std::string> command) {
    std::ostringstream out, said;
    std::istringstream in;
    EXPECT_EQ(run_app(command, command_table(), in, out, said), 1);
    return said.str();
  };
  for (const std::string& result : {prompt, link, (folder_.path() / "." / "text.txt").string()})
    EXPECT_NE(notes({"generate", kExample.string(), "--prompt-file", prompt, "--json", result})
                  .find(text("--json ", result, " would replace ", prompt, ", which is read")),
              std::string::npos);
  const std::string both = (folder_.path() / "both").string();
  EXPECT_NE(
      notes({"logits", kExample.string(), "--ids", "1", "-o", both, "--json", both}).find("which --json writes too"),
      std::string::npos);
  const std::string model = kExample.string(), out = (folder_.path() / "out").string();
  EXPECT_NE(notes({"tokenize", model, "--json", model + "/adapter_config.json"})
                .find(text("would be a file of the model in ", model, ", which is read")),
            std::string::npos);
  EXPECT_NE(notes({"convert_weight", model, "--quantization", "f16", "-o", out, "--json", out + "/params_shard_0.bin"})
                .find(text("would be a file of the model in ", out, ", where -o writes")),
            std::string::npos);
  EXPECT_FALSE(fs::exists(model + "/adapter_config.json") || fs::exists(out));
  EXPECT_EQ(read_file(prompt), "Once upon a time");
  EXPECT_FALSE(fs::exists(both));
}

// Nor do results replace what the model is read from; beside it they may lie, also those of an earlier run.
TEST_F(Generate, ResultsReplaceNoFileOfTheModel) {
  const fs::path model = folder_.path() / "model", link = folder_.path() / "link";
  fs::copy(kExample, model);
  fs::create_symlink(model / "tokenizer.json", link);
  auto notes = [&](const fs::path& given, const fs::path& result, int status) {
    std::ostringstream out, said;
    std::istringstream in(R"({"text": "Once"})");
    EXPECT_EQ(run_app({"tokenize", given.string(), "--json", result.string()}, command_table(), in, out, said), status)
        << said.str();
    return said.str();
  };
  for (const fs::path& result : {model / "config.json", model / "model.safetensors", model / "tokenizer.json", link})
    for (const fs::path& given : {model, model / "config.json"}) {
      const std::string before = read_file(result);
      EXPECT_NE(notes(given, result, 1).find(text("--json ", result.string(), " would replace ")), std::string::npos);
      EXPECT_EQ(read_file(result), before);
    }
  for (int run = 0; run < 2; ++run) notes(model, model / "result.json", 0);
}

// A document that is cut off is written, and an error: who reads the status alone must not take it for one.
TEST_F(Generate, ADocumentThatIsCutOffIsNoSuccess) {
  write_file(folder_.path() / "schema.json", R"({"type": "array", "minItems": 60, "items": {"enum": [true]}})");
  TempFolder folder;
  const std::string file = (folder_.path() / "schema.json").string();
  for (const char* stop : {"ue,", "]"}) {  // also one that the last token ends with
    const CommandRun r = run_command({"generate",
                                      kExample.string(),
                                      "--prompt",
                                      "Once",
                                      "--max-tokens",
                                      "400",
                                      "--stop",
                                      stop,
                                      "--json-schema",
                                      file},
                                     folder,
                                     1);
    EXPECT_NE(r.notes.find("the JSON document is not complete"), std::string::npos) << r.notes;
    EXPECT_EQ(r.json.at("stopped_by"), "stop_string");
  }
}

TEST_F(Generate, NoTextEndsBeforeAnEmptyOne) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"generate", kExample.string(), "--prompt", "x"},
        std::vector<std::string>{"chat", kExample.string()}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--stop", "end", "--stop", ""});
    const std::string notes = run_command(all, folder_, 1).notes;
    EXPECT_TRUE(notes.starts_with("error: --stop is given an empty text")) << notes;  // before the weights are read
  }
}

// The first token of the answer, forbidden, is not drawn; one with a large bias always is.
TEST_F(Generate, BiasesThatNoLogitCanTakeAreNamed) {
  auto notes = [&](const char* option, const char* value) {
    return run_command({"generate", kExample.string(), "--prompt", "Once", option, value}, folder_, 1).notes;
  };
  EXPECT_NE(notes("--logit-bias", "5=1e39").find("--logit-bias is given \"5=1e39\""), std::string::npos);
  EXPECT_NE(notes("--logit-bias", "5=-1e400").find("--logit-bias is given \"5=-1e400\""), std::string::npos);
  EXPECT_NE(notes("--frequency-penalty", "-1e38").find("--frequency-penalty"), std::string::npos);
}

TEST_F(Generate, BiasesDecide) {
  TempFolder folder;
  const std::vector<std::string> words = {
      "generate", kExample.string(), "--prompt", "Once upon a time", "--max-tokens", "5"};
  auto biased = [&](const std::string& bias) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--logit-bias", bias});
    return run_command(all, folder).json.at("ids").get<std::vector<int32_t>>();
  };
  const int32_t first = run_command(words, folder).json.at("ids").at(0);
  EXPECT_NE(biased(text(first, "=-inf")).front(), first);
  EXPECT_EQ(biased("7=1e6"), std::vector<int32_t>(5, 7));
  std::vector<std::string> beyond = words;
  beyond.insert(beyond.end(), {"--logit-bias", "99999=1"});
  const std::string notes = run_command(beyond, folder_, 1).notes;
  EXPECT_TRUE(notes.starts_with("error: --logit-bias is given the id 99999")) << notes;  // before the weights are read
}

}  // namespace
}  // namespace sator::cli
