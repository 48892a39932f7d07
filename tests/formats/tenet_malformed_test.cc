// Files that are damaged or say what cannot be counted: an error with the place and the rule, never a crash, a hang or a number.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "dataflow/reference_rows.h"
#include "formats/tenet/answer.h"

namespace sator::formats {
namespace {

using namespace dataflow;

const std::string kArray = "{PE[i,j]:0<=i<4 and 0<=j<4}\n{PE[i,j]->PE[i-1,j]; PE[i,j]->PE[i,j-1]}\n\n256 1024 64 16\n";
const std::string kMapping = "{S[i,j,k]->PE[i%4,j%4]}\n{S[i,j,k]->T[floor(i/4),floor(j/4),i%4+j%4+k]}\n";
const std::string kStatement =
    "2 1\n{S[i,j,k]: 0<=i<9 and 0<=j<10 and 0<=k<11}\n{S[i,j,k]->A[i,k]}\n{S[i,j,k]->B[k,j]}\n{S[i,j,k]->C[i,j]}\n";

enum class In { array, mapping, statement };

struct Malformed {
  In file;
  std::string text;
  const char* where;  // what the message must name
};

/// A whole file around one odd line.
Malformed array_line(const std::string& set, const char* where) {
  return {In::array, set + "\n{ }\n256 1024 64 16\n", where};
}
Malformed wires(const std::string& relation, const char* where) {
  return {In::array, "{PE[i,j]:0<=i<4 and 0<=j<4}\n" + relation + "\n256 1024 64 16\n", where};
}
Malformed numbers(const std::string& line, const char* where) {
  return {In::array, "{PE[i,j]:0<=i<4 and 0<=j<4}\n{ }\n" + line, where};
}
Malformed space(const std::string& tuple, const char* where) {
  return {In::mapping, "{S[i,j,k]->" + tuple + "}\n{S[i,j,k]->T[k]}\n", where};
}
Malformed time(const std::string& relation, const char* where) {
  return {In::mapping, "{S[i,j,k]->PE[i%4,j%4]}\n" + relation, where};
}
Malformed domain(const std::string& set, const char* where) {
  return {In::statement, "1 1\n" + set + "\n{S[i,j,k]->A[i,k]}\n{S[i,j,k]->C[i,j]}\n", where};
}
Malformed read(const std::string& relation, const char* where) {
  return {
      In::statement, "1 1\n{S[i,j,k]: 0<=i<9 and 0<=j<10 and 0<=k<11}\n" + relation + "\n{S[i,j,k]->C[i,j]}\n", where};
}
std::string repeated(const std::string& part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}

std::vector<Malformed> malformed() {
  return {
      // the array's set
      {In::array, "", "pe_array line 1"},
      {In::array, "\n\n\n", "before the PE set"},
      {In::array, std::string("\0\0\0", 3), "pe_array line 1, column 1"},
      {In::array, "\xff\xfe{PE[i]}", "pe_array line 1, column 1"},
      {In::array, "{PE[i,j]:0<=i<4 and 0<=j<4}", "before the interconnect"},
      array_line("PE[i,j]:0<=i<4 and 0<=j<4}", "column 1"),
      array_line("{PE[i,j]:0<=i<4 and 0<=j<4", "line 1, column 27"),
      array_line("{PE i,j]:0<=i<4 and 0<=j<4}", "line 1, column 5"),
      array_line("{PE[i,j:0<=i<4 and 0<=j<4}", "line 1, column 8"),
      array_line("{PE[i;j]:0<=i<4 and 0<=j<4}", "line 1, column 6"),
      array_line("{PE[i,i]:0<=i<4}", "stands twice"),
      array_line("{PE[i,j]:0<=i<0 and 0<=j<4}", "the array has no PEs"),
      array_line("{PE[1,j]:0<=j<4}", "line 1, column 5"),
      array_line("{PE[i,j]}", "iterator i has no lower bound"),
      array_line("{PE[i,j]:0<=i<4}", "iterator j has no lower bound"),
      array_line("{PE[i,j]:0<=i and 0<=j<4}", "iterator i has no upper bound"),
      array_line("{PE[i,j]:i<4 and 0<=j<4}", "iterator i has no lower bound"),
      array_line("{PE[i,j]:0<=i<q and 0<=j<4}", "no iterator is called q"),
      array_line("{PE[i,j]:0<=i<4 and}", "line 1, column 20"),
      array_line("{PE[i,j]:0<=i<4 or 0<=j<4}", "`or` cannot be read"),
      array_line("{PE[i,j]:0<=i<4 || 0<=j<4}", "`or` cannot be read"),
      array_line("{PE[i,j]:0<=i<4 and j!=3 and 0<=j<4}", "`!=` cannot be read"),
      array_line("{PE[i,j]:not i<4 and 0<=j<4}", "`not` cannot be read"),
      array_line("{PE[i,j]: exists a : i = 2*a and 0<=i<4 and 0<=j<4}", "`exists` cannot be read"),
      array_line("{PE[i,j]:0<=i<4 and 0<=j<4; PE[i,j]: 8<=i<9 and 0<=j<4}", "2 parts"),
      array_line("{}", "0 parts"),
      array_line("[N]->{PE[i,j]:0<=i<N and 0<=j<4}", "parameters"),
      array_line("{PE[i,j]->PE[i,j]}", "line 1, column 9"),
      array_line("{PE[i]:0<=i<4}", "PEs have 1 coordinates"),
      array_line("{PE[i,j,k]:0<=i,j,k<4}", "PEs have 3 coordinates"),
      array_line("{PE[i,j]:0<=i<99999999999999999999 and 0<=j<4}", "the number is too large"),
      array_line("{PE[i,j]:0<=i<1000000000*1000000000 and 0<=j<4}", "too large"),
      array_line("{PE[i,j]:0<=i<1125899906842624 and 0<=j<1125899906842624}", "more than 2^63 points"),
      array_line("{PE[i,j]:0<=i<4 and 0<=j<4} {", "text after the closing brace"),
      array_line("{PE[i,j]:0<=i<4.5 and 0<=j<4}", "line 1, column 16"),
      array_line("{PE[i,j]:0<=i<0x10 and 0<=j<4}", "no iterator is called x10"),
      array_line("{PE[i,j]:0<=i/2<4 and 0<=j<4}", "not rounded"),
      array_line("{PE[i,j]:0<=i*j<4 and 0<=j<4}", "two iterators are multiplied"),
      array_line("{PE[" + repeated("a,", 70) + "b]:0<=b<4}", "stands twice"),
      // wires
      wires("", "pe_array line 3, column 1"),
      wires("{PE[i,j]->Q[i,j]}", "does not lead from PE to PE"),
      wires("{Q[i,j]->PE[i,j]}", "does not lead from PE to PE"),
      wires("{PE[i,j]->PE[i]}", "pe_array line 2"),
      wires("{PE[i]->PE[i]}", "pe_array line 2"),
      wires("{PE[i,j]->PE[i,j-1]", "line 2, column 20"),
      wires("PE[i,j]->PE[i,j-1]}", "line 2, column 1"),
      wires("{PE[i,j]=>PE[i,j-1]}", "line 2, column 9"),
      wires("{PE[i,j]-PE[i,j-1]}", "line 2, column 9"),
      wires("{PE[i,j]->}", "a name"),
      wires("{PE[i,j]->PE[i,j-1];;}", "line 2, column 21"),
      wires("{PE[i,j]->PE[i,j-]}", "line 2, column 18"),
      wires("{PE[i,j]->PE[i,x]: 0<=y<j}", "no iterator is called y"),
      wires("{PE[i,j]->PE[i,x]: 0<=x<}", "line 2, column 25"),
      wires("{PE[i,j]->PE[i,x+1]}", "pe_array line 2, column 11"),
      wires("{" + repeated("PE[i,j]->PE[i-1,j];", 1100) + "}", "the union is too long"),
      // hardware numbers
      numbers("", "0 hardware numbers"),
      numbers("256 1024 64", "3 hardware numbers"),
      numbers("256 1024 64 x", "line 3, column 13"),
      numbers("256 1024 64 16 7", "more numbers than expected"),
      numbers("256 1024 0 16", "bandwidth"),
      numbers("256 1024 -64 16", "bandwidth"),
      numbers("256 1024 64 -1", "latency"),
      numbers("256,1024,64,16", "line 3, column 4"),
      numbers("256 1024 64.5 16", "line 3, column 12"),
      numbers("256 1024 6e4 16", "line 3, column 11"),
      numbers("256 1024 64 99999999999999999999", "too large"),
      numbers("256 1024\n64 16\n16", "line 5"),
      numbers("- 1 1 1", "bandwidth"),
      // the space map
      {In::mapping, "", "before the space map"},
      {In::mapping, "{S[i,j,k]->PE[i%4,j%4]}", "before the time map"},
      {In::mapping, "{}\n{}\n", "0 parts"},
      space("PE[i%0,j%4]", "mapping line 1, column 16"),
      space("QE[i%4,j%4]", "the space map of mapping leads to QE"),
      space("PE[i%-4,j%4]", "mapping line 1, column 17"),
      space("PE[i%j,j%4]", "modulus"),
      space("PE[i%(4,j%4]", "closing the parenthesis"),
      space("PE[i*j,j%4]", "two iterators are multiplied"),
      space("PE[i/4,j%4]", "not rounded"),
      space("PE[floor(i/0),j%4]", "divisor"),
      space("PE[floor(i/j),j%4]", "divisor"),
      space("PE[floor(i/4,j%4]", "closing floor("),
      space("PE[floor i,j%4]", "after floor"),
      space("PE[ceil(i/4),j%4]", "floor((e + c - 1)/c)"),
      space("PE[floord(i,4),j%4]", "the function floord cannot be read"),
      space("PE[min(i,4),j%4]", "the function min cannot be read"),
      space("PE[[i/4],j%4]", "line 1, column 15"),
      space("PE[l,j%4]", "names l"),
      space("PE[,j%4]", "line 1, column 15"),
      space("PE[i,]", "line 1, column 17"),
      space("PE[i%4]", "the space map"),
      space("PE[i%4,j%4,k%4]", "the space map"),
      space("PE[i%4,j%4]:i>3", "condition"),
      space("PE[i%4,j%4];S[i,j,k]->PE[i%4,0]", "2 parts"),
      space("PE[i^2,j%4]", "line 1, column 16"),
      space("PE[i%4,j%4}", "line 1, column 22"),
      space("PE[99999999999999999999,j%4]", "too large"),
      space("PE[1000000000*10000000000*i,j%4]", "too large"),
      space("PE[" + repeated("(", 100) + "i" + repeated(")", 100) + ",j]", "nested too deeply"),
      space("PE[" + repeated("-", 100) + "i,j]", "nested too deeply"),
      space("PE[i" + repeated("%7", 100) + ",j]", "the product is too long"),
      space("PE[i" + repeated("+i%7", 3) + repeated("+floor(i/3)", 2) + "+,j]", "line 1"),
      // the time map
      time("{R[i,j,k]->T[k]}", "tuple R is not the statement's tuple S"),
      time("{S[i,j]->T[i]}", "tuple S has 2 coordinates"),
      time("{S[i,j,k]->T[k]}\n{S[i,j,k]->T[k]}", "mapping line 3"),
      time("{S[i,j,i]->T[k]}", "stands twice"),
      time("{S[i,j,k]->T[k]} x", "text after the closing brace"),
      time("{S[i,j,k]->T[k]; }x", "text after the closing brace"),
      time("{S[i,j,k]<-T[k]}", "line 2, column 10"),
      // the statement
      {In::statement, "", "before the numbers of read and write lines"},
      {In::statement, "2 1", "before the iteration domain"},
      {In::statement, "x y\n", "statement line 1, column 1"},
      {In::statement, "2\n{S[i,j,k]: 0<=i,j,k<9}\n{S[i,j,k]->A[i,k]}", "statement line 1"},
      {In::statement, "-1 1\n{S[i,j,k]: 0<=i,j,k<9}\n{S[i,j,k]->A[i,k]}", "two integers"},
      {In::statement, "2000 1\n{S[i,j,k]: 0<=i,j,k<9}\n{S[i,j,k]->A[i,k]}", "two integers"},
      {In::statement, "1 1 1\n{S[i,j,k]: 0<=i,j,k<9}\n{S[i,j,k]->A[i,k]}", "more numbers"},
      {In::statement, "2 1\n{S[i,j,k]: 0<=i,j,k<9}\n{S[i,j,k]->A[i,k]}", "before a read access"},
      {In::statement, "1 1\n{S[i,j,k]: 0<=i,j,k<9}\n{S[i,j,k]->A[i,k]}", "before a write access"},
      {In::statement, "1 0\n{S[i,j,k]: 0<=i,j,k<9}\n{S[i,j,k]->A[i,k]}\n{S[i,j,k]->B[i,k]}", "statement line 4"},
      domain("{S[i,j,k]: 0<=i<9 and 0<=j<10 and k}", "a comparison is missing"),
      domain("{S[i,j,k]: 0<=i<9 and 0<=j<10 or 0<=k<11}", "`or` cannot be read"),
      domain("{S[i,j,k]: 0<=i<9 and 0<=j<10}", "iterator k has no lower bound"),
      domain("{S[i,j,k]->A[i]}", "statement line 2"),
      domain("{R[i,j,k]: 0<=i,j,k<9}", "tuple S is not the statement's tuple R"),
      domain("{S[i,j]: 0<=i,j<9}", "coordinates"),
      domain("{S[i,j,k]: 0<=i<9 and 0<=j<10 and 0<=k<=1<}", "line 2"),
      domain("{S[i,j,k]: 0<=i,j,k<1125899906842624}", "more than 2^63 points"),
      read("{}", "the access is empty"),
      read("{S[i,j,k]->A[i,z]}", "names z"),
      read("{S[i,j,k]->A[i,k];S[i,j,k]->B[i,k]}", "mixes tensors A and B"),
      read("{S[i,j,k]->A[i,k];S[i,j,k]->A[i]}", "tensor A has 1 coordinates here and 2 before"),
      read("{S[i,j,k]->A[i,k]: i<3}", "condition"),
      read("{S[i,j]->A[i,j]}", "tuple S has 2 coordinates"),
      read("{T[i,j,k]->A[i,j]}", "tuple T is not the statement's tuple S"),
      read("{S[i,j,k]->A}", "after the tuple's name"),
      read("{S[i,j,k]->[i,k]}", "a name"),
      read("{S[i,j,k]->2A[i,k]}", "a name"),
      read("{S[i,j,k]->A[i k]}", "line 3, column 16"),
      read("{S[i,j,k]->A[1125899906842624*i, 1125899906842624*k+1]}", ""),
  };
}

TEST(TenetMalformed, ErrorsNameThePlace) {
  const std::vector<Malformed> all = malformed();
  EXPECT_GE(all.size(), 130u);
  for (const Malformed& m : all) {
    SCOPED_TRACE(testing::Message() << m.where << " | " << m.text.substr(0, 120));
    const std::string& array = m.file == In::array ? m.text : kArray;
    const std::string& mapping = m.file == In::mapping ? m.text : kMapping;
    const std::string& statement = m.file == In::statement ? m.text : kStatement;
    try {
      const Counts counts = tenet_counts(parse_tenet({array, mapping, statement}));
      // The last row is large, but right: its elements are those of A[i,k].
      ASSERT_EQ(std::string(m.where), "");
      EXPECT_EQ(counts.tensors[0].footprint, 9 * 11);
    } catch (const Error& e) {
      ASSERT_NE(std::string(m.where), "") << e.what();
      EXPECT_NE(std::string(e.what()).find(m.where), std::string::npos) << e.what();
      EXPECT_FALSE(e.reason.needs.empty()) << e.what();
    }
  }
}

/// Changes a text as a careless editor, a bad disk or an attacker does.
std::string mutated(std::string text, std::mt19937_64& random) {
  auto pick = [&](size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random); };
  static const char* const kParts[] = {"0",
                                       "1",
                                       "7",
                                       "64",
                                       "4096",
                                       "1000000",
                                       "1125899906842624",
                                       "99999999999999999999",
                                       "-",
                                       "+",
                                       "*",
                                       "%",
                                       "/",
                                       "(",
                                       ")",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       ",",
                                       ";",
                                       ":",
                                       "->",
                                       "<=",
                                       "<",
                                       ">",
                                       "=",
                                       "!=",
                                       " and ",
                                       " or ",
                                       "floor(",
                                       "i",
                                       "j",
                                       "k",
                                       "S",
                                       "PE",
                                       "T",
                                       "A",
                                       "\n",
                                       " ",
                                       "\t",
                                       "i%4",
                                       "floor(j/3)",
                                       "x",
                                       "\0"};
  for (size_t edits = 1 + pick(3); edits > 0; --edits) {
    if (text.empty()) text = "{";
    const size_t at = pick(text.size());
    switch (pick(15)) {
      case 0: text.erase(at, 1 + pick(3)); break;
      case 1: text.insert(at, kParts[pick(std::size(kParts))]); break;
      case 2: text[at] = static_cast<char>(pick(256)); break;
      case 3: text.insert(at, text.substr(pick(text.size()), 1 + pick(30))); break;
      case 4: text.resize(at); break;
      case 5: std::swap(text[at], text[pick(text.size())]); break;
      default:
        // Another number in the place of one.
        if (size_t digit = text.find_first_of("0123456789", at); digit != std::string::npos) {
          size_t end = text.find_first_not_of("0123456789", digit);
          text.replace(digit, (end == std::string::npos ? text.size() : end) - digit, kParts[pick(8)]);
        }
    }
  }
  return text;
}

TEST(TenetMalformed, MutatedFilesAreReadOrRefusedInTime) {
  std::vector<std::array<std::string, 3>> seeds = {{kArray, kMapping, kStatement}};
  for (const nlohmann::json& row : reference_rows("tenet/tenet-samples.jsonl")) {
    const nlohmann::json& input = row["input"];
    seeds.push_back({input["pe_array"], input["mapping"], input["statement"]});
  }
  std::mt19937_64 random(5);
  int counted = 0, refused = 0;
  double slowest = 0;
  for (int round = 0; round < 3000; ++round) {
    std::array<std::string, 3> texts = seeds[random() % seeds.size()];
    std::string& changed = texts[random() % 3];
    changed = mutated(changed, random);
    const auto start = std::chrono::steady_clock::now();
    try {
      const TenetInput input = parse_tenet({texts[0], texts[1], texts[2]});
      // Few points, so that thousands of rounds take seconds; the limit's size is tested elsewhere.
      auto result = count(input.problem, {.enumerate_up_to = 1 << 12});
      if (auto* reason = std::get_if<Reason>(&result)) {
        ++refused;
        EXPECT_FALSE(reason->needs.empty());
      } else {
        ++counted;
        const Counts& c = std::get<Counts>(result);
        EXPECT_LE(c.spacetime, c.macs);
        for (const TensorCounts& t : c.tensors) EXPECT_LE(t.unique, t.assigned);
        tenet_answer(input, c);
      }
    } catch (const Error& e) {
      ++refused;
      EXPECT_FALSE(e.reason.where.empty()) << e.what();
      EXPECT_FALSE(e.reason.needs.empty()) << e.what();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    slowest = std::max(slowest, seconds);
    ASSERT_LT(seconds, 30) << "round " << round << "\n" << texts[0] << "\n" << texts[1] << "\n" << texts[2];
  }
  RecordProperty("counted", counted);
  RecordProperty("refused", refused);
  printf("counted %d, refused %d, slowest %.3f s\n", counted, refused, slowest);
  EXPECT_GT(counted, 300);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace sator::formats
