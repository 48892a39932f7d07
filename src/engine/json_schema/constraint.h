// Texts of a model that are documents of a schema.
#pragma once

#include "engine/generate.h"
#include "engine/json_schema/token_masks.h"
#include "engine/tokenizer/tokenizer.h"

namespace sator::json_schema {

/// Lets a model generate documents of a schema. Where tokens run out the document is completed by the shortest way, so that it is whole
/// wherever there was room for the shortest document and some more.
class JsonConstraint final : public TokenConstraint {
 public:
  ///   vocab_size  of the model: tokenizers may have fewer tokens
  JsonConstraint(std::shared_ptr<const Shapes> shapes, const Tokenizer& tokenizer, int64_t vocab_size);

  void restart() override;
  std::span<const uint64_t> allowed(int64_t tokens_left) override;
  void take(int32_t id) override;
  bool is_complete() const override { return place_.is_complete(); }
  bool can_go_on() const override { return place_.can_go_on(); }

 private:
  Automaton place_;
  TokenMasks masks_;
  std::vector<uint64_t> forced_;
  int64_t slack_ = 0;
};

}  // namespace sator::json_schema
