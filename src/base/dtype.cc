#include "base/dtype.h"

#include <charconv>

#include "base/text.h"

namespace sator {

int64_t DType::element_bytes() const {
  switch (code) {
    case Code::none: return 0;
    case Code::bool_: return 1;
    case Code::handle: return 8;
    default: return (bits + 7) / 8;
  }
}

std::string DType::name() const {
  std::string s;
  switch (code) {
    case Code::none: return "void";
    case Code::bool_: s = "bool"; break;
    case Code::handle: return "handle";
    case Code::int_: s = text("int", int{bits}); break;
    case Code::uint: s = text("uint", int{bits}); break;
    case Code::float_: s = text("float", int{bits}); break;
    case Code::bfloat: s = "bfloat16"; break;
    case Code::e4m3: s = "e4m3_float8"; break;
    case Code::e5m2: s = "e5m2_float8"; break;
  }
  if (lanes != 1) s += text(is_scalable ? "xvscalex" : "x", int{lanes});
  return s;
}

std::optional<DType> DType::parse(std::string_view name) {
  if (name == "void" || name.empty()) return DType::Void();
  if (name == "handle") return DType::Handle();
  auto take_int = [&name]() -> std::optional<int> {
    int v = 0;
    auto [end, err] = std::from_chars(name.data(), name.data() + name.size(), v);
    if (err != std::errc() || end == name.data()) return {};
    name.remove_prefix(static_cast<size_t>(end - name.data()));
    return v;
  };
  auto strip = [&name](std::string_view prefix) {
    if (!name.starts_with(prefix)) return false;
    name.remove_prefix(prefix.size());
    return true;
  };
  DType d;
  if (strip("bool")) {
    d = DType::Bool();
  } else if (strip("e4m3_float8") || strip("float8_e4m3fn")) {  // TVM's name, and that of ml_dtypes
    d = DType::E4M3();
  } else if (strip("e5m2_float8") || strip("float8_e5m2")) {
    d = DType::E5M2();
  } else {
    if (strip("bfloat")) {
      d.code = Code::bfloat;
    } else if (strip("float")) {
      d.code = Code::float_;
    } else if (strip("uint")) {
      d.code = Code::uint;
    } else if (strip("int")) {
      d.code = Code::int_;
    } else {
      return {};
    }
    // "int", "uint" and "float" alone have 32 bits, as for TVM.
    auto bits = name.empty() && d.code != Code::bfloat ? std::optional(32) : take_int();
    if (!bits || *bits < 1 || *bits > 64) return {};
    if (d.code == Code::bfloat && *bits != 16) return {};
    if (d.code == Code::float_ && *bits != 16 && *bits != 32 && *bits != 64) return {};
    d.bits = static_cast<uint8_t>(*bits);
    if (d.is_uint() && d.bits == 1) d = DType::Bool();  // TVM's name of vectors of truth values
  }
  if (name.empty()) return d;
  if (!strip("x")) return {};
  d.is_scalable = strip("vscalex");
  auto lanes = take_int();
  if (!lanes || *lanes < (d.is_scalable ? 2 : 1) || *lanes > 65535 || !name.empty()) return {};
  d.lanes = static_cast<uint16_t>(*lanes);
  return d;
}

int64_t min_int(DType d) {
  if (!d.is_int()) return 0;
  return d.bits == 64 ? INT64_MIN : -(int64_t{1} << (d.bits - 1));
}

int64_t max_int(DType d) {
  if (d.is_bool()) return 1;
  if (d.is_int()) return d.bits == 64 ? INT64_MAX : (int64_t{1} << (d.bits - 1)) - 1;
  return d.bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << d.bits) - 1);
}

void append_text(std::string& out, DType dtype) { out += dtype.name(); }
void append_text(std::string& out, Lanes lanes) {
  if (lanes.scalable) out += "T.vscale() * ";
  append_text(out, lanes.count);
}

}  // namespace sator
