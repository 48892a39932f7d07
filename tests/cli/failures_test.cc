// What the program leaves behind when something goes wrong: words, an exit status, and no half-written file that passes
// for a whole one. These tests start the program itself, because signals and limits belong to a process.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace sator::cli {
namespace {

/// A folder with the example's files as links; those given are written instead, empty ones left out.
void lay_out(const fs::path& folder, const std::map<std::string, std::string>& changed) {
  fs::create_directories(folder);
  for (const auto& entry : fs::directory_iterator(kExample))
    if (!changed.contains(entry.path().filename().string()))
      fs::create_symlink(entry.path(), folder / entry.path().filename());
  for (const auto& [name, bytes] : changed)
    if (!bytes.empty()) write_file(folder / name, bytes);
}

std::string config_with(const char* changes) {
  auto config = nlohmann::json::parse(read_file(kExample / "config.json"));
  config.merge_patch(nlohmann::json::parse(changes));
  return config.dump();
}

std::string length(uint64_t header_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header_bytes >> (8 * i) & 0xff);
  return bytes;
}

TEST(Failures, DamagedModelsAreRefusedWithWords) {
  const std::string weights = read_file(kExample / "model.safetensors");
  std::string integers = weights;
  integers.replace(integers.find("\"F16\""), 5, "\"I16\"");
  const std::string overlap = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                              R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})";
  const std::string huge = R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})";
  struct Row {
    const char *file, *words;
    std::string bytes;  // empty: the file is missing
  };
  for (const Row& row : std::vector<Row>{
           {"model.safetensors", "too few for a safetensors file", "abc"},
           {"model.safetensors", "states a header of", weights.substr(0, 2000)},
           {"model.safetensors", "outside the file's", weights.substr(0, weights.size() / 2)},
           {"model.safetensors", "outside the file's", weights.substr(0, weights.size() - 1)},
           {"model.safetensors", "states a header of 18446744073709551615 bytes", length(~uint64_t{0}) + "{}"},
           {"model.safetensors",
            "the tensor before it ends at 8",
            length(overlap.size()) + overlap + std::string(12, 'x')},
           {"model.safetensors", "more bytes than 64 bits count", length(huge.size()) + huge + std::string(8, 'x')},
           {"model.safetensors", "there is no tensor", length(2) + "{}"},
           {"model.safetensors", "is int16", integers},
           {"model.safetensors", "there are no weights in", ""},
           {"config.json", "there is no", ""},
           {"config.json", "config.json", "{\"model_type\": \"gpt2\""},
           {"config.json", "model_type is \"gpt3\"", config_with(R"({"model_type": "gpt3"})")},
           {"config.json", "n_layer is 0", config_with(R"({"n_layer": 0})")},
           {"config.json", "n_layer", config_with(R"({"n_layer": 2000000000})")},
           {"config.json", "n_head = 3", config_with(R"({"n_head": 3})")},
           {"config.json", "vocab_size", config_with(R"({"vocab_size": "many"})")},
           {"config.json", "h.8.ln_1.weight", config_with(R"({"n_layer": 9})")},
           {"config.json", "wte.weight", config_with(R"({"vocab_size": 9000})")},
           {"config.json", "wpe.weight", config_with(R"({"n_positions": 1024})")},
           {"tokenizer.json", "there is no tokenizer in", ""},
           {"tokenizer.json", "tokenizer.json", "{}"},
       }) {
    SCOPED_TRACE(testing::Message() << row.file << ": " << row.words);
    TempFolder folder;
    lay_out(folder.path() / "model", {{row.file, row.bytes}});
    Program program(folder);
    Ended ended = program.run({"generate", "model", "--prompt", "Once", "--max-tokens", "2"});
    EXPECT_EQ(ended.status, 1) << ended.notes;
    EXPECT_NE(ended.notes.find("error: "), std::string::npos) << ended.notes;
    EXPECT_NE(ended.notes.find(row.words), std::string::npos) << ended.notes;
    EXPECT_NE(ended.notes.find("\n  needs: "), std::string::npos) << ended.notes;
    if (row.file != std::string("tokenizer.json")) {
      ended = program.run({"convert_weight", "model", "--quantization", "q4f16_1", "-o", "out"});
      EXPECT_EQ(ended.status, 1) << ended.notes;
      EXPECT_FALSE(fs::exists(folder.path() / "out/tensor-cache.json"));
    }
  }
}

