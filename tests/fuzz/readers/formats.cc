#include <nlohmann/json.hpp>

#include "base/text.h"
#include "formats/batch.h"
#include "formats/format.h"
#include "fuzz/readers/readers.h"

namespace sator::fuzz {
namespace {

/// The texts of an input by these keys.
nlohmann::json texts_of(std::string_view bytes, std::initializer_list<const char*> keys) {
  nlohmann::json out = nlohmann::json::object();
  const std::vector<std::string> texts = fuzz::texts_of(bytes, keys.size());
  for (size_t i = 0; i < keys.size(); ++i) out[keys.begin()[i]] = texts[i];
  return out;
}

void answer(const char* format, const nlohmann::json& input) {
  formats::find_format(format).answer(input).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void read_tenet(std::string_view bytes, const fs::path&) {
  answer("tenet", texts_of(bytes, {"pe_array", "mapping", "statement"}));
}

void read_timeloop(std::string_view bytes, const fs::path&) {
  nlohmann::json input = texts_of(bytes, {"architecture", "problem", "mapping", "ert"});
  if (input["ert"] == "") input.erase("ert");
  answer("timeloop", input);
}

void read_scalesim(std::string_view bytes, const fs::path&) {
  nlohmann::json input = texts_of(bytes, {"config", "topology"});
  input["gemm"] = input["topology"].get_ref<const std::string&>().find("M, N, K") != std::string::npos;
  answer("scalesim", input);
}

void read_maestro(std::string_view bytes, const fs::path&) {
  answer("maestro", texts_of(bytes, {"mapping", "hardware"}));
}

void read_batch_row(std::string_view bytes, const fs::path&) {
  formats::answer_row(bytes, "rows.jsonl", 1).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace sator::fuzz
