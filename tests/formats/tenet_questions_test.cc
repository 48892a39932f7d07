// Two questions of TENET's users, from its public threads 3 and 12, and what the program itself cannot answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "dataflow/counts/enumerate.h"
#include "dataflow/tenet/metrics.h"
#include "formats/tenet/answer.h"
#include "formats/tenet/program.h"
#include "formats/tenet/report.h"

namespace sator::formats {
namespace {

using namespace dataflow;

bool any_contains(const std::vector<std::string>& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& l) { return l.find(words) != l.npos; });
}

// Thread 3: six stamps with 4, 12, 20, 20, 12, 4 MACs on 1, 3, 4, 4, 3, 1 PEs take 32 cycles, because one PE has 8 MACs in the
// third and fourth stamp. The program says 18, later 27 (before it truncates the average to 2: 36).
TEST(TenetQuestions, UnevenStampsTake32CyclesAndNot18) {
  const TenetInput input = parse_tenet({
      "{PE[i,j]: 0<=i<2 and 0<=j<2}\n{PE[i,j]->PE[i-1,j]; PE[i,j]->PE[i,j-1]}\n256 1024 64 1\n",
      "{S[k,c,ox,oy,rx,ry]->PE[k%2,c%2]}\n{S[k,c,ox,oy,rx,ry]->T[floor(k/8),floor(c/8),oy,k+c+ox]}\n",
      "2 1\n{S[k,c,ox,oy,rx,ry]: 0<=k<3 and 0<=c<3 and 0<=ox<2 and 0<=oy<1 and 0<=rx<2 and 0<=ry<2}\n"
      "{S[k,c,ox,oy,rx,ry]->I[c,ox+rx,oy+ry]}\n{S[k,c,ox,oy,rx,ry]->W[k,c,rx,ry]}\n{S[k,c,ox,oy,rx,ry]->O[k,ox,oy]}\n",
  });
  // The thread's table, from the maps themselves.
  std::map<int64_t, std::map<std::pair<int64_t, int64_t>, int64_t>> stamps;
  for (int64_t k = 0; k < 3; ++k)
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t ox = 0; ox < 2; ++ox) stamps[k + c + ox][{k % 2, c % 2}] += 4;
  std::vector<int64_t> macs, pes, cycles;
  for (const auto& [stamp, work] : stamps) {
    macs.push_back(0);
    cycles.push_back(0);
    pes.push_back(static_cast<int64_t>(work.size()));
    for (const auto& [pe, instances] : work) {
      macs.back() += instances;
      cycles.back() = std::max(cycles.back(), instances);
    }
  }
  ASSERT_EQ(macs, (std::vector<int64_t>{4, 12, 20, 20, 12, 4}));
  ASSERT_EQ(pes, (std::vector<int64_t>{1, 3, 4, 4, 3, 1}));
  ASSERT_EQ(cycles, (std::vector<int64_t>{4, 4, 8, 8, 4, 4}));

  const Counts counts = tenet_counts(input);
  EXPECT_EQ(counts.work_cycles, 32);
  EXPECT_EQ(counts.time, 6);
  EXPECT_EQ(as_tenet_prints(counts, input.hardware, TenetBranch::master)->delay_compute, 18);
  EXPECT_EQ(as_tenet_prints(counts, input.hardware, TenetBranch::micro_tutorial)->delay_compute, 36);
  EXPECT_DOUBLE_EQ(tenet_metrics(counts, input.hardware).delay_compute_unrounded, 27);
  EXPECT_NE(tenet_table(input, counts).find("cycles of work, stamp by stamp: 32"), std::string::npos);
  EXPECT_TRUE(any_contains(tenet_notes(input, counts), "a stamp is no cycle"));
}

struct Skewed {
  const char* name;
  std::string space, time;
};