// A limit on the size of files stands for a full disk: writes fail with an error of the same kind.
TEST(Failures, AFullDiskLeavesNoFileThatPassesForAWholeOne) {
  struct Row {
    std::vector<std::string> args;
    const char* result;
    int64_t limit_bytes;
  };
  const std::string model = kExample.string();
  for (const Row& row : std::vector<Row>{
           {{"convert_weight", model, "--quantization", "q4f16_1", "-o", "out"}, "tensor-cache.json", 1 << 20},
           {{"compile", model, "-o", "out/model.so"}, "model.so", 16 << 10},
           {{"generate", model, "--prompt", "Once", "--max-tokens", "2"}, ".so", 16 << 10},
           {{"logits", model, "--ids", "1,2,3", "-o", "out/l.npy"}, "l.npy", 64 << 10},
           {{"gen_config", model, "--quantization", "f16", "-o", "out"}, "mlc-chat-config.json", 4 << 10},
           {{"study", model, "--shapes-only", "--quant", "f16", "--chip", "tpuv1", "-o", "out"}, "study.json", 4 << 10},
       }) {
    SCOPED_TRACE(row.args[0]);
    TempFolder folder;
    Program program(folder);
    const bool compiled_before = row.args[0] == "logits";  // so that its own file is the one that does not fit
    if (compiled_before) {
      ASSERT_EQ(program.run({"logits", model, "--ids", "1", "-o", "warm.npy"}).status, 0);
    }
    Ended ended = program.run(row.args, row.limit_bytes);
    EXPECT_EQ(ended.status, 1) << ended.notes;
    EXPECT_NE(ended.notes.find("error: "), std::string::npos) << ended.notes;
    EXPECT_NE(ended.notes.find("File too large"), std::string::npos) << ended.notes;
    EXPECT_EQ(files_below(folder.path(), ending_in(row.result)), std::vector<std::string>{});
    EXPECT_FALSE(has_temporaries(folder.path()));
    // With room again, the same command goes through.
    ended = program.run(row.args);
    EXPECT_EQ(ended.status, 0) << ended.notes;
    EXPECT_GE(files_below(folder.path(), ending_in(row.result)).size(), 1u);
  }
}

TEST(Failures, AFolderThatCannotBeMadeIsNamed) {
  TempFolder folder;
  Program program(folder);
  folder.write("file", "in the way");
  const std::string model = kExample.string();
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"convert_weight", model, "--quantization", "f16", "-o", "file"},
           {"gen_config", model, "--quantization", "f16", "-o", "file/below"},
           {"compile", model, "-o", "file/model.so"},
           {"logits", model, "--ids", "1", "-o", "file/l.npy"},
           {"study", model, "--shapes-only", "--quant", "f16", "--chip", "tpuv1", "-o", "file"},
       }) {
    Ended ended = program.run(args);
    EXPECT_EQ(ended.status, 1) << ended.notes;
    EXPECT_NE(ended.notes.find("cannot write file/"), std::string::npos) << ended.notes;
    EXPECT_NE(ended.notes.find("one of its folders is a file"), std::string::npos) << ended.notes;
  }
  EXPECT_EQ(read_file(folder.path() / "file"), "in the way");
}

TEST(Failures, AnInterruptedConversionIsNoModel) {
  TempFolder folder;
  Program program(folder);
  const fs::path out = folder.path() / "out";
  const std::vector<std::string> args = {
      "convert_weight", kExample.string(), "--quantization", "int4-group32", "-o", "out"};
  auto everything = [&] {
    std::map<std::string, std::string> bytes;
    for (const std::string& file : files_below(out, [](const std::string&) { return true; }))
      bytes[file] = read_file(out / file);
    return bytes;
  };
  auto has_partial = [&] { return has_temporaries(out); };
  // Other weights, and more of them.
  const std::vector<std::string> other = {"convert_weight", kExample.string(), "--quantization", "f32", "-o", "out"};
  // A conversion that is quicker than the interrupt is begun again, from what was there before.
  auto interrupted = [&](const std::function<void()>& restore) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      program.start(other);
      const bool in_time = program.interrupt_when(has_partial);
      Ended ended = program.end();
      if (in_time && ended.status != 0) return ended;
      restore();
    }
    ADD_FAILURE() << "20 conversions ended before they could be interrupted";
    return Ended{};
  };
  Ended ended = interrupted([&] { fs::remove_all(out); });
  EXPECT_EQ(ended.status, 130) << ended.notes;
  EXPECT_NE(ended.notes.find("interrupted"), std::string::npos) << ended.notes;
  EXPECT_TRUE(everything().empty());
  ASSERT_EQ(program.run(args).status, 0);
  const std::map<std::string, std::string> whole = everything();
  EXPECT_TRUE(whole.contains("tensor-cache.json"));

  // Cut short, a second conversion into the same folder leaves the first as it is; so does a disk that is full.
  ended = program.run(other, 20 << 20);
  EXPECT_EQ(ended.status, 1) << ended.notes;
  EXPECT_EQ(everything(), whole);
  ended = interrupted([&] { EXPECT_EQ(program.run(args).status, 0); });
  EXPECT_EQ(ended.status, 130) << ended.notes;
  EXPECT_EQ(everything(), whole);

  // When it is through, nothing of the first is left; and back.
  ASSERT_EQ(program.run(other).status, 0);
  EXPECT_GT(everything().size(), whole.size());
  EXPECT_NE(everything(), whole);
  ASSERT_EQ(program.run(args).status, 0);
  EXPECT_EQ(everything(), whole);
}

