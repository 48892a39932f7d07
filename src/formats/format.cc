#include "formats/format.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/maestro/answer.h"
#include "formats/scalesim/answer.h"
#include "formats/tenet/answer.h"
#include "formats/timeloop/answer.h"

namespace sator::formats {

using namespace dataflow;

std::span<const Format> known_formats() {
  static constexpr Format kFormats[] = {
      {.name = "tenet", .takes = "pe_array, mapping, statement", .answer = answer_tenet},
      {.name = "timeloop", .takes = "architecture, problem, mapping, ert", .answer = answer_timeloop},
      {.name = "scalesim", .takes = "config, topology, \"gemm\": true", .answer = answer_scalesim},
      {.name = "maestro", .takes = "mapping, hardware", .answer = answer_maestro},
  };
  return kFormats;
}

const Format& find_format(std::string_view name) {
  std::vector<std::string> names;
  for (const Format& format : known_formats()) {
    if (format.name == name) return format;
    names.emplace_back(format.name);
  }
  const std::vector<std::string> near = nearest_names(name, names);
  fail({.what = text("there is no format called ", string_literal(name.substr(0, 60))),
        .needs = text("one of ", join(names, ", ")),
        .hint = near.empty() ? "name the tool whose files the input holds" : text("did you mean ", near[0], "?")});
}

}  // namespace sator::formats
