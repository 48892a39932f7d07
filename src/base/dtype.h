#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sator {

/// A scalar or vector element type, named as in TVMScript: "float32", "int8", "uint32", "bfloat16", "bool", "handle",
/// and with lanes "float32x4". "void" is the absence of a value (statements, unknown dtypes of graphs).
struct DType {
  enum class Code : uint8_t { none, int_, uint, float_, bfloat, bool_, handle };
  Code code = Code::none;
  uint8_t bits = 0;
  uint16_t lanes = 1;

  auto operator<=>(const DType&) const = default;

  bool is_void() const { return code == Code::none; }
  bool is_int() const { return code == Code::int_; }
  bool is_uint() const { return code == Code::uint; }
  /// Signed or unsigned integer; bool is not one.
  bool is_integer() const { return is_int() || is_uint(); }
  bool is_bool() const { return code == Code::bool_; }
  bool is_bfloat() const { return code == Code::bfloat; }
  bool is_ieee_float() const { return code == Code::float_; }
  bool is_float() const { return is_ieee_float() || is_bfloat(); }
  bool is_handle() const { return code == Code::handle; }
  bool is_scalar() const { return lanes == 1; }

  DType element() const { return {code, bits, 1}; }
  DType with_lanes(int n) const { return {code, bits, static_cast<uint16_t>(n)}; }
  DType with_bits(int n) const { return {code, static_cast<uint8_t>(n), lanes}; }
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
  static constexpr DType Bool(int lanes = 1) { return {Code::bool_, 1, static_cast<uint16_t>(lanes)}; }
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

}  // namespace sator

template <>
struct std::hash<sator::DType> {
  size_t operator()(const sator::DType& d) const {
    return (static_cast<size_t>(d.code) << 24) ^ (static_cast<size_t>(d.bits) << 16) ^ d.lanes;
  }
};
