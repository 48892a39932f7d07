#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/model_options.h"

namespace sator::cli {

namespace {

struct LogitsArguments {
  ModelArguments model;
  std::vector<int64_t> ids;
  std::string output;
};

/// NumPy's format, version 1.0: f32 [rows, cols], row-major, little-endian.
std::string npy(const std::vector<float>& values, int64_t rows, int64_t cols) {
  std::string header = text("{'descr': '<f4', 'fortran_order': False, 'shape': (", rows, ", ", cols, "), }");
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return bytes;
}

void run(const LogitsArguments& a, Streams& io) {
  std::vector<int32_t> ids;
  for (int64_t id : a.ids) ids.push_back(static_cast<int32_t>(id));
  llm::OpenModel model = open(a.model, io);
  Session session = model.session();
  std::vector<float> all;
  session.append_all(ids, [&](int64_t position, std::span<const float> row) {
    if (std::ranges::any_of(row, [](float v) { return v != v; }))
      fail({.what = text("a logit of position ", position, " is not a number"),
            .needs = "weights and scales that are finite",
            .hint =
                "check the checkpoint: one of its tensors may hold NaN or infinity; if none does, a cache of 16 bits "
                "may be too narrow: --kv-cache float32"});
    all.insert(all.end(), row.begin(), row.end());
  });
  auto rows = static_cast<int64_t>(ids.size());
  write_file(a.output, npy(all, rows, model.limits.vocab_size));
  io.json = {{"positions", rows}, {"vocab_size", model.limits.vocab_size}, {"file", a.output}};
  io.notes << "float32[" << rows << ", " << model.limits.vocab_size << "] in " << a.output << "\n";
}

}  // namespace

Command logits_command() {
  auto a = std::make_shared<LogitsArguments>();
  std::vector<Option> options = model_options(a->model);
  options.push_back({.name = "--ids LIST",
                     .help = "token ids, separated by commas",
                     .into = &a->ids,
                     .required = true,
                     .range = between(0, INT32_MAX)});
  options.push_back(
      {.name = "-o,--output FILE", .help = "a .npy file", .into = &a->output, .required = true, .writes = true});
  return {.name = "logits",
          .does = "writes the logits of every position of a sequence of token ids",
          .options = std::move(options),
          .run = [a](Streams& io) { run(*a, io); }};
}

}  // namespace sator::cli
