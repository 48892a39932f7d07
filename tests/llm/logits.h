// The logits of a model beside those of a reference that was computed elsewhere.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/float16.h"
#include "llm/open.h"
#include "reference_data.h"

namespace sator::llm {

inline std::vector<int32_t> ids_of(const SafeTensor& t) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (t.dtype == i64) {
      int64_t v;
      std::memcpy(&v, t.bytes.data() + 8 * i, 8);
      ids.push_back(static_cast<int32_t>(v));
    } else {
      int32_t v;
      std::memcpy(&v, t.bytes.data() + 4 * i, 4);
      ids.push_back(v);
    }
  }
  return ids;
}

inline fs::path reference_model(const std::string& name) { return reference_data("models/" + name); }

/// The largest difference of our logits to the reference's, over all sequences of a file.
///   all   the reference has every position's logits; else only the last one's
inline double largest_difference(const fs::path& folder, const fs::path& file, bool all,
                                 std::optional<int64_t> chunk = {}, const std::optional<Scheme>& scheme = {},
                                 const std::optional<fs::path>& adapter = {}, std::optional<DType> cache = {}) {
  OpenOptions options{.adapter = adapter};
  if (scheme) options.scheme = *scheme;
  options.program.prefill_chunk = chunk;
  options.program.cache_dtype = cache;
  OpenModel opened = open_model(folder, options);
  Session session = opened.session();
  SafeTensors expected = SafeTensors::open(file);
  double largest = 0;
  int sequences = 0;
  for (const SafeTensor& t : expected.tensors()) {
    if (!t.name.starts_with("input_ids_")) continue;
    std::string number = t.name.substr(10);
    const SafeTensor& want = expected.get((all ? "logits_" : "last_logits_") + number);
    std::vector<int32_t> ids = ids_of(t);
    int64_t vocab = opened.limits.vocab_size, last = static_cast<int64_t>(ids.size()) - 1;
    session.reset();
    session.append_all(ids, [&](int64_t i, std::span<const float> row) {
      if (!all && i != last) return;
      for (int64_t v = 0; v < vocab; ++v) {
        float w;
        std::memcpy(&w, want.bytes.data() + 4 * ((all ? i * vocab : 0) + v), 4);
        largest = std::max(largest, std::fabs(static_cast<double>(row[static_cast<size_t>(v)]) - w));
      }
    });
    // The last token's logits alone, prefilled and decoded token by token, are the same numbers.
    session.reset();
    std::span<const float> prefilled = session.append(ids);
    std::vector<float> at_once(prefilled.begin(), prefilled.end());
    session.reset();
    std::span<const float> decoded;
    for (int32_t id : ids) decoded = session.append({&id, 1});
    for (size_t v = 0; v < at_once.size(); ++v)
      largest = std::max(largest, std::fabs(static_cast<double>(at_once[v]) - decoded[v]));
    ++sequences;
  }
  EXPECT_GE(sequences, 3);
  return largest;
}

inline double largest_logit(const fs::path& file) {
  double largest = 0;
  const SafeTensors expected = SafeTensors::open(file);
  for (const SafeTensor& t : expected.tensors())
    if (t.name.starts_with("logits_"))
      for (float v : to_f32(t.bytes, t.dtype)) largest = std::max(largest, std::fabs(static_cast<double>(v)));
  return largest;
}

}  // namespace sator::llm
