#include "dataflow/programs/row_groups.h"

#include "base/error.h"
#include "base/text.h"
#include "dataflow/programs/tir_places.h"

namespace sator::dataflow {

namespace {

int64_t size_named(const FunctionFacts& facts, const std::string& name) {
  if (auto at = facts.sizes.find(name); at != facts.sizes.end() && at->second > 0) return at->second;
  refuse_work(facts.name,
              text("its groups of rows have no size ", name),
              "how many rows there are, and in how many groups",
              "give the sizes `rows` and `groups`");
}

}  // namespace

TirWork work_of_groups(const tir::PrimFunc& func, const FunctionFacts& facts, const Chip* chip) {
  const int64_t rows = size_named(facts, "rows"), groups = std::min(size_named(facts, "groups"), rows);
  Attrs attrs = func.attrs;
  attrs.erase(kRowGroups);
  const tir::PrimFuncRef one = with(func, &tir::PrimFunc::attrs, std::move(attrs));
  TirWork all;
  auto add = [&](int64_t first, int64_t count, int64_t rows_of_each) {
    if (count == 0) return;
    FunctionFacts own = facts;
    own.sizes["rows"] = rows_of_each;
    TirWork part = work_of(*one, own, chip);
    for (const std::optional<Placement>& p : part.placements)
      if (p && groups > 1)
        refuse_work(facts.name,
                    "its loops are bound for one group of rows",
                    "a function without bound loops, for several groups",
                    "cost one group, or leave the loops free");
    for (Work& work : part.kernel.work) {
      if (first > 0) work.statement.name += "_more";
      if (groups > 1) work = of_groups(std::move(work), first, count);
      all.kernel.work.push_back(std::move(work));
    }
    all.placements.insert(all.placements.end(), part.placements.begin(), part.placements.end());
    if (all.kernel.name.empty()) {
      all.kernel.name = part.kernel.name;
      all.kernel.one_pass = part.kernel.one_pass;
      all.notes = part.notes;
    }
  };
  const int64_t more = rows % groups;
  add(0, groups - more, rows / groups);
  add(groups - more, more, rows / groups + 1);
  if (groups > 1) all.notes.emplace_back("rows are taken as spread evenly over the experts that are expected");
  return all;
}

void require_one_group(const tir::PrimFunc& func, const FunctionFacts& facts) {
  if (!func.attrs.contains(kRowGroups) || size_named(facts, "groups") == 1) return;
  refuse_work(facts.name,
              text("it is run for ", size_named(facts, "groups"), " groups of rows"),
              "a loop for every iterator of the work",
              "look at the schedule of one group: the same product with a matrix of its own");
}

}  // namespace sator::dataflow
