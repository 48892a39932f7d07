#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/figures.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "engine/evaluate.h"

namespace sator::cli {

namespace {

struct BenchArguments {
  ModelArguments model;
  int64_t repeats = 3;
};

void run(const BenchArguments& a, Streams& io) {
  llm::OpenModel model = open(a.model, io);
  Session session = model.session();
  SpeedOptions options{.repeats = static_cast<int>(a.repeats)};
  const int64_t limit = model.limits.context_window;
  constexpr int64_t kSteps = 32, kRoom = 40;  // tokens that a decode figure generates; room it is given
  if (limit <= kRoom)
    fail({.what = text("the context window is ", counted(limit, "token")),
          .needs = text("more than the ", kRoom, " that a decode figure needs"),
          .hint = "measure a model with a longer context"});
  if (limit < 512 + kRoom)
    io.notes << "the context window is " << counted(limit, "token")
             << ": lengths beyond it are cut down to what it holds\n";
  auto tell = [&](const std::string& name, double speed) {
    char line[80];
    std::snprintf(line, sizeof line, "%-14s %10.1f tokens/s\n", name.c_str(), speed);
    io.out << line << std::flush;
    io.json[name] = speed;
  };
  // Of two lengths that are cut down to one, one figure.
  for (int64_t length : std::set{std::min<int64_t>(128, limit), std::min<int64_t>(512, limit)})
    tell(text("prefill", length), measure_prefill(session, length, options));
  for (int64_t length : std::set{std::min<int64_t>(16, limit - kRoom), std::min<int64_t>(512, limit - kRoom)})
    tell(text("decode_at", length), measure_decode(session, length, kSteps, options));
  io.json["load_s"] = model.load_s;
  io.json["bytes_per_token"] = model.bytes_per_token();
  io.json["threads"] = model.vm->pool().num_workers();
  io.json["quantization"] = model.scheme.name;
  char line[160];
  std::snprintf(line,
                sizeof line,
                "%-14s %10.2f s\n%-14s %10.2f MB\n",
                "load",
                model.load_s,
                "per token",
                static_cast<double>(model.bytes_per_token()) / 1e6);
  io.out << line;
}

}  // namespace

Command bench_command() {
  auto a = std::make_shared<BenchArguments>();
  std::vector<Option> options = model_options(a->model);
  options.push_back({"--repeats N", "timed runs per figure; the median counts", &a->repeats, false, {}, at_least(1)});
  return {
      .name = "bench",
      .does = "measures prefill and decode speed, as llama-bench does",
      .options = std::move(options),
      .run = [a](Streams& io) { run(*a, io); },
      .details =
          "Random token ids; no tokenizer is needed. prefill128 and prefill512 process a prompt of that length and\n"
          "compute the last token's logits; decode_at16 and decode_at512 generate from that much context on.\n"
          "Of a model with a shorter context the figures are called by the lengths that it has.",
      .also = {"benchmark", "llama-bench", "speed"}};
}

}  // namespace sator::cli
