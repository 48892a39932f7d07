#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sator {

/// How many lanes a vector has: `count`, or `count` times the machine's vscale, which no compiler knows (Arm's SVE).
struct Lanes {
  int count = 1;
  bool scalable = false;

  constexpr Lanes(int count = 1, bool scalable = false) : count(count), scalable(scalable) {}
  bool operator==(const Lanes&) const = default;
  friend Lanes operator*(Lanes a, Lanes b) { return {a.count * b.count, a.scalable || b.scalable}; }
};

/// A scalar or vector element type, named as in TVMScript: "float32", "int8", "uint32", "bfloat16", "e4m3_float8",
/// "bool", "handle", and with lanes "float32x4", "float32xvscalex4". "void" is the absence of a value (statements,
/// unknown dtypes of graphs). The floats of 8 bits are those of Micikevicius et al., "FP8 formats for deep learning",
/// 2022: e4m3 has no infinities, and NaN where all bits but the sign are set; e5m2 is laid out as IEEE's are.
struct DType {
  enum class Code : uint8_t { none, int_, uint, float_, bfloat, bool_, handle, e4m3, e5m2 };
  Code code = Code::none;
  uint8_t bits = 0;
  uint16_t lanes = 1;
  bool is_scalable = false;  ///< `lanes` times vscale; then lanes > 1

  auto operator<=>(const DType&) const = default;

  bool is_void() const { return code == Code::none; }
  bool is_int() const { return code == Code::int_; }
  bool is_uint() const { return code == Code::uint; }
  /// Signed or unsigned integer; bool is not one.
  bool is_integer() const { return is_int() || is_uint(); }
  bool is_bool() const { return code == Code::bool_; }
  bool is_bfloat() const { return code == Code::bfloat; }
  bool is_ieee_float() const { return code == Code::float_; }
  bool is_float8() const { return code == Code::e4m3 || code == Code::e5m2; }
  bool is_float() const { return is_ieee_float() || is_bfloat() || is_float8(); }
  bool is_handle() const { return code == Code::handle; }
  bool is_scalar() const { return lanes == 1; }

  DType element() const { return {code, bits, 1}; }
  Lanes all_lanes() const { return {lanes, is_scalable}; }
  DType with_lanes(Lanes n) const { return {code, bits, static_cast<uint16_t>(n.count), n.scalable}; }
  DType with_bits(int n) const { return {code, static_cast<uint8_t>(n), lanes, is_scalable}; }
  /// Bytes of one element in memory: sub-byte integers and bool take one byte, a handle eight.
  int64_t element_bytes() const;
  int64_t bytes() const { return element_bytes() * lanes; }

  std::string name() const;
  /// The dtype with that name; nothing if there is none.
  static std::optional<DType> parse(std::string_view name);

  static constexpr DType Int(int bits, int lanes = 1) {
    return {Code::int_, static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes)};
  }
  static constexpr DType UInt(int bits, int lanes = 1) {
    return {Code::uint, static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes)};
  }
  static constexpr DType Float(int bits, int lanes = 1) {
    return {Code::float_, static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes)};
  }
  static constexpr DType BFloat(int lanes = 1) { return {Code::bfloat, 16, static_cast<uint16_t>(lanes)}; }
  static constexpr DType Bool(Lanes lanes = 1) {
    return {Code::bool_, 1, static_cast<uint16_t>(lanes.count), lanes.scalable};
  }
  static constexpr DType E4M3() { return {Code::e4m3, 8, 1}; }
  static constexpr DType E5M2() { return {Code::e5m2, 8, 1}; }
  static constexpr DType Handle() { return {Code::handle, 64, 1}; }
  static constexpr DType Void() { return {}; }
};

inline constexpr DType i8 = DType::Int(8), i16 = DType::Int(16), i32 = DType::Int(32), i64 = DType::Int(64);
inline constexpr DType u8 = DType::UInt(8), u16 = DType::UInt(16), u32 = DType::UInt(32), u64 = DType::UInt(64);
inline constexpr DType f16 = DType::Float(16), f32 = DType::Float(32), f64 = DType::Float(64);
inline constexpr DType bf16 = DType::BFloat(), boolean = DType::Bool();

/// Integers that fit the dtype: [min, max] as 64-bit values; uint64's maximum is stored as -1 in two's complement.
int64_t min_int(DType dtype);
int64_t max_int(DType dtype);

void append_text(std::string& out, DType dtype);
/// "4", or "T.vscale() * 4".
void append_text(std::string& out, Lanes lanes);

}  // namespace sator

template <>
struct std::hash<sator::Lanes> {
  size_t operator()(const sator::Lanes& l) const { return static_cast<size_t>(l.count) * 2 + l.scalable; }
};

template <>
struct std::hash<sator::DType> {
  size_t operator()(const sator::DType& d) const {
    return (static_cast<size_t>(d.code) << 24) ^ (static_cast<size_t>(d.bits) << 16) ^ d.lanes ^
           (d.is_scalable ? size_t{1} << 32 : 0);
  }
};
