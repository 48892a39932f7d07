#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "dataflow/calibrate/models.h"
#include "dataflow/calibrate/rows.h"
#include "fuzz/readers/readers.h"
#include "study/by_hand.h"
#include "study/json.h"
#include "study/kernels_csv.h"
#include "target/calibration.h"
#include "target/chip.h"

namespace sator::fuzz {

void read_chip(std::string_view bytes, const fs::path&) { parse_chip(bytes, "chip.toml"); }

void read_calibration_file(std::string_view bytes, const fs::path&) {
  const Calibration calibration = parse_calibration(bytes, "calibration.toml");
  const std::string printed = to_toml(calibration);
  require(to_toml(parse_calibration(printed, "printed")) == printed,
          "print, read, print is a fixed point:\n" + printed);
}

void read_measurements(std::string_view bytes, const fs::path&) {
  const std::vector<dataflow::Row> rows = dataflow::parse_rows(std::string(bytes), "rows.jsonl");
  dataflow::bind_gpu_gemm(rows, nullptr);
  dataflow::bind_gemmini_rtl(rows, nullptr);
}

void read_study(std::string_view bytes, const fs::path&) {
  const study::Study read = study::from_json(parse_json(bytes, "study.json"), "study.json");
  const std::string printed = study::to_json(read, study::Kernels::included).dump();
  const study::Study again = study::from_json(parse_json(printed, "printed"), "printed");
  require(study::to_json(again, study::Kernels::included).dump() == printed, "print, read, print is a fixed point");
}

void read_kernels_csv(std::string_view bytes, const fs::path&) {
  study::Study study = study::study_by_hand({{"f16", 30.0, 100, 200}}, {"edge_npu32"});
  study::add_kernels(study, bytes, "kernels.csv");
}

}  // namespace sator::fuzz
