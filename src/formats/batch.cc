#include "formats/batch.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/staged_file.h"
#include "base/threads.h"
#include "formats/format.h"

namespace sator::formats {

namespace {

constexpr size_t kRowsPerRound = 256;  // answered before they are written

/// A reason on one line: place, what, needs, hint.
std::string sentence(const Reason& reason) {
  std::string out;
  if (!reason.where.empty()) out += reason.where + ": ";
  out += reason.what;
  if (!reason.needs.empty()) out += "; needs: " + reason.needs;
  if (!reason.hint.empty()) out += "; hint: " + reason.hint;
  return out;
}

}  // namespace

Json answer_row(std::string_view line, const std::string& file, int64_t number) {
  const std::string place = text(file, " line ", number);
  Json id, answer = Json::object();
  bool known = false;  // the id
  try {
    const Json row = parse_json(line, place);
    const JsonAt at(row, place);
    if (!at.is_object()) at.fail("is no object", R"({"id": ..., "format": ..., "input": {...}})");
    if (!row.contains("id") || !(row["id"].is_string() || row["id"].is_number()))
      at.fail("has no id", "an id that is a string or a number", "number the rows");
    id = row["id"];
    known = true;
    const Format& format = find_format(at.at("format").string());
    const JsonAt input = at.at("input");
    if (!input.is_object()) input.fail("is no object", text("an object with ", format.takes));
    answer = format.answer(input.json());
  } catch (const Error& error) {
    answer = {{"refused", sentence(error.reason)}};
  } catch (const std::exception& error) {
    answer = {{"refused", text("internal error: ", error.what())}};
  }
  answer["id"] = id;
  if (!known) answer["line"] = number;
  return answer;
}

BatchSummary answer_batch(const fs::path& in, const fs::path& out, const BatchOptions& options) {
  const Ref<MappedFile> file = MappedFile::open(in);
  const std::string_view all(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  const std::string name = in.filename().string();
  const int64_t lines = std::count(all.begin(), all.end(), '\n') + (!all.empty() && all.back() != '\n');
  StagedFile staged(out);
  BatchSummary summary;
  size_t at = 0;
  int64_t number = 0;
  while (at < all.size()) {
    std::vector<std::pair<std::string_view, int64_t>> round;
    while (at < all.size() && round.size() < kRowsPerRound) {
      const size_t end = std::min(all.find('\n', at), all.size());
      const std::string_view line = all.substr(at, end - at);
      at = end + 1;
      ++number;
      if (!trim(line).empty()) round.emplace_back(line, number);
    }
    std::vector<std::string> answers(round.size());
    std::atomic<size_t> next = 0;
    std::atomic<int64_t> refused = 0;
    auto work = [&](int) {
      for (size_t i = next++; i < round.size(); i = next++) {
        const Json answer = answer_row(round[i].first, name, round[i].second);
        refused += answer.contains("refused");
        answers[i] = answer.dump(-1, ' ', false, Json::error_handler_t::replace);
      }
    };
    run_on_threads(std::min(options.threads, static_cast<int>(round.size())), work);
    for (std::string& answer : answers) staged.write(answer += '\n');
    summary.rows += static_cast<int64_t>(round.size());
    summary.refused += refused;
    if (options.progress) options.progress(number, lines);
  }
  staged.finish();
  return summary;
}

}  // namespace sator::formats
