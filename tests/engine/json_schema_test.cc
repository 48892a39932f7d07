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
    R"({"type": "object", "propertyNames": {"enum": ["a", "b", "abc"]}, "minProperties": 2, "additionalProperties": {"type": "null"}})",
    R"({"type": "object", "patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": false, "minProperties": 3})",
    R"({"type": "object", "propertyNames": {"pattern": "^[ab]{1,2}$"}, "minProperties": 5, "additionalProperties": {"enum": [100, "abc"]}})",
    R"({"type": "object", "patternProperties": {"^a": {"type": "string", "minLength": 9}, "\"$": {"const": null}},
        "properties": {"nam": {"const": "a long one"}}, "additionalProperties": {"const": [1, 2, 3]}, "minProperties": 4})",
    R"({"type": "string", "pattern": "^(a|b\u001f{3}|\\{2}c*|\n[12]?)$"})",
    R"({"type": "object", "patternProperties": {"^[\u0001\n\"]+$": {"type": "boolean"}}, "additionalProperties": false, "minProperties": 2})",
    R"({"anyOf": [{"const": 1}, {"type": "array", "minItems": 3, "items": {"type": "object", "required": ["a"], "minProperties": 2}}]})"};

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

// Names that must differ are owed as long as there are fewer of them than minProperties asks for.
TEST(JsonSchema, MembersAreOwed) {
  for (const auto& [schema, begun, rest] :
       {std::tuple(
            R"({"patternProperties": {"^S_": {"type": "integer"}}, "additionalProperties": false, "minProperties": 2})",
            "{\"S",
            "_\":0,\"S_a\":0}"),
        std::tuple(R"({"propertyNames": {"pattern": "^S_"}, "minProperties": 2})", "{\"S_a\":1,", "\"S_\":0}"),
        std::tuple(R"({"propertyNames": {"enum": ["ab", "abc", "b"]}, "minProperties": 3})",
                   "{\"abc\":1,\"a",
                   "b\":0,\"b\":0}"),
        std::tuple(
            R"({"propertyNames": {"pattern": "^(a|\u0007)$"}, "minProperties": 2})", "{\"\\", "u0007\":0,\"a\":0}")}) {
    Automaton a(shapes_of(text(R"({"type": "object", "allOf": [)", schema, "]}")));
    ASSERT_TRUE(a.take(begun)) << schema;
    EXPECT_EQ(completion_of(a), rest);
    EXPECT_EQ(completion_of(a, std::string_view(rest).size() - 1), std::nullopt);
  }
  for (const char* schema :
       {R"({"type": "object", "patternProperties": {"^S$": true}, "additionalProperties": false, "minProperties": 2})",
        R"({"type": "object", "propertyNames": {"enum": ["a", "b"]}, "minProperties": 3})"})
    EXPECT_NE(error_of([&] { shapes_of(schema); }).find("allows no value"), std::string::npos) << schema;
}

// Readers see the nearest double: with a point a number keeps an excluded bound as that, too. Integers are exact.
TEST(JsonSchema, NumbersKeepTheirBoundsAsDoubles) {
  for (const auto& [schema, good, bad] :
       {std::tuple(R"({"type": "number", "exclusiveMinimum": 0.1})", "0.10000000000000002", "0.100000000000000001"),
        std::tuple(R"({"type": "number", "exclusiveMinimum": 0.1})", "0.11", "0.1"),
        std::tuple(R"({"type": "number", "exclusiveMaximum": 0.3})", "0.29999999999999993", "0.2999999999999999999"),
        std::tuple(R"({"type": "number", "exclusiveMaximum": -2.5})", "-2.5000000000000005", "-2.50000000000000001"),
        std::tuple(R"({"type": "number", "exclusiveMinimum": 1})", "1.0000000000000002", "1.00000000000000000001"),
        std::tuple(R"({"type": "number", "exclusiveMinimum": 0})", "0.00000000000000000000001", "0.0"),
        std::tuple(R"({"type": "number", "exclusiveMinimum": 1e-300, "maximum": 2e-300})", "", "0.0"),
        std::tuple(R"({"type": "number", "not": {"const": 0.5}})", "0.49999999999999994", "0.50000000000000000001"),
        std::tuple(R"({"type": "number", "not": {"const": 0.5}})", "0.5000000000000001", "0.49999999999999999999"),
        std::tuple(R"({"type": "number", "minimum": 0.1})", "0.100000000000000001", "0.099999999999999999"),
        std::tuple(
            R"({"type": "number", "exclusiveMinimum": 9007199254740992})", "9007199254740993", "9007199254740993.0"),
        std::tuple(
            R"({"type": "integer", "exclusiveMinimum": 9007199254740992})", "9007199254740993", "9007199254740992")}) {
    const auto shapes = shapes_of(schema);
    if (*good) EXPECT_TRUE(accepts(shapes, good)) << schema << good;
    EXPECT_FALSE(accepts(shapes, bad)) << schema << bad;
    const std::string shortest = *completion_of(Automaton(shapes));
    EXPECT_TRUE(accepts(shapes, shortest)) << schema << shortest;
  }
}