// Thread 12: convolutions with skewed stamps, the PE row made of two iterators. What must come from outside is counted here
// straight from the definition: an element that neither this PE nor the PE before it in row or column had now or at the stamp
// before.
TEST(TenetQuestions, SkewedStampsHaveTheUniqueVolumeOfAHandCount) {
  constexpr int64_t K = 5, C = 4, OX = 3, OY = 4, R = 2, PY = 4, PX = 2;
  const std::string domain =
      "{S[k,c,ox,oy,rx,ry]: 0<=k<5 and 0<=c<4 and 0<=ox<3 and 0<=oy<4 and 0<=rx<2 and 0<=ry<2}\n";
  const std::string s = "{S[k,c,ox,oy,rx,ry]->";
  const Skewed variants[] = {
      {"outputs stay", "PE[(ox+oy*3)%4,k%2]", "T[floor((ox+oy*3)/4),floor(k/2),(ox+oy*3)%4+k%2+c]"},
      {"weights stay", "PE[c%4,k%2]", "T[floor(c/4),floor(k/2),ox+oy*3+k%2]"},
      {"weights stay, rows skewed too", "PE[c%4,k%2]", "T[floor(c/4),floor(k/2),ox+oy*3+k%2+c%4]"},
  };
  for (const Skewed& variant : variants) {
    SCOPED_TRACE(variant.name);
    const TenetInput input =
        parse_tenet({"{PE[i,j]: 0<=i<4 and 0<=j<2}\n{PE[i,j]->PE[i-1,j]; PE[i,j]->PE[i,j-1]}\n256 1024 64 1\n",
                     s + variant.space + "}\n" + s + variant.time + "}\n",
                     "2 1\n" + domain + s + "I[c,oy+ry,ox+rx]}\n" + s + "W[k,c,ry,rx]}\n" + s + "O[k,oy,ox]}\n"});
    const bool outputs = std::string(variant.name) == "outputs stay";
    const bool both = std::string(variant.name).find("too") != std::string::npos;
    using Point = std::vector<int64_t>;
    std::set<std::tuple<Point, Point, Point>> held[3];  // (PE, stamp, element)
    std::set<Point> times;
    for (int64_t k = 0; k < K; ++k)
      for (int64_t c = 0; c < C; ++c)
        for (int64_t ox = 0; ox < OX; ++ox)
          for (int64_t oy = 0; oy < OY; ++oy)
            for (int64_t rx = 0; rx < R; ++rx)
              for (int64_t ry = 0; ry < R; ++ry) {
                const int64_t pixel = ox + oy * OX;
                const Point pe = outputs ? Point{pixel % PY, k % PX} : Point{c % PY, k % PX};
                const Point time = outputs ? Point{pixel / PY, k / PX, pixel % PY + k % PX + c}
                                           : Point{c / PY, k / PX, pixel + k % PX + (both ? c % PY : 0)};
                times.insert(time);
                held[0].insert({pe, time, {c, oy + ry, ox + rx}});
                held[1].insert({pe, time, {k, c, ry, rx}});
                held[2].insert({pe, time, {k, oy, ox}});
              }
    std::map<Point, Point> before;
    for (auto t = times.begin(); t != times.end(); ++t)
      if (t != times.begin()) before[*t] = *std::prev(t);
    const Counts counts = tenet_counts(input);
    for (size_t t = 0; t < 3; ++t) {
      int64_t unique = 0;
      for (const auto& [pe, time, element] : held[t]) {
        const Point left = {pe[0], pe[1] - 1}, above = {pe[0] - 1, pe[1]};
        bool found = held[t].count({left, time, element}) || held[t].count({above, time, element});
        if (auto earlier = before.find(time); earlier != before.end())
          for (const Point& from : {pe, left, above}) found |= held[t].count({from, earlier->second, element}) > 0;
        unique += !found;
      }
      EXPECT_EQ(counts.tensors[t].unique, unique) << counts.tensors[t].tensor;
      EXPECT_EQ(counts.tensors[t].assigned, static_cast<int64_t>(held[t].size()));
    }
  }
}

// Wires that name the PE to which data goes, as half of TENET's samples have them, show no reuse under skew; a note says so.
TEST(TenetQuestions, NotesNameWiresThatPointTheOtherWay) {
  auto notes = [](const std::string& wires) {
    const TenetInput input =
        parse_tenet({"{PE[i,j]: 0<=i<4 and 0<=j<4}\n{" + wires + "}\n256 1024 64 1\n",
                     "{S[i,j,k]->PE[i%4,j%4]}\n{S[i,j,k]->T[floor(i/4),floor(j/4),i%4+j%4+k]}\n",
                     "2 1\n{S[i,j,k]: 0<=i<8 and 0<=j<8 and 0<=k<8}\n{S[i,j,k]->A[i,k]}\n{S[i,j,k]->B[k,j]}\n"
                     "{S[i,j,k]->C[i,j]}\n"});
    return tenet_notes(input, tenet_counts(input));
  };
  EXPECT_TRUE(any_contains(notes("PE[i,j]->PE[i+1,j]; PE[i,j]->PE[i,j+1]"), "turned round"));
  EXPECT_TRUE(notes("PE[i,j]->PE[i-1,j]; PE[i,j]->PE[i,j-1]").empty());
  EXPECT_TRUE(any_contains(notes("PE[i,j]->PE[i-1,j]; PE[i,j]->PE[i+1,j]"), "in circles"));
  EXPECT_TRUE(any_contains(notes("PE[i,j]->PE[(i+1)%4,j]"), "in circles"));
}

