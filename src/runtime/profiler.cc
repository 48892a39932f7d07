#include "runtime/profiler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace sator::runtime {

namespace {

constexpr const char* kName = "Name";
constexpr const char* kDuration = "Duration (us)";
constexpr const char* kPercent = "Percent";
constexpr const char* kDevice = "Device";
constexpr const char* kCount = "Count";
constexpr const char* kShapes = "Argument Shapes";
const std::vector<std::string> kUsualColumns = {kName, kDuration, kPercent, kDevice, kCount, kShapes};

// "1,234.50": two decimals, thousands grouped.
std::string grouped_number(double value) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%.2f", std::abs(value));
  std::string_view all = digits;
  std::string_view whole = all.substr(0, all.find('.'));
  std::string out = value < 0 ? "-" : "";
  for (size_t i = 0; i < whole.size(); ++i) {
    if (i > 0 && (whole.size() - i) % 3 == 0) out += ',';
    out += whole[i];
  }
  return out.append(all.substr(whole.size()));
}

// Long lists of shapes would push the columns behind them off the screen; csv and json have them whole.
constexpr size_t kWidestText = 64;

std::string cell_text(const Metric& m) {
  switch (m.kind) {
    case Metric::Kind::text: return m.text.size() <= kWidestText ? m.text : m.text.substr(0, kWidestText - 3) + "...";
    case Metric::Kind::count: return grouped(std::llround(m.number));
    default: return grouped_number(m.number);
  }
}

std::string csv_text(const Metric& m) {
  if (m.kind != Metric::Kind::text) return text(m.number);
  std::string quoted = "\"";
  for (char c : m.text) quoted.append(c == '"' ? "\"\"" : std::string(1, c));
  return quoted + '"';
}

template <class Rows>
std::vector<std::string> columns_of(const Rows& rows) {
  std::vector<std::string> columns = kUsualColumns, more;
  for (const auto& row : rows)
    for (const auto& [name, metric] : row)
      if (std::find(columns.begin(), columns.end(), name) == columns.end() &&
          std::find(more.begin(), more.end(), name) == more.end())
        more.push_back(name);
  std::sort(more.begin(), more.end());
  columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

// Adds the numbers of `from`; texts stay as they are.
void add_row(std::map<std::string, Metric>& to, const std::map<std::string, Metric>& from) {
  for (const auto& [name, metric] : from) {
    auto [it, is_new] = to.emplace(name, metric);
    if (!is_new && metric.kind != Metric::Kind::text) it->second.number += metric.number;
  }
}

std::string shapes_text(const CallRecord& record) {
  std::string out;
  for (const CallRecord::Argument& argument : record.arguments) {
    if (!out.empty()) out += ", ";
    out += text(argument.dtype, argument.shape);
  }
  return out;
}

}  // namespace

Profile::Row Profile::row_of(const CallRecord& record) const {
  Row row = more_columns ? more_columns(record, static_cast<size_t>(&record - records.data())) : Row();
  row[kName] = Metric::of_text(record.function);
  row[kDuration] = Metric::microseconds(record.duration_us);
  row[kPercent] = Metric::percent(total_us > 0 ? record.duration_us / total_us * 100 : 0);
  row[kDevice] = Metric::of_text(record.device);
  row[kCount] = Metric::count(1);
  row[kShapes] = Metric::of_text(shapes_text(record));
  return row;
}

std::vector<Profile::Row> Profile::rows(bool sort, bool aggregate) const {
  std::vector<Row> rows;
  std::map<std::string, size_t> index_of;
  for (const CallRecord& record : records) {
    Row row = row_of(record);
    std::string key = text(record.function, '\n', row[kShapes].text, '\n', record.device);
    auto [it, is_new] = index_of.emplace(std::move(key), rows.size());
    if (is_new || !aggregate)
      rows.push_back(std::move(row));
    else
      add_row(rows[it->second], row);
  }
  if (sort)
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return a.at(kDuration).number > b.at(kDuration).number;
    });
  return rows;
}

Profile::Row Profile::total_row() const {
  return {{kName, Metric::of_text("Total")},
          {kDuration, Metric::microseconds(total_us)},
          {kDevice, Metric::of_text(records.empty() ? "cpu0" : records[0].device)},
          {kCount, Metric::count(1)}};
}

std::string Profile::table(bool sort, bool aggregate, bool sums) const {
  std::vector<Row> all = rows(sort, aggregate);
  Row sum;
  for (const Row& row : all) add_row(sum, row);
  std::erase_if(sum, [](const auto& cell) { return cell.second.kind == Metric::Kind::text; });
  sum[kName] = Metric::of_text("Sum");
  all.push_back({{kName, Metric::of_text("----------")}});
  if (sums) all.push_back(std::move(sum));
  all.push_back(total_row());

  std::vector<std::string> lines(all.size() + 1);
  for (const std::string& column : columns_of(all)) {
    std::vector<std::string> cells{column};
    for (const Row& row : all) cells.push_back(row.contains(column) ? cell_text(row.at(column)) : "");
    size_t width = 0;
    for (const std::string& cell : cells) width = std::max(width, cell.size());
    for (size_t i = 0; i < cells.size(); ++i) {
      std::string space(width - cells[i].size(), ' ');
      lines[i] += column == kName ? cells[i] + space : "  " + space + cells[i];
    }
  }
  std::string out;
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out + text("\nConfiguration\n-------------\nNumber of threads: ", num_threads, "\nExecutor: VM\n");
}

std::string Profile::csv() const {
  std::vector<Row> all = rows(false, false);
  std::vector<std::string> columns = columns_of(all);
  std::string out = join(columns, ",") + '\n';
  for (const Row& row : all) {
    std::vector<std::string> cells;
    for (const std::string& column : columns) cells.push_back(row.contains(column) ? csv_text(row.at(column)) : "");
    out += join(cells, ",") + '\n';
  }
  return out;
}

Profile median_of(const std::vector<Profile>& runs) {
  Profile out = runs.back();
  std::vector<double> durations;
  for (size_t i = 0; i < out.records.size(); ++i) {
    durations.clear();
    for (const Profile& run : runs)
      if (i < run.records.size() && run.records[i].function == out.records[i].function)
        durations.push_back(run.records[i].duration_us);
    const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
    std::nth_element(durations.begin(), middle, durations.end());
    out.records[i].duration_us = *middle;
  }
  return out;
}

Profiler::Profiler(VirtualMachine& vm) : vm_(vm) {
  profile_.num_threads = vm.pool().num_workers();
  vm.set_instrument([this](const CallRecord& record) { profile_.records.push_back(record); });
}

Profiler::~Profiler() { vm_.set_instrument(nullptr); }

void Profiler::time(const std::function<void()>& f) {
  auto start = std::chrono::steady_clock::now();
  f();
  profile_.total_us += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

Profile Profiler::take() {
  Profile taken = std::move(profile_);
  profile_ = Profile();
  profile_.num_threads = taken.num_threads;
  return taken;
}

Profile profile(VirtualMachine& vm, std::string_view function, std::span<const Value> args, int warm_up) {
  for (int i = 0; i < warm_up; ++i) vm.call(function, args);
  Profiler profiler(vm);
  profiler.time([&] { vm.call(function, args); });
  return profiler.take();
}

}  // namespace sator::runtime
