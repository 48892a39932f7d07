#include "study/capacity.h"

#include <algorithm>

#include "arith/eval.h"
#include "ir/visit.h"

namespace sator::study {

namespace {

/// What a launch reads and writes of tensors that are handed from kernel to kernel.
int64_t activation_bytes(const llm::KernelCall& call) {
  int64_t bytes = 0;
  size_t next = 0;
  for (const auto& [param, buffer] : call.work->buffer_map) {
    const dataflow::ParamFacts facts = next < call.params.size() ? call.params[next] : dataflow::ParamFacts{};
    ++next;
    if (facts.kind != dataflow::OperandKind::activation) continue;
    arith::Values sizes;
    for (const VarRef& v : vars_in(buffer))
      if (auto at = call.sizes.find(v->name); at != call.sizes.end()) sizes.emplace(v, at->second);
    int64_t elements = 1;
    for (const Expr& extent : buffer->shape) elements *= arith::evaluate(extent, sizes).value_or(0);
    bytes += elements * buffer->dtype.bytes();
  }
  return bytes;
}

}  // namespace

MemoryNeed memory_need(const llm::Program& program, int64_t positions, std::span<const llm::KernelCall> calls,
                       const Chip& chip) {
  MemoryNeed need{.memory = chip.memories.front().name, .capacity_bytes = chip.memories.front().capacity_bytes};
  need.weights_bytes = llm::weight_bytes(program);
  need.cache_bytes = llm::cache_bytes(program, positions);
  for (const llm::KernelCall& call : calls)
    need.activation_bytes = std::max(need.activation_bytes, activation_bytes(call));
  return need;
}

std::optional<int64_t> chips_with_room(const Chip& chip, int64_t chips,
                                       const std::function<std::optional<MemoryNeed>(int64_t)>& need_of) {
  if (!chip.link) return {};
  for (int64_t n = 2; n <= chip.link->chips; n *= 2) {
    if (n <= chips) continue;
    const std::optional<MemoryNeed> need = need_of(n);
    if (need && need->fits()) return n;
  }
  return {};
}

}  // namespace sator::study