// MLC-LLM's commands take a model's folder or the configuration in it, also by its bare name.
TEST(Failures, AConfigurationNamesItsFolder) {
  TempFolder folder;
  Program program(folder);
  lay_out(folder.path(), {});
  EXPECT_EQ(program.run({"compile", "config.json", "-o", "out/model.so"}).status, 0);
  EXPECT_EQ(program.run({"convert_weight", "config.json", "--quantization", "q4f16_1", "-o", "out"}).status, 0);
  EXPECT_EQ(program.run({"gen_config", "./config.json", "--quantization", "q4f16_1", "-o", "out"}).status, 0);
  const std::vector<std::string> text = {"--prompt", "Once upon", "--max-tokens", "3", "--greedy"};
  std::vector<std::string> outputs;
  for (const char* model : {"out", "out/mlc-chat-config.json"}) {
    std::vector<std::string> args = {"generate", model};
    args.insert(args.end(), text.begin(), text.end());
    Ended ended = program.run(args);
    EXPECT_EQ(ended.status, 0) << ended.notes;
    outputs.push_back(ended.out);
  }
  EXPECT_TRUE(outputs[0].starts_with("Once upon")) << outputs[0];
  EXPECT_EQ(outputs[0], outputs[1]);
  // The checkpoint may lie elsewhere.
  lay_out(folder.path() / "alone", {{"model.safetensors", ""}});
  lay_out(folder.path() / "weights", {{"config.json", ""}, {"tokenizer.json", ""}});
  const std::vector<std::string> from = {
      "convert_weight", "alone/config.json", "--source", "weights", "--quantization", "q4f16_1", "-o", "again"};
  EXPECT_EQ(program.run(from).status, 0);
  EXPECT_EQ(read_file(folder.path() / "again/tensor-cache.json"), read_file(folder.path() / "out/tensor-cache.json"));
  Ended ended = program.run({"compile", "tokenizer.json", "-o", "x.so"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.notes.find("tokenizer.json is neither a folder nor"), std::string::npos) << ended.notes;
}

TEST(Failures, AnEmptyPromptNeedsATokenToBeginWith) {
  TempFolder folder;
  Program program(folder);
  lay_out(folder.path() / "none",
          {{"config.json", config_with(R"({"bos_token_id": null})")},
           {"generation_config.json", ""},
           {"tokenizer_config.json", ""}});
  lay_out(folder.path() / "config", {{"generation_config.json", ""}, {"tokenizer_config.json", ""}});
  const std::vector<std::string> rest = {"--prompt", "", "--greedy", "--max-tokens", "3", "--json", "g.json"};
  auto generate = [&](const std::string& model) {
    std::vector<std::string> args = {"generate", model};
    args.insert(args.end(), rest.begin(), rest.end());
    return program.run(args);
  };
  Ended ended = generate("none");
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.notes.find("the prompt is empty"), std::string::npos) << ended.notes;
  ended = generate("config");
  EXPECT_EQ(ended.status, 0) << ended.notes;
  // config.json's bos_token_id.
  EXPECT_EQ(nlohmann::json::parse(read_file(folder.path() / "g.json"))["prompt_ids"], nlohmann::json::array({0}));
}

