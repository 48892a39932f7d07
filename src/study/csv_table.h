// Tables as CSV (RFC 4180), their lines made from described fields (fields.h).
#pragma once

#include <deque>
#include <unordered_map>

#include "study/fields.h"

namespace sator::study {

/// A field of a CSV line: in quotes if it contains a comma, a quote or a line end.
std::string csv_field(std::string_view value);

/// Lines by the names of their columns, which stand in the order in which they were first used. What a line does not name is
/// empty.
class CsvTable {
 public:
  /// Begins the next line.
  void begin();
  void put(std::string_view column, std::string_view value);
  /// Forgets the lines and keeps their columns: one line with all fields makes a head in the order of their description.
  void keep_head_alone();
  std::string words();

 private:
  struct Line {
    std::string fields;
    size_t count = 0;
  };
  void end_line();

  std::deque<std::string> columns_;  // whose members do not move
  std::unordered_map<std::string_view, size_t> number_;
  std::vector<Line> lines_;          // those that are finished
  std::vector<std::string> fields_;  // of the last one
  size_t next_ = 0;                  // the column that the next value is likely for
};

/// Writes described fields into the table's last line.
class CsvWriter {
 public:
  static constexpr bool writes = true, is_csv = true;
  explicit CsvWriter(CsvTable& table, std::string before = "", std::string after = "")
      : table_(table), before_(std::move(before)), after_(std::move(after)) {}

  static std::string of(double v) { return text(v); }
  static std::string of(int64_t v) { return text(v); }
  static std::string of(bool v) { return v ? "1" : "0"; }
  static std::string of(const std::string& v) { return v; }
  static std::string of(const std::vector<std::string>& v) { return join(v, "; "); }
  template <class T>
  static std::string of(const std::optional<T>& v) {
    return v ? of(*v) : "";
  }
  template <class T>
  void operator()(Key key, const T& v) {
    if (!key.column.empty()) put(key.column, of(v));
  }
  template <class T>
  void later(Key key, const T& v) {
    (*this)(key, v);
  }
  template <class T>
  void derived(Key key, const T& v) {
    (*this)(key, v);
  }
  template <class T>
  void maybe(Key key, T v, bool known) {
    (*this)(key, known ? std::optional(v) : std::nullopt);
  }
  void bytes(Key key, int64_t bits, bool known = true) {
    if (key.column.empty()) return;
    put(key.column, !known ? "" : bits % 8 == 0 ? text(bits / 8) : text(static_cast<double>(bits) / 8));
  }
  template <class T>
  void list(Key key, std::vector<T>& items) {
    if (key.column.empty()) return;
    PairWriter pairs;
    for (T& item : items) pairs.label.clear(), describe(pairs, item);
    put(key.column, join(pairs.pairs, "; "));
  }
  template <class T>
  void later_list(Key key, std::vector<T>& items) {
    list(key, items);
  }
  template <class T, class... More>
  void part(Key, T& item, More... more) {
    describe(*this, item, more...);
  }
  template <class T, class... More>
  void prefixed(Key key, T& item, More... more) {
    CsvWriter inner(table_, text(before_, key.column, "_"), after_);
    describe(inner, item, more...);
  }
  template <class T>
  void later_part(Key key, T& item) {
    if (!key.column.empty()) describe(*this, item);
  }
  template <class T>
  void optional_part(Key, std::optional<T>& item) {
    if (item) describe(*this, *item);
  }
  void levels(Key, std::vector<LevelCost>& all) {
    for (LevelCost& level : all) {
      CsvWriter inner(table_, before_, text("_", level.name, after_));
      describe(inner, level);
    }
  }

 private:
  /// Items of a list in one cell: "dram 8107; array 12" of items with names, else "items_in 3; items_out 4".
  struct PairWriter {
    std::vector<std::string> pairs;
    std::string label;
    template <class T>
    void operator()(Key key, const T& v) {
      if (key.json == "name")
        label = CsvWriter::of(v);
      else
        pairs.push_back(text(label.empty() ? key.json : label, " ", CsvWriter::of(v)));
    }
    // Items that have more than pairs are in JSON alone.
    void bytes(Key, int64_t) {}
    template <class T>
    void list(Key, std::vector<T>&) {}
  };

  void put(std::string_view column, const std::string& value) {
    if (before_.empty() && after_.empty())
      table_.put(column, value);
    else
      table_.put(text(before_, column, after_), value);
  }

  CsvTable& table_;
  std::string before_, after_;
};

}  // namespace sator::study
