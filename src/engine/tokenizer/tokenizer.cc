#include "engine/tokenizer/tokenizer.h"

#include <algorithm>

#include "base/error.h"
#include "base/interrupt.h"
#include "engine/tokenizer/parts.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

namespace {

/// Pieces longer than this are not worth keeping: they do not come again.
constexpr size_t kCachedBytes = 64;

/// Encodes pieces; words come again and again, so their ids are copied from where they last went out.
class PieceEncoder {
 public:
  PieceEncoder(const TokenModel& model, std::vector<int32_t>& out) : model_(model), out_(out) {}

  void encode(std::string_view piece) {
    if (piece.size() <= kCachedBytes) return encode_cached(piece);
    model_.each_part(piece, [&](std::string_view part) {
      if (part.size() <= kCachedBytes)
        encode_cached(part);
      else
        model_.encode(part, out_);
    });
  }

 private:
  void encode_cached(std::string_view piece) {
    auto known = seen_.find(piece);
    if (known != seen_.end()) {
      auto [begin, count] = known->second;
      out_.resize(out_.size() + count);
      std::copy_n(out_.begin() + static_cast<ptrdiff_t>(begin), count, out_.end() - static_cast<ptrdiff_t>(count));
      return;
    }
    size_t begin = out_.size();
    model_.encode(piece, out_);
    seen_.emplace(piece, std::pair(begin, out_.size() - begin));
  }

  const TokenModel& model_;
  std::vector<int32_t>& out_;
  TextMap<std::pair<size_t, size_t>> seen_;
};

}  // namespace

std::vector<int32_t> Tokenizer::encode(std::string_view bytes, bool add_special_tokens) const {
  const Parts& p = *parts_;
  std::string repaired;
  if (!is_valid_utf8(bytes)) {
    repaired = lossy_utf8(bytes);
    bytes = repaired;
  }
  std::vector<int32_t> ids;
  if (add_special_tokens) ids = p.before;
  PieceEncoder encoder(*p.model, ids);
  std::vector<TokenSplit> raw, inner;
  RareInterruptCheck check;
  p.added.split_raw(bytes, raw);
  for (const TokenSplit& outer : raw) {
    if (outer.id >= 0) {
      ids.push_back(outer.id);
      continue;
    }
    NormalText normal{.text = std::string(outer.text), .at_start = outer.begin == 0};
    if (p.normalize) p.normalize(normal);
    p.added.split_normalized(normal.text, inner);
    for (const TokenSplit& split : inner) {
      if (split.id >= 0) {
        ids.push_back(split.id);
        continue;
      }
      Pieces pieces(std::string(split.text), outer.begin == 0 && split.begin == 0 && normal.keeps_begin);
      if (p.pre_tokenize) p.pre_tokenize(pieces);
      for (const Pieces::Piece& piece : pieces.pieces) {
        check();
        encoder.encode(pieces.view(piece));
      }
    }
  }
  if (add_special_tokens) ids.insert(ids.end(), p.after.begin(), p.after.end());
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (int32_t id : ids) {
    if (skip_special_tokens && is_special(id)) continue;
    if (auto token = token_of(id)) tokens.emplace_back(*token);
  }
  if (!parts_->decode) return join(tokens, " ");
  parts_->decode(tokens);
  return join(tokens, "");
}

int64_t Tokenizer::vocab_size() const {
  return static_cast<int64_t>(parts_->model->vocabulary().size() + parts_->added.beyond_model());
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  if (auto id = parts_->added.id_of(token)) return id;
  return parts_->model->vocabulary().id_of(token);
}

std::optional<std::string_view> Tokenizer::token_of(int32_t id) const {
  if (const AddedToken* added = parts_->added.find(id)) return added->shown;
  if (const std::string* token = parts_->model->vocabulary().token_of(id)) return *token;
  return {};
}

std::string Tokenizer::bytes_of(int32_t id) const {
  const auto token = token_of(id);
  if (!token) return {};
  return parts_->bytes ? parts_->bytes(*token) : text(" ", *token);
}

bool Tokenizer::is_special(int32_t id) const { return parts_->added.is_special(id); }

const std::vector<int32_t>& Tokenizer::ids_before() const { return parts_->before; }
const std::vector<int32_t>& Tokenizer::ids_after() const { return parts_->after; }
std::optional<int32_t> Tokenizer::bos_id() const { return parts_->bos; }
std::optional<int32_t> Tokenizer::eos_id() const { return parts_->eos; }

void StreamDecoder::begin_after(std::span<const int32_t> ids) {
  window_.assign(ids.begin(), ids.end());
  shown_ = window_.size();
  shown_text_ = tokenizer_.decode(window_, skip_special_tokens_);
}

std::string StreamDecoder::push(int32_t id) {
  window_.push_back(id);
  return advance(false);
}

std::string StreamDecoder::finish() { return advance(true); }

std::string StreamDecoder::advance(bool at_end) {
  if (shown_ == window_.size()) return {};
  std::string all = tokenizer_.decode(window_, skip_special_tokens_);
  // An incomplete character shows as U+FFFD at the end. It has at most three bytes, so it waits for three
  // more tokens; after that the bytes are known to be no character.
  bool incomplete = all.ends_with("\xef\xbf\xbd") && window_.size() - shown_ < 4;
  if (incomplete && !at_end) return {};
  if (!all.starts_with(shown_text_)) {
    // Some decoders take a run of bytes as a whole: with one that fits no character, the characters before it are none either.
    // But those are out, so what follows is decoded by itself.
    window_.erase(window_.begin(), window_.begin() + static_cast<ptrdiff_t>(shown_));
    shown_ = 0;
    shown_text_.clear();
    all = tokenizer_.decode(window_, skip_special_tokens_);
  }
  std::string fresh = all.substr(shown_text_.size());
  // Ids without a text of their own (special ones, or a space that is left out where a text begins) are no context:
  // the ids before them stay.
  const auto new_ids = window_.begin() + static_cast<ptrdiff_t>(shown_);
  std::string alone = fresh.empty() ? "" : tokenizer_.decode(std::span(new_ids, window_.end()), skip_special_tokens_);
  if (!alone.empty()) window_.erase(window_.begin(), new_ids);
  shown_ = window_.size();
  shown_text_ = alone.empty() ? std::move(all) : std::move(alone);
  return fresh;
}

}  // namespace sator
