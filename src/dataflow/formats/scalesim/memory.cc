#include "dataflow/formats/scalesim/memory.h"

#include "dataflow/formats/scalesim/sram_reads.h"
#include "dataflow/formats/scalesim/sram_writes.h"
#include "dataflow/formats/scalesim/stream.h"
#include "dataflow/formats/text_line.h"

namespace sator::dataflow {
namespace {

constexpr int64_t kMostKb = int64_t{1} << 40;
constexpr int64_t kMostRequests = 2'000'000'000;  // some seconds
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

/// One way of serving reads, asked in the same words for both modes.
struct Calc {
  EstimatedReads reads;
  void begin(int64_t tile) { reads.begin(tile); }
  int64_t serve(const OperandStream::Tile& tile, int64_t cycle, int64_t now) {
    reads.serve(tile, cycle, now);
    return 0;
  }
  std::optional<Reason> finish() { return reads.finish(); }
};
struct User {
  PrefetchedReads reads;
  void begin(int64_t) {}
  int64_t serve(const OperandStream::Tile& tile, int64_t cycle, int64_t now) { return reads.serve(tile, cycle, now); }
  std::optional<Reason> finish() { return {}; }
};

template <class Mode>
struct Operand {
  const OperandStream& stream;
  Mode& mode;
  OperandStream::Tile tile;
  bool idle = true;          // all at hand in this fold
  int64_t from = 0, to = 0;  // cycles of the fold in which it is served

  void begin(int64_t row_fold, int64_t col_fold) {
    tile = stream.tile(row_fold, col_fold);
    idle = mode.reads.holds(tile.index);
    from = to = 0;
    if (idle) return;
    mode.begin(tile.index);
    from = stream.first_cycle(tile);
    to = from + stream.cycle_count(tile);
  }
  int64_t stall(int64_t cycle, int64_t now) { return cycle < from || cycle >= to ? 0 : mode.serve(tile, cycle, now); }
};

template <class Mode>
std::variant<ScalesimMemoryRun, Reason> run(const SystolicShape& shape, const OperandStream& ifmap_stream,
                                            Mode ifmap_mode, const OperandStream& filter_stream, Mode filter_mode,
                                            DrainedWrites writes) {
  Operand<Mode> ifmap{ifmap_stream, ifmap_mode}, filter{filter_stream, filter_mode};
  ScalesimMemoryRun out;
  int64_t first = 0;  // of the fold, without stalls
  int64_t served = 0;
  for (int64_t col_fold = 0; col_fold < shape.col_folds(); ++col_fold) {
    for (int64_t row_fold = 0; row_fold < shape.row_folds(); ++row_fold) {
      ifmap.begin(row_fold, col_fold);
      filter.begin(row_fold, col_fold);
      const OutputShape outputs = outputs_of(shape, row_fold, col_fold);
      const bool idle = ifmap.idle && filter.idle;
      for (int64_t cycle = idle ? outputs.first : 0; cycle < shape.fold_cycles(); ++cycle) {
        const int64_t now = first + cycle + out.stall_cycles;
        if (idle && cycle >= outputs.full_from() && cycle < outputs.full_to()) {
          const int64_t words = std::min(outputs.steps, outputs.lanes);
          const int64_t quiet = std::min(outputs.full_to() - cycle, writes.quiet_cycles(words, now));
          if (quiet > 0) {
            writes.write_quietly(quiet * words);
            served = now + quiet - 1;
            cycle += quiet - 1;
            continue;
          }
        }
        if (idle && cycle >= outputs.full_to() && outputs.at(cycle) == 0) {  // the fold only runs out
          cycle = shape.fold_cycles() - 1;
          served = first + cycle + out.stall_cycles;
          continue;
        }
        const int64_t waits = std::max(ifmap.stall(cycle, now), filter.stall(cycle, now));
        const int64_t count = outputs.at(cycle);
        served = count > 0 ? writes.write(count, now) : now;
        out.stall_cycles += std::max(waits, served - now);
      }
      first += shape.fold_cycles();
    }
  }
  writes.finish(served);
  if (std::optional<Reason> reason = ifmap_mode.finish()) return *std::move(reason);
  if (std::optional<Reason> reason = filter_mode.finish()) return *std::move(reason);
  out.total_cycles = served;
  out.ifmap = ifmap_mode.reads.dram();
  out.filter = filter_mode.reads.dram();
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
  // Each checked: none passes 64 bits, and the sum of five is taken as floating point.
  const SystolicShape shape = systolic_shape(config, layer);
  // A prefetch matrix has the unused rows and columns of the array too.
  const double cells = static_cast<double>(shape.streamed) *
                       static_cast<double>(std::max(shape.along_rows + shape.rows, shape.along_cols + shape.cols));
  const double requests = static_cast<double>(compute.cycles) + static_cast<double>(compute.ifmap_sram_reads) +
                          static_cast<double>(compute.filter_sram_reads) + cells;
  const int64_t largest_rate = std::max({m.ifmap_words_per_cycle, m.filter_words_per_cycle, m.ofmap_words_per_cycle});
  if (requests <= static_cast<double>(kMostRequests) && std::max({ifmap, filter, layer.m * layer.k}) <= kMostWords &&
      std::max({config.rows, config.cols, largest_rate}) <= kMostWords)
    return {};
  return Reason{
      .what = text(
          "layer ", shown(layer.name), " makes ", requests, " requests; the memory behind the array is not followed"),
      .needs = text("at most ", grouped(kMostRequests), " requests and ", grouped(kMostWords), " words an operand"),
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
  auto result = m.user_bandwidth ? run(shape,
                                       ifmap,
                                       User{{ifmap, ifmap_sram, m.ifmap_words_per_cycle}},
                                       filter,
                                       User{{filter, filter_sram, m.filter_words_per_cycle}},
                                       writes)
                                 : run(shape,
                                       ifmap,
                                       Calc{{ifmap, ifmap_sram, m.ifmap_words_per_cycle}},
                                       filter,
                                       Calc{{filter, filter_sram, m.filter_words_per_cycle}},
                                       writes);
  if (auto* done = std::get_if<ScalesimMemoryRun>(&result))
    done->overall_utilization = static_cast<double>(compute.macs) / (static_cast<double>(done->total_cycles) *
                                                                     static_cast<double>(config.rows * config.cols));
  return result;
}

}  // namespace sator::dataflow
