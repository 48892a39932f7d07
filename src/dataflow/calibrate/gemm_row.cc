#include "dataflow/calibrate/gemm_row.h"

#include "base/text.h"

namespace sator::dataflow {

namespace {

std::string word(const nlohmann::json& row, const char* key) {
  const auto at = row.find(key);
  return at != row.end() && at->is_string() ? at->get<std::string>() : "";
}

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
  if (!(g.m > 0 && g.n > 0 && g.k > 0 && g.batch > 0 && g.seconds > 0)) return {};
  std::string dtype = word(f, "dtype");
  if (dtype.empty()) dtype = word(f, "dt");
  if (dtype.starts_with("fp32") || dtype.starts_with("f32")) g.bits = g.bits_out = 32;
  if (dtype.starts_with("fp8") || dtype.starts_with("int8") || dtype.starts_with("e4m3")) g.bits = 8;
  g.is_float = !dtype.starts_with("int");
  g.weights_shared = word(f, "op") != "bmm";
  // What is left out together: a layer of a model where the row names one, else a device, else a shape.
  if (const std::string model = word(f, "model"); !model.empty())
    g.group = text(model, " ", g.n, "x", g.k);
  else
    g.group = g.device.empty() ? text(g.n, "x", g.k) : g.device;
  return g;
}

}  // namespace sator::dataflow