// Where it asks for a value that does not exist: followed from the root as far as there is one way.
TEST(JsonSchema, ThePlaceWithoutValuesIsNamed) {
  for (const auto& [schema, place] : {
           std::pair(
               R"({"properties": {"a": {"items": {"type": "string", "minLength": 5, "maxLength": 3}, "type": "array",
                     "minItems": 1}}, "required": ["a"], "type": "object"})",
               "#/properties/a/items allows"),
           std::pair(R"({"type": "object", "required": ["b"], "additionalProperties": false})",
                     "#/additionalProperties allows"),
           std::pair(R"({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}},
                     "allOf": [{"properties": {"a": {"type": "null"}}}]})",
                     "#/allOf/0/properties/a and schema: #/properties/a allows"),
           std::pair(
               R"({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"next": {"$ref": "#/$defs/a"}},
                     "required": ["next"]}}})",
               "#/$defs/a/properties/next allows"),
           std::pair(R"({"anyOf": [{"type": "string", "pattern": "^a$", "minLength": 2}, false]})", "schema: # allows"),
       }) {
    const std::string error = error_of([&] { shapes_of(schema); });
    EXPECT_NE(error.find(place), std::string::npos) << error;
  }
}

// What docs/generation.md says of patterns: general categories by both of their names, other properties and flags are refused.
TEST(JsonSchema, PropertiesOfPatterns) {
  for (const auto& [pattern, good, bad] : {std::tuple(R"(^\\p{Currency_Symbol}$)", "\u20ac", "a"),
                                           std::tuple(R"(^\\p{gc=Pd}$)", "-", "a"),
                                           std::tuple(R"(^\\P{Control}$)", "a", "\\n"),
                                           std::tuple(R"(^\\p{Titlecase_Letter}$)", "\u01c5", "A")}) {
    const auto shapes = shapes_of(text(R"({"type": "string", "pattern": ")", pattern, "\"}"));
    EXPECT_TRUE(accepts(shapes, text('"', good, '"'))) << pattern;
    EXPECT_FALSE(accepts(shapes, text('"', bad, '"'))) << pattern;
  }
  for (const auto& [pattern, why] : {std::pair(R"(\\p{Script=Greek})", "asks for the property Script=Greek"),
                                     std::pair(R"(\\p{Alphabetic})", "asks for the property Alphabetic"),
                                     std::pair("(?i:a)", "sets flags")}) {
    const std::string error = error_of([&] { shapes_of(text(R"({"type": "string", "pattern": ")", pattern, "\"}")); });
    EXPECT_NE(error.find(why), std::string::npos) << error;
    EXPECT_NE(error.find("needs: "), std::string::npos) << error;
  }
}

