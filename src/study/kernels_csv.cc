#include "study/kernels_csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace sator::study {

namespace {

[[noreturn]] void refuse(std::string what, std::string needs, std::string_view source, size_t line) {
  fail({.what = std::move(what),
        .needs = std::move(needs),
        .hint = "run `sator study` again, which writes all files of one run",
        .where = text(source, ", line ", line)});
}

/// One line, by the names of its columns.
class KernelLine {
 public:
  KernelLine(const std::map<std::string, size_t>& columns, const std::vector<std::string>& fields,
             std::string_view source, size_t number)
      : columns_(columns), fields_(fields), source_(source), number_(number) {}

  const std::string& words(const std::string& column) const {
    auto at = columns_.find(column);
    if (at == columns_.end())
      refuse(text("there is no column ", string_literal(column)), "kernels.csv of this version", source_, 1);
    return fields_[at->second];
  }
  bool has(const std::string& column) const { return columns_.count(column) > 0 && !words(column).empty(); }
  double number(const std::string& column) const { return to_number<double>(words(column), column); }
  int64_t integer(const std::string& column) const { return to_number<int64_t>(words(column), column); }

  /// "dram 8107; array 12": names and figures.
  template <class Value, class Visit>
  void each(const std::string& column, Visit visit) const {
    const std::string& list = words(column);
    if (list.empty()) return;
    for (std::string_view item : split(list, ';')) {
      item = trim(item);
      const size_t space = item.rfind(' ');
      if (space == std::string_view::npos || space == 0)
        bad(text(column, " is ", string_literal(list)), "names and figures with ';' between them");
      visit(std::string(item.substr(0, space)), to_number<Value>(std::string(item.substr(space + 1)), column));
    }
  }

  [[noreturn]] void bad(std::string what, std::string needs) const {
    refuse(std::move(what), std::move(needs), source_, number_);
  }

 private:
  template <class Value>
  Value to_number(const std::string& word, const std::string& column) const {
    Value value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || error != std::errc() || end != word.data() + word.size())
      bad(text(column, " is ", string_literal(word)), "a figure");
    return value;
  }

  const std::map<std::string, size_t>& columns_;
  const std::vector<std::string>& fields_;
  std::string_view source_;
  size_t number_;
};

int64_t bits_of_bytes(double bytes) { return std::llround(bytes * 8); }

/// `levels`: the memories of the chip in their order, which that of the columns need not be.
Cost cost_of(const KernelLine& line, const std::vector<LevelCost>& levels) {
  Cost c;
  c.latency_s = line.number("latency_s");
  if (!line.words("latency_low_s").empty())
    c.latency_interval = {line.number("latency_low_s"), line.number("latency_high_s")};
  c.latency_cycles = line.integer("latency_cycles");
  c.macs = line.integer("macs");
  c.mac_units_used = line.number("mac_units_used");
  c.utilization = line.number("utilization");
  c.bound = line.words("bound");
  if (!line.words("energy_j").empty()) c.energy_j = line.number("energy_j");
  for (const ComponentName& n : components()) {
    ComponentCost& part = at(c.components, n.component);
    part.latency_cycles = line.integer(text(n.key, "_latency_cycles"));
    if (line.has(text(n.key, "_vector_ops"))) part.vector_ops = line.integer(text(n.key, "_vector_ops"));
    if (line.has(text(n.key, "_vector_cycles"))) part.vector_cycles = line.integer(text(n.key, "_vector_cycles"));
  }
  line.each<int64_t>("resource_cycles",
                     [&](std::string name, int64_t v) { c.resources.push_back({std::move(name), v}); });
  line.each<int64_t>("latency_parts_cycles",
                     [&](std::string name, int64_t v) { c.latency_parts.push_back({std::move(name), v}); });
  line.each<double>("elasticities",
                    [&](std::string name, double v) { c.elasticities.push_back({std::move(name), v}); });
  c.clock_elasticity = line.number("clock_elasticity");
  for (const LevelCost& whole : levels) {
    const std::string& name = whole.name;
    if (!line.has("read_bytes_" + name)) continue;
    LevelCost level{.name = name,
                    .read_bits = bits_of_bytes(line.number("read_bytes_" + name)),
                    .write_bits = bits_of_bytes(line.number("write_bytes_" + name)),
                    .required_bytes_per_s = line.number("required_bytes_per_s_" + name),
                    .achieved_bytes_per_s = line.number("achieved_bytes_per_s_" + name),
                    .available_bytes_per_s = line.number("available_bytes_per_s_" + name)};
    if (line.has("compulsory_bytes_" + name)) level.compulsory_bytes = line.integer("compulsory_bytes_" + name);
    if (c.levels.empty())
      level.by_kind = {.weight = bits_of_bytes(line.number("weight_bytes_moved")),
                       .scale = bits_of_bytes(line.number("scale_bytes_moved")),
                       .activation = bits_of_bytes(line.number("activation_bytes_moved")),
                       .kv = bits_of_bytes(line.number("kv_bytes_moved"))};
    c.levels.push_back(std::move(level));
  }
  return c;
}

