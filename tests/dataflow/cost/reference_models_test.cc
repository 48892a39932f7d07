// Counts of other cost models, which rest on definitions of their own: SCALE-Sim's runs and Timeloop's outputs.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "dataflow/counts/gemm.h"
#include "dataflow/reference_rows.h"

namespace sator::dataflow {
namespace {

using nlohmann::json;

int64_t padded(int64_t n, int64_t to) { return ceil_div(n, to) * to; }

// SCALE-Sim streams through the whole array even where a tile is ragged, loads stationary operands row by row, and
// reports the index of the last cycle. So its cycles are our stamps of the padded problem, plus the loads, less one.
void expect_scalesim(int64_t m, int64_t n, int64_t k, int64_t rows, int64_t columns, Flow flow, int64_t cycles) {
  const int64_t on_rows = flow == Flow::os ? m : k, on_columns = flow == Flow::is ? m : n;
  const int64_t folds = ceil_div(on_rows, rows) * ceil_div(on_columns, columns);
  auto fit = [&](int64_t v, bool row, bool column) { return row ? padded(v, rows) : column ? padded(v, columns) : v; };
  Statement s = gemm(
      fit(m, flow == Flow::os, flow == Flow::is), fit(n, false, flow != Flow::is), fit(k, flow != Flow::os, false));
  s.accesses.clear();
  Counts c = exact({s, stationary(flow, rows, columns, true), systolic(rows, columns)});
  EXPECT_EQ(c.time + (flow == Flow::os ? 0 : folds * rows) - 1, cycles);
}

TEST(ScaleSim, CyclesOfEveryRun) {
  const std::vector<json> compute = reference_rows("cost/scalesim_v3_compute.jsonl");
  std::vector<json> rows = compute;
  for (const char* more : {"cost/scalesim_v2_lut_from_llmcompass.jsonl", "cost/scalesim_v3_full.jsonl"})
    for (const json& r : json_lines(reference_file(more))) rows.push_back(r);
  for (const json& r : rows) {
    SCOPED_TRACE(r.dump());
    const std::string name = r["dataflow"];
    Flow flow = name == "os" ? Flow::os : name == "ws" ? Flow::ws : Flow::is;
    // Runs with a memory say their total; what the array waits for the memory is not its own.
    int64_t cycles;
    if (r.contains("compute_cycles"))
      cycles = r["compute_cycles"];
    else if (r.contains("total_cycles"))
      cycles = r["total_cycles"].get<int64_t>() - r["stall_cycles"].get<int64_t>();
    else
      cycles = r["cycles"];
    expect_scalesim(r["M"], r["N"], r["K"], r["array_h"], r["array_w"], flow, cycles);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(rows.size(), 600u);
}

// Words that enter and leave the array are the unique volumes. Where a tile is a single PE or a single stamp wide,
// neighbouring tiles share in time what SCALE-Sim fetches again: there its words are an upper bound.
TEST(ScaleSim, ScratchpadWordsOfEveryRun) {
  const std::vector<json> rows = reference_rows("cost/scalesim_v3_compute.jsonl");
  int equal = 0;
  for (const json& r : rows) {
    SCOPED_TRACE(r.dump());
    const int64_t m = r["M"], n = r["N"], k = r["K"], h = r["array_h"], w = r["array_w"];
    const std::string name = r["dataflow"];
    Flow flow = name == "os" ? Flow::os : name == "ws" ? Flow::ws : Flow::is;
    Counts c = exact({gemm(m, n, k), stationary(flow, h, w, true), systolic(h, w)});
    const int64_t a = tensor(c, "A").unique, b = tensor(c, "B").unique, out = tensor(c, "C").unique;
    EXPECT_LE(a, r["ifmap_sram_reads"].get<int64_t>());
    EXPECT_LE(b, r["filter_sram_reads"].get<int64_t>());
    EXPECT_LE(out, r["ofmap_sram_writes"].get<int64_t>());
    const int64_t row = flow == Flow::os ? m : k, column = flow == Flow::is ? m : n;
    auto thin = [](int64_t v, int64_t size) { return v == 1 || v % size == 1; };
    if (thin(row, h) || thin(column, w) || m == 1 || n == 1 || k == 1) continue;
    EXPECT_EQ(a, r["ifmap_sram_reads"]);
    EXPECT_EQ(b, r["filter_sram_reads"]);
    EXPECT_EQ(out, r["ofmap_sram_writes"]);
    ++equal;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(equal, 150);
}

/// A Timeloop mapping of a GEMM as relations: one iterator per loop, indices in mixed radix.
class TimeloopNest {
 public:
  explicit TimeloopNest(const json& c) {
    for (const char* level : {"DRAM", "GLB", "SPATIAL", "RF"})
      for (const char* dim : {"M", "N", "K"}) {
        const std::string l = level;
        int64_t f = l == "SPATIAL" ? c["factors"]["SX"][dim].get<int64_t>() * c["factors"]["SY"][dim].get<int64_t>()
                                   : c["factors"][l][dim].get<int64_t>();
        number_[l + dim] = static_cast<int>(domain_.extent.size());
        domain_.names.push_back(l + dim);
        domain_.lower.push_back(0);
        domain_.extent.push_back(f);
      }
    // Timeloop lists permutations innermost first.
    for (const char* level : {"DRAM", "GLB"}) {
      std::vector<std::string> perm = c["perm"][level];
      for (size_t i = perm.size(); i-- > 0;)
        (std::string(level) == "DRAM" ? dram_ : glb_).push_back(variable(number_.at(level + perm[i])));
    }
  }

  /// Counts of one buffer whose contents change with the loops above it. `one_instance`: one of the spatial copies.
  Counts buffer(bool register_file, bool one_instance) const {
    Problem p;
    p.statement.domain = domain_;
    if (one_instance)
      for (const char* dim : {"M", "N", "K"})
        p.statement.domain.extent[static_cast<size_t>(number_.at(std::string("SPATIAL") + dim))] = 1;
    p.statement.accesses = {{"A", Role::read, {{index("M"), index("K")}}},
                            {"B", Role::read, {{index("K"), index("N")}}},
                            {"Z", Role::write, {{index("M"), index("N")}}}};
    p.mapping.space = {dataflow::number(0)};
    p.mapping.time = dram_;
    if (register_file) p.mapping.time.insert(p.mapping.time.end(), glb_.begin(), glb_.end());
    p.array = {Domain::box({"p"}, {1}), {}};
    return exact(p);
  }

  int64_t spatial(const std::string& dims) const {
    int64_t product = 1;
    for (char d : dims) product *= domain_.extent[static_cast<size_t>(number_.at(std::string("SPATIAL") + d))];
    return product;
  }

 private:
  QuasiAffine index(const std::string& dim) const {
    QuasiAffine sum;
    int64_t weight = 1;
    for (const char* level : {"RF", "SPATIAL", "GLB", "DRAM"}) {
      const int x = number_.at(level + dim);
      sum = sum + variable(x) * weight;
      weight *= domain_.extent[static_cast<size_t>(x)];
    }
    return sum;
  }

  Domain domain_;
  std::map<std::string, int> number_;
  Map dram_, glb_;
};

TEST(Timeloop, AccessCountsOfEveryMapping) {
  const std::vector<json> rows = reference_rows("cost/timeloop_gemm_fuzz.jsonl");
  const std::map<std::string, std::string> dims{{"A", "MK"}, {"B", "KN"}, {"Z", "MN"}};
  int64_t compared = 0;
  for (const json& r : rows) {
    SCOPED_TRACE(r["case"].dump());
    TimeloopNest nest(r["case"]);
    const Counts rf = nest.buffer(true, true), glb = nest.buffer(false, false);
    const json *at_rf = nullptr, *at_glb = nullptr, *at_dram = nullptr;
    for (const json& level : r["levels"]) {
      if (level["name"] == "RF") at_rf = &level;
      if (level["name"] == "GLB") at_glb = &level;
      if (level["name"] == "DRAM") at_dram = &level;
    }
    auto expect = [&](int64_t ours, const json& theirs, const char* what) {
      EXPECT_EQ(ours, theirs.get<int64_t>()) << what;
      ++compared;
    };
    for (const auto& [name, used] : dims) {
      SCOPED_TRACE(name);
      const bool bypassed = !at_glb->contains(name);
      const TensorCounts &in_rf = tensor(rf, name), &in_glb = tensor(glb, name);
      const json& parent = bypassed ? (*at_dram)[name] : (*at_glb)[name];
      const int64_t copies = nest.spatial(used);  // others receive the same word at once, or are summed on the way
      if (name != "Z") {
        expect(in_rf.unique, (*at_rf)[name]["fills"], "register fills");
        expect(rf.macs, (*at_rf)[name]["reads"], "register reads");
        expect(in_rf.unique * copies, parent["reads"], "reads of the register's parent");
        if (bypassed) continue;
        expect(in_glb.unique, (*at_glb)[name]["fills"], "buffer fills");
        expect(in_glb.unique, (*at_dram)[name]["reads"], "DRAM reads");
        continue;
      }
      expect(rf.macs, (*at_rf)[name]["updates"], "register updates");
      expect(rf.macs - in_rf.footprint, (*at_rf)[name]["reads"], "register reads");
      expect(in_rf.unique - in_rf.footprint, (*at_rf)[name]["fills"], "partial sums that come back");
      expect(in_rf.unique * copies, parent["updates"], "updates of the register's parent");
      if (bypassed) {
        expect((in_rf.unique - in_rf.footprint) * copies, parent["reads"], "partial sums read from DRAM");
        continue;
      }
      expect(in_glb.unique, (*at_dram)[name]["updates"], "DRAM updates");
      expect(in_glb.unique - in_glb.footprint, (*at_dram)[name]["reads"], "partial sums read from DRAM");
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(compared, 12 * static_cast<int64_t>(rows.size()));
}

}  // namespace
}  // namespace sator::dataflow
