#include "dataflow/programs/stated_mapping.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "dataflow/programs/tir_arithmetic.h"
#include "rules/chip.h"
#include "target/chip.h"

namespace sator::dataflow {

namespace {

/// What memories hold as the rule for chips notes it (rules/chip.h).
void annotated(const std::string& function, const Around& around, const Work& work, const Chip& chip,
               Placement& placement) {
  const sator::Array* held = around.annotations.at(rules::kHeldSince).as<sator::Array>();
  for (size_t m = 0; held && m < held->items.size(); ++m)
    if (const IntImm* since = held->items[m].as<IntImm>(); since && since->value >= 0)
      placement.held_since.push_back(static_cast<size_t>(since->value));
  if (placement.held_since.size() != chip.memories.size())
    refuse_work(function,
                text("annotation ", rules::kHeldSince, " does not fit ", chip.name),
                text("a number of loops for each of the ", chip.memories.size(), " memories"),
                "schedule the function for this chip");
  if (auto outside = around.annotations.find(rules::kStoredOutside); outside != around.annotations.end())
    if (const sator::Array* names = outside->second.as<sator::Array>())
      for (const NodeRef& name : names->items)
        if (const StringImm* tensor = name.as<StringImm>()) placement.stored_outside.push_back(tensor->value);
  const std::string weight = string_attr(around.annotations, rules::kWeight).value_or("");
  for (size_t a = 0; a < work.statement.accesses.size(); ++a)
    if (work.statement.accesses[a].tensor == weight && work.statement.accesses[a].role == Role::read)
      placement.weight = a;
}

/// A memory holds a tensor since the innermost loop around its copy; without a copy it passes through.
void held_by_copies(const Work& work, const std::vector<VarRef>& in_time, std::span<const CopyIn> copies,
                    const Chip& chip, Placement& placement) {
  auto shared_loops = [&](const CopyIn& copy) {
    size_t shared = 0;
    while (shared < in_time.size() && shared < copy.loops.size() && in_time[shared] == copy.loops[shared]) ++shared;
    return shared;
  };
  placement.held_since.assign(chip.memories.size(), in_time.size());
  placement.held_since[0] = 0;
  placement.held_by_access.assign(work.statement.accesses.size(), placement.held_since);
  for (size_t m = 1; m < chip.memories.size(); ++m)
    for (const CopyIn& copy : copies) {
      if (copy.memory != chip.memories[m].name) continue;
      placement.held_since[m] = std::min(placement.held_since[m], shared_loops(copy));
      for (size_t a = 0; a < work.statement.accesses.size(); ++a)
        if (work.statement.accesses[a].tensor == copy.tensor) placement.held_by_access[a][m] = shared_loops(copy);
    }
}

}  // namespace

std::optional<Placement> stated_placement(const std::string& function, const Around& around, const Work& work,
                                          std::span<const CopyIn> copies, const Chip& chip) {
  Placement placement;
  QuasiAffine row = number(0), column = number(0);
  std::vector<VarRef> in_time;
  std::map<std::string, size_t> cores;  // by axis: core.x changes from core to core
  bool stated = around.annotations.contains(rules::kHeldSince);
  for (size_t i = 0; i < around.loops.size(); ++i) {
    const Scope::Loop& loop = around.loops[i];
    if (loop.thread == "pe.x" || loop.thread == "pe.y") {
      (loop.thread == "pe.x" ? row : column) = variable(static_cast<int>(i));
      stated = true;
    } else if (loop.thread.starts_with("core.")) {
      if (!cores.emplace(loop.thread, i).second)
        refuse_work(function,
                    text("two loops of one nest are bound to ", loop.thread),
                    "one loop per axis",
                    "fuse the loops first");
      stated = true;
    } else if (!loop.at_once) {
      placement.mapping.time.push_back(variable(static_cast<int>(i)));
      in_time.push_back(loop.var);
    }
  }
  if (!stated) return {};
  for (const auto& [axis, i] : cores) {
    const QuasiAffine along = variable(static_cast<int>(i)) * placement.cores_used;
    placement.core = placement.core ? *placement.core + along : along;
    placement.cores_used *= work.statement.domain.extent[i];
  }
  if (placement.cores_used > chip.cores)
    refuse_work(function,
                text("loops of ", placement.cores_used, " blocks are bound to core.x, core.y, core.z"),
                text("at most the ", chip.cores, " cores of ", chip.name),
                "schedule the function for this chip");
  // Where there are several cores, what the bindings leave out runs on the first.
  if (chip.cores > 1 && !placement.core) placement.core = number(0);
  if (in_time.empty()) placement.mapping.time.push_back(number(0));
  placement.mapping.space = {row, column};
  placement.words = "as scheduled";
  if (around.annotations.contains(rules::kHeldSince))
    annotated(function, around, work, chip, placement);
  else
    held_by_copies(work, in_time, copies, chip, placement);
  return placement;
}

std::optional<BoundStatement> stated_space(const std::string& function, const Around& around, Statement statement) {
  BoundStatement b{.statement = std::move(statement)};
  std::vector<std::pair<size_t, size_t>> space;  // (rank of the axis, iterator)
  for (size_t i = 0; i < around.loops.size(); ++i) {
    const Scope::Loop& loop = around.loops[i];
    if (loop.thread.empty()) {
      if (!loop.at_once) b.mapping.time.push_back(variable(static_cast<int>(i)));
      continue;
    }
    const auto known = std::find(std::begin(kSpaceAxes), std::end(kSpaceAxes), loop.thread);
    if (known == std::end(kSpaceAxes))
      refuse_work(function,
                  text("loop ", loop.var->name, " is bound to ", loop.thread),
                  text("one of ", join(kSpaceAxes, ", ")),
                  "bind the loop to an axis of the chip");
    space.emplace_back(known - std::begin(kSpaceAxes), i);
  }
  if (space.empty()) return {};
  std::sort(space.begin(), space.end());
  std::vector<int64_t> extent;
  for (auto [axis, i] : space) {
    if (!b.axes.empty() && b.axes.back() == kSpaceAxes[axis])
      refuse_work(function,
                  text("two loops of one nest are bound to ", kSpaceAxes[axis]),
                  "one loop per axis",
                  "fuse the loops first");
    b.axes.emplace_back(kSpaceAxes[axis]);
    b.mapping.space.push_back(variable(static_cast<int>(i)));
    extent.push_back(b.statement.domain.extent[i]);
  }
  if (b.mapping.time.empty()) b.mapping.time.push_back(number(0));
  b.array.pes = Domain::box(b.axes, std::move(extent));
  return b;
}

}  // namespace sator::dataflow
