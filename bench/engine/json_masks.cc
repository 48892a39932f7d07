// What a mask of a JSON schema costs a token, at a vocabulary of 128 k: along random documents, each place counted once, caches as they fill.
//   usage: engine_json_masks_bench [--json] [TEXT...]   texts whose words become tokens; those of the checkout unless told
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "engine/json_schema/completion.h"
#include "engine/json_schema/token_masks.h"
#include "engine/sampling.h"

using namespace sator;
using namespace sator::json_schema;
using Clock = std::chrono::steady_clock;

namespace {

constexpr size_t kVocabulary = 128'000;

/// As vocabularies have them: all bytes, then the most frequent pieces of some texts: words with and without a space, their beginnings, runs of
/// punctuation, three digits.
std::vector<std::string> vocabulary(const std::vector<fs::path>& files) {
  std::map<std::string, int64_t> count;
  auto add = [&](const std::string& piece, int64_t weight) {
    if (piece.size() > 1 && piece.size() <= 24) count[piece] += weight;
  };
  auto kind = [](char c) { return c == ' ' ? 0 : std::isalnum(static_cast<unsigned char>(c)) || (c & 0x80) ? 1 : 2; };
  for (const fs::path& file : files) {
    const std::string text = read_file(file);
    for (size_t i = 0; i < text.size();) {
      size_t end = i + 1;
      while (end < text.size() && kind(text[end]) == kind(text[i])) ++end;
      const std::string piece = text.substr(i, end - i);
      for (size_t n = 2; n <= piece.size(); ++n) add(piece.substr(0, n), n == piece.size() ? 4 : 1);
      for (size_t n = 1; n <= piece.size(); ++n) add(" " + piece.substr(0, n), n == piece.size() ? 4 : 1);
      i = end;
    }
  }
  for (int i = 0; i < 1000; ++i) add(text(i / 100, i / 10 % 10, i % 10), 1 << 20);
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [piece, n] : count) order.emplace_back(-n, piece);
  std::ranges::sort(order);
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const auto& [n, piece] : order)
    if (tokens.size() < kVocabulary) tokens.push_back(piece);
  // Texts that have too few words: made up ones.
  Random random(1);
  while (tokens.size() < kVocabulary) {
    std::string word = random.next() % 2 ? " " : "";
    for (uint64_t n = 3 + random.next() % 8; n > 0; --n) word += static_cast<char>('a' + random.next() % 26);
    tokens.push_back(word);
  }
  return tokens;
}

constexpr const char* kPerson =
    R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0,
  "maximum": 150}, "email": {"type": "string", "pattern": "^[a-z0-9.]+@[a-z0-9.]+$"}, "tags": {"type": "array", "items": {"type": "string",
  "maxLength": 30}}, "address": {"$ref": "#/$defs/address"}}, "required": ["name", "age", "address"], "additionalProperties": false,
  "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"},
  "zip": {"type": "string", "pattern": "^[0-9]{5}$"}}, "required": ["street", "city"]}}})";
constexpr const char* kTree =
    R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"value": {"type": "number"},
  "label": {"enum": ["leaf", "branch", "root"]}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
  "required": ["value"], "additionalProperties": false}}})";
constexpr const char* kCalls =
    R"({"type": "array", "items": {"oneOf": [{"type": "object", "properties": {"tool": {"const": "search"},
  "query": {"type": "string", "maxLength": 200}}, "required": ["tool", "query"], "additionalProperties": false}, {"type": "object",
  "properties": {"tool": {"const": "add"}, "a": {"type": "number"}, "b": {"type": "number"}}, "required": ["tool", "a", "b"],
  "additionalProperties": false}]}, "minItems": 1})";

struct Row {
  const char* name;
  const char* schema;
};
constexpr Row kRows[] = {{"any JSON", "true"}, {"person", kPerson}, {"tree", kTree}, {"tool calls", kCalls}};

double percentile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  bool as_json = false;
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]) == "--json")
      as_json = true;
    else
      files.emplace_back(argv[i]);
  if (files.empty())
    for (const char* folder : {"docs", "src", "tests/reference/json-schema", "examples/gpt2-stories"})
      for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file() && entry.path().extension() != ".safetensors") files.push_back(entry.path());
  const std::vector<std::string> tokens = vocabulary(files);
  std::string out;
  for (const Row& row : kRows) {
    const auto shapes = std::make_shared<const Shapes>(Shapes::of(Schema::read(row.schema, row.name)));
    TokenMasks masks(tokens);
    Random random(7);
    std::vector<double> times;
    for (int document = 0; document < 40; ++document) {
      Automaton place(shapes);
      for (int step = 0; step < 80 && place.can_go_on(); ++step) {
        const auto start = Clock::now();
        const std::span<const uint64_t> mask = masks.of(place);
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
        std::vector<int32_t> allowed;
        for (size_t id = 0; id < tokens.size(); ++id)
          if (TokenMasks::has(mask, static_cast<int32_t>(id))) allowed.push_back(static_cast<int32_t>(id));
        if (allowed.empty()) break;
        // Strings and arrays end at times.
        std::string next = tokens[static_cast<size_t>(allowed[random.next() % allowed.size()])];
        if (random.next() % 5 == 0)
          if (const auto rest = completion_of(place); rest && !rest->empty()) next = rest->substr(0, 1);
        if (!place.take(next)) internal_error("a token that the mask has is not taken");
      }
    }
    const auto first = static_cast<size_t>(std::ranges::max_element(times) - times.begin());
    std::ranges::sort(times);
    if (as_json)
      out += text(
          out.empty() ? "" : ",\n", "  {\"case\": \"", row.name, "\", \"median_us\": ", percentile(times, 0.5), "}");
    else
      std::printf("%-12s %5zu masks  median %7.1f us   90 %% %8.1f   99 %% %8.1f   largest %8.1f (mask %zu)\n",
                  row.name,
                  times.size(),
                  percentile(times, 0.5),
                  percentile(times, 0.9),
                  percentile(times, 0.99),
                  times.back(),
                  first);
  }
  if (as_json) std::printf("[\n%s\n]\n", out.c_str());
}