// What the micro_tutorial program prints for the array example of its own tutorial, as lines.
TEST(TenetQuestions, CompatPrintsTheProgramsLines) {
  const TenetInput input =
      parse_tenet({"{PE[i,j]: 0<=i<2 and 0<=j<2}\n{PE[i,j]->PE[i-1,j]; PE[i,j]->PE[i,j-1]}\n256 1024 64 16\n",
                   "{S[i,j,k]->PE[i,j]}\n{S[i,j,k]->T[i+j+k]}\n",
                   "2 1\n{S[i,j,k]: 0<=i<2 and 0<=j<2 and 0<=k<2}\n{S[i,j,k]->B[k,j]}\n{S[i,j,k]->A[i,k]}\n"
                   "{S[i,j,k]->C[i,j]}\n"});
  const Counts counts = tenet_counts(input);
  auto program = as_tenet_prints(counts, input.hardware, TenetBranch::micro_tutorial);
  // By hand: 8 unique items in, 4 out, of 16 bits over 64 bits per cycle and 16 cycles; 8 MACs on 2 PEs on average.
  EXPECT_EQ(tenet_program_text(*program, counts, false),
            "Delay: In: 17; Out: 16; Com: 4\nActive PE Num: 4; Average: 2.00\n");
  EXPECT_EQ(tenet_program_text(*program, counts, true),
            "Delay: In: 17; Out: 16; Com: 4\nActive PE Num: 4; Average: 2.00\n"
            "Input Tensor: A\n Reuse Factor: 2.00\n temporal: 0.000000\n spatial: 0.500000\n TotalVolume: 8\n"
            " UniqueVolume: 4\n"
            "Input Tensor: B\n Reuse Factor: 2.00\n temporal: 0.000000\n spatial: 0.500000\n TotalVolume: 8\n"
            " UniqueVolume: 4\n"
            "Output Tensor: C\n Reuse Factor: 2.00\n temporal: 0.500000\n spatial: 0.000000\n TotalVolume: 8\n"
            " UniqueVolume: 4\n");
}

// Counts beyond 32 bits, worked by hand: an empty interconnect and one PE make every count a plain product.
TEST(TenetQuestions, CompatWrapsAt32Bits) {
  const TenetInput input =
      parse_tenet({"{PE[i]: 0<=i<1}\n{}\n256 1024 64 1\n",
                   "{S[i,j]->PE[0]}\n{S[i,j]->T[i,j]}\n",
                   "1 1\n{S[i,j]: 0<=i<65536 and 0<=j<40000}\n{S[i,j]->A[i,j]}\n{S[i,j]->C[i,j]}\n"});
  const Counts counts = tenet_counts(input);
  ASSERT_EQ(counts.macs, 2621440000);
  ASSERT_EQ(counts.tensors[0].unique, 2621440000);
  auto program = as_tenet_prints(counts, input.hardware, TenetBranch::master);
  EXPECT_EQ(program->mac_num, 2621440000 - (int64_t{1} << 32));
  EXPECT_EQ(program->delay_compute, program->mac_num);  // one PE
  // unique * 16 in unsigned 32 bits, then over 64 bits per cycle.
  EXPECT_EQ(program->delay_in, (2621440000 * 16) % (int64_t{1} << 32) / 64);
  // total and fresh wrap alike: nothing is reused.
  EXPECT_EQ(program->tensors[0].temporal_reuse, 0);
  EXPECT_EQ(program->tensors[0].reuse_factor, 1);
  EXPECT_EQ(tenet_metrics(counts, input.hardware).delay_compute_master, 2621440000);
}

}  // namespace
}  // namespace sator::formats
