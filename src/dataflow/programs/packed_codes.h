// Codes that are packed into words, as accesses see them.
#pragma once

#include "dataflow/counts/relation.h"

namespace sator::dataflow {

/// Accesses to words of codes as accesses to the codes. False where a reference does not say which code it means.
///   bits, word_bits   of a code, and of the word in which several lie
bool unpack(Access& access, int64_t bits, int64_t word_bits);

}  // namespace sator::dataflow
