#include "dataflow/programs/packed_codes.h"

#include <algorithm>
#include <optional>

namespace sator::dataflow {

namespace {

/// The code that a word's place speaks of: the word of bit p is floor(p / word_bits), and where p is one of the bits
/// b k .. b k + b - 1 it holds a part of code k.
std::optional<QuasiAffine> code_in(const QuasiAffine& word, int64_t bits, int64_t word_bits) {
  QuasiAffine bit = number(word.constant * word_bits);
  bool divided = false;
  for (const Term& t : word.terms) {
    const bool is_word =
        t.division && !t.division->remainder && t.coefficient == 1 && word_bits % t.division->divisor == 0;
    if (is_word && divided) return {};
    bit =
        bit + (is_word ? t.division->inner * (word_bits / t.division->divisor) : QuasiAffine{.terms = {t}} * word_bits);
    divided |= is_word;
  }
  if (!divided) return {};
  QuasiAffine code = number((bit.constant - ((bit.constant % bits) + bits) % bits) / bits);
  for (Term t : bit.terms) {
    if (t.coefficient % bits != 0) return {};
    t.coefficient /= bits;
    code.terms.push_back(std::move(t));
  }
  return code;
}

}  // namespace

bool unpack(Access& access, int64_t bits, int64_t word_bits) {
  std::vector<Map> codes;
  for (Map reference : access.references) {
    auto code = reference.empty() ? std::nullopt : code_in(reference.back(), bits, word_bits);
    if (!code) return false;
    reference.back() = *code;
    if (std::find(codes.begin(), codes.end(), reference) == codes.end()) codes.push_back(std::move(reference));
  }
  access.references = std::move(codes);
  return true;
}

}  // namespace sator::dataflow
