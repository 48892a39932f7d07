#include "engine/tokenizer/token_model.h"

#include "base/text.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/unigram.h"
#include "engine/tokenizer/wordpiece.h"

namespace sator {

namespace {

struct ModelRow {
  std::string_view type;
  std::string_view telling;  // old files do not say their type: the member that only this kind has
  std::shared_ptr<const TokenModel> (*read)(const JsonAt& at);
};
const ModelRow kModels[] = {
    {"BPE", "merges", Bpe::read},
    {"Unigram", "unk_id", Unigram::read},
    {"WordPiece", "continuing_subword_prefix", WordPiece::read},
    {"WordLevel", "", WordLevel::read},
};

}  // namespace

std::shared_ptr<const TokenModel> read_token_model(const JsonAt& at) {
  const std::string type = at.string_or("type", "");
  std::vector<std::string_view> names;
  for (const ModelRow& row : kModels) {
    if (row.type == type || (type.empty() && !row.telling.empty() && at.find(row.telling))) return row.read(at);
    names.push_back(row.type);
  }
  at.fail(type.empty() ? "does not say its type"
                       : text("is of type ", string_literal(type), ", a tokenizer model that is not supported"),
          text("one of ", join(names, ", ")));
}

}  // namespace sator
