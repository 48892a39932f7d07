// Texts of a model that are documents of a schema.
#pragma once

#include "engine/generate.h"
#include "engine/json_schema/long_tokens.h"
#include "engine/tokenizer/tokenizer.h"

namespace sator::json_schema {

/// Lets a model generate documents of a schema. A token is taken only if the tokens that are left then suffice for the shortest way to the
/// document's end: it is whole wherever there is room for the shortest document. Before a minimum of tokens none is taken after which the document
/// could only end, as long as others may follow.
class JsonConstraint final : public TokenConstraint {
 public:
  ///   vocab_size  of the model: tokenizers may have fewer tokens
  JsonConstraint(std::shared_ptr<const Shapes> shapes, const Tokenizer& tokenizer, int64_t vocab_size);

  void restart(int64_t tokens, int64_t least) override;
  std::span<const uint64_t> allowed() override;
  bool take(int32_t id) override;
  bool is_complete() const override { return place_.is_complete(); }
  bool can_go_on() const override;
  bool is_whole(std::string_view text) const override;

 private:
  bool find_way(const Automaton& from, int64_t tokens);
  bool has_one_way() const;

  Automaton place_;
  TokenMasks masks_;
  LongTokens long_tokens_;
  std::vector<uint64_t> mask_;
  int64_t tokens_left_ = 0, missing_ = 0;  // at most so many, and at least
  std::vector<int32_t> way_;               // tokens that complete the document, the next one last
  std::vector<int32_t> refused_;           // tokens after which those that are left would not suffice
  std::vector<int32_t> early_;             // tokens after which the document could only end,
  std::vector<int32_t> over_;              // and those of them that end it
  bool may_end_ = false;                   // before the minimum, for nothing else may follow
};

}  // namespace sator::json_schema
