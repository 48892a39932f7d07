#include "target/chip_pattern.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/text.h"
#include "target/chip_file.h"
#include "target/chip_graph.h"

namespace sator {

namespace {

constexpr Unit kRowLimit{"rows", 1, 1e12};
constexpr Unit kColumns{"columns", 1, 1e12};
constexpr Unit kSummands{"summands", 1, 1e12};
constexpr std::array<std::string_view, 8> kDtypes = {
    "float32", "float16", "bfloat16", "int32", "int16", "int8", "uint8", "int4"};
constexpr size_t kMostOps = 12;  // chains with and without each optional op are tried one by one

bool is_name(std::string_view word, std::string_view beside_letters) {
  return !word.empty() && std::ranges::all_of(word, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || beside_letters.find(c) != std::string_view::npos;
  });
}

/// "relu|gelu?"
ChipPattern::Link link_of(const KeyReader& in, std::string_view word) {
  ChipPattern::Link link;
  std::string_view rest = word;
  if (rest.ends_with('?')) link.optional = true, rest.remove_suffix(1);
  for (const std::string_view name : split(rest, '|')) {
    if (!is_name(name, "_."))
      in.fail_at("ops",
                 text("an element is ", string_literal(word)),
                 "names of ops: \"matmul\"; \"bias?\" may be absent; \"relu|gelu\" is either",
                 "write one op of the chain per element");
    link.any_of.emplace_back(name);
  }
  return link;
}

void read_chain(KeyReader& in, ChipPattern& p) {
  if (!in.has("ops"))
    in.fail_at("ops", "the key is missing", "a list of ops, one after the other, or graph", "add ops = [\"matmul\"]");
  for (const std::string& word : in.strings("ops")) p.ops.push_back(link_of(in, word));
  if (std::ranges::all_of(p.ops, &ChipPattern::Link::optional))
    in.fail_at("ops", "every op may be absent", "at least one op without ?", "remove a ?");
  if (p.ops.size() > kMostOps)
    in.fail_at("ops", text("the chain has ", p.ops.size(), " ops"), text("at most ", kMostOps), "state two patterns");
}

ChipPattern read_pattern(KeyReader in) {
  ChipPattern p;
  p.name = in.string("name");
  if (!is_name(p.name, "_"))
    in.fail_at("name",
               text("the value is ", string_literal(p.name)),
               "letters, digits and _: it becomes part of a function's name");
  p.source = in.string_or("source", "");
  if (in.has("graph")) {
    if (in.has("ops"))
      in.fail_at("graph", "the pattern has ops too", "ops, a chain, or graph, lines with names", "remove one of them");
    read_graph(in, p);
  } else {
    read_chain(in, p);
  }
  p.constant_weight = in.flag_or("constant_weight", false);
  for (size_t d : in.choices_or("dtypes", kDtypes, {})) p.dtypes.emplace_back(kDtypes[d]);
  if (in.has("weight_bits")) p.weight_bits = in.integers("weight_bits", {"bits", 1, 64});
  auto limit = [&](std::string_view key, const Unit& unit) {
    return in.has(key) ? std::optional(in.integer(key, unit)) : std::nullopt;
  };
  p.max_m = limit("max_m", kRowLimit), p.max_n = limit("max_n", kColumns), p.max_k = limit("max_k", kSummands);
  p.where = in.place("name");
  in.finish();
  return p;
}

}  // namespace

std::vector<ChipPattern> read_patterns(KeyReader& in) {
  std::vector<ChipPattern> out;
  for (KeyReader& reader : in.tables("pattern")) {
    ChipPattern p = read_pattern(reader);
    if (std::ranges::find(out, p.name, &ChipPattern::name) != out.end())
      reader.fail_at(
          "name", text("two patterns are called ", string_literal(p.name)), "distinct names of patterns", "rename one");
    out.push_back(std::move(p));
  }
  return out;
}

}  // namespace sator
