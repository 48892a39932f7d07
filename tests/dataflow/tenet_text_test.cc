// Reading relations: every form of the grammar, and errors that name the place.
#include "dataflow/tenet_text.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "dataflow/counts.h"

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

struct Malformed {
  const char* array;
  const char* mapping;
  const char* statement;
  const char* where;  // what the message must name
};

#define OK_A kArray
#define OK_M kMapping
#define OK_S kStatement
const Malformed kMalformed[] = {
    {"", OK_M, OK_S, "pe_array line 1"},
    {"{PE[i,j]:0<=i<4 and 0<=j<4}", OK_M, OK_S, "pe_array line 1"},
    {"{PE[i,j]:0<=i<4 and 0<=j<4}\n{ }\n256 1024 64", OK_M, OK_S, "pe_array line 3"},
    {"{PE[i,j]:0<=i<4 and 0<=j<4}\n{ }\n256 1024 64 x", OK_M, OK_S, "pe_array line 3, column 13"},
    {"{PE[i,j]:0<=i<4 and 0<=j<4}\n{ }\n256 1024 64 16 7", OK_M, OK_S, "pe_array line 3, column 16"},
    {"{PE[i,j]:0<=i<4 and 0<=j<4}\n{ }\n256 1024 0 16", OK_M, OK_S, "bandwidth"},
    {"{PE[i,j]:0<=i<4 and 0<=j}\n{ }\n1 1 1 1", OK_M, OK_S, "iterator j has no upper bound"},
    {"{PE[i,j]:0<=i<4 and 0<=q<4}\n{ }\n1 1 1 1", OK_M, OK_S, "no iterator is called q"},
    {"{PE[i]:0<=i<4}\n{ }\n1 1 1 1", OK_M, OK_S, "PEs have 1 coordinates"},
    {"{PE[i,j]:0<=i<4 and 0<=j<4}\n{PE[i,j]->Q[i,j]}\n1 1 1 1", OK_M, OK_S, "pe_array line 2, column 2"},
    {"{PE[i,j]:0<=i<4 and 0<=j<4}\n{PE[i,j]->PE[i]}\n1 1 1 1", OK_M, OK_S, "pe_array line 2"},
    {"{PE[i,j]:0<=i<4 and 0<=j<4}\n{PE[i,j]->PE[i,j-1]\n1 1 1 1", OK_M, OK_S, "pe_array line 2, column 20"},
    {"{PE[i,j]:0<=i<4 and 0<=j<4}\nPE[i,j]->PE[i,j-1]}\n1 1 1 1", OK_M, OK_S, "pe_array line 2, column 1"},
    {"[N]->{PE[i,j]:0<=i<N and 0<=j<4}\n{}\n1 1 1 1", OK_M, OK_S, "parameters"},
    {OK_A, "{S[i,j,k]->PE[i%4,j%4]}", OK_S, "the file ends before the time map"},
    {OK_A, "{S[i,j,k]->PE[i%0,j%4]}\n{S[i,j,k]->T[k]}", OK_S, "mapping line 1, column 16"},
    {OK_A, "{S[i,j,k]->PE[i%j,j%4]}\n{S[i,j,k]->T[k]}", OK_S, "modulus"},
    {OK_A, "{S[i,j,k]->PE[i*j,j%4]}\n{S[i,j,k]->T[k]}", OK_S, "two iterators are multiplied"},
    {OK_A, "{S[i,j,k]->PE[i/4,j%4]}\n{S[i,j,k]->T[k]}", OK_S, "not rounded"},
    {OK_A, "{S[i,j,k]->PE[l,j%4]}\n{S[i,j,k]->T[k]}", OK_S, "names l"},
    {OK_A, "{S[i,j]->PE[i%4,j%4]}\n{S[i,j,k]->T[k]}", OK_S, "tuple S has 2 coordinates"},
    {OK_A, "{R[i,j,k]->PE[i%4,j%4]}\n{S[i,j,k]->T[k]}", OK_S, "tuple R is not the statement's tuple S"},
    {OK_A, "{S[i,j,i]->PE[i%4,j%4]}\n{S[i,j,k]->T[k]}", OK_S, "stands twice"},
    {OK_A, "{S[i,j,k]->PE[i%4,j%4]:i>3}\n{S[i,j,k]->T[k]}", OK_S, "condition"},
    {OK_A, "{S[i,j,k]->PE[i%4,j%4];S[i,j,k]->PE[i%4,0]}\n{S[i,j,k]->T[k]}", OK_S, "2 parts"},
    {OK_A, "{S[i,j,k]->PE[i%4,j%4}\n{S[i,j,k]->T[k]}", OK_S, "mapping line 1, column 22"},
    {OK_A, "{S[i,j,k]->PE[i%4,j%4]} x\n{S[i,j,k]->T[k]}", OK_S, "text after the closing brace"},
    {OK_A, "{S[i,j,k]->PE[i%4,j%4]}\n{S[i,j,k]->T[k]}\n{S[i,j,k]->T[k]}", OK_S, "mapping line 3"},
    {OK_A, "{S[i,j,k]->PE[floor(i/4,j%4]}\n{S[i,j,k]->T[k]}", OK_S, "closing floor("},
    {OK_A, "{S[i,j,k]->PE[99999999999999999999,j%4]}\n{S[i,j,k]->T[k]}", OK_S, "too large"},
    {OK_A, "{S[i,j,k]->PE[1000000000*10000000000*i,j%4]}\n{S[i,j,k]->T[k]}", OK_S, "too large"},
    {OK_A, "{S[i,j,k]->PE[,j%4]}\n{S[i,j,k]->T[k]}", OK_S, "mapping line 1, column 15"},
    {OK_A, OK_M, "2\n{S[i,j,k]: 0<=i<9 and 0<=j<10 and 0<=k<11}\n{S[i,j,k]->A[i,k]}", "statement line 1"},
    {OK_A, OK_M, "-1 1\n{S[i,j,k]: 0<=i<9 and 0<=j<10 and 0<=k<11}\n{S[i,j,k]->A[i,k]}", "two integers"},
    {OK_A,
     OK_M,
     "2 1\n{S[i,j,k]: 0<=i<9 and 0<=j<10 and 0<=k<11}\n{S[i,j,k]->A[i,k]}",
     "the file ends before a read access"},
    {OK_A,
     OK_M,
     "1 1\n{S[i,j,k]: 0<=i<9 and 0<=j<10 or 0<=k<11}\n{S[i,j,k]->A[i,k]}\n{S[i,j,k]->A[i,k]}",
     "statement line 2, column 31"},
    {OK_A,
     OK_M,
     "1 1\n{S[i,j,k]: 0<=i<9 and 0<=j<10 and k}\n{S[i,j,k]->A[i,k]}\n{S[i,j,k]->A[i,k]}",
     "a comparison is missing"},
    {OK_A,
     OK_M,
     "1 1\n{S[i,j,k]: 0<=i<9 and 0<=j<10 and "
     "0<=k<11}\n{S[i,j,k]->A[i,k];S[i,j,k]->B[i,k]}\n{S[i,j,k]->A[i,k]}",
     "mixes tensors A and B"},
    {OK_A,
     OK_M,
     "1 1\n{S[i,j,k]: 0<=i<9 and 0<=j<10 and 0<=k<11}\n{S[i,j,k]->A[i,k];S[i,j,k]->A[i]}\n{S[i,j,k]->A[i,k]}",
     "tensor A has 1 coordinates here and 2 before"},
    {OK_A, OK_M, "1 1\n{S[i,j,k]: 0<=i<9 and 0<=j<10 and 0<=k<11}\n{S[i,j,k]->A[i,z]}\n{S[i,j,k]->A[i,k]}", "names z"},
    {OK_A, OK_M, "1 1\n{S[i,j,k]: 0<=i<9 and 0<=j<10 and 0<=k<11}\n{}\n{S[i,j,k]->A[i,k]}", "the access is empty"},
    {OK_A, OK_M, "1 1\n{S[i,j,k]->A[i]}\n{S[i,j,k]->A[i]}\n{S[i,j,k]->A[i,k]}", "statement line 2"},
};

