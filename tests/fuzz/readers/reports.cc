#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "dataflow/calibrate/models.h"
#include "dataflow/calibrate/rows.h"
#include "dataflow/cost/described_chip.h"
#include "fuzz/readers/readers.h"
#include "study/by_hand.h"
#include "study/explain.h"
#include "study/json.h"
#include "study/kernels_csv.h"
#include "study/page.h"
#include "target/calibration.h"
#include "target/chip.h"

namespace sator::fuzz {

namespace {

/// An answer, or words why there is none.
void explained(const study::Study& study, size_t scheme, size_t chip, const study::PhaseName& phase,
               study::Figure figure) {
  try {
    study::explain(study, scheme, chip, phase, figure);
  } catch (const Error& error) {
    require(!error.reason.what.empty(), "an error has words");
  }
}

}  // namespace

void read_chip(std::string_view bytes, const fs::path&) { parse_chip(bytes, "chip.toml"); }

void read_calibration_file(std::string_view bytes, const fs::path&) {
  const Calibration calibration = parse_calibration(bytes, "calibration.toml");
  const std::string printed = to_toml(calibration);
  require(to_toml(parse_calibration(printed, "printed")) == printed,
          "print, read, print is a fixed point:\n" + printed);
}

void read_measurements(std::string_view bytes, const fs::path&) {
  const bool lines = bytes.find('{') != bytes.npos;  // else a table of cells
  const std::vector<dataflow::Row> rows = dataflow::parse_rows(std::string(bytes), lines ? "rows.jsonl" : "rows.csv");
  static const Chip chip = find_chip("h100");
  for (const dataflow::CalibrationModel& model : dataflow::calibration_models()) {
    const dataflow::BoundModel bound = model.bind(rows, &chip);
    std::vector<double> values;
    for (const dataflow::Parameter& p : bound.parameters) values.push_back(p.start);
    for (const dataflow::Sample& sample : bound.samples) bound.predict(values, sample.features);
  }
}

void read_study(std::string_view bytes, const fs::path&) {
  const study::Study read = study::from_json(parse_json(bytes, "study.json"), "study.json");
  const std::string printed = study::to_json(read, study::Kernels::included).dump();
  const study::Study again = study::from_json(parse_json(printed, "printed"), "printed");
  require(study::to_json(again, study::Kernels::included).dump() == printed, "print, read, print is a fixed point");
  study::html_page(read);
  for (size_t scheme = 0; scheme < read.schemes.size(); ++scheme)
    for (size_t chip = 0; chip < read.chips.size(); ++chip)
      for (const study::PhaseName& phase : study::kPhases)
        for (const study::FigureName& f : study::figures()) explained(read, scheme, chip, phase, f.figure);
}

void read_kernels_csv(std::string_view bytes, const fs::path&) {
  study::Study study = study::study_by_hand({{"f16", 30.0, 100, 200}}, {"edge_npu32"});
  study::add_kernels(study, bytes, "kernels.csv");
}

void read_chip_folder(std::string_view bytes, const fs::path& folder) {
  const std::vector<std::string> texts = texts_of(bytes, 3);
  if (!texts[0].empty()) put_file(folder / "chip.toml", texts[0]);
  put_file(folder / "pe_array", texts[1]);
  put_file(folder / "mapping", texts[2]);
  dataflow::described_chip(folder.string());
}

}  // namespace sator::fuzz
