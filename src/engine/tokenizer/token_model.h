#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/tokenizer/vocabulary.h"

namespace sator {

/// What turns a piece of text into ids: the last step of a tokenizer.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  /// Appends the ids of one piece, which is valid UTF-8.
  /// Errors: the piece holds what the vocabulary lacks, and there is no unknown token.
  virtual void encode(std::string_view piece, std::vector<int32_t>& out) const = 0;

  /// Cuts a piece where no token can ever reach across, and visits the parts in order: encoding them one by one
  /// gives what encoding the piece gives. (Text that no pre-tokenizer cut falls into its words.)
  virtual void each_part(std::string_view piece, const std::function<void(std::string_view part)>& visit) const {
    visit(piece);
  }

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;
};

/// The `model` of a tokenizer.json.
/// Errors: a kind of model that is not supported (named); what `read` of each kind says.
std::shared_ptr<const TokenModel> read_token_model(const JsonAt& at);

}  // namespace sator
