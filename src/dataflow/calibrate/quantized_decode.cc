#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/calibrate/models.h"

namespace sator::dataflow {

namespace {

/// What a weight's code has to go through before it is multiplied, by the layout of llama.cpp's formats: fields of bits that are
/// put together, with a scale per 32 (packed); one or two fields with packed scales per 16 (short groups); a look-up of eight
/// weights in a table, and their signs (grid).
enum DecodeWork { kPacked, kShortOne, kShortTwo, kGrid, kWorks };

struct WeightFormat {
  std::string_view prefix;
  double share[kWorks];  // of the weights; formats that mix others by tensor have shares of each
};

/// The first that fits. 8-bit codes and floats are taken as they are. IQ1 adds a shift to what the table gives.
constexpr WeightFormat kWeightFormats[] = {{"F16", {}},
                                           {"BF16", {}},
                                           {"Q8_0", {}},
                                           {"Q2_K_S", {0, 1, 0, 0}},
                                           {"Q2_K", {0, 0.65, 0.35, 0}},
                                           {"Q3_K_S", {0, 0, 1, 0}},
                                           {"Q3_K_M", {0.3, 0, 0.7, 0}},
                                           {"Q3_K_L", {0.4, 0, 0.6, 0}},
                                           {"Q4", {1, 0, 0, 0}},
                                           {"Q5", {1, 0, 0, 0}},
                                           {"Q6", {1, 0, 0, 0}},
                                           {"IQ4", {1, 0, 0, 0}},
                                           {"IQ1", {1, 0, 0, 1}},
                                           {"IQ2", {0, 0, 0, 1}},
                                           {"IQ3", {0, 0, 0, 1}}};

double seconds_per_token(const std::vector<double>& c, const std::vector<double>& f) {
  const double bytes = f[0], weights = f[1];
  double time = c[0] * 1e-3 + bytes / (c[1] * 1e9);
  for (size_t k = 0; k < kWorks; ++k) time += weights * f[2 + k] * c[2 + k] * 1e-12;
  return time;
}

}  // namespace

BoundModel bind_quantized_decode(const std::vector<Row>& rows, const Chip*) {
  BoundModel bound{.parameters = {{"start", "ms", 3, 0.01, 100},
                                  {"rate", "GB/s", 500, 1, 1e5},
                                  {"packed", "ps per weight", 0.1, 1e-4, 100},
                                  {"short_groups_one_field", "ps per weight", 0.3, 1e-4, 100},
                                  {"short_groups_two_fields", "ps per weight", 0.4, 1e-4, 100},
                                  {"grid", "ps per weight", 0.5, 1e-4, 100}},
                   .predict = seconds_per_token,
                   .samples = {},
                   .rows = {}};
  for (size_t i = 0; i < rows.size(); ++i) {
    const nlohmann::json& f = rows[i].fields;
    const double speed = number(f, "tg128_tok_s"), bits = number(f, "bits_per_weight");
    const double bytes = number(f, "size_GiB") * (1 << 30);
    const auto quant = f.find("quant");
    if (!(speed > 0 && bits > 0 && bytes > 0) || quant == f.end() || !quant->is_string()) continue;
    const std::string name = quant->get<std::string>();
    for (const WeightFormat& format : kWeightFormats) {
      if (!name.starts_with(format.prefix)) continue;
      Sample sample{name, {bytes, bytes * 8 / bits}, 1 / speed};
      for (double share : format.share) sample.features.push_back(share);
      bound.samples.push_back(std::move(sample));
      bound.rows.push_back(i);
      break;
    }
  }
  return bound;
}

}  // namespace sator::dataflow
