#include "llm/gguf_codes.h"

#include <gtest/gtest.h>

#include <cstring>

#include "reference_data.h"

namespace sator::llm {
namespace {

/// Random blocks of each type, and their values by the NumPy code of llama.cpp's package (tools/make_gguf_references.py).
TEST(GgufCodes, ValuesAreThoseOfTheGgufPackageBitForBit) {
  const fs::path folder = reference_data("models/gguf/blocks");
  int types = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    SCOPED_TRACE(entry.path().filename().string());
    fs::path values = entry.path();
    values.replace_extension(".safetensors");
    const SafeTensors reference = SafeTensors::open(values);
    const std::vector<float> want = to_f32(reference.get("values").bytes, f32);
    const GgufFile file = GgufFile::open(entry.path());
    const GgufTensor& t = *file.find("matrix");
    ASSERT_EQ(t.shape, (std::vector<int64_t>{5, 512}));
    ++types;
    const GgufFormat* format = gguf_format(t.type->name);
    if (!format) {  // floats
      EXPECT_EQ(to_f32(t.bytes, t.type->name == "F32" ? f32 : t.type->name == "F16" ? f16 : bf16), want);
      continue;
    }
    const QuantizedMatrix q = read_gguf_codes(t, *format, {});
    EXPECT_EQ(dequantize(q), want);
    // Codes take as many bits as in the file; scales of less than eight (Q2_K has four) take eight.
    int64_t bytes = 0;
    for (const auto& [part, tensor] : q.parts) bytes += tensor->size_bytes();
    EXPECT_LE(static_cast<double>(bytes), 1.2 * static_cast<double>(t.bytes.size()));
    // Rows in another order.
    const std::vector<float> turned = dequantize(read_gguf_codes(t, *format, {4, 3, 2, 1, 0}));
    EXPECT_TRUE(std::equal(turned.begin(), turned.begin() + 512, want.end() - 512));
  }
  EXPECT_EQ(types, 16);
}

}  // namespace
}  // namespace sator::llm
