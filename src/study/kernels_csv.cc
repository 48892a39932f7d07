#include "study/kernels_csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "study/fields.h"

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
  KernelLine(const std::map<std::string, size_t, std::less<>>& columns, const std::vector<std::string>& fields,
             std::string_view source, size_t number)
      : columns_(columns), fields_(fields), source_(source), number_(number) {}

  const std::string& words(std::string_view column) const {
    auto at = columns_.find(column);
    if (at == columns_.end())
      refuse(text("there is no column ", string_literal(column)), "kernels.csv of this version", source_, 1);
    return fields_[at->second];
  }
  bool has(std::string_view column) const { return columns_.count(column) > 0 && !words(column).empty(); }

  void take(std::string_view column, const std::string& word, double& v) const { number(column, word, v); }
  void take(std::string_view column, const std::string& word, int64_t& v) const { number(column, word, v); }
  void take(std::string_view, const std::string& word, bool& v) const { v = word == "1"; }
  void take(std::string_view, const std::string& word, std::string& v) const { v = word; }
  /// Notes: what separates them can stand in them too.
  void take(std::string_view, const std::string& word, std::vector<std::string>& v) const {
    v.clear();
    if (!word.empty()) v.push_back(word);
  }
  template <class T>
  void take(std::string_view column, const std::string& word, std::optional<T>& v) const {
    v.reset();
    if (!word.empty()) take(column, word, v.emplace());
  }

  struct Pair {
    std::string label, figure;
  };
  /// "dram 8107; array 12".
  std::vector<Pair> pairs(std::string_view column) const {
    std::vector<Pair> all;
    const std::string& list = words(column);
    if (list.empty()) return all;
    for (std::string_view item : split(list, ';')) {
      item = trim(item);
      const size_t space = item.rfind(' ');
      if (space == std::string_view::npos || space == 0)
        bad(text(column, " is ", string_literal(list)), "names and figures with ';' between them");
      all.push_back({std::string(item.substr(0, space)), std::string(item.substr(space + 1))});
    }
    return all;
  }

  [[noreturn]] void bad(std::string what, std::string needs) const {
    refuse(std::move(what), std::move(needs), source_, number_);
  }

 private:
  template <class Value>
  void number(std::string_view column, const std::string& word, Value& value) const {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || error != std::errc() || end != word.data() + word.size())
      bad(text(column, " is ", string_literal(word)), "a figure");
  }

  const std::map<std::string, size_t, std::less<>>& columns_;
  const std::vector<std::string>& fields_;
  std::string_view source_;
  size_t number_;
};

/// An item of a list, from what CsvWriter makes of it: a pair whose label is its name, or a pair for each of its fields.
struct PairReader {
  const KernelLine& line;
  std::string_view column;
  std::span<const KernelLine::Pair> pairs;
  bool is_named;
  template <class T>
  void operator()(Key key, T& v) {
    if (is_named && key.json == "name") return line.take(column, pairs[0].label, v);
    for (const KernelLine::Pair& p : pairs)
      if (is_named || p.label == key.json) return line.take(column, p.figure, v);
  }
  void bytes(Key, int64_t&) {}
  template <class T>
  void list(Key, std::vector<T>&) {}
};

/// Reads described fields from a line of kernels.csv.
class CsvReader {
 public:
  static constexpr bool writes = false, is_csv = true;
  ///   levels   the memories of the chip in their order, which that of the columns need not be
  CsvReader(const KernelLine& line, const std::vector<LevelCost>& levels, std::string before = "",
            std::string after = "")
      : line_(line), levels_(levels), before_(std::move(before)), after_(std::move(after)) {}

  template <class T>
  void operator()(Key key, T& v) {
    if (key.column.empty()) return;
    const std::string column = text(before_, key.column, after_);
    line_.take(column, line_.words(column), v);
  }
  template <class T>
  void later(Key key, T& v) {
    if (!key.column.empty() && line_.has(text(before_, key.column, after_))) (*this)(key, v);
  }
  template <class T>
  void derived(Key, const T&) {}
  template <class T>
  void maybe(Key key, T& v, bool) {
    std::optional<T> known;
    (*this)(key, known);
    v = known.value_or(0);
  }
  void bytes(Key key, int64_t& bits, bool = true) {
    std::optional<double> value;
    (*this)(key, value);
    if (value && !(*value >= 0 && *value < 1e18)) line_.bad(text(key.column, " is ", *value), "bytes, from 0 to 2^60");
    bits = std::llround(value.value_or(0) * 8);
  }
  template <class T>
  void list(Key key, std::vector<T>& items) {
    if (key.column.empty()) return;
    constexpr bool is_named = requires(T& item) { item.name; };
    const std::vector<KernelLine::Pair> pairs = line_.pairs(key.column);
    items.clear();
    for (size_t first = 0; first < pairs.size();) {
      size_t last = first + 1;
      while (!is_named && last < pairs.size() && pairs[last].label != pairs[first].label) ++last;
      PairReader item{line_, key.column, std::span(pairs).subspan(first, last - first), is_named};
      describe(item, items.emplace_back());
      first = last;
    }
  }
  template <class T>
  void later_list(Key key, std::vector<T>& items) {
    if (!key.column.empty() && line_.has(key.column)) list(key, items);
  }
  template <class T, class... More>
  void part(Key, T& item, More... more) {
    describe(*this, item, more...);
  }
  template <class T, class... More>
  void prefixed(Key key, T& item, More... more) {
    CsvReader inner(line_, levels_, text(before_, key.column, "_"), after_);
    describe(inner, item, more...);
  }
  void levels(Key, std::vector<LevelCost>& all) {
    all.clear();
    for (const LevelCost& whole : levels_) {
      if (!line_.has("read_bytes_" + whole.name)) continue;
      CsvReader inner(line_, levels_, before_, text("_", whole.name, after_));
      describe(inner, all.emplace_back());
      all.back().name = whole.name;
    }
  }

 private:
  const KernelLine& line_;
  const std::vector<LevelCost>& levels_;
  std::string before_, after_;
};

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
  std::map<std::string, size_t, std::less<>> columns;
  for (size_t c = 0; c < records[0].size(); ++c) columns.emplace(records[0][c], c);
  for (size_t r = 1; r < records.size(); ++r) {
    if (records[r].size() != records[0].size())
      refuse(text("the line has ", records[r].size(), " fields"),
             text(records[0].size(), ", as the head has"),
             source,
             r + 1);
    const KernelLine line(columns, records[r], source, r + 1);
    PhaseResult& phase = phase_of(study, line);
    CsvReader reader(line, phase.cost.levels);
    describe(reader, phase.rows.emplace_back());
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
