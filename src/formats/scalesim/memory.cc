#include "formats/scalesim/memory.h"

#include <algorithm>
#include <type_traits>

#include "base/text_line.h"
#include "formats/scalesim/sram_reads.h"
#include "formats/scalesim/sram_writes.h"
#include "formats/scalesim/stream.h"

namespace sator::formats {
namespace {

constexpr int64_t kMostKb = int64_t{1} << 40;
constexpr int64_t kMostSteps = 1'000'000'000;     // some seconds
constexpr int64_t kMostWords = int64_t{1} << 27;  // tables of an operand

/// The outputs of a fold leave as a parallelogram: `steps` words in each of `lanes` columns, one cycle later a column.
struct OutputShape {
  int64_t first = 0;  // cycle of the fold's first output
  int64_t steps = 0, lanes = 0;
  /// The cycles with as many words as there ever are, [from, to).
  int64_t full_from() const { return first + std::min(steps, lanes) - 1; }
  int64_t full_to() const { return first + std::max(steps, lanes); }
  int64_t at(int64_t cycle) const {
    const int64_t t = cycle - first;
    if (t < 0 || t > steps + lanes - 2) return 0;
    return std::min(t, steps - 1) - std::max<int64_t>(0, t - lanes + 1) + 1;
  }
};

OutputShape outputs_of(const SystolicShape& shape, int64_t row_fold, int64_t col_fold) {
  const int64_t rows = std::min(shape.rows, shape.along_rows - row_fold * shape.rows);
  const int64_t cols = std::min(shape.cols, shape.along_cols - col_fold * shape.cols);
  if (shape.preload) return {.first = 2 * shape.rows - 1, .steps = shape.streamed, .lanes = cols};
  return {.first = shape.streamed - 1 + shape.rows - rows, .steps = rows, .lanes = cols};
}

/// One operand in the fold under way; Reads is EstimatedReads or PrefetchedReads.
template <class Reads>
struct BufferedOperand {
  const OperandStream& stream;
  Reads reads;
  OperandStream::Tile tile = {};
  Sending sending = Sending::nothing;
  int64_t from = 0, to = 0;  // cycles of the fold in which every word is looked up

