#include "study/traces.h"

#include "base/text.h"
#include "dataflow/cost/chakra.h"

namespace sator::study {

std::vector<std::pair<std::string, std::string>> trace_files(const Study& study) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const SchemeResult& scheme : study.schemes)
    for (size_t c = 0; c < scheme.chips.size(); ++c)
      for (const PhaseName& phase : kPhases) {
        std::vector<dataflow::TraceNode> nodes;
        for (const KernelRow& row : (scheme.chips[c].*phase.result).rows) {
          const bool sum = row.cost.bound == "links";
          dataflow::TraceNode node{.name = row.layer.empty() ? row.function : text(row.layer, ".", row.function),
                                   .seconds = row.cost.latency_s};
          if (sum) node.kind = dataflow::TraceNode::Kind::all_reduce;
          node.bytes = sum                       ? row.i * row.j * row.activation_bits / 8
                       : row.cost.levels.empty() ? 0
                                                 : (row.cost.levels.front().bits() + 7) / 8;
          node.operations = 2 * row.cost.macs;
          for (const ComponentCost& part : row.cost.components) node.operations += part.vector_ops;
          nodes.insert(nodes.end(), static_cast<size_t>(row.count), node);
        }
        files.emplace_back(text("chakra/", study.chips[c].name, "/", scheme.name, ".", phase.name, ".json"),
                           dataflow::chakra_trace(nodes,
                                                  study.protocol.version,
                                                  {{"model", study.model.name},
                                                   {"scheme", scheme.name},
                                                   {"chip", study.chips[c].name},
                                                   {"phase", std::string(phase.name)},
                                                   {"chips", text(study.protocol.parallel)}}));
      }
  return files;
}

}  // namespace sator::study