TEST(TenetText, ErrorsNameThePlace) {
  for (const Malformed& m : kMalformed) {
    SCOPED_TRACE(m.where);
    try {
      counts_of(m.array, m.mapping, m.statement);
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      std::string message = e.what();
      EXPECT_NE(message.find(m.where), std::string::npos) << message;
      EXPECT_NE(message.find(" line "), std::string::npos) << message;
      EXPECT_FALSE(e.reason.needs.empty());
    }
  }
}

// Any damage to a good text is read or refused with words.
TEST(TenetText, DamageNeverCrashes) {
  const std::string characters = "{}[]();:,<>=+-*/% \n0189ijkSTPE'&";
  uint64_t state = 7;
  auto next = [&](size_t n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<size_t>(state >> 33) % n;
  };
  for (int round = 0; round < 20000; ++round) {
    std::string texts[3] = {kArray, kMapping, kStatement};
    const size_t edits = 1 + next(4);
    for (size_t e = 0; e < edits; ++e) {
      std::string& t = texts[next(3)];
      const size_t at = next(t.size());
      switch (next(3)) {
        case 0: t[at] = characters[next(characters.size())]; break;
        case 1: t.erase(at, 1 + next(5)); break;
        case 2: t.insert(at, 1, characters[next(characters.size())]); break;
      }
      if (t.empty()) t = "\n";
    }
    try {
      auto counted = count(parse_tenet({texts[0], texts[1], texts[2]}).problem, {.enumerate_up_to = 5000});
      if (auto* reason = std::get_if<Reason>(&counted)) {
        EXPECT_FALSE(reason->what.empty());
      }
    } catch (const Error& e) {
      EXPECT_FALSE(e.reason.what.empty());
    }
  }
}

}  // namespace
}  // namespace sator::dataflow