  void begin(int64_t row_fold, int64_t col_fold, int64_t now) {
    tile = stream.tile(row_fold, col_fold);
    sending = reads.begin(tile, now);
    from = stream.first_cycle(tile);
    to = from + stream.cycle_count(tile);
  }
  /// The first cycle from `cycle` on in which the operand must be asked.
  int64_t next(int64_t cycle) const {
    if (sending == Sending::words) return cycle < to ? std::max(cycle, from) : INT64_MAX;
    return sending == Sending::events ? reads.next_event() : INT64_MAX;
  }
  int64_t stall(int64_t cycle, int64_t now) { return next(cycle) == cycle ? reads.serve(tile, cycle, now) : 0; }
};

/// How many cycles from `cycle` on, before `end`, can be taken at once: nothing comes out, or an even flow that no drain
/// interrupts. The outputs are taken in.
int64_t take_quiet(const OutputShape& outputs, DrainedWrites& writes, int64_t cycle, int64_t end, int64_t now) {
  if (cycle < outputs.first) return std::min(end, outputs.first) - cycle;
  if (cycle >= outputs.full_to()) return outputs.at(cycle) == 0 ? end - cycle : 0;
  if (cycle < outputs.full_from()) return 0;
  const int64_t words = std::min(outputs.steps, outputs.lanes);
  const int64_t cycles = std::min({end - cycle, outputs.full_to() - cycle, writes.quiet_cycles(words, now)});
  writes.write_quietly(cycles * words);
  return cycles;
}

template <class Reads>
std::variant<ScalesimMemoryRun, Reason> run(const SystolicShape& shape, BufferedOperand<Reads> ifmap,
                                            BufferedOperand<Reads> filter, DrainedWrites writes) {
  ScalesimMemoryRun out;
  int64_t first = 0;  // of the fold, without stalls
  int64_t served = 0;
  for (int64_t col_fold = 0; col_fold < shape.col_folds(); ++col_fold) {
    for (int64_t row_fold = 0; row_fold < shape.row_folds(); ++row_fold) {
      ifmap.begin(row_fold, col_fold, first + out.stall_cycles);
      filter.begin(row_fold, col_fold, first + out.stall_cycles);
      const OutputShape outputs = outputs_of(shape, row_fold, col_fold);
      for (int64_t cycle = 0; cycle < shape.fold_cycles();) {
        const int64_t now = first + cycle + out.stall_cycles;
        const int64_t event = std::min({ifmap.next(cycle), filter.next(cycle), shape.fold_cycles()});
        if (const int64_t quiet = event > cycle ? take_quiet(outputs, writes, cycle, event, now) : 0; quiet > 0) {
          served = now + quiet - 1;
          cycle += quiet;
          continue;
        }
        const int64_t waits = std::max(ifmap.stall(cycle, now), filter.stall(cycle, now));
        const int64_t count = outputs.at(cycle);
        served = count > 0 ? writes.write(count, now) : now;
        out.stall_cycles += std::max(waits, served - now);
        ++cycle;
      }
      first += shape.fold_cycles();
    }
  }
  writes.finish(served);
  for (BufferedOperand<Reads>* operand : {&ifmap, &filter})
    if (std::optional<Reason> reason = operand->reads.finish()) return *std::move(reason);
  out.total_cycles = served;
  out.ifmap = ifmap.reads.dram();
  out.filter = filter.reads.dram();
  out.ofmap = writes.dram();
  out.overall_cycles = out.ofmap.stop_cycle - std::min(out.ifmap.start_cycle, out.filter.start_cycle);
  return out;
}

/// Why a layer is too large to follow; nothing if it is not.
std::optional<Reason> too_large(const ScalesimConfig& config, const ScalesimLayer& layer,
                                const ScalesimCompute& compute) {
  const ScalesimMemory& m = config.memory;
  if (std::max({m.ifmap_kb, m.filter_kb, m.ofmap_kb}) > kMostKb)
    return Reason{
        .what = "an SRAM is larger than 2^40 KB", .needs = "SRAMs up to 2^40 KB", .hint = "use a smaller SRAM"};
  const int64_t ifmap = layer.ifmap_h * layer.ifmap_w * layer.channels, filter = layer.k * layer.n;
  const int64_t largest_rate = std::max({m.ifmap_words_per_cycle, m.filter_words_per_cycle, m.ofmap_words_per_cycle});
  const SystolicShape shape = systolic_shape(config, layer);
  // Floating point: none of the parts passes 64 bits, their sum may.
  double steps = static_cast<double>(compute.cycles) / 8 +
                 static_cast<double>(compute.folds) * static_cast<double>(config.rows + config.cols);
  // Windows that share words are looked up word by word under CALC too.
  if (m.user_bandwidth || !layer.gemm) steps += static_cast<double>(compute.ifmap_sram_reads);
  if (m.user_bandwidth)  // and the prefetch matrices have the unused rows and columns of the array too
    steps += static_cast<double>(compute.filter_sram_reads) +
             static_cast<double>(shape.streamed) *
                 static_cast<double>(std::max(shape.along_rows + shape.rows, shape.along_cols + shape.cols));
  if (steps <= static_cast<double>(kMostSteps) && std::max({ifmap, filter, layer.m * layer.k}) <= kMostWords &&
      std::max({config.rows, config.cols, largest_rate}) <= kMostWords)
    return {};
  return Reason{
      .what = text(
          "layer ", shown(layer.name), " takes about ", steps, " steps to follow through the memory behind the array"),
      .needs = text("at most ", grouped(kMostSteps), " steps and ", grouped(kMostWords), " words an operand"),
      .hint = "the counts without memory hold at any size"};
}

}  // namespace

std::variant<ScalesimMemoryRun, Reason> scalesim_memory(const ScalesimConfig& config, const ScalesimLayer& layer) {
  const ScalesimCompute compute = scalesim_compute(config, layer);
  if (std::optional<Reason> reason = too_large(config, layer, compute)) return *std::move(reason);
  const SystolicShape shape = systolic_shape(config, layer);
  const OperandStream ifmap = OperandStream::ifmap(config, layer), filter = OperandStream::filter(config, layer);
  const ScalesimMemory& m = config.memory;
  const ScalesimSram ifmap_sram{1024 * m.ifmap_kb}, filter_sram{1024 * m.filter_kb}, ofmap_sram{1024 * m.ofmap_kb};
  const DrainedWrites writes(ofmap_sram, m.ofmap_words_per_cycle);
  const auto behind = [&](auto kind) {
    using Reads = typename decltype(kind)::type;
    return run(shape,
               BufferedOperand<Reads>{ifmap, Reads(ifmap, ifmap_sram, m.ifmap_words_per_cycle)},
               BufferedOperand<Reads>{filter, Reads(filter, filter_sram, m.filter_words_per_cycle)},
               writes);
  };
  auto result =
      m.user_bandwidth ? behind(std::type_identity<PrefetchedReads>()) : behind(std::type_identity<EstimatedReads>());
  if (auto* done = std::get_if<ScalesimMemoryRun>(&result))
    done->overall_utilization = static_cast<double>(compute.macs) / (static_cast<double>(done->total_cycles) *
                                                                     static_cast<double>(config.rows * config.cols));
  return result;
}

}  // namespace sator::formats
