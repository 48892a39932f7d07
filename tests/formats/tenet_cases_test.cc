// Every experiment that TENET ships, and other pairings of its files, against the exact counts stored for
// them.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "dataflow/counts/counts.h"
#include "dataflow/reference_rows.h"
#include "dataflow/tenet/metrics.h"
#include "dataflow/tenet/tenet_text.h"
#include "formats/format.h"

namespace sator::formats {
namespace {

using namespace dataflow;

using nlohmann::json;

constexpr const char* kSamples = "tenet/tenet-samples.jsonl";

struct Texts {
  explicit Texts(const json& c)
      : pe(c["input"]["pe_array"]), mapping(c["input"]["mapping"]), statement(c["input"]["statement"]) {}
  std::string pe, mapping, statement;
  TenetInput parse() const { return parse_tenet({pe, mapping, statement}); }
};

std::string key(const TensorCounts& t) { return (t.role == Role::read ? "in:" : "out:") + t.tensor; }

TEST(TenetCases, CountsAreEqual) {
  const std::vector<json> cases = reference_rows(kSamples);
  size_t equal = 0;
  for (const json& c : cases) {
    SCOPED_TRACE(c["id"].get<std::string>());
    TenetInput input = Texts(c).parse();
    auto counted = count_by_boxes(input.problem);
    ASSERT_TRUE(std::holds_alternative<Counts>(counted)) << std::get<Reason>(counted).render();
    const Counts& got = std::get<Counts>(counted);
    const json& want = c["counts"];
    EXPECT_EQ(got.macs, want["macs"]);
    EXPECT_EQ(got.pe_array, want["pe_array"]);
    EXPECT_EQ(got.space, want["space"]);
    EXPECT_EQ(got.time, want["time"]);
    EXPECT_EQ(got.spacetime, want["spacetime"]);
    ASSERT_EQ(got.tensors.size(), want["tensors"].size());
    for (const TensorCounts& t : got.tensors) {
      SCOPED_TRACE(key(t));
      const json& tensor = want["tensors"][key(t)];
      EXPECT_EQ(t.total, tensor["total"]);
      EXPECT_EQ(t.assigned, tensor["assigned"]);
      EXPECT_EQ(t.unique, tensor["unique"]);
      EXPECT_EQ(t.temporal_hits, tensor["temporal_hits"]);
      EXPECT_EQ(t.spatial_hits, tensor["spatial_hits"]);
      EXPECT_EQ(t.footprint, tensor["footprint"]);
    }
    equal += !testing::Test::HasFailure();
  }
  EXPECT_EQ(equal, cases.size());
}

TEST(TenetCases, DerivedMetricsAreEqual) {
  const std::vector<json> cases = reference_rows(kSamples);
  for (const json& c : cases) {
    SCOPED_TRACE(c["id"].get<std::string>());
    TenetInput input = Texts(c).parse();
    Counts counts = std::get<Counts>(count_by_boxes(input.problem));
    TenetMetrics m = tenet_metrics(counts, input.hardware);
    const json& want = c["derived"];
    auto near = [](double got, const json& value) {
      const double v = value.get<double>();
      EXPECT_NEAR(got, v, 1e-12 * std::abs(v) + 1e-300);
    };
    EXPECT_EQ(m.delay_in, want["delay_in"]);
    EXPECT_EQ(m.delay_out, want["delay_out"]);
    EXPECT_EQ(m.delay_compute_master, want["delay_compute_master"]);
    EXPECT_EQ(m.delay_compute_micro_tutorial, want["delay_compute_micro_tutorial"]);
    EXPECT_EQ(m.latency_master, want["latency_master"]);
    EXPECT_EQ(m.latency_micro_tutorial, want["latency_micro_tutorial"]);
    near(m.delay_compute_unrounded, want["delay_compute_unrounded"]);
    near(m.avg_active_pe, want["avg_active_pe"]);
    near(m.utilization, want["utilization"]);
    near(m.energy_untruncated, want["energy_untruncated"]);
    for (size_t i = 0; i < m.tensors.size(); ++i) {
      const json& t = want["tensors"][key(counts.tensors[i])];
      SCOPED_TRACE(key(counts.tensors[i]));
      ASSERT_EQ(m.tensors[i].reuse_factor.has_value(), !t["reuse_factor"].is_null());
      if (m.tensors[i].reuse_factor) near(*m.tensors[i].reuse_factor, t["reuse_factor"]);
      near(m.tensors[i].temporal_reuse, t["temporal_reuse"]);
      near(m.tensors[i].spatial_reuse, t["spatial_reuse"]);
      near(m.tensors[i].ibw_per_cycle, t["ibw_per_cycle"]);
      near(m.tensors[i].sbw_per_cycle, t["sbw_per_cycle"]);
      EXPECT_EQ(m.tensors[i].delay_cycles, t["delay"]);
    }
  }
}

/// Every value of `want` stands in `got` too: integers equal, others to the last bits of a double.
void expect_contains(const json& got, const json& want, const std::string& place) {
  SCOPED_TRACE(place);
  if (want.is_object()) {
    ASSERT_TRUE(got.is_object());
    for (const auto& [name, value] : want.items()) {
      if (name == "error") continue;  // where the program gave up after what it had printed
      ASSERT_TRUE(got.contains(name)) << name;
      expect_contains(got[name], value, place + "." + name);
    }
  } else if (want.is_number_float() && got.is_number()) {
    const double v = want.get<double>();
    EXPECT_NEAR(got.get<double>(), v, 1e-15 * std::abs(v));
  } else {
    EXPECT_EQ(got, want);
  }
}

// Overflows, float rounding and truncations included: nothing that TENET's program printed is left out.
TEST(TenetCases, AnswersHoldWhatTenetPrinted) {
  const std::vector<json> cases = reference_rows(kSamples);
  const Format& tenet = find_format("tenet");
  for (const json& c : cases) {
    SCOPED_TRACE(c["id"].get<std::string>());
    const json got = tenet.answer(c["input"]);
    EXPECT_EQ(got["counts"], c["counts"]);
    expect_contains(got, {{"derived", c["derived"]}}, "derived");
    expect_contains(got["tenet_master"], c["tenet_master"], "tenet_master");
    expect_contains(got["tenet_micro_tutorial"], c["tenet_micro_tutorial"], "tenet_micro_tutorial");
  }
}

TEST(TenetCases, TextReadsBackAsTheSameProblem) {
  const std::vector<json> cases = reference_rows(kSamples);
  for (const json& c : cases) {
    SCOPED_TRACE(c["id"].get<std::string>());
    TenetInput input = Texts(c).parse();
    auto print = [](const TenetInput& i) {
      return std::array{tenet_array_text(i.problem.array, i.hardware),
                        tenet_mapping_text(i.problem),
                        tenet_statement_text(i.problem.statement)};
    };
    std::array<std::string, 3> once = print(input);
    TenetInput again = parse_tenet({once[0], once[1], once[2]});
    EXPECT_EQ(print(again), once);
    Counts a = std::get<Counts>(count_by_boxes(input.problem)), b = std::get<Counts>(count_by_boxes(again.problem));
    for (size_t t = 0; t < a.tensors.size(); ++t) EXPECT_EQ(a.tensors[t].unique, b.tensors[t].unique);
  }
}

}  // namespace
}  // namespace sator::formats
