// A study's result as data: what the table, the JSON, the CSVs and the page are made from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataflow/cost/latency_interval.h"
#include "engine/statistics.h"
#include "study/route_costs.h"

namespace sator::study {

/// What a cycle of latency is spent on. Attention is everything in kernels that touch the KV cache; elsewhere a cycle
/// belongs to the resource that binds: the array, the vector unit by the kind of its work, or a memory by the kind of
/// what it moves.
enum class Component : uint8_t {
  array,
  weights,
  scales,
  activations,
  dequantize,
  rescale,
  quantize,
  attention,
  vector,
  launch,
  links
};
struct ComponentName {
  Component component;
  std::string_view key;    // in JSON, CSV and style classes
  std::string_view words;  // for people
  std::string_view mark;   // in the bar itself
  bool on_vector_unit;     // it has work there
  std::string_view means;
};
inline constexpr size_t kComponentCount = 11;
/// In the order of the enum, which is the order of columns and of stacked bars.
const std::array<ComponentName, kComponentCount>& components();

struct ComponentCost {
  int64_t latency_cycles = 0;  // its part of the latency
  int64_t vector_ops = 0;      // operations of the vector unit or of inline units
  int64_t vector_cycles = 0;   // of the vector unit, hidden behind other work or not
  bool operator==(const ComponentCost&) const = default;
};
using Components = std::array<ComponentCost, kComponentCount>;
inline ComponentCost& at(Components& all, Component c) { return all[static_cast<size_t>(c)]; }
inline const ComponentCost& at(const Components& all, Component c) { return all[static_cast<size_t>(c)]; }

/// Bits moved, by what they are to the model. Kept in bits because packed codes end inside of bytes.
struct OperandBits {
  int64_t weight = 0, scale = 0, activation = 0, kv = 0;
  int64_t total() const { return weight + scale + activation + kv; }
  bool operator==(const OperandBits&) const = default;
};

/// One memory of the chip. read_bits + write_bits = by_kind.total().
struct LevelCost {
  std::string name;
  int64_t read_bits = 0, write_bits = 0;
  int64_t compulsory_bytes = 0;  // what no mapping avoids (dataflow/cost/cost.h)
  OperandBits by_kind;
  double required_bytes_per_s = 0;   // to hold up neither array nor vector unit
  double achieved_bytes_per_s = 0;   // bytes / latency
  double available_bytes_per_s = 0;  // what the memory can do

