#include "dataflow/cost/described_chip.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "dataflow/cost/collective.h"
#include "dataflow/cost/tenet_array.h"
#include "target/chip_file.h"

namespace sator::dataflow {

namespace {

constexpr double kDefaultClockHz = 1e9;
constexpr int64_t kMostPes = 65536;

/// The one file of a folder that has one of these names, or this ending.
fs::path only_file(const fs::path& folder, const std::vector<std::string>& names, const std::string& ending,
                   const std::string& what) {
  for (const std::string& name : names)
    if (fs::is_regular_file(folder / name)) return folder / name;
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() == ending)
      found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  if (found.size() != 1)
    fail({.what = found.empty() ? text(folder.string(), " has no file of the ", what)
                                : text(folder.string(), " has several files of the ", what, ": ", join(found, ", ")),
          .needs = text("one of ", join(names, ", "), ", or one file *", ending),
          .hint = found.empty() ? "--chip takes a name, a TOML file, or a folder with TENET's files"
                                : text("call the one that is meant ", names.front())});
  return folder / found.front();
}

constexpr Unit kHertz{"Hz", 1e3, 1e12};
constexpr Unit kCycles{"cycles", 0, 1e12};

Chip plain_chip(const std::string& name) {
  Chip chip;
  chip.name = name;
  chip.source = "TENET's files";
  chip.clock_hz = kDefaultClockHz;
  chip.wires = Wires::none;
  chip.precisions = {{.weight_bits = 16, .activation_bits = 16, .accumulator_bits = 32, .is_float = true}};
  chip.memories = {{.name = "scratchpad"}};
  chip.vector.lanes = 0;
  return chip;
}

/// What a chip.toml without an array says: what differs from its base, or from a plain chip.
Chip on_base(const toml::table& table, const std::string& file, const std::string& name) {
  KeyReader in(table, file, "");
  Chip chip = in.has("base") ? find_chip(in.string("base")) : plain_chip(name);
  chip.description = in.string_or("description", "");
  chip.source = in.string_or(
      "source", in.has("base") ? text("TENET's files; all but the array as ", chip.name) : "TENET's files");
  chip.name = in.string_or("name", name);
  if (in.has("clock_hz")) {
    const double clock = in.number("clock_hz", kHertz);
    // Bandwidths per second stay what they are outside; on the chip they follow its clock.
    Memory& outside = chip.memories.front();
    outside.read_bytes_per_cycle *= chip.clock_hz / clock;
    outside.write_bytes_per_cycle *= chip.clock_hz / clock;
    chip.clock_hz = clock;
  }
  chip.launch_cycles = in.integer_or("launch_cycles", kCycles, chip.launch_cycles);
  if (in.has("vector")) read_vector_unit(in.table("vector"), chip);
  in.finish();
  return chip;
}

/// The sizes of a PE set as rows and columns: its first coordinate, and all others.
std::array<int64_t, 2> rows_and_columns(const Domain& pes) {
  std::array<int64_t, 2> size = {1, 1};
  for (size_t x = 0; x < pes.extent.size(); ++x) size[x == 0 ? 0 : 1] *= pes.extent[x];
  return size;
}

Chip chip_of_folder(const fs::path& folder) {
  const fs::path array_file = only_file(folder, {"pe_array", "pe_array.p"}, ".p", "PE array"),
                 mapping_file = only_file(folder, {"mapping", "mapping.m"}, ".m", "mapping"),
                 toml_file = folder / "chip.toml";
  std::string name = fs::weakly_canonical(folder).filename().string();
  if (name.empty()) name = fs::weakly_canonical(folder).parent_path().filename().string();
  Chip chip;
  bool whole = false;  // chip.toml says all of it
  bool plain = true;   // it says neither array nor base: memories are pe_array's
  if (fs::is_regular_file(toml_file)) {
    const std::string content = read_file(toml_file);
    const toml::table table = parse_toml(content, toml_file.string(), "compare with the shipped files in chips/");
    whole = table.contains("array");
    plain = !whole && !table.contains("base");
    chip = whole ? parse_chip(content, toml_file.string()) : on_base(table, toml_file.string(), name);
    chip.file = toml_file.string();
  } else {
    chip = plain_chip(name);
    chip.file = array_file.string();
  }
  chip.tenet = TenetFiles{.pe_array = read_file(array_file),
                          .mapping = read_file(mapping_file),
                          .pe_array_file = array_file.string(),
                          .mapping_file = mapping_file.string()};
  const TenetArray array = tenet_array_of(chip);
  const auto [rows, columns] = rows_and_columns(array.array.pes);
  if (whole && (chip.rows != rows || chip.columns != columns))
    fail({.what = text("the array has ",
                       chip.rows,
                       " x ",
                       chip.columns,
                       " PEs, in ",
                       array_file.string(),
                       " ",
                       rows,
                       " x ",
                       columns),
          .needs = "one size of the array in both files",
          .hint = "change array.rows and array.columns, or the PE set",
          .where = toml_file.string()});
  chip.rows = rows, chip.columns = columns;
  chip.cores = 1;
  chip.dataflow = Stationary::schedule;
  std::fill(std::begin(chip.dataflow_of), std::end(chip.dataflow_of), std::nullopt);
  for (Memory& m : chip.memories) m.per_core = false;
  Memory& scratchpad = chip.memories.back();
  scratchpad.shared_port = false;  // items in and items out overlap
  if (plain)
    scratchpad.read_bytes_per_cycle = scratchpad.write_bytes_per_cycle =
        static_cast<double>(array.hardware.bandwidth_bits_per_cycle) / 8;
  if (chip.description.empty())
    chip.description = text(rows,
                            "x",
                            columns,
                            " PEs and a mapping by TENET's files",
                            fs::is_regular_file(toml_file) ? "" : "; assumed: 1 GHz, no vector unit, no energies");
  return chip;
}

/// The catalogue's mapping of a matmul on an array of this size, skewed as systolic wires need it.
TenetFiles files_for(const Chip& chip, std::array<int64_t, 2> size, Stationary dataflow) {
  const TenetArray old = tenet_array_of(chip);
  const Array array{Domain::box({"i", "j"}, {size[0], size[1]}), {link::shift({-1, 0}), link::shift({0, -1})}};
  struct Row {
    const char *row, *column, *streamed;
  };
  const Row rows[] = {{"i", "j", "k"}, {"k", "j", "i"}, {"k", "i", "j"}};
  const Row& r = rows[static_cast<size_t>(dataflow)];
  const std::string row = text(r.row, "%", size[0]), column = text(r.column, "%", size[1]);
  const std::string row_fold = text("floor(", r.row, "/", size[0], ")"),
                    column_fold = text("floor(", r.column, "/", size[1], ")");
  // A stationary factor's columns choose the output tile: they run outermost.
  const bool outputs = dataflow == Stationary::output;
  TenetFiles files = *chip.tenet;
  files.pe_array = tenet_array_text(array, old.hardware);
  files.mapping = text("{S[i,j,k]->PE[",
                       row,
                       ",",
                       column,
                       "]}\n{S[i,j,k]->T[",
                       outputs ? row_fold : column_fold,
                       ",",
                       outputs ? column_fold : row_fold,
                       ",",
                       row,
                       "+",
                       column,
                       "+",
                       r.streamed,
                       "]}\n");
  return files;
}

void change(Chip& chip, const ChipChanges& changes) {
  const bool mapped = changes.pe || changes.dataflow || changes.tile;
  const bool by_files = chip.tenet && fs::is_regular_file(chip.tenet->mapping_file);
  if (chip.tenet && mapped && (by_files || changes.tile))
    fail({.what = text("the mapping of ", chip.name, " is that of ", chip.tenet->mapping_file),
          .needs = "a chip whose mapping is not fixed by files",
          .hint =
              by_files ? "change the folder's files, or leave --pe, --dataflow and --tile out" : "leave --tile out"});
  if (chip.calibration && (changes.pe || changes.dataflow))
    fail({.what = text("the calibration is of chip ", chip.name, ", not of one with another array or dataflow"),
          .needs = "the chip that was measured",
          .hint = "leave --pe and --dataflow out, or the calibration",
          .where = chip.calibration->file});
  std::vector<std::string> words;
  if (changes.pe) {
    if ((*changes.pe)[0] > kMostPes || (*changes.pe)[1] > kMostPes)
      fail({.what = text("--pe ", (*changes.pe)[0], "x", (*changes.pe)[1]),
            .needs = text("at most ", kMostPes, " rows and columns"),
            .hint = "use a smaller array"});
    words.push_back(text((*changes.pe)[0], "x", (*changes.pe)[1]));
    chip.rows = (*changes.pe)[0], chip.columns = (*changes.pe)[1];
  }
  if (changes.dataflow) {
    words.emplace_back(to_string(*changes.dataflow));
    chip.dataflow = *changes.dataflow;
    std::fill(std::begin(chip.dataflow_of), std::end(chip.dataflow_of), std::nullopt);
  }
  if (chip.tenet && mapped) chip.tenet = files_for(chip, {chip.rows, chip.columns}, chip.dataflow);
  if (changes.tile) {
    words.push_back(text("tile ", join(*changes.tile, "x")));
    chip.tile = changes.tile;
  }
  if (changes.chips != 1) {
    all_reduce_s(chip, changes.chips, 1);  // there is such a link
    words.push_back(text(changes.chips, " chips"));
  }
  chip.variation = join(words, " ");
  chip.name += text("[", chip.variation, "]");
  if (!chip.description.empty()) chip.description += text("; changed to ", chip.variation);
}

}  // namespace

Chip described_chip(const std::string& name_or_path, const ChipChanges& changes) {
  std::error_code ignored;
  const bool folder = fs::is_directory(name_or_path, ignored);
  Chip chip = folder ? chip_of_folder(name_or_path) : find_chip(name_or_path);
  if (chip.tenet && !folder) {
    const auto [rows, columns] = rows_and_columns(tenet_array_of(chip).array.pes);
    if (rows != chip.rows || columns != chip.columns)
      fail({.what = text(
                "the array has ", chip.rows, " x ", chip.columns, " PEs, in tenet.pe_array ", rows, " x ", columns),
            .needs = "one size of the array",
            .hint = "change array.rows and array.columns, or the PE set",
            .where = chip.file});
  }
  if (changes.any()) change(chip, changes);
  return chip;
}

Chip changed(Chip chip, const ChipChanges& changes) {
  if (changes.any()) change(chip, changes);
  return chip;
}

}  // namespace sator::dataflow
