// Reading relations: every form of the grammar, and errors that name the place.
#include "dataflow/tenet/tenet_text.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "dataflow/counts/counts.h"

namespace sator::dataflow {
namespace {

const char* const kArray = "{PE[i,j]:0<=i<4 and 0<=j<4}\n{PE[i,j]->PE[i-1,j] ; PE[i,j]->PE[i,j-1]}\n\n256 1024 64 16\n";
const char* const kMapping = "{S[i,j,k]->PE[i%4,j%4]}\n{S[i,j,k]->T[floor(i/4),floor(j/4),i%4+j%4+k]}\n";
const char* const kStatement =
    "2 1\n{S[i,j,k]: 0<=i<9 and 0<=j<10 and "
    "0<=k<11}\n{S[i,j,k]->A[i,k]}\n{S[i,j,k]->B[k,j]}\n{S[i,j,k]->C[i,j]}\n";

Counts counts_of(const std::string& array, const std::string& mapping, const std::string& statement) {
  auto counted = count(parse_tenet({array, mapping, statement}).problem);
  if (auto* reason = std::get_if<Reason>(&counted)) throw Error(*reason);
  return std::get<Counts>(counted);
}

std::string unique_of(const Counts& c) {
  std::string out;
  for (const TensorCounts& t : c.tensors) out += std::to_string(t.unique) + " ";
  return out;
}

// The same domain, maps and wires in other words have the same counts.
TEST(TenetText, SpellingDoesNotMatter) {
  const std::string want = unique_of(counts_of(kArray, kMapping, kStatement));
  auto mapping = [&](const char* m) { return unique_of(counts_of(kArray, m, kStatement)); };
  auto array = [&](const char* a) { return unique_of(counts_of(a, kMapping, kStatement)); };
  auto statement = [&](const char* s) { return unique_of(counts_of(kArray, kMapping, s)); };
  EXPECT_EQ(mapping("\n { S[ a , b , c ] -> PE[ a % 4 , b mod 4 ] } "
                    "\n\n{S[i,j,k]->T[floor((i)/4),floor(j/4),(i%4+j%4)+k]}"),
            want);
  EXPECT_EQ(mapping("{S[i,j,k]->PE[i - 4*floor(i/4), j%4]}\n{S[i,j,k]->T[floor(i/2/2),floor(2j/8),k + i%4 - -j%4]}"),
            want);
  EXPECT_EQ(mapping("{S[i,j,k]->PE[i%4,j%4]}\n{S[i,j,k]->T[floor(i/8), floor(i/4)%2, floor(j/4), i%4+j%4+k]}"), want);
  EXPECT_EQ(array("{PE[i,j]:0<=i,j<4}\n{PE[i,j]->PE[i-1,j] ; PE[a,b]->PE[a,-1+b];}\n256 1024\n64\n16"), want);
  EXPECT_EQ(array("{PE[i,j]:0<=i<=3 && 4>j>=0}\n{PE[i,j]->PE[x,j]: x=i-1; PE[i,j]->PE[i,j-1]} \n1 1 64 16"), want);
  EXPECT_EQ(statement("2 1\n{S[i,j,k]: i>=0 and j>=0 and k>=0 and i<=8 and 2*j<=19 and k<11 and i+j<=17}\n"
                      "{S[i,j,k]->A[i,k]}\n{S[i,j,k]->B[k,j];S[i,j,k]->B[k,j]}\n{S[i,j,k]->C[i,j]}"),
            want);
}

// How isl, which reads these files for TENET, binds a sign and a factor before a remainder.
TEST(TenetText, SignsAndFactorsBindAsInIsl) {
  TenetInput input = parse_tenet({kArray, "{S[i,j,k]->PE[3*i%2,5 - j%4]}\n{S[i,j,k]->T[-2i%4,(3*k)%2]}", kStatement});
  const Map &space = input.problem.mapping.space, &time = input.problem.mapping.time;
  const int64_t x[] = {5, 7, 3};
  EXPECT_EQ(evaluate(space, x), (std::vector<int64_t>{3 * (5 % 2), 5 - 7 % 4}));
  EXPECT_EQ(evaluate(time, x), (std::vector<int64_t>{-2 * (5 % 4), (3 * 3) % 2}));
}

TEST(TenetText, EmptyAndGuardedInterconnects) {
  Counts none = counts_of("{PE[i,j]:0<=i<4 and 0<=j<4}\n{ }\n1 1 64 1\n", kMapping, kStatement);
  for (const TensorCounts& t : none.tensors) EXPECT_EQ(t.spatial_hits, 0);
  // In one stamp a bus and a chain both leave one source per shared element.
  const char* const unskewed = "{S[i,j,k]->PE[i%4,j%4]}\n{S[i,j,k]->T[floor(i/4),floor(j/4),k]}\n";
  Counts bus =
      counts_of("{PE[i,j]:0<=i<4 and 0<=j<4}\n{PE[i,j]->PE[i,x]: 0<=x<j; PE[i,j]->PE[x,j]: 0<=x<i}\n1 1 64 1\n",
                unskewed,
                kStatement);
  EXPECT_EQ(unique_of(bus), unique_of(counts_of(kArray, unskewed, kStatement)));
}

TEST(TenetText, TriangularDomain) {
  Counts c = counts_of(kArray,
                       "{S[i,j,k]->PE[i%4,j%4]}\n{S[i,j,k]->T[floor(i/4),floor(j/4),k]}\n",
                       "1 1\n{S[i,j,k]: 0<=i<64 and 0<=j<=i and 0<=k<8}\n{S[i,j,k]->K[j,k]}\n{S[i,j,k]->P[i,j]}\n");
  EXPECT_EQ(c.macs, 64 * 65 / 2 * 8);
  EXPECT_EQ(c.tensors[0].footprint, 64 * 8);
  EXPECT_EQ(c.tensors[1].footprint, 64 * 65 / 2);
  EXPECT_FALSE(c.enumerated);
}

// Hostile sizes and conditions: refused within a moment, whatever they ask for.
TEST(TenetText, HugeThingsAreRefusedQuickly) {
  const char* const huge[][3] = {
      {"{PE[i]:0<=i<1000000000}\n{PE[i]->PE[x]: 0<=x<i}\n1 1 64 1",
       "{S[i]->PE[i]}\n{S[i]->T[0]}",
       "1 0\n{S[i]: 0<=i<1000000000}\n{S[i]->A[i]}"},
      {"{PE[i]:0<=i<8}\n{}\n1 1 64 1",
       "{S[i,j]->PE[i%8]}\n{S[i,j]->T[i,j]}",
       "1 0\n{S[i,j]: 0<=i<1000000000000 and 0<=j<1000000000000 and 2*i-2*j=1}\n{S[i,j]->A[i]}"},
      {"{PE[i]:0<=i<8}\n{}\n1 1 64 1",
       "{S[i,j,k]->PE[i%8]}\n{S[i,j,k]->T[i,j,k]}",
       "1 0\n{S[i,j,k]: 0<=i<100000000000 and 0<=j<100000000000 and 0<=k<100000000000}\n{S[i,j,k]->A[i]}"},
      {"{PE[i]:0<=i<8}\n{}\n1 1 64 1",
       "{S[i,j]->PE[i%8]}\n{S[i,j]->T[i%999983+j%7919]}",
       "1 0\n{S[i,j]: 0<=i<10000000 and 0<=j<10000000}\n{S[i,j]->A[i%12345]}"},
  };
  for (const auto& texts : huge) {
    auto counted = count(parse_tenet({texts[0], texts[1], texts[2]}).problem);
    ASSERT_TRUE(std::holds_alternative<Reason>(counted)) << texts[2];
    EXPECT_FALSE(std::get<Reason>(counted).needs.empty());
  }
}

}  // namespace
}  // namespace sator::dataflow