// Of what a schema asks for only the size is told, whatever it is.
TEST(JsonSchema, LargeMinimaCostNothing) {
  for (
      const auto& [schema, bytes] :
      {std::pair(R"({"type": "array", "minItems": 1e9, "items": {"const": null}})", int64_t{5'000'000'001}),
       std::pair(R"({"type": "string", "minLength": 1e9})", int64_t{1'000'000'002}),
       std::pair(
           R"({"type": "array", "prefixItems": [{"const": "a"}], "items": {"type": "array", "minItems": 1e6}, "minItems": 1e6})",
           int64_t{2'000'000'000'003})}) {
    const auto shapes = shapes_of(schema);
    EXPECT_EQ(shapes->least_bytes[static_cast<size_t>(shapes->root)], bytes);
    EXPECT_EQ(completion_of(Automaton(shapes), 1'000'000), std::nullopt);
  }
  EXPECT_TRUE(accepts(shapes_of(R"({"type": "string", "pattern": "^((((){1000}){1000}){1000}){1000}a$"})"), "\"a\""));
}

// Texts of a length or a pattern take long tokens: 14 characters are three of them, and two quotes.
TEST(JsonSchema, TheShortestTextHasFewTokens) {
  TokenMasks masks(small_vocabulary());
  LongTokens long_tokens(masks.trie(), masks.all_bytes());
  for (const char* schema :
       {R"({"type": "string", "minLength": 14})", R"({"type": "string", "pattern": "^[a-c]{14}$"})"}) {
    const Automaton begin(shapes_of(schema));
    EXPECT_EQ(masks.fewest_tokens(*completion_of(begin, 16, &long_tokens))->size(), 5U) << schema;
  }
}

// Each limit that docs/generation.md names, with the place, the rule and a way on.
TEST(JsonSchema, LimitsAreNamed) {
  std::string nested = "true", choices, values;
  for (int i = 0; i < 128; ++i) nested = R"({"not": )" + nested + "}";
  for (int i = 0; i < 12; ++i)
    choices += text(i ? "," : "", R"({"anyOf": [{"minLength": )", i, R"(}, {"minItems": )", i, "}]}");
  for (int i = 0; i < 20'001; ++i) values += text(i ? "," : "", i);
  for (const auto& [part, why] :
       {std::pair(text(R"({"allOf": [)", choices, "]}"), "more than 2000 cases"),
        std::pair(text(R"({"const": [)", values, "]}"), "more than 20000 kinds of values"),
        std::pair(std::string(R"({"pattern": "a{1001}"})"), "counts beyond 1000"),
        std::pair(std::string(R"({"pattern": "a{1000}{1000}"})"), "more than 200000 states"),
        std::pair(std::string(R"({"pattern": "a.{20}$"})"), "more than 20000 states"),
        std::pair(text(R"({"pattern": ")", std::string(201, '('), std::string(201, ')'), "\"}"),
                  "nests deeper than 200"),
        std::pair(std::string(R"({"pattern": "a", "minLength": 2001})"), "a length of 2001"),
        std::pair(std::string(R"({"minProperties": 1001})"), "asks for 1001 members"),
        std::pair(std::string(R"({"multipleOf": 1234567})"), "has 7 digits"),
        std::pair(std::string(R"({"allOf": [{"multipleOf": 9973}, {"multipleOf": 9967}]})"), "more than 20000 states"),
        std::pair(std::string(R"({"minItems": 1000000001})"), "from 0 to 1e9"),
        std::pair(nested, "nests deeper than 128 levels")}) {
    const std::string error = error_of([&] { shapes_of(text(R"({"properties": {"a": )", part, "}}")); });
    EXPECT_NE(error.find(why), std::string::npos) << error << part.substr(0, 80);
    EXPECT_TRUE(error.find("schema: #/properties/a") != error.npos || error.find("nests") != error.npos) << error;
    EXPECT_NE(error.find("needs: "), std::string::npos) << error;
  }
}

TEST(JsonSchema, KeywordsOfOlderDraftsAreRefused) {
  for (const char* keyword :
       {"additionalItems", "dependencies", "$recursiveRef", "disallow", "divisibleBy", "extends"}) {
    const std::string error = error_of([&] { Schema::read(text("{\"", keyword, "\": true}"), "schema"); });
    EXPECT_NE(error.find(text(keyword, ", which is not done: older drafts")), std::string::npos) << error;
    EXPECT_NE(error.find("hint:  write"), std::string::npos) << error;
  }
}

// What a mask allows is what the automaton takes, token by token, along random documents; and the shortest completion completes them.
TEST(JsonSchema, MasksAllowWhatTheAutomatonTakes) {
  Random random(5);
  int64_t places = 0;
  for (const char* schema : kSchemas) {
    const auto shapes = shapes_of(schema);
    TokenMasks fresh(small_vocabulary());
    LongTokens long_tokens(fresh.trie(), fresh.all_bytes());
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
        ASSERT_TRUE(rest) << schema;
        Automaton end = a;
        ASSERT_TRUE(end.take(*rest) && end.is_complete()) << schema << ": " << *rest;
        if (step == 0) EXPECT_EQ(std::ssize(*rest), shapes->least_bytes[static_cast<size_t>(shapes->root)]) << schema;
        // Long tokens make it other, but no longer.
        const std::optional<std::string> of_long_tokens = completion_of(a, std::ssize(*rest), &long_tokens);
        ASSERT_TRUE(of_long_tokens) << schema << ": " << *rest;
        end = a;
        ASSERT_TRUE(end.take(*of_long_tokens) && end.is_complete()) << schema << ": " << *of_long_tokens;
        ASSERT_EQ(of_long_tokens->size(), rest->size()) << *rest << ", " << *of_long_tokens;
        // It is the shortest: no byte leads nearer to the end than by one.
        for (int32_t id : step % 4 == 1 ? allowed : std::vector<int32_t>()) {
          Automaton next = a;
          ASSERT_TRUE(next.take(fresh.bytes_of(id)));
          const std::optional<std::string> behind = completion_of(next);
          ASSERT_TRUE(behind) << schema;
          ASSERT_GE(fresh.bytes_of(id).size() + behind->size(), rest->size())
              << schema << ": " << *rest << ", or " << fresh.bytes_of(id) << *behind;
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
}

}  // namespace
}  // namespace sator::json_schema