  int64_t bits() const { return read_bits + write_bits; }
  double bytes() const { return static_cast<double>(bits()) / 8; }
  bool operator==(const LevelCost&) const = default;
};

/// Cycles of the array, the vector unit or a memory. They overlap.
struct ResourceCycles {
  std::string name;
  int64_t cycles = 0;
  bool operator==(const ResourceCycles&) const = default;
};

/// How the latency answers to the speed of a resource: -d ln latency / d ln speed. Over all resources, with "launch" as one
/// of them, they add up to 1.
struct Elasticity {
  std::string name;
  double value = 0;
  bool operator==(const Elasticity&) const = default;
};

struct EnergyShare {
  std::string name;
  double joules = 0;
  std::string source;
  bool operator==(const EnergyShare&) const = default;
};

/// Widths of a product, "weights x activations", as the program computes it and as the chip runs it.
struct PrecisionUse {
  std::string asked, ran;  // "float32 x float32", "int16 x int16"
  int64_t passes = 1;      // of the array per product, where no width of the chip suffices
  int64_t macs = 0;
  bool exact() const { return asked == ran && passes == 1; }
  bool operator==(const PrecisionUse&) const = default;
};

/// What a kernel or a whole phase costs. Every total is the sum of its parts:
///   latency_cycles    of components[].latency_cycles
///   levels[].bits()   of its by_kind
///   energy_j          of energy[].joules
///   macs              of kernels' macs
struct Cost {
  int64_t latency_cycles = 0;
  double latency_s = 0;
  std::optional<dataflow::LatencyInterval> latency_interval;  // of a calibrated chip
  int64_t macs = 0;
  double mac_units_used = 0;  // PEs at work, on average over the array's working stamps
  double utilization = 0;     // MACs per MAC that the array could have done at their precision during the latency
  std::string bound;          // the resource that binds, of a phase: that binds most of the cycles
  Components components{};
  std::vector<LevelCost> levels;  // outermost first
  std::vector<ResourceCycles> resources;
  std::vector<ResourceCycles>
      latency_parts;                     // of a kernel: its bound, and what stands beside it (dataflow/cost/cost.h)
  std::vector<Elasticity> elasticities;  // in the order of the resources, then "launch"
  double clock_elasticity = 0;           // with respect to the clock: of all that counts in cycles, so not of DRAM
  std::vector<EnergyShare> energy;
  double energy_j = 0;
  int64_t energy_node_nm = 0;
  std::vector<PrecisionUse> precisions;
  bool operator==(const Cost&) const = default;
};

/// Exact counts of a kernel's products, in TENET's words.
struct ReuseCounts {
  int64_t space = 0, time = 0, spacetime = 0, pe_array = 0;
  int64_t total = 0, assigned = 0, unique = 0, temporal_hits = 0, spatial_hits = 0, footprint = 0;  // over all tensors
  bool checked = false;  // found, or confirmed, by listing every instance
  bool operator==(const ReuseCounts&) const = default;
};

/// A product at a chip's PEs, with its wires and skew, as TENET's three files have it.
struct TenetTexts {
  std::string pe_array, mapping, statement;
  bool operator==(const TenetTexts&) const = default;
};

/// A product by TENET's formula: it takes as long as the longest of three delays, in cycles.
///   delay_in, delay_out   items that are new to the PEs, or leave them, x item_bits / bandwidth_bits + wait - 1; at least 0
///   delay_compute         macs / PEs that ever work
struct TenetTerms {
  int64_t items_in = 0, items_out = 0;
  int64_t item_bits = 0, bandwidth_bits = 0, wait_cycles = 0;
  int64_t macs = 0, pes = 0;
  int64_t delay_in = 0, delay_out = 0, delay_compute = 0;
  bool operator==(const TenetTerms&) const = default;
};
/// Their names in files, in this order.
struct TenetTermName {
  std::string_view name;
  int64_t TenetTerms::* value;
};
inline constexpr TenetTermName kTenetTerms[] = {{"items_in", &TenetTerms::items_in},
                                                {"items_out", &TenetTerms::items_out},
                                                {"item_bits", &TenetTerms::item_bits},
                                                {"bandwidth_bits", &TenetTerms::bandwidth_bits},
                                                {"wait_cycles", &TenetTerms::wait_cycles},
                                                {"macs", &TenetTerms::macs},
                                                {"pes", &TenetTerms::pes},
                                                {"delay_in", &TenetTerms::delay_in},
                                                {"delay_out", &TenetTerms::delay_out},
                                                {"delay_compute", &TenetTerms::delay_compute}};

/// A matrix product of a kernel: Y[b,i,j] += X[b,i,k] * W[b,k,j].
struct ProductUse {
  std::string name;  // of its block
  int64_t batch = 1, i = 1, j = 1, k = 1;
  std::string tile;  // the tiled loops, outermost first, and what rows and columns hold
  int64_t macs = 0;  // that count: of attention's scores those of later positions are masked
  bool operator==(const ProductUse&) const = default;
};

/// One kernel of a phase on one chip: figures are those of one call, of which there are `count`.
struct KernelRow {
  std::string function;
  std::string layer;  // "h.3.mlp", empty outside of layers
  int64_t count = 1;
  int64_t batch = 0, i = 0, j = 0, k = 0;  // of its first product: rows, columns, reduction; 0: it has none
  std::string tile;                        // of that product: as in ProductUse
  int64_t tile_steps = 0;                  // in which the memories are refilled
  std::vector<ProductUse> products;        // all of them
  std::string schedule;           // the same as steps of a schedule of the kernel's function; empty: it has no product
  std::vector<TenetTexts> tenet;  // one per product
  std::vector<TenetTerms> tenet_terms;  // likewise, on a chip that is timed by TENET's formula
  int64_t weight_bits = 0, scale_bits = 0, activation_bits = 0, output_bits = 0;  // per stored element; 0: none
  int64_t accumulator_bits_needed = 0;  // for sums of integers that cannot overflow, of all its products; 0: floats
  std::optional<double> duration_us;    // measured on this machine
  bool costed = true;                   // else a note says why not
  Cost cost;
  ReuseCounts counts;
  int64_t stream_cycles = 0;  // stamps of the array that do work
  std::vector<std::string> notes;
  bool operator==(const KernelRow&) const = default;
};

/// A kernel that multiplies matrices, over the layers in which it does the same: figures are those of one of its `count` calls.
struct Matmul {
  std::string function;
  std::string layer;  // with * for the number in which layers differ
  int64_t count = 0;
  std::vector<ProductUse> products;
  int64_t latency_cycles = 0;
  double latency_s = 0;
  std::string bound;
  int64_t outer_bits = 0;  // moved by the outermost memory
  double outer_bytes_per_s = 0;
  std::optional<double> energy_j;  // absent: the chip states none
  bool operator==(const Matmul&) const = default;
};

/// A phase on the chip with one memory larger by a tenth, its kernels mapped anew.
struct LargerMemory {
  std::string name;
  int64_t capacity_bytes = 0;
  double latency_s = 0;
  bool operator==(const LargerMemory&) const = default;
};

/// One phase of the model on one chip. `cost` is the sum of its kernels (phase.h says how each figure adds up).
struct PhaseResult {
  Cost cost;
  int64_t launches = 0;         // kernel calls
  int64_t kernels = 0;          // different ones
  int64_t kernels_costed = 0;   // of these
  int64_t kernels_checked = 0;  // whose counts were checked by listing every instance
  std::vector<KernelRow> rows;
  std::vector<Matmul> matmuls;       // in the order of first sight
  std::vector<LargerMemory> larger;  // per memory on the chip with a size; none where no mapping is searched
  std::vector<std::string> notes;    // each once
  bool operator==(const PhaseResult&) const = default;
};

/// One phase of the model at one point of a sweep: the sums of its kernels.
struct SweepCost {
  int64_t latency_cycles = 0;
  double latency_s = 0;
  int64_t macs = 0;
  double utilization = 0, energy_j = 0;
  int64_t outer_bytes = 0;  // moved by the outermost memory
  std::string bound;
  Components components{};
  int64_t kernels_without_cost = 0;
  bool operator==(const SweepCost&) const = default;
};

/// A batch of sequences, each with `context` tokens.
///   prefill   of the batch: its prompts one after the other, as the program takes them in
///   decode    the step that appends token number `context` to each of them, one launch for all
struct SweepPoint {
  int64_t batch = 1, context = 1;
  SweepCost prefill, decode;
  bool operator==(const SweepPoint&) const = default;
};

/// What one chip's outermost memory has to hold for one sequence of prompt and generation. (A sweep's larger batches need more.)
struct MemoryNeed {
  std::string memory;
  int64_t weights_bytes = 0, cache_bytes = 0;
  int64_t activation_bytes = 0;                 // of the launch that reads and writes most of them
  std::optional<int64_t> capacity_bytes;        // absent: the chip states none
  std::optional<int64_t> chips_with_room = {};  // where it does not fit: how many that share each layer do
  int64_t bytes() const { return weights_bytes + cache_bytes + activation_bytes; }
  bool fits() const { return !capacity_bytes || bytes() <= *capacity_bytes; }
  bool operator==(const MemoryNeed&) const = default;
};

struct ChipResult {
  std::string chip;
  PhaseResult prefill;  // the whole prompt
  PhaseResult decode;   // one token, at the mean context of the generation
  std::vector<SweepPoint> sweep = {};
  std::optional<MemoryNeed> need = {};  // absent: a study of an earlier version
  bool operator==(const ChipResult&) const = default;
};

/// One kernel call of a phase as it ran on this machine, in the order of the calls.
struct HostCall {
  std::string phase, function;
  double duration_us = 0;
  bool operator==(const HostCall&) const = default;
};

/// A speed on this machine over the rounds of one measurement, in tokens per second.
struct HostSpeed {
  double median = 0, least = 0, most = 0;
  /// Rounds differ by more than 10 % of their median: something else ran, or the clock changed.
  bool is_unsteady() const { return most - least > 0.1 * median; }
  bool operator==(const HostSpeed&) const = default;
};

/// Of a scheme's predictions beside those of the reference (f32), on the same windows.
struct Compared {
  WindowMean perplexity;  // the scheme's less the reference's; the error is paired
  WindowMean kl;          // mean KL divergence of the reference's predictions from the scheme's, nats per token
  double same_top = 0;    // share of predictions with the same most likely token
  bool operator==(const Compared&) const = default;
};

struct SchemeResult {
  std::string name, description;
  std::optional<double> perplexity, standard_error;  // absent: not measured (--shapes-only); one window has no error
  int64_t windows = 0, predictions = 0;
  std::vector<double> window_nats;   // per window, mean -ln p of its predictions
  std::optional<Compared> compared;  // absent: not measured, the reference itself, or there is none
  int64_t weight_bytes = 0;          // all stored bytes
  int64_t parameters = 0;            // of the checkpoint
  double bits_per_weight = 0;
  std::optional<HostSpeed> host_prefill, host_decode;
  std::optional<double> load_s;
  std::vector<HostCall> host_calls;
  std::vector<ChipResult> chips;
  bool operator==(const SchemeResult&) const = default;
};

/// What the whole array can do at one of the chip's precisions.
struct PeakRate {
  std::string precision;  // "int8 x int8"
  double macs_per_s = 0;
  bool operator==(const PeakRate&) const = default;
};

struct ChipFacts {
  std::string name, description, source, file, dataflow;
  int64_t rows = 0, columns = 0, node_nm = 0;
  double clock_hz = 0;
  double outer_bytes_per_s = 0;            // of the outermost memory
  std::string calibration;                 // in words; empty: none
  bool is_host = false;                    // measured on the processor of this run, with as many threads
  std::vector<PeakRate> peaks;             // fastest first
  std::vector<std::string> patterns = {};  // what it takes whole, by name
  std::string keeps_between = {};          // the memory in which one part's results wait for the next; empty: none
  bool is_16_bit = false;  // its fast units take 16 bits (dataflow/mapping/precision.h): ratios are to f16+a16
  bool operator==(const ChipFacts&) const = default;
};

struct ModelFacts {
  std::string name, folder, type;
  int64_t layers = 0, vocab_size = 0, max_positions = 0, parameters = 0;
  bool operator==(const ModelFacts&) const = default;
};

struct Protocol {
  bool shapes_only = false;
  std::string text;         // file whose tokens are predicted; empty: none
  std::string calibration;  // file of static activation scales; empty: none
  int64_t windows = 0, window_tokens = 0;
  int64_t prompt_len = 0, gen_len = 0;
  int64_t decode_context = 0;  // tokens in the cache at the decode step that is costed
  int64_t threads = 0;
  int64_t parallel = 1;               // chips that share each layer
  std::string objective = "latency";  // what mappings were chosen for
  std::string reference;              // the scheme whose predictions the others are compared with: f32; empty: none
  std::string measured_at;            // when the speeds here were measured: "2026-11-22T20:45:03Z"; empty: not
  int64_t rounds = 0;                 // in turns, behind each of those speeds
  std::string host;                   // processor of this machine
  std::string version;                // of the program
  std::vector<std::string> remarks;   // schemes that were left out, and why
  bool operator==(const Protocol&) const = default;
};

struct Study {
  ModelFacts model;
  Protocol protocol;
  std::vector<ChipFacts> chips;
  std::vector<SchemeResult> schemes;          // each with the chips in that order
  std::vector<RoutesOnChip> routes = {};      // where they were asked for: of each scheme on each chip
  std::optional<ChipFacts> routes_host = {};  // that takes what a route leaves off a chip
  bool operator==(const Study&) const = default;
};

/// Of the two phases, by name: what loops over both reads.
struct PhaseName {
  std::string_view name;
  PhaseResult ChipResult::* result;
};
inline constexpr PhaseName kPhases[] = {{"prefill", &ChipResult::prefill}, {"decode", &ChipResult::decode}};

/// Gives the kernels of a phase the durations of their calls: the calls of a function belong to its kernels in order, as
/// many to each as it has calls. A function that ran another number of times has no durations.
void add_durations(const std::vector<HostCall>& calls, std::string_view phase, std::vector<KernelRow>& rows);

/// How many kernels there are, were costed, and had their counts listed one by one, over all phases, chips and schemes.
struct KernelTally {
  int64_t kernels = 0, costed = 0, checked = 0;
};
KernelTally tally(const Study& study);

}  // namespace sator::study
