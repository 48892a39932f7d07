#include "target/chip.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/build_id.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "target/calibration.h"
#include "target/chip_file.h"

namespace sator {

namespace {

constexpr Unit kHertz{"Hz", 1e3, 1e12};
constexpr Unit kBytes{"bytes", 1, 1e18};
constexpr Unit kBytesPerCycle{"bytes per cycle", 1e-6, 1e12};
constexpr Unit kBytesPerSecond{"bytes per second", 1, 1e18};
constexpr Unit kEfficiency{"of the stated bandwidth", 0.01, 1};
constexpr Unit kCycles{"cycles", 0, 1e12};
constexpr Unit kPes{"PEs", 1, 1 << 20};
constexpr Unit kBits{"bits", 1, 64};
constexpr Unit kNanometres{"nm", 1, 1000};
constexpr Unit kLanes{"lanes", 1, 1e9};
constexpr Unit kPicojoules{"pJ", 0, 1e9};
constexpr Unit kWatts{"W", 0, 1e6};
constexpr Unit kBurst{"bytes", 1, 4096};
constexpr Unit kCores{"cores", 1, 1 << 16};
constexpr Unit kThreads{"threads", 1, 1 << 16};
constexpr Unit kChips{"chips", 1, 1 << 20};
constexpr Unit kSeconds{"s", 0, 1};
constexpr Unit kSquareMillimetres{"mm2", 1e-6, 1e5};
constexpr Unit kMacRate{"MACs per PE and cycle", 1e-6, 4096};
constexpr Unit kOpRate{"operations per lane and cycle", 1e-6, 4096};

// In the order of the enums.
const std::vector<std::string_view> kNumberNames{"int", "float"};
const std::vector<std::string_view> kClassNames{"gemm", "gemv", "batched"};
const std::vector<std::string_view> kFormulaNames{"sator", "tenet"};
const std::vector<std::string_view> kLaneNames{"last", "longest"};
const std::vector<std::string_view> kWireNames{"systolic", "multicast", "none"};
const std::vector<std::string_view> kWorkNames{"elementwise", "reduce", "dequantize", "rescale", "quantize"};
const std::vector<std::string_view> kOperandNames{"weight", "activation", "output"};

/// The table [energy]: where figures come from that do not say so themselves.
struct EnergyTable {
  int node_nm = 0;
  std::string source;
};

/// key = pJ, and the source of the figure in `source_key`; without one that of the table [energy].
EnergyFigure energy(KeyReader& in, std::string_view key, std::string_view source_key, const EnergyTable& table) {
  EnergyFigure figure{in.number_or(key, kPicojoules, 0), in.string_or(source_key, table.source)};
  if (figure.picojoules > 0 && figure.source.empty())
    in.fail_at(key,
               "the energy has no source",
               text(source_key, " = \"where the figure comes from, and its node\", or [energy] with a source for all"),
               text("add ", source_key));
  return figure;
}

std::vector<VectorWork> work_list(KeyReader& in, std::string_view key) {
  std::vector<VectorWork> work;
  for (size_t i : in.choices_or(key, kWorkNames, {})) work.push_back(kVectorWork[i]);
  return work;
}

Precision read_precision(KeyReader in, double clock_hz, const EnergyTable& table) {
  Precision p;
  p.weight_bits = static_cast<int>(in.integer("weight_bits", kBits));
  p.activation_bits = static_cast<int>(in.integer("activation_bits", kBits));
  p.accumulator_bits = static_cast<int>(in.integer("accumulator_bits", kBits));
  p.is_float = in.has("number") && in.choice("number", kNumberNames) == 1;
  p.macs_per_pe_per_cycle = in.number("macs_per_pe_per_cycle", kMacRate);
  const double rate = p.macs_per_pe_per_cycle, slow = 1 / rate;
  const auto is_whole = [](double v) { return std::abs(v - std::round(v)) < 1e-9 * v; };
  if (!is_whole(rate) && !is_whole(slow))
    in.fail_at("macs_per_pe_per_cycle",
               text("the value is ", rate),
               "a whole number of MACs per cycle, or of cycles per MAC",
               "write 2, 1, 0.5, 0.25 ...");
  if (!p.is_float && p.accumulator_bits < p.weight_bits + p.activation_bits - 1)
    in.fail_at("accumulator_bits",
               text("the value is ", p.accumulator_bits),
               text("at least ",
                    p.weight_bits + p.activation_bits - 1,
                    " bits: one product of ",
                    p.weight_bits,
                    " x ",
                    p.activation_bits,
                    " bits"),
               "widen the accumulator");
  p.energy_per_mac = energy(in, "energy_pj_per_mac", "energy_source", table);
  if (in.has("sustained_clock_hz")) {
    p.sustained_clock_hz = in.number("sustained_clock_hz", kHertz);
    if (*p.sustained_clock_hz > clock_hz)
      in.fail_at("sustained_clock_hz",
                 text("the value is ", *p.sustained_clock_hz, ", above the chip's ", clock_hz),
                 "the clock as which all PEs keep the rate up: at most the chip's clock_hz",
                 "lower it, or leave it out");
  }
  in.finish();
  return p;
}

Memory read_memory(KeyReader in, double clock_hz, const EnergyTable& table) {
  Memory m;
  m.name = in.name("name");
  if (in.has("capacity_bytes")) m.capacity_bytes = in.integer("capacity_bytes", kBytes);
  m.per_core = in.flag_or("per_core", false);
  m.burst_bytes = in.integer_or("burst_bytes", kBurst, 1);
  // One bandwidth for both directions, or one for each.
  const bool per_cycle = in.has("bytes_per_cycle"), per_second = in.has("bytes_per_second");
  const bool apart = in.has("read_bytes_per_cycle") || in.has("write_bytes_per_cycle");
  if (per_cycle + per_second + apart != 1)
    in.fail_at("bytes_per_cycle",
               "the bandwidth is missing or given twice",
               "bytes_per_cycle, bytes_per_second, or read_bytes_per_cycle with write_bytes_per_cycle",
               "state the bandwidth once");
  m.shared_port = !apart;
  if (apart) {
    m.read_bytes_per_cycle = in.number("read_bytes_per_cycle", kBytesPerCycle);
    m.write_bytes_per_cycle = in.number("write_bytes_per_cycle", kBytesPerCycle);
  } else {
    m.read_bytes_per_cycle = per_cycle ? in.number("bytes_per_cycle", kBytesPerCycle)
                                       : in.number("bytes_per_second", kBytesPerSecond) / clock_hz;
    m.write_bytes_per_cycle = m.read_bytes_per_cycle;
  }
  m.latency_cycles = in.integer_or("latency_cycles", kCycles, 0);
  m.efficiency = in.number_or("efficiency", kEfficiency, 1);
  m.read_bytes_per_cycle *= m.efficiency;
  m.write_bytes_per_cycle *= m.efficiency;
  m.double_buffered = in.flag_or("double_buffered", false);
  std::vector<size_t> holds = in.choices_or("holds", kOperandNames, {0, 1, 2});
  auto held = [&](size_t kind) { return std::find(holds.begin(), holds.end(), kind) != holds.end(); };
  m.holds_weights = held(0), m.holds_activations = held(1), m.holds_outputs = held(2);
  m.read_energy_per_bit = energy(in, "energy_pj_per_bit", "energy_source", table);
  m.write_energy_per_bit = m.read_energy_per_bit;
  m.write_energy_per_bit.picojoules =
      in.number_or("write_energy_pj_per_bit", kPicojoules, m.read_energy_per_bit.picojoules);
  if (in.has("write_energy_pj_per_bit") && m.write_energy_per_bit.source.empty())
    in.fail_at("write_energy_pj_per_bit", "the energy has no source", "energy_source = \"...\"", "add energy_source");
  in.finish();
  return m;
}

void read_array(KeyReader in, Chip& chip, const EnergyTable& table) {
  chip.cores = in.integer_or("cores", kCores, 1);
  if (in.has("core_bytes_per_cycle")) chip.core_bytes_per_cycle = in.number("core_bytes_per_cycle", kBytesPerCycle);
  chip.least_columns = in.integer_or("least_columns", kPes, 1);
  if (in.has("barrier_cycles")) chip.barrier_cycles = in.integer("barrier_cycles", kCycles);
  chip.rows = in.integer("rows", kPes);
  chip.columns = in.integer("columns", kPes);
  chip.dataflow = static_cast<Stationary>(in.choice("dataflow", kDataflowNames));
  chip.wires = static_cast<Wires>(in.choice("interconnect", kWireNames));
  chip.tiles_overlap = in.flag_or("tiles_overlap", false);
  chip.stationary_load_hidden = in.flag_or("stationary_load_hidden", false);
  if (in.has("fill_bytes_per_cycle")) chip.fill_bytes_per_cycle = in.number("fill_bytes_per_cycle", kBytesPerCycle);
  chip.inline_work = work_list(in, "inline");
  chip.energy_per_hop_bit = energy(in, "hop_energy_pj_per_bit", "hop_energy_source", table);
  in.finish();
}

EnergyTable read_energy_table(KeyReader in) {
  EnergyTable table{static_cast<int>(in.integer("node_nm", kNanometres)), in.string("source")};
  in.finish();
  return table;
}

void read_precisions(KeyReader& in, Chip& chip, const EnergyTable& table) {
  for (KeyReader& reader : in.tables("precision")) {
    Precision p = read_precision(reader, chip.clock_hz, table);
    for (const Precision& known : chip.precisions)
      if (known.weight_bits == p.weight_bits && known.activation_bits == p.activation_bits &&
          known.is_float == p.is_float)
        reader.fail_at("weight_bits",
                       text("two rows for ", p.weight_bits, " x ", p.activation_bits, " bits"),
                       "one [[precision]] for each pair of widths and kind of number",
                       "remove one");
    chip.precisions.push_back(std::move(p));
  }
}

/// What stays in a PE must fit its registers: sums under "os", weights under "ws" and "rs", inputs under "is".
void read_registers(KeyReader in, Chip& chip, const EnergyTable& table) {
  chip.pe.capacity_bytes = in.integer("capacity_bytes", kBytes);
  for (const Precision& p : chip.precisions) {
    const double at_once = std::max(1.0, p.macs_per_pe_per_cycle);
    const double bits = chip.dataflow == Stationary::output     ? p.accumulator_bits
                        : chip.dataflow == Stationary::input    ? p.activation_bits * at_once
                        : chip.dataflow == Stationary::schedule ? 0
                                                                : p.weight_bits * at_once;
    if (bits > 8.0 * static_cast<double>(chip.pe.capacity_bytes))
      in.fail_at("capacity_bytes",
                 text("the value is ",
                      chip.pe.capacity_bytes,
                      " bytes, but ",
                      bits / 8,
                      " stay in a PE at ",
                      p.weight_bits,
                      " x ",
                      p.activation_bits,
                      " bits under dataflow ",
                      string_literal(to_string(chip.dataflow))),
                 text("registers for the tile that stays: at least ", bits / 8, " bytes"),
                 "enlarge the registers, or remove the precision");
  }
  chip.pe.energy_per_bit = energy(in, "energy_pj_per_bit", "energy_source", table);
  in.finish();
}

/// [mapping]: which operand stays, per class of products; along which iterator the vector unit's lanes lie.
void read_mapping(KeyReader in, Chip& chip) {
  for (size_t c = 0; c < kClassNames.size(); ++c) {
    if (!in.has(kClassNames[c])) continue;
    const auto dataflow = static_cast<Stationary>(in.choice(kClassNames[c], kDataflowNames));
    if (dataflow != chip.dataflow) chip.dataflow_of[c] = dataflow;
  }
  if (in.has("vector")) chip.lanes_along = static_cast<LanesAlong>(in.choice("vector", kLaneNames));
  in.finish();
}

/// [tenet]: TENET's files of the array and of the mapping, as texts. Only the engine reads what they say.
void read_tenet(KeyReader in, Chip& chip) {
  chip.tenet = TenetFiles{.pe_array = in.string("pe_array"),
                          .mapping = in.string("mapping"),
                          .pe_array_file = chip.file + " tenet.pe_array",
                          .mapping_file = chip.file + " tenet.mapping"};
  in.finish();
}

/// [host]: the machine that the description was measured on.
void read_host(KeyReader in, Chip& chip) {
  chip.host = HostCpu{.cpu = in.string("cpu"), .threads = in.integer("threads", kThreads)};
  in.finish();
}

void read_link(KeyReader in, Chip& chip, const EnergyTable& table) {
  ChipLink link;
  link.name = in.name("name");
  link.source = in.string("source");
  link.bytes_per_second = in.number("bytes_per_second", kBytesPerSecond);
  link.latency_s = in.number_or("latency_s", kSeconds, 0);
  link.chips = in.integer("chips", kChips);
  link.energy_per_bit = energy(in, "energy_pj_per_bit", "energy_source", table);
  in.finish();
  chip.link = std::move(link);
}

void read_vector(KeyReader in, Chip& chip, const EnergyTable& table) {
  chip.vector.lanes = in.integer("lanes", kLanes);
  chip.vector.ops_per_lane_per_cycle = in.number("ops_per_lane_per_cycle", kOpRate);
  chip.vector.does =
      in.has("does") ? work_list(in, "does") : std::vector<VectorWork>(std::begin(kVectorWork), std::end(kVectorWork));
  chip.vector.overlaps_array = in.flag_or("overlaps_array", true);
  chip.vector.energy_per_op = energy(in, "energy_pj_per_op", "energy_source", table);
  in.finish();
}

/// A memory of a core lies inside of those that all cores share.
void check_sharing(KeyReader& reader, const Memory& m, const Chip& chip) {
  if (m.per_core && chip.cores == 1)
    reader.fail_at("per_core",
                   text(m.name, " is one per core, but the chip has one core"),
                   "array.cores above 1",
                   "state array.cores, or leave per_core out");
  if (m.per_core && chip.memories.empty())
    reader.fail_at("per_core",
                   "the outermost memory is one per core",
                   "an outermost memory that all cores share",
                   "leave per_core out");
  if (!m.per_core && !chip.memories.empty() && chip.memories.back().per_core)
    reader.fail_at("name",
                   text(m.name, " is shared, but stands inside of ", chip.memories.back().name, ", one per core"),
                   "shared memories first, then those of one core",
                   "move the table up, or add per_core = true");
}

/// What reports call the parts of a latency or an energy that are no memory's.
constexpr std::string_view kReservedNames[] = {"array", "vector", "launch", "links", "mac", "wires", "static"};

void read_memories(KeyReader& in, Chip& chip, const EnergyTable& table) {
  std::set<std::string> names;
  for (KeyReader& reader : in.tables("memory")) {
    Memory m = read_memory(reader, chip.clock_hz, table);
    check_sharing(reader, m, chip);
    if (!names.insert(m.name).second)
      reader.fail_at("name", text("two memories are called ", m.name), "distinct names of memories", "rename one");
    if (std::find(std::begin(kReservedNames), std::end(kReservedNames), m.name) != std::end(kReservedNames))
      reader.fail_at("name",
                     text("a memory is called ", m.name),
                     text("another name than those of a report's other parts: ", join(kReservedNames, ", ")),
                     "rename it");
    chip.memories.push_back(std::move(m));
  }
  const Memory& outer = chip.memories.front();
  if (!outer.holds_weights || !outer.holds_activations || !outer.holds_outputs)
    in.fail_at("memory",
               text("the first memory, ", outer.name, ", does not hold everything"),
               "memories from the outside in; the first holds all operands",
               "put the DRAM first, without `holds`");
  if (chip.tenet && chip.memories.size() == 1) return;  // TENET's scratchpad, which everything lies in
  auto on_chip = [&](auto member) {
    return std::any_of(chip.memories.begin() + 1, chip.memories.end(), [&](const Memory& m) { return m.*member; });
  };
  if (!on_chip(&Memory::holds_weights) || !on_chip(&Memory::holds_activations) || !on_chip(&Memory::holds_outputs))
    in.fail_at("memory",
               "weights, activations or outputs have no memory on the chip",
               "a second memory for each kind of operand",
               "add a [[memory]] or widen `holds`");
}

/// keeps_between = "sram": a memory on the chip that holds results and what products read.
void read_keeps_between(KeyReader& in, Chip& chip) {
  chip.keeps_between = in.string("keeps_between");
  std::vector<std::string> able;
  for (size_t m = 1; m < chip.memories.size(); ++m)
    if (chip.memories[m].holds_outputs || chip.memories[m].holds_activations) able.push_back(chip.memories[m].name);
  if (std::find(able.begin(), able.end(), chip.keeps_between) == able.end())
    in.fail_at("keeps_between",
               text("the value is ", string_literal(chip.keeps_between)),
               text("a memory on the chip that holds activations or outputs: one of ", join(able, ", ")),
               "name one of its memories, or remove the line");
}

/// [one_pass]: where tiles of what lies between two products stay.
void read_one_pass(KeyReader in, Chip& chip) {
  OnePassRule rule{.memory = in.string("memory"), .source = in.string("source")};
  std::vector<std::string> able;
  for (size_t m = 1; m < chip.memories.size(); ++m)
    if (chip.memories[m].holds_outputs && chip.memories[m].capacity_bytes) able.push_back(chip.memories[m].name);
  if (std::find(able.begin(), able.end(), rule.memory) == able.end())
    in.fail_at("memory",
               text("the value is ", string_literal(rule.memory)),
               text("a memory on the chip that holds outputs: one of ", join(able, ", ")),
               "name one of its memories, or leave [one_pass] out");
  if (chip.vector.lanes == 0)
    in.fail_at("memory",
               "the chip has no vector unit",
               "a vector unit, which works on tiles between two products",
               "add [vector], or leave [one_pass] out");
  in.finish();
  chip.one_pass = std::move(rule);
}

}  // namespace

void read_vector_unit(KeyReader in, Chip& chip) { read_vector(std::move(in), chip, {}); }

std::string_view name_of(VectorWork work) { return kWorkNames[static_cast<size_t>(work)]; }

const Memory* Chip::memory(std::string_view memory_name) const {
  for (const Memory& m : memories)
    if (m.name == memory_name) return &m;
  return nullptr;
}

Chip parse_chip(std::string_view source, const std::string& file) {
  toml::table root = parse_toml(source, file, "compare with the shipped files in chips/");
  KeyReader in(root, file, "");
  Chip chip;
  chip.file = file;
  chip.name = in.name("name");
  chip.description = in.string_or("description", "");
  chip.source = in.string("source");
  chip.node_nm = static_cast<int>(in.integer("node_nm", kNanometres));
  chip.clock_hz = in.number("clock_hz", kHertz);
  chip.launch_cycles = in.integer_or("launch_cycles", kCycles, 0);
  chip.aliases = in.strings("aliases");
  chip.calibration_file = in.string_or("calibration", "");
  if (in.has("host")) read_host(in.table("host"), chip);
  EnergyTable table{.node_nm = chip.node_nm};
  if (in.has("energy")) table = read_energy_table(in.table("energy"));
  chip.energy_node_nm = table.node_nm;
  read_array(in.table("array"), chip, table);
  if (in.has("mapping")) read_mapping(in.table("mapping"), chip);
  const bool by_tenet = in.has("formula") && in.choice("formula", kFormulaNames) == 1;
  if (by_tenet) read_tenet(in.table("tenet"), chip);
  read_precisions(in, chip, table);
  read_memories(in, chip, table);
  if (chip.tenet) chip.memories.back().shared_port = false;  // items in and items out overlap
  read_registers(in.table("pe"), chip, table);
  if (chip.tenet && !in.has("vector"))
    chip.vector.lanes = 0;  // TENET knows none
  else
    read_vector(in.table("vector"), chip, table);
  if (in.has("pattern")) chip.patterns = read_patterns(in);
  if (in.has("keeps_between")) read_keeps_between(in, chip);
  if (in.has("one_pass")) read_one_pass(in.table("one_pass"), chip);
  if (in.has("link")) read_link(in.table("link"), chip, table);
  if (in.has("area")) {
    KeyReader area = in.table("area");
    chip.area_mm2 = area.number("mm2", kSquareMillimetres);
    chip.area_source = area.string("source");
    area.finish();
  }
  if (in.has("power_limit")) {
    KeyReader power = in.table("power_limit");
    chip.power_limit = PowerLimit{.watts = power.number("watts", kWatts),
                                  .clock_hz = power.number("clock_hz", kHertz),
                                  .source = power.string("source")};
    if (chip.power_limit->clock_hz > chip.clock_hz)
      power.fail_at("clock_hz",
                    text("the value is ", chip.power_limit->clock_hz, ", above the chip's ", chip.clock_hz),
                    "the clock that is left at the power limit: at most the chip's clock_hz",
                    "lower it, or leave [power_limit] out");
    power.finish();
  }
  if (in.has("static_power")) {
    KeyReader power = in.table("static_power");
    chip.static_watts = power.number("watts", kWatts);
    chip.static_source = power.string("source");
    power.finish();
  }
  in.finish();
  return chip;
}

std::string identity_of(const Chip& chip) {
  std::string all = read_file(chip.file);
  if (chip.calibration) all += read_file(chip.calibration->file);
  if (chip.tenet) all += text(chip.tenet->pe_array, "\n", chip.tenet->mapping);
  return chip.variation.empty() ? all : text(all, "\n", chip.variation);
}

namespace {

/// Folders that may hold shipped chips: $SATOR_CHIPS, then chips/ or share/sator/chips in the folders above this
/// program or library, then chips/ here.
std::vector<fs::path> chip_folders() {
  std::vector<fs::path> folders;
  if (const char* named = std::getenv("SATOR_CHIPS"); named && *named) folders.emplace_back(named);
  std::error_code ignored;
  fs::path at = fs::weakly_canonical(file_of(reinterpret_cast<const void*>(&shipped_chips)), ignored);
  for (int up = 0; up < 6 && at.has_parent_path() && at != at.parent_path(); ++up) {
    at = at.parent_path();
    folders.push_back(at / "chips");
    folders.push_back(at / "share/sator/chips");
  }
  folders.emplace_back("chips");
  std::erase_if(folders, [&](const fs::path& f) { return !fs::is_directory(f, ignored); });
  return folders;
}

}  // namespace

std::vector<std::string> shipped_chips() {
  std::set<std::string> names;
  std::error_code ignored;
  for (const fs::path& folder : chip_folders())
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
      if (entry.path().extension() == ".toml") names.insert(entry.path().stem().string());
  return {names.begin(), names.end()};
}

namespace {

/// A chip whose own file is read, calibrated if the file says by what.
Chip with_its_calibration(Chip chip) {
  if (chip.calibration_file.empty()) return chip;
  const std::string file = (fs::path(chip.file).parent_path() / chip.calibration_file).string();
  chip.calibration = for_chip(parse_calibration(read_file(file), file), chip);
  return chip;
}

/// Without its calibration.
Chip find_described(const std::string& name_or_path);

}  // namespace

Chip find_chip(const std::string& name_or_path) {
  if (const size_t at = name_or_path.rfind('@'); at != std::string::npos) {
    Chip chip = find_described(name_or_path.substr(0, at));
    const std::string file = name_or_path.substr(at + 1);
    chip.calibration = for_chip(parse_calibration(read_file(file), file), chip);
    return chip;
  }
  return with_its_calibration(find_described(name_or_path));
}

namespace {

Chip find_described(const std::string& name_or_path) {
  const bool is_path = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".toml");
  if (is_path) return parse_chip(read_file(name_or_path), name_or_path);
  const std::vector<fs::path> folders = chip_folders();
  auto read = [](const fs::path& file) {
    Chip chip = parse_chip(read_file(file), file.filename().string());
    chip.file = file.string();
    return chip;
  };
  std::error_code ignored;
  for (const fs::path& folder : folders)
    if (fs::path file = folder / (name_or_path + ".toml"); fs::is_regular_file(file, ignored)) return read(file);
  for (const fs::path& folder : folders)
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().extension() != ".toml") continue;
      // The text first: not every file need be read in full, nor be right, to find another.
      if (read_file(entry.path()).find(string_literal(name_or_path)) == std::string::npos) continue;
      Chip chip = read(entry.path());
      if (std::find(chip.aliases.begin(), chip.aliases.end(), name_or_path) != chip.aliases.end()) return chip;
    }
  std::vector<std::string> known = shipped_chips(), near = nearest_names(name_or_path, known);
  fail({.what = text("there is no chip called ", name_or_path),
        .needs = known.empty() ? "a path to a chip's TOML file"
                               : text("one of ", join(known, ", "), ", or a path to a TOML file"),
        .hint = near.empty() ? "" : text("did you mean ", near[0], "?")});
}

}  // namespace

}  // namespace sator
