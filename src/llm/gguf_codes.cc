#include "llm/gguf_codes.h"

#include <cstring>

#include "base/error.h"

namespace sator::llm {

using runtime::Tensor;

namespace {

uint16_t half_at(const uint8_t* bytes) {
  uint16_t v;
  std::memcpy(&v, bytes, 2);
  return v;
}

/// 32 nibbles: those of the low halves of 16 bytes, then those of the high ones.
void nibbles(const uint8_t* bytes, uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = bytes[i] & 15;
    codes[16 + i] = bytes[i] >> 4;
  }
}
/// The same, and a fifth bit each, of a word of 32 bits.
void five_bits(const uint8_t* fifth, const uint8_t* bytes, uint8_t* codes) {
  nibbles(bytes, codes);
  uint32_t bits;
  std::memcpy(&bits, fifth, 4);
  for (int i = 0; i < 32; ++i) codes[i] |= static_cast<uint8_t>((bits >> i & 1) << 4);
}

uint16_t negated(uint16_t half) { return half ^ 0x8000; }

void read_q4_0(const uint8_t* b, GgufBlock& out) {
  out.scale = half_at(b);
  nibbles(b + 2, out.codes);
}
void read_q4_1(const uint8_t* b, GgufBlock& out) {
  out.scale = half_at(b), out.minimum = negated(half_at(b + 2));  // which is added there
  nibbles(b + 4, out.codes);
}
void read_q5_0(const uint8_t* b, GgufBlock& out) {
  out.scale = half_at(b);
  five_bits(b + 2, b + 6, out.codes);
}
void read_q5_1(const uint8_t* b, GgufBlock& out) {
  out.scale = half_at(b), out.minimum = negated(half_at(b + 2));
  five_bits(b + 4, b + 8, out.codes);
}
void read_q8_0(const uint8_t* b, GgufBlock& out) {
  out.scale = half_at(b);
  for (int i = 0; i < 32; ++i) out.codes[i] = static_cast<uint8_t>(b[2 + i] + 128);
}

/// Two bits each: 128 elements share 32 bytes, 32 of them each pair of bits.
void two_bits(const uint8_t* bytes, uint8_t* codes) {
  for (int i = 0; i < 256; ++i) codes[i] = bytes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}
void read_q2_k(const uint8_t* b, GgufBlock& out) {
  for (int g = 0; g < 16; ++g) {
    out.scales[g] = static_cast<int8_t>(b[g] & 15);
    out.minima[g] = static_cast<int8_t>(b[g] >> 4);
  }
  two_bits(b + 16, out.codes);
  out.scale = half_at(b + 80), out.minimum = half_at(b + 82);
}
void read_q3_k(const uint8_t* b, GgufBlock& out) {
  two_bits(b + 32, out.codes);
  for (int i = 0; i < 256; ++i) out.codes[i] |= static_cast<uint8_t>((b[i % 32] >> (i / 32) & 1) << 2);
  const uint8_t* s = b + 96;  // 16 scales of 6 bits: four of each in 8 bytes, two of four in the next 4
  for (int g = 0; g < 16; ++g) {
    const int low = s[g % 8] >> (g / 8 * 4) & 15, high = s[8 + g % 4] >> (g / 4 * 2) & 3;
    out.scales[g] = static_cast<int8_t>((low | high << 4) - 32);
  }
  out.scale = half_at(b + 108);
}

/// Scales and minima of 6 bits of eight groups in 12 bytes.
void six_bit_pairs(const uint8_t* s, GgufBlock& out) {
  for (int g = 0; g < 4; ++g) {
    out.scales[g] = static_cast<int8_t>(s[g] & 63);
    out.minima[g] = static_cast<int8_t>(s[4 + g] & 63);
    out.scales[4 + g] = static_cast<int8_t>((s[8 + g] & 15) | (s[g] >> 2 & 48));
    out.minima[4 + g] = static_cast<int8_t>((s[8 + g] >> 4) | (s[4 + g] >> 2 & 48));
  }
}
/// Nibbles of 256 elements: 64 share 32 bytes.
void many_nibbles(const uint8_t* bytes, uint8_t* codes) {
  for (int i = 0; i < 256; ++i) codes[i] = bytes[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
}
void read_q4_k(const uint8_t* b, GgufBlock& out) {
  out.scale = half_at(b), out.minimum = half_at(b + 2);
  six_bit_pairs(b + 4, out);
  many_nibbles(b + 16, out.codes);
}
void read_q5_k(const uint8_t* b, GgufBlock& out) {
  out.scale = half_at(b), out.minimum = half_at(b + 2);
  six_bit_pairs(b + 4, out);
  many_nibbles(b + 48, out.codes);
  for (int i = 0; i < 256; ++i) out.codes[i] |= static_cast<uint8_t>((b[16 + i % 32] >> (i / 32) & 1) << 4);
}
void read_q6_k(const uint8_t* b, GgufBlock& out) {
  for (int i = 0; i < 256; ++i) {
    const int low = b[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
    const int high = b[128 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    out.codes[i] = static_cast<uint8_t>(low | high << 4);
  }
  for (int g = 0; g < 16; ++g) out.scales[g] = static_cast<int8_t>(b[192 + g]);
  out.scale = half_at(b + 208);
}
void read_iq4_xs(const uint8_t* b, GgufBlock& out) {
  out.scale = half_at(b);
  const uint16_t high = half_at(b + 2);
  for (int g = 0; g < 8; ++g) {
    const int low = b[4 + g / 2] >> (g % 2 * 4) & 15;
    out.scales[g] = static_cast<int8_t>((low | (high >> (2 * g) & 3) << 4) - 32);
    nibbles(b + 8 + 16 * g, out.codes + 32 * g);
  }
}
void read_mxfp4(const uint8_t* b, GgufBlock& out) {
  out.scale = mxfp4_scale(b[0]);
  nibbles(b + 1, out.codes);
}

IntegerFormat blocks_of_32(int bits, int zero, bool minimum = false) {
  return {.bits = bits,
          .granularity = Granularity::group,
          .group = 32,
          .scale_dtype = f16,
          .zero = zero,
          .minimum = minimum};
}
IntegerFormat super_blocks(int bits, int group, int zero, bool minimum = false) {
  return {.bits = bits,
          .granularity = Granularity::group,
          .group = group,
          .scale_dtype = i8,
          .zero = zero,
          .minimum = minimum,
          .super_block = 256};
}
IntegerFormat with_codebook(IntegerFormat f, Codebook codebook, DType scale_dtype) {
  f.codebook = codebook;
  f.scale_dtype = scale_dtype;
  return f;
}

const std::vector<GgufFormat>& formats() {
  static const std::vector<GgufFormat> rows = {
      {"Q4_0", blocks_of_32(4, 8), read_q4_0},
      {"Q4_1", blocks_of_32(4, 0, true), read_q4_1},
      {"Q5_0", blocks_of_32(5, 16), read_q5_0},
      {"Q5_1", blocks_of_32(5, 0, true), read_q5_1},
      {"Q8_0", blocks_of_32(8, 128), read_q8_0},
      {"Q2_K", super_blocks(2, 16, 0, true), read_q2_k},
      {"Q3_K", super_blocks(3, 16, 4), read_q3_k},
      {"Q4_K", super_blocks(4, 32, 0, true), read_q4_k},
      {"Q5_K", super_blocks(5, 32, 0, true), read_q5_k},
      {"Q6_K", super_blocks(6, 16, 32), read_q6_k},
      {"IQ4_NL", with_codebook(blocks_of_32(4, 0), Codebook::nl4, f16), read_q4_0},
      {"IQ4_XS", with_codebook(super_blocks(4, 32, 0), Codebook::nl4, i8), read_iq4_xs},
      {"MXFP4", mxfp4_format(), read_mxfp4},
  };
  return rows;
}

}  // namespace

const GgufFormat* gguf_format(std::string_view type) {
  for (const GgufFormat& f : formats())
    if (f.type == type) return &f;
  return nullptr;
}

QuantizedMatrix read_gguf_codes(const GgufTensor& t, const GgufFormat& how, const std::vector<int64_t>& row_order) {
  const IntegerFormat& f = how.format;
  const int64_t rows = t.shape.front(), cols = t.shape.back(), blocks = cols / t.type->block_elements;
  QuantizedMatrix q{.format = f, .rows = rows, .cols = cols, .parts = {}};
  for (const MatrixPart& p : parts_of(f, rows, cols)) q.parts[p.part] = Tensor::empty(p.shape, p.dtype);
  Tensor& codes = *q.parts.at(ParamPart::codes);
  std::memset(codes.data(), 0, static_cast<size_t>(codes.size_bytes()));
  const int64_t words = words_per_row(cols, f.bits), groups = t.type->block_elements / f.group;
  const bool super = f.super_block > 0;
  auto halves = [&](ParamPart part) {
    return q.parts.contains(part) ? q.parts.at(part)->data_as<uint16_t>() : nullptr;
  };
  uint16_t *const scale = halves(super ? ParamPart::super_scale : ParamPart::scale), *const minimum = halves(
                                                                                         super
                                                                                             ? ParamPart::super_minimum
                                                                                             : ParamPart::minimum);
  auto bytes = [&](ParamPart part) {
    return super && q.parts.contains(part) ? q.parts.at(part)->data_as<int8_t>() : nullptr;
  };
  int8_t *const scales = bytes(ParamPart::scale), *const minima = bytes(ParamPart::minimum);
  GgufBlock block;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t from = row_order.empty() ? row : row_order[static_cast<size_t>(row)];
    const auto* at = reinterpret_cast<const uint8_t*>(t.bytes.data()) + from * blocks * t.type->block_bytes;
    uint32_t* to = codes.data_as<uint32_t>() + row * words;
    for (int64_t b = 0; b < blocks; ++b, at += t.type->block_bytes) {
      how.read(at, block);
      for (int64_t i = 0; i < t.type->block_elements; ++i)
        put_code(to, b * t.type->block_elements + i, f.bits, block.codes[i]);
      const int64_t number = row * blocks + b;
      scale[number] = block.scale;
      if (minimum) minimum[number] = block.minimum;
      if (scales) std::memcpy(scales + number * groups, block.scales, static_cast<size_t>(groups));
      if (minima) std::memcpy(minima + number * groups, block.minima, static_cast<size_t>(groups));
    }
  }
  return q;
}

}  // namespace sator::llm
