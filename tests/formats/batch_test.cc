// Batches: an answer for every row, in order, whatever the rows hold.
#include "formats/batch.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/format.h"
#include "temp_folder.h"

namespace sator::formats {
namespace {

using nlohmann::json;

json gemm_input(int64_t i, int64_t j, int64_t k) {
  return {{"pe_array", "{PE[i,j]:0<=i<4 and 0<=j<4}\n{PE[i,j]->PE[i-1,j];PE[i,j]->PE[i,j-1]}\n256 1024 64 16\n"},
          {"mapping", "{S[i,j,k]->PE[i%4,j%4]}\n{S[i,j,k]->T[floor(i/4),floor(j/4),i%4+j%4+k]}\n"},
          {"statement",
           text("2 1\n{S[i,j,k]: 0<=i<",
                i,
                " and 0<=j<",
                j,
                " and 0<=k<",
                k,
                "}\n{S[i,j,k]->A[i,k]}\n{S[i,j,k]->B[k,j]}\n{S[i,j,k]->C[i,j]}\n")}};
}

std::vector<json> rows_of(const fs::path& path) {
  std::vector<json> rows;
  const std::string content = read_file(path);
  for (std::string_view line : split(content, '\n'))
    if (!line.empty()) rows.push_back(json::parse(line));
  return rows;
}

TEST(Batch, EveryRowHasItsAnswerInOrder) {
  TempFolder folder;
  std::string lines;
  constexpr int64_t kRows = 700;
  for (int64_t n = 0; n < kRows; ++n) {
    json row = {{"format", "tenet"}, {"input", gemm_input(n % 9 + 1, n % 7 + 2, n + 1)}};
    row["id"] = n % 2 == 0 ? json(n) : json(text("row ", n));
    if (n % 10 == 3) row["input"]["mapping"] = "nonsense";
    lines += row.dump() + "\n";
  }
  write_file(folder.path() / "in.jsonl", lines);
  std::vector<std::string> outputs;
  for (int threads : {1, 2, 5}) {
    const fs::path out = folder.path() / text("out", threads, ".jsonl");
    const BatchSummary summary = answer_batch(folder.path() / "in.jsonl", out, {.threads = threads});
    EXPECT_EQ(summary.rows, kRows);
    EXPECT_EQ(summary.refused, kRows / 10);
    outputs.push_back(read_file(out));
  }
  EXPECT_EQ(outputs[0], outputs[1]);
  EXPECT_EQ(outputs[0], outputs[2]);
  const std::vector<json> rows = rows_of(folder.path() / "out1.jsonl");
  ASSERT_EQ(rows.size(), static_cast<size_t>(kRows));
  for (int64_t n = 0; n < kRows; ++n) {
    const json& row = rows[static_cast<size_t>(n)];
    EXPECT_EQ(row["id"], n % 2 == 0 ? json(n) : json(text("row ", n)));
    if (n % 10 == 3) {
      EXPECT_NE(row["refused"].get<std::string>().find("mapping line 1, column 1"), std::string::npos) << row;
      EXPECT_FALSE(row.contains("counts"));
    } else {
      EXPECT_EQ(row["counts"]["macs"], (n % 9 + 1) * (n % 7 + 2) * (n + 1));
    }
  }
}

struct BadLine {
  const char* line;
  const char* words;  // that the refusal must contain
};

const BadLine kBadLines[] = {
    {"{", "in.jsonl line 1"},
    {"}", "in.jsonl line 2"},
    {"[1,2]", "is no object"},
    {"7", "is no object"},
    {"null", "is no object"},
    {"\"id\"", "is no object"},
    {"{}", "has no id"},
    {"{\"id\":null}", "has no id"},
    {"{\"id\":[1]}", "has no id"},
    {"{\"id\":{\"a\":1}}", "has no id"},
    {"{\"id\":true,\"format\":\"tenet\",\"input\":{}}", "has no id"},
    {"{\"id\":1}", "format"},
    {"{\"id\":1,\"format\":7,\"input\":{}}", "format"},
    {"{\"id\":1,\"format\":\"tennet\",\"input\":{}}", "did you mean tenet"},
    {"{\"id\":1,\"format\":\"\",\"input\":{}}", "no format called"},
    {"{\"id\":1,\"format\":\"tenet\"}", "input"},
    {"{\"id\":1,\"format\":\"tenet\",\"input\":\"text\"}", "pe_array, mapping, statement"},
    {"{\"id\":1,\"format\":\"tenet\",\"input\":{}}", "pe_array"},
    {"{\"id\":1,\"format\":\"tenet\",\"input\":{\"pe_array\":5}}", "pe_array"},
    {"{\"id\":1,\"format\":\"tenet\",\"input\":{\"pearray\":\"\"}}", "did you mean pe_array"},
    {"{\"id\":1,\"format\":\"scalesim\",\"input\":{\"topologie\":1}}", "did you mean topology"},
    {"{\"id\":1,\"format\":\"timeloop\",\"input\":{\"problm\":\"\"}}", "unknown key, \"problm\""},
    {"{\"id\":1,\"format\":\"maestro\",\"input\":{\"hardwear\":\"\"}}", "did you mean hardware"},
    {"{\"id\":1,\"id\":2}", "given twice"},
    {"{\"id\":1e999}", "number overflow"},
    {"{\"id\":\"\xff\"}", "in.jsonl line 26"},
    {"{\"id\":1}{\"id\":2}", "in.jsonl line 27"},
    {"not json", "in.jsonl line 28"},
};

TEST(Batch, LinesThatAreNoRowsAreRefusedByTheirNumber) {
  TempFolder folder;
  std::string lines;
  for (const BadLine& bad : kBadLines) lines += text(bad.line, "\n");
  lines += "\n  \n" + std::string(100000, '[');  // blank lines, and no line end
  write_file(folder.path() / "in.jsonl", lines);
  const BatchSummary summary = answer_batch(folder.path() / "in.jsonl", folder.path() / "out.jsonl");
  EXPECT_EQ(summary.rows, static_cast<int64_t>(std::size(kBadLines)) + 1);
  EXPECT_EQ(summary.refused, summary.rows);
  const std::vector<json> rows = rows_of(folder.path() / "out.jsonl");
  ASSERT_EQ(rows.size(), std::size(kBadLines) + 1);
  for (size_t i = 0; i < std::size(kBadLines); ++i) {
    SCOPED_TRACE(kBadLines[i].line);
    EXPECT_NE(rows[i]["refused"].get<std::string>().find(kBadLines[i].words), std::string::npos) << rows[i];
    if (rows[i]["id"].is_null()) {
      EXPECT_EQ(rows[i]["line"], i + 1);
    }
  }
  EXPECT_EQ(rows.back()["line"], std::size(kBadLines) + 3);
}

TEST(Batch, NothingIsLeftBehindWhenItCannotBeWritten) {
  TempFolder folder;
  EXPECT_THROW(answer_batch(folder.path() / "absent.jsonl", folder.path() / "out.jsonl"), Error);
  EXPECT_FALSE(fs::exists(folder.path() / "out.jsonl"));
  write_file(folder.path() / "in.jsonl", "");
  write_file(folder.path() / "file", "");
  EXPECT_THROW(answer_batch(folder.path() / "in.jsonl", folder.path() / "file" / "out.jsonl"), Error);
  fs::create_directory(folder.path() / "taken");
  EXPECT_THROW(answer_batch(folder.path() / "in.jsonl", folder.path() / "taken"), Error);
  for (const auto& entry : fs::directory_iterator(folder.path()))
    EXPECT_EQ(entry.path().string().find("partial"), std::string::npos) << entry.path();
  // An empty batch has an empty answer.
  EXPECT_EQ(answer_batch(folder.path() / "in.jsonl", folder.path() / "out.jsonl").rows, 0);
  EXPECT_EQ(read_file(folder.path() / "out.jsonl"), "");
}

TEST(Formats, NamesAreDistinct) {
  for (const Format& format : known_formats()) EXPECT_EQ(&find_format(format.name), &format);
}

}  // namespace
}  // namespace sator::formats
