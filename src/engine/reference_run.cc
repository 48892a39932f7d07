#include "engine/reference_run.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace sator {

static constexpr std::string_view kFirstLine = "sator reference run 2\n";

ReferenceWriter::ReferenceWriter(const fs::path& path, int64_t vocab, const std::string& task) : file_(path) {
  write(text(kFirstLine, Json{{"vocab", vocab}, {"task", task}}.dump(), "\n"));
}

void ReferenceWriter::write(std::string_view bytes) {
  digest_.add(bytes);
  file_.write(bytes);
}

void ReferenceWriter::add(std::span<const float> logits) {
  write({reinterpret_cast<const char*>(logits.data()), logits.size_bytes()});
}

void ReferenceWriter::finish() {
  file_.write(seal_of(digest_));
  file_.finish();
}

ReferenceRun::ReferenceRun(const fs::path& path, int64_t vocab, const std::string& task)
    : file_(MappedFile::open(path)), row_(static_cast<size_t>(vocab)) {
  const std::string_view all(reinterpret_cast<const char*>(file_->bytes().data()), file_->bytes().size());
  if (!all.starts_with(kFirstLine))
    fail({.what = text(path.string(), " is no reference run"),
          .needs = "a file that `sator eval --write-reference` wrote"});
  const std::string_view bytes = unsealed(all).value_or("");
  const size_t end = bytes.substr(0, 4096).find('\n', std::min(bytes.size(), kFirstLine.size()));
  if (end == bytes.npos)
    fail({.what = text(path.string(), " is cut off or damaged"),
          .needs = "the file as it was written",
          .hint = "write it anew: --write-reference"});
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
  predictions_ = static_cast<int64_t>((bytes.size() - begin_) / (row_.size() * sizeof(float)));
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
