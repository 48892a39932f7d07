#include "explore/chip_space.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/figures.h"
#include "base/text.h"
#include "dataflow/cost/described_chip.h"

namespace sator::explore {

namespace {

constexpr int64_t kMostSide = 65536, kMostCores = 65536;

std::string word_of(Stationary s) {
  switch (s) {
    case Stationary::output: return "os";
    case Stationary::weight: return "ws";
    case Stationary::input: return "is";
    case Stationary::row: return "rs";
    case Stationary::schedule: break;
  }
  return "schedule";
}

std::string size_text(int64_t bytes) {
  if (bytes % (1 << 20) == 0) return text(bytes >> 20, "M");
  if (bytes % (1 << 10) == 0) return text(bytes >> 10, "K");
  return text(bytes);
}

void refuse(std::string what, std::string needs) {
  fail({.what = std::move(what), .needs = std::move(needs), .hint = "see `sator explore --help`"});
}

}  // namespace

ChipSpace::ChipSpace(Chip base, ChipAxes axes) : base_(std::move(base)), axes_(std::move(axes)) {
  if (base_.tenet && (!axes_.buffers.empty() || !axes_.bandwidths.empty() || !axes_.cores.empty()))
    refuse(text("buffers, bandwidth or cores of ", base_.name, ", which is timed by TENET's formula"),
           "--pe and --dataflow alone: the formula has one memory, whose bandwidth the PE array's file says");
  if (base_.tenet && (!axes_.arrays.empty() || !axes_.dataflows.empty()))
    dataflow::changed(base_, {.pe = {{base_.rows, base_.columns}}});  // refuses a mapping that files fix
  if (axes_.arrays.empty()) axes_.arrays = {{base_.rows, base_.columns}};
  if (axes_.cores.empty()) axes_.cores = {base_.cores};
  Dimension arrays{"array", {}};
  for (const ChipAxes::Array& a : axes_.arrays) {
    if (a.rows < 1 || a.columns < 1 || a.rows > kMostSide || a.columns > kMostSide)
      refuse(text("an array of ", a.rows, "x", a.columns), text("1 to ", kMostSide, " rows and columns"));
    arrays.values.push_back(text(a.rows, "x", a.columns));
  }
  dimensions_.push_back(std::move(arrays));
  Dimension dataflows{"dataflow", {}};
  for (Stationary s : axes_.dataflows) dataflows.values.push_back(word_of(s));
  if (axes_.dataflows.empty()) dataflows.values = {word_of(base_.dataflow)};
  dimensions_.push_back(std::move(dataflows));
  for (const ChipAxes::Buffer& buffer : axes_.buffers) {
    std::vector<std::string> known;
    for (size_t m = 1; m < base_.memories.size(); ++m) known.push_back(base_.memories[m].name);
    const Memory* memory = base_.memory(buffer.memory);
    if (!memory || memory == &base_.memories[0] || !memory->capacity_bytes)
      refuse(text(base_.name, " has no memory ", buffer.memory, " on the chip"), text("one of ", join(known, ", ")));
    Dimension sizes{buffer.memory, {}};
    for (int64_t bytes : buffer.bytes) {
      if (bytes < 1 || bytes > int64_t{1} << 50) refuse(text("a buffer of ", bytes, " bytes"), "1 byte to 1024 TiB");
      sizes.values.push_back(size_text(bytes));
    }
    dimensions_.push_back(std::move(sizes));
  }
  Dimension bandwidths{"bandwidth", {}};
  for (double b : axes_.bandwidths) {
    if (!(b > 0) || b > 1e18) refuse(text("a bandwidth of ", b, " bytes/s"), "more than 0 and at most 1e18 bytes/s");
    bandwidths.values.push_back(text(significant(b / 1e9), " GB/s"));
  }
  if (axes_.bandwidths.empty()) {
    const Memory& outside = base_.memories[0];
    const double ports = outside.read_bytes_per_cycle + (outside.shared_port ? 0 : outside.write_bytes_per_cycle);
    bandwidths.values = {text(significant(ports * base_.clock_hz / 1e9), " GB/s")};
  }
  dimensions_.push_back(std::move(bandwidths));
  Dimension cores{"cores", {}};
  for (int64_t n : axes_.cores) {
    if (n < 1 || n > kMostCores) refuse(text(n, " cores"), text("1 to ", kMostCores));
    cores.values.push_back(text(n));
  }
  dimensions_.push_back(std::move(cores));
}

Chip ChipSpace::at(const Point& point) const {
  Chip chip = base_;
  size_t d = 0;
  const ChipAxes::Array& array = axes_.arrays.at(point.at(d++));
  chip.rows = array.rows, chip.columns = array.columns;
  if (const size_t flow = point.at(d++); base_.tenet) {
    dataflow::ChipChanges changes;
    if (chip.rows != base_.rows || chip.columns != base_.columns) changes.pe = {{array.rows, array.columns}};
    if (!axes_.dataflows.empty()) changes.dataflow = axes_.dataflows.at(flow);
    chip = dataflow::changed(base_, changes);
  } else if (!axes_.dataflows.empty()) {
    chip.dataflow = axes_.dataflows.at(flow);
    for (auto& of_class : chip.dataflow_of) of_class.reset();  // what stays is the same for every class of products
  }
  for (const ChipAxes::Buffer& buffer : axes_.buffers) {
    const int64_t bytes = buffer.bytes.at(point.at(d++));
    for (Memory& m : chip.memories) {
      if (m.name != buffer.memory) continue;
      const double longer = std::sqrt(static_cast<double>(bytes) / static_cast<double>(*m.capacity_bytes));
      if (bytes != *m.capacity_bytes)
        for (EnergyFigure* e : {&m.read_energy_per_bit, &m.write_energy_per_bit}) {
          e->picojoules *= longer;
          if (!e->source.empty())
            e->source += text("; times sqrt of ", size_text(bytes), " / ", size_text(*m.capacity_bytes));
        }
      m.capacity_bytes = bytes;
    }
  }
  if (const size_t b = point.at(d++); !axes_.bandwidths.empty()) {
    Memory& outside = chip.memories[0];
    const double ports = outside.read_bytes_per_cycle + (outside.shared_port ? 0 : outside.write_bytes_per_cycle);
    const double faster = axes_.bandwidths.at(b) / (ports * chip.clock_hz);
    outside.read_bytes_per_cycle *= faster;
    outside.write_bytes_per_cycle *= faster;
  }
  chip.cores = axes_.cores.at(point.at(d++));
  return chip;
}

}  // namespace sator::explore
