#include "engine/json_schema/token_masks.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/json_schema/completion.h"
#include "engine/sampling.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator::json_schema {
namespace {

/// A value as docs/generation.md says that documents are written. `gap`: what stands before values and names.
std::string written(const Json& value, const std::string& gap = "") {
  if (value.is_number()) return Decimal::read(value.dump(), "a test").written();
  std::string out;
  auto member = [&](const std::string& text) { out += (out.size() > 1 ? "," : "") + gap + text; };
  if (value.is_array()) {
    out = "[";
    for (const Json& item : value) member(written(item, gap));
    return out + "]";
  }
  if (!value.is_object()) return value.dump();
  out = "{";
  for (const auto& [name, item] : value.items()) member(Json(name).dump() + ":" + gap + written(item, gap));
  return out + "}";
}

bool accepts(const std::shared_ptr<const Shapes>& shapes, const std::string& text) {
  Automaton a(shapes);
  return a.take(text) && a.is_complete();
}

std::shared_ptr<const Shapes> shapes_of(const std::string& schema) {
  return std::make_shared<const Shapes>(Shapes::of(Schema::read(schema, "schema")));
}

TEST(JsonSchema, WhatSaysNothingIsEnforced) {
  EXPECT_TRUE(Schema::read(R"({"type":"array","uniqueItems":false,"minContains":2})", "schema").ignored.empty());
  EXPECT_EQ(Schema::read(R"({"type":"string","format":"date"})", "schema").ignored, std::vector<std::string>{"format"});
}

// A double would be another number: 2^64 + 1, -2^63 - 1.
TEST(JsonSchema, IntegersAreExact) {
  for (const char* schema : {R"({"const":18446744073709551617})", R"({"minimum":-9223372036854775809,"maximum":5})"})
    EXPECT_NE(error_of([&] { Schema::read(schema, "schema"); }).find("is beyond 64 bits"), std::string::npos);
  for (const char* schema :
       {R"({"const":18446744073709551615})", R"({"enum":["18446744073709551617","\"99999999999999999999"]})"})
    EXPECT_NO_THROW(Schema::read(schema, "schema"));
}

// JSON-Schema-Test-Suite, draft 2020-12, the files of the documented keywords: each instance is taken exactly if it is valid, compact and with
// whitespace.
TEST(JsonSchema, TheSuitesInstances) {
  int groups = 0, refused = 0, valid = 0, invalid = 0;
  for (const auto& entry : fs::directory_iterator(reference_data("json-schema"))) {
    if (entry.path().extension() != ".json") continue;
    const Json suite = parse_json(read_file(entry.path()), entry.path().string());
    for (const Json& group : suite) {
      SCOPED_TRACE(text(entry.path().filename().string(), ": ", group.at("description").get<std::string>()));
      ++groups;
      std::shared_ptr<const Shapes> shapes;
      const std::string why = error_of([&] { shapes = shapes_of(group.at("schema").dump()); });
      if (why.find("allows no value") != why.npos) {  // then none of the instances is valid
        for (const Json& test : group.at("tests")) EXPECT_FALSE(test.at("valid").get<bool>());
        invalid += static_cast<int>(group.at("tests").size());
        continue;
      }
      if (!why.empty()) {
        ++refused;
        // By name: a keyword that is not documented, another document, a place with an $id of its own, a divisor with many digits.
        const bool by_name = why.find("which is not done") != why.npos || why.find(" refers to ") != why.npos ||
                             why.find("multipleOf") != why.npos;
        EXPECT_TRUE(by_name) << why;
        continue;
      }
      for (const Json& test : group.at("tests")) {
        const bool is_valid = test.at("valid");
        (is_valid ? valid : invalid)++;
        for (const std::string gap : {"", " ", "\n  "})
          EXPECT_EQ(accepts(shapes, written(test.at("data"), gap)), is_valid)
              << test.at("description") << ": " << written(test.at("data"), gap);
      }
    }
  }
  EXPECT_EQ(groups, 238);
  EXPECT_EQ(refused, 20);
  EXPECT_EQ(valid, 492);
  EXPECT_EQ(invalid, 314);
}