TEST(Failures, AShortContextHasShortWindows) {
  TempFolder folder;
  Program program(folder);
  const std::string model = kExample.string();
  ASSERT_EQ(program.run({"convert_weight", model, "--quantization", "f16", "-o", "out"}).status, 0);
  ASSERT_EQ(
      program.run({"gen_config", model, "--quantization", "f16", "--context-window-size", "48", "-o", "out"}).status,
      0);
  std::string text;
  for (int i = 0; i < 30; ++i) text += "Once upon a time there was a small town.\n";
  folder.write("text.txt", text);
  Ended ended = program.run({"perplexity", "out", "--text", "text.txt", "--json", "p.json"});
  ASSERT_EQ(ended.status, 0) << ended.notes;
  EXPECT_NE(ended.out.find("windows of 48 tokens"), std::string::npos) << ended.out;
  const auto p = nlohmann::json::parse(read_file(folder.path() / "p.json"));
  EXPECT_EQ(p["window_tokens"], 48);
  EXPECT_GT(p["windows"], 2);
  EXPECT_EQ(p["predictions"], p["windows"].get<int>() * 47);
  folder.write("text.txt", "Once upon a time.");
  ended = program.run({"perplexity", "out", "--text", "text.txt"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.notes.find("less than one window of 48"), std::string::npos) << ended.notes;
}

TEST(Failures, AnInterruptedStudyGoesOnWhereItWas) {
  TempFolder folder;
  Program program(folder);
  const std::vector<std::string> args = {"study",
                                         kExample.string(),
                                         "--quant",
                                         "f16",
                                         "--quant",
                                         "int8-channel",
                                         "--chip",
                                         "tpuv1",
                                         "--windows",
                                         "1",
                                         "--prompt-len",
                                         "32",
                                         "--gen-len",
                                         "8",
                                         "-o",
                                         "out"};
  program.start(args);
  ASSERT_TRUE(program.interrupt_when(
      [&] { return read_file(folder.path() / "notes.txt").find("[2/2]") != std::string::npos; }));
  Ended ended = program.end();
  EXPECT_EQ(ended.status, 130) << ended.notes;
  EXPECT_NE(ended.notes.find("interrupted"), std::string::npos) << ended.notes;
  for (const char* name : {"study.json", "study.csv", "kernels.csv", "index.html"})
    EXPECT_FALSE(fs::exists(folder.path() / "out" / name)) << name;
  EXPECT_FALSE(has_temporaries(folder.path()));

  ended = program.run(args);
  EXPECT_EQ(ended.status, 0) << ended.notes;
  // Qualities and speeds were finished and are taken up; costing goes on.
  EXPECT_NE(ended.notes.find("quality measured by an earlier run: f16, int8-channel\n"), std::string::npos)
      << ended.notes;
  EXPECT_NE(ended.notes.find("speeds here measured"), std::string::npos) << ended.notes;
  EXPECT_NE(ended.notes.find("[2/2] int8-channel: costing"), std::string::npos) << ended.notes;
  const auto rows = nlohmann::json::parse(read_file(folder.path() / "out/study.json"))["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["scheme"], "f16");
  EXPECT_GT(rows[0]["perplexity"], 1);

  // A part that was damaged since is made again, with a remark, and the figures are the same.
  for (const std::string& part :
       files_below(folder.path() / "out/.parts", [](const std::string& f) { return f.starts_with("f16@"); }))
    write_file(folder.path() / "out/.parts" / part, "{\"rows\": [");
  ended = program.run(args);
  EXPECT_EQ(ended.status, 0) << ended.notes;
  EXPECT_NE(ended.notes.find("is damaged and made anew"), std::string::npos) << ended.notes;
  const auto again = nlohmann::json::parse(read_file(folder.path() / "out/study.json"))["rows"];
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0]["prefill"], rows[0]["prefill"]);
  EXPECT_EQ(again[0]["perplexity"], rows[0]["perplexity"]);
}

TEST(Failures, ALibraryThatWasCutOffIsRefused) {
  TempFolder folder;
  Program program(folder);
  const std::string model = kExample.string();
  ASSERT_EQ(program.run({"compile", model, "-o", "model.so"}).status, 0);
  const std::string whole = read_file(folder.path() / "model.so");
  for (size_t size : {size_t{0}, size_t{100}, whole.size() / 2}) {
    write_file(folder.path() / "model.so", whole.substr(0, size));
    Ended ended = program.run({"generate", model, "--prompt", "Once", "--max-tokens", "2", "--model-lib", "model.so"});
    EXPECT_EQ(ended.status, 1) << size << ": " << ended.notes;
    EXPECT_NE(ended.notes.find("error: model library model.so"), std::string::npos) << ended.notes;
  }
}

}  // namespace
}  // namespace sator::cli
