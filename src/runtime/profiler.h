#pragma once

#include <functional>
#include <map>
#include <variant>

#include "runtime/vm.h"

namespace sator::runtime {

/// A cell of the profile: what it means decides how it is printed and whether rows can be added up.
struct Metric {
  enum class Kind { text, count, microseconds, percent };
  Kind kind = Kind::text;
  std::string text;
  double number = 0;

  static Metric of_text(std::string s) { return {.kind = Kind::text, .text = std::move(s)}; }
  static Metric count(double n) { return {.kind = Kind::count, .number = n}; }
  static Metric microseconds(double us) { return {.kind = Kind::microseconds, .number = us}; }
  static Metric percent(double p) { return {.kind = Kind::percent, .number = p}; }
};

/// What a run did, call by call. Its table is the one of TVM's profiler: columns Name, Duration (us), Percent, Device,
/// Count, Argument Shapes, then what `more_columns` gave, in alphabetical order.
class Profile {
 public:
  /// Cells beside the usual ones, for one call (MACs, an estimate for a chip), which is told by its number among the
  /// records; added up when rows are aggregated, except texts, of which the first stays.
  using MoreColumns = std::function<std::map<std::string, Metric>(const CallRecord&, size_t number)>;

  std::vector<CallRecord> records;
  double total_us = 0;  ///< from the begin to the end of the profiled calls
  int num_threads = 1;
  MoreColumns more_columns;

  /// Rows of equal name, argument shapes and device become one; the longest first; then a separator, the sums, the
  /// totals of each device and the configuration. `sums`: whether there is a row of sums.
  std::string table(bool sort = true, bool aggregate = true, bool sums = true) const;
  /// One line per call, numbers without grouping.
  std::string csv() const;
  /// {"calls": [{column: {"string"|"count"|"microseconds"|"percent": value}}], "device_metrics", "configuration"}
  std::string json() const;
  /// One JSON object per line and call: function, kind, caller, annotation, values, arguments, duration_us, device.
  std::string records_json_lines() const;

 private:
  using Row = std::map<std::string, Metric>;
  Row row_of(const CallRecord& record) const;
  std::vector<Row> rows(bool sort, bool aggregate) const;
  Row total_row() const;
};

/// The last of several runs, with each call's median duration over all of them. Errors: none; at least one run.
Profile median_of(const std::vector<Profile>& runs);

/// Collects the records of a machine's calls while it lives.
///
///   Profiler profiler(vm);
///   profiler.time([&] { vm.call("decode", args); });
///   std::cout << profiler.take().table();
class Profiler {
 public:
  explicit Profiler(VirtualMachine& vm);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// Runs `f`; its time counts in the profile's total.
  void time(const std::function<void()>& f);
  /// What was collected so far, which is then forgotten.
  Profile take();

 private:
  VirtualMachine& vm_;
  Profile profile_;
};

/// One profiled call of a function after `warm_up` calls that are not. For functions without state.
Profile profile(VirtualMachine& vm, std::string_view function, std::span<const Value> args, int warm_up = 1);

}  // namespace sator::runtime
