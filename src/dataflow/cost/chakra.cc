#include "dataflow/cost/chakra.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace sator::dataflow {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "0.0.4";  // of Chakra's GlobalMetadata

/// Protobuf's JSON form writes 64-bit integers as strings.
Json whole(int64_t v) { return text(v); }

Json attribute(const char* name, const char* kind, Json value) { return {{"name", name}, {kind, std::move(value)}}; }

std::string line_of(const Json& message) { return message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string chakra_trace(const std::vector<TraceNode>& nodes, const std::string& version,
                         const std::vector<std::pair<std::string, std::string>>& facts) {
  Json metadata = {{"version", kSchema}, {"attr", Json::array({attribute("generator", "stringVal", version)})}};
  for (const auto& [name, value] : facts) metadata["attr"].push_back(attribute(name.c_str(), "stringVal", value));
  std::string out = line_of(metadata);
  double now = 0;  // microseconds
  for (size_t n = 0; n < nodes.size(); ++n) {
    const TraceNode& node = nodes[n];
    const bool compute = node.kind == TraceNode::Kind::compute;
    const int64_t start = std::llround(now);
    now += node.seconds * 1e6;
    Json message = {{"id", whole(static_cast<int64_t>(n) + 1)},
                    {"name", node.name},
                    {"type", compute ? "COMP_NODE" : "COMM_COLL_NODE"}};
    if (n > 0) message["dataDeps"] = Json::array({whole(static_cast<int64_t>(n))});
    message["startTimeMicros"] = whole(start);
    message["durationMicros"] = whole(std::llround(now) - start);
    Json& attributes = message["attr"] = Json::array({attribute("is_cpu_op", "boolVal", false)});
    if (compute) {
      attributes.push_back(attribute("num_ops", "int64Val", whole(node.operations)));
      attributes.push_back(attribute("tensor_size", "uint64Val", whole(node.bytes)));
    } else {
      attributes.push_back(attribute("comm_type", "int64Val", whole(0)));
      attributes.push_back(attribute("comm_size", "int64Val", whole(node.bytes)));
    }
    attributes.push_back(attribute("duration_ns", "doubleVal", node.seconds * 1e9));
    out += line_of(message);
  }
  return out;
}

}  // namespace sator::dataflow