/// Schemas with all that masks have to look at.
const char* const kSchemas[] = {
    "true",
    R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}, "na\"me": {"type": "integer"},
        "nest": {"$ref": "#"}}, "required": ["name"], "additionalProperties": false})",
    R"({"type": "object", "properties": {"a": {"enum": ["x", 1, null, [1, {"b": 2}]]}, "ab": {"type": "boolean"}}})",
    R"({"type": "array", "prefixItems": [{"type": "string", "pattern": "^[a-c]+$"}], "items": {"type": "number", "minimum": -3,
        "maximum": 12.5}, "minItems": 2, "maxItems": 5})",
    R"({"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": {"type": "string"}, "minProperties": 2})",
    R"({"anyOf": [{"type": "string", "minLength": 3}, {"type": "array", "items": {"type": "string", "maxLength": 2}}]})",
    R"({"type": "object", "propertyNames": {"maxLength": 2}, "minProperties": 1, "maxProperties": 3, "additionalProperties": {"type": "integer"}})",
    R"({"type": "object", "propertyNames": {"enum": ["a", "b", "abc"]}, "minProperties": 2, "additionalProperties": {"type": "null"}})"};

/// Tokens as vocabularies have them: all bytes, and pieces that cross the borders of strings, names and values.
std::vector<std::string> small_vocabulary() {
  std::vector<std::string> tokens = {""};
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* t : {"{\"",
                        "\":",
                        "\": ",
                        "\",\"",
                        "\", \"",
                        "\"}",
                        "\"]",
                        "[\"",
                        "na",
                        "name",
                        "nam",
                        "name\"",
                        "name\":\"",
                        "x1\":",
                        "ab",
                        "abc",
                        "a\":true",
                        "true",
                        "false",
                        "null",
                        "},",
                        "}}",
                        "]]",
                        "12",
                        "12.5",
                        "-3",
                        "100",
                        ", ",
                        "\n  ",
                        "\n",
                        ": ",
                        "\\\"",
                        "\\n",
                        "\\u00",
                        "1f",
                        "\xc3\xa9",
                        "\xe2\x82",
                        "\xac",
                        "e9",
                        "abcabc",
                        "aaaaaa",
                        "{\"name\":\"a\"}",
                        " ",
                        "  ",
                        "[[",
                        "b\":1,\"a",
                        "\"\"",
                        "\":null",
                        "me\":1",
                        "me\\\"",
                        "\xf0\x9f",
                        "\x98\x80",
                        "\xf0\x9f\x98\x80"})
    tokens.emplace_back(t);
  return tokens;
}

// What a mask allows is what the automaton takes, token by token, along random documents; and the shortest completion completes them.
TEST(JsonSchema, MasksAllowWhatTheAutomatonTakes) {
  Random random(5);
  int64_t places = 0, completed = 0;
  for (const char* schema : kSchemas) {
    const auto shapes = shapes_of(schema);
    TokenMasks fresh(small_vocabulary());
    for (int document = 0; document < 30; ++document) {
      Automaton a(shapes);
      for (int step = 0; step < 25 && a.can_go_on(); ++step, ++places) {
        const std::span<const uint64_t> mask = fresh.of(a);
        std::vector<int32_t> allowed;
        for (int32_t id = 0; id < fresh.vocab_size(); ++id) {
          Automaton next = a;
          const bool taken = id > 0 && next.take(fresh.bytes_of(id));
          ASSERT_EQ(TokenMasks::has(mask, id), taken) << schema << ": " << string_literal(fresh.bytes_of(id));
          if (taken) allowed.push_back(id);
        }
        const std::optional<std::string> rest = completion_of(a);
        if (rest) {
          Automaton end = a;
          ASSERT_TRUE(end.take(*rest) && end.is_complete()) << schema << ": " << *rest;
          ++completed;
        }
        if (allowed.empty()) {
          EXPECT_TRUE(a.is_complete()) << schema;
          break;
        }
        // Long tokens more often than their number has it, or most of them were single bytes of strings.
        int32_t id = allowed[random.next() % allowed.size()];
        for (int k = 0; k < 3 && fresh.bytes_of(id).size() < 2; ++k) id = allowed[random.next() % allowed.size()];
        ASSERT_TRUE(a.take(fresh.bytes_of(id)));
      }
    }
  }
  EXPECT_GT(places, 1500);
  EXPECT_GT(completed, places * 9 / 10);
}

}  // namespace
}  // namespace sator::json_schema