KernelRow row_of(const KernelLine& line, const std::vector<LevelCost>& levels) {
  KernelRow row{.function = line.words("function"),
                .layer = line.words("layer"),
                .count = line.integer("count"),
                .batch = line.integer("batch"),
                .i = line.integer("i"),
                .j = line.integer("j"),
                .k = line.integer("k"),
                .tile = line.words("tile")};
  if (line.has("tenet_terms"))
    line.each<int64_t>("tenet_terms", [&](const std::string& name, int64_t v) {
      if (name == kTenetTerms[0].name) row.tenet_terms.emplace_back();
      for (const TenetTermName& t : kTenetTerms)
        if (t.name == name && !row.tenet_terms.empty()) row.tenet_terms.back().*t.value = v;
    });
  row.costed = line.words("costed") == "1";
  row.cost = cost_of(line, levels);
  // Asked and run stand in two columns, in the same order.
  if (row.cost.macs > 0 && !line.words("runs_as").empty())
    row.cost.precisions.push_back(
        {.asked = line.words("computes"), .ran = line.words("runs_as"), .macs = row.cost.macs});
  if (!line.words("notes").empty()) row.notes.push_back(line.words("notes"));
  return row;
}

/// The phase that a line is of.
PhaseResult& phase_of(Study& study, const KernelLine& line) {
  for (SchemeResult& scheme : study.schemes) {
    if (scheme.name != line.words("scheme")) continue;
    for (ChipResult& chip : scheme.chips) {
      if (chip.chip != line.words("chip")) continue;
      for (const PhaseName& phase : kPhases)
        if (phase.name == line.words("phase")) return chip.*phase.result;
    }
  }
  line.bad(text("there is no ", line.words("phase"), " of ", line.words("scheme"), " on ", line.words("chip")),
           "a phase of a scheme on a chip of study.json");
}

}  // namespace

std::vector<std::vector<std::string>> parse_csv(std::string_view csv, std::string_view source) {
  std::vector<std::vector<std::string>> records;
  size_t line = 1;
  for (size_t at = 0; at < csv.size();) {
    std::vector<std::string>& record = records.emplace_back();
    for (bool more = true; more;) {
      std::string& field = record.emplace_back();
      if (at < csv.size() && csv[at] == '"') {
        const size_t began = line;
        for (++at;; ++at) {
          if (at >= csv.size()) refuse("a quoted field does not end", "a closing '\"'", source, began);
          line += csv[at] == '\n';
          if (csv[at] != '"')
            field += csv[at];
          else if (at + 1 < csv.size() && csv[at + 1] == '"')
            field += csv[++at];
          else
            break;
        }
        ++at;
        if (at < csv.size() && csv[at] != ',' && csv[at] != '\n' && csv[at] != '\r')
          refuse("text follows a closing quote", "a comma or the end of the line", source, line);
      } else {
        const size_t end = std::min(csv.find_first_of(",\n", at), csv.size());
        field = csv.substr(at, end - at);
        if (!field.empty() && field.back() == '\r' && (end == csv.size() || csv[end] == '\n')) field.pop_back();
        at = end;
      }
      if (at < csv.size() && csv[at] == '\r') ++at;
      more = at < csv.size() && csv[at] == ',';
      if (at < csv.size()) line += csv[at] == '\n', ++at;
      if (more && at == csv.size()) record.emplace_back(), more = false;
    }
  }
  return records;
}

void add_kernels(Study& study, std::string_view csv, std::string_view source) {
  const std::vector<std::vector<std::string>> records = parse_csv(csv, source);
  if (records.empty()) refuse("the file is empty", "kernels.csv with a head", source, 1);
  std::map<std::string, size_t> columns;
  for (size_t c = 0; c < records[0].size(); ++c) columns.emplace(records[0][c], c);
  for (size_t r = 1; r < records.size(); ++r) {
    if (records[r].size() != records[0].size())
      refuse(text("the line has ", records[r].size(), " fields"),
             text(records[0].size(), ", as the head has"),
             source,
             r + 1);
    const KernelLine line(columns, records[r], source, r + 1);
    PhaseResult& phase = phase_of(study, line);
    phase.rows.push_back(row_of(line, phase.cost.levels));
  }
  for (const SchemeResult& scheme : study.schemes)
    for (const ChipResult& chip : scheme.chips)
      for (const PhaseName& phase : kPhases) {
        const PhaseResult& result = chip.*phase.result;
        int64_t cycles = 0;
        for (const KernelRow& row : result.rows) cycles += row.count * row.cost.latency_cycles;
        if (cycles != result.cost.latency_cycles)
          fail({.what = text("the kernels of ",
                             phase.name,
                             " under ",
                             scheme.name,
                             " on ",
                             chip.chip,
                             " take ",
                             cycles,
                             " cycles, but study.json says ",
                             result.cost.latency_cycles),
                .needs = "files of one run",
                .hint = "run `sator study` again, which writes all files of one run",
                .where = std::string(source)});
      }
}

}  // namespace sator::study
