#include "engine/reference_run.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace sator {

static constexpr std::string_view kFirstLine = "sator reference run 1\n";

ReferenceWriter::ReferenceWriter(const fs::path& path, int64_t vocab, const std::string& task) : file_(path) {
  file_.write(kFirstLine);
  file_.write(Json{{"vocab", vocab}, {"task", task}}.dump() + "\n");
}

void ReferenceWriter::add(std::span<const float> logits) {
  file_.write({reinterpret_cast<const char*>(logits.data()), logits.size_bytes()});
}

ReferenceRun::ReferenceRun(const fs::path& path, int64_t vocab, const std::string& task)
    : file_(MappedFile::open(path)), row_(static_cast<size_t>(vocab)) {
  const std::string_view bytes(reinterpret_cast<const char*>(file_->bytes().data()), file_->bytes().size());
  const size_t end = bytes.substr(0, 4096).find('\n', kFirstLine.size());
  if (!bytes.starts_with(kFirstLine) || end == bytes.npos)
    fail({.what = text(path.string(), " is no reference run"),
          .needs = "a file that `sator eval --write-reference` wrote"});
  const Json head = parse_json(bytes.substr(kFirstLine.size(), end - kFirstLine.size()), path.string());
  const JsonAt at(head, path.string());
  if (at.at("vocab").integer() != vocab)
    fail({.what = text(
              path.string(), " is of a vocabulary of ", at.at("vocab").integer(), " tokens, the model's has ", vocab),
          .needs = "a run of the same model"});
  if (at.at("task").string() != task)
    fail({.what = text(path.string(), " is of another task, or of another tokenizer"),
          .needs = "a run of the same items",
          .hint = "write it anew: --write-reference"});
  begin_ = end + 1;
  const size_t row_bytes = row_.size() * sizeof(float), rest = bytes.size() - begin_;
  if (rest % row_bytes != 0)
    fail({.what = text(path.string(), " is cut off"),
          .needs = "a whole file",
          .hint = "write it anew: --write-reference"});
  predictions_ = static_cast<int64_t>(rest / row_bytes);
}

std::span<const float> ReferenceRun::logits(int64_t prediction) {
  if (prediction < 0 || prediction >= predictions_)
    fail({.what = text("the reference run has ", predictions_, " predictions, and more are compared with it"),
          .needs = "a run of the same items, all of them"});
  std::memcpy(row_.data(),
              file_->bytes().data() + begin_ + static_cast<size_t>(prediction) * row_.size() * sizeof(float),
              row_.size() * sizeof(float));
  return row_;
}

}  // namespace sator
