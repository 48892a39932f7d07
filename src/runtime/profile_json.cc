#include <nlohmann/json.hpp>

#include "runtime/profiler.h"

namespace sator::runtime {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Metric& m) {
  switch (m.kind) {
    case Metric::Kind::text: return {{"string", m.text}};
    case Metric::Kind::count: return {{"count", static_cast<int64_t>(m.number)}};
    case Metric::Kind::microseconds: return {{"microseconds", m.number}};
    case Metric::Kind::percent: return {{"percent", m.number}};
  }
  internal_error("profile_json: unknown kind of metric");
}

template <class Row>
Json row_to_json(const Row& row) {
  Json out = Json::object();
  for (const auto& [column, metric] : row) out[column] = to_json(metric);
  return out;
}

// A name with bytes that are no UTF-8 must not stop a report.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string Profile::json() const {
  Json calls = Json::array();
  for (const Row& row : rows(false, false)) calls.push_back(row_to_json(row));
  Row total = total_row();
  return dump({{"calls", calls},
               {"device_metrics", {{total.at("Device").text, row_to_json(total)}}},
               {"configuration", {{"Number of threads", num_threads}, {"Executor", "VM"}}}});
}

std::string Profile::records_json_lines() const {
  std::string out;
  for (const CallRecord& r : records) {
    Json values = Json::object(), arguments = Json::array();
    for (const CallRecord::NamedValue& v : r.values) values[v.name] = v.value;
    for (const CallRecord::Argument& a : r.arguments)
      arguments.push_back({{"dtype", a.dtype.name()}, {"shape", std::vector<int64_t>(a.shape.begin(), a.shape.end())}});
    out += dump({{"function", r.function},
                 {"kind", r.is_kernel ? "kernel" : "builtin"},
                 {"caller", r.caller},
                 {"annotation", r.annotation},
                 {"values", values},
                 {"arguments", arguments},
                 {"duration_us", r.duration_us},
                 {"device", r.device}}) +
           '\n';
  }
  return out;
}

}  // namespace sator::runtime
