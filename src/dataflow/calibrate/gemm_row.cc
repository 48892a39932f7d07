#include "dataflow/calibrate/gemm_row.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace sator::dataflow {

namespace {

std::string word(const nlohmann::json& row, const char* key) {
  const auto at = row.find(key);
  return at != row.end() && at->is_string() ? at->get<std::string>() : "";
}

/// Shorter and longer ones are of another unit.
constexpr double kLeastSeconds = 1e-9, kMostSeconds = 1e6;

bool is_extent(double v) { return v >= 1 && v <= kMostExtent && std::floor(v) == v; }

/// Number formats that rows name, perhaps with words behind: "fp32(no TF32)". Without a name: 16 bits.
struct NumberFormat {
  std::string_view begins;
  double bits = 16, bits_out = 16;
  bool is_float = true;
};
constexpr NumberFormat kFormats[] = {{"fp32", 32, 32},
                                     {"f32", 32, 32},
                                     {"float32", 32, 32},
                                     {"fp16", 16, 16},
                                     {"f16", 16, 16},
                                     {"float16", 16, 16},
                                     {"bf16", 16, 16},
                                     {"bfloat16", 16, 16},
                                     {"fp8", 8, 16},
                                     {"e4m3", 8, 16},
                                     {"e5m2", 8, 16},
                                     {"int8", 8, 16, false}};

}  // namespace

std::optional<GemmRow> gemm_row(const Row& row) {
  const nlohmann::json& f = row.fields;
  GemmRow g{.device = word(f, "device"),
            .m = number(f, "M"),
            .n = number(f, "N"),
            .k = number(f, "K"),
            .batch = number(f, "B", 1)};
  g.seconds = number(f, "latency_ms") * 1e-3;
  if (g.seconds == 0) g.seconds = number(f, "us") * 1e-6;
  for (double extent : {g.m, g.n, g.k, g.batch})
    if (!is_extent(extent)) return {};
  if (!(g.seconds >= kLeastSeconds && g.seconds <= kMostSeconds)) return {};
  std::string dtype = word(f, "dtype");
  if (dtype.empty()) dtype = word(f, "dt");
  const auto format = std::find_if(std::begin(kFormats), std::end(kFormats), [&](const NumberFormat& f) {
    return dtype.empty() ? f.begins == "fp16" : dtype.starts_with(f.begins);
  });
  if (format == std::end(kFormats)) return {};
  g.bits = format->bits, g.bits_out = format->bits_out, g.is_float = format->is_float;
  g.weights_shared = word(f, "op") != "bmm";
  // What is left out together: a layer of a model where the row names one, else a device, else a shape.
  if (const std::string model = word(f, "model"); !model.empty())
    g.group = text(model, " ", g.n, "x", g.k);
  else
    g.group = g.device.empty() ? text(g.n, "x", g.k) : g.device;
  return g;
}

}  // namespace sator::dataflow
