#include "base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "temp_folder.h"

namespace sator {
namespace {

TEST(Json, ReadsValues) {
  Json tree = parse_json(R"({"a": [1, -2, 2.5, true, null, "x\u00e9"], "b": {"c": 18446744073709551615}})", "t.json");
  JsonAt at(tree, "t.json");
  EXPECT_EQ(at.at("a").json().size(), 6u);
  EXPECT_EQ(at.at("a").json()[5], "x\xc3\xa9");
  EXPECT_EQ(at.integer_or("missing", 7), 7);
  EXPECT_EQ(at.at("b").where(), "t.json: b");
  EXPECT_NE(error_of([&] { at.at("b").at("c").integer(); }).find("t.json: b.c is 18446744073709551615"),
            std::string::npos);
}

TEST(Json, NamesThePlace) {
  Json tree = parse_json(R"({"list": [{"n": "5"}], "none": null})", "t.json");
  JsonAt at(tree, "t.json");
  at.at("list").each([&](const JsonAt& element) {
    EXPECT_NE(error_of([&] { element.at("n").integer(); }).find("t.json: list[0].n is \"5\""), std::string::npos);
  });
  EXPECT_NE(error_of([&] { at.at("none"); }).find("t.json has no \"none\""), std::string::npos);
  EXPECT_NE(error_of([&] { at.at("lost"); }).find("it has list"), std::string::npos);
  EXPECT_NE(error_of([&] { at.at("list").at("x"); }).find("t.json: list is"), std::string::npos);
}

TEST(Json, RefusesWhatIsNotWellFormed) {
  for (const char* bad : {"", "{", "{\"a\":1,}", "[1 2]", "{\"a\":1}x", "\"\xff\"", "nul", "[1e999]"})
    EXPECT_NE(error_of([&] { parse_json(bad, "bad.json"); }).find("bad.json"), std::string::npos) << bad;
}

TEST(Json, DuplicateNames) {
  EXPECT_NE(error_of([] { parse_json(R"({"a":1,"a":2})", "t"); }).find("\"a\" is given twice"), std::string::npos);
  EXPECT_EQ(parse_json(R"({"a":1,"a":2})", "t", DuplicateNames::last_wins)["a"], 2);
}

TEST(Json, DeepNestingIsAnErrorNotACrash) {
  EXPECT_NE(error_of([] { parse_json(std::string(2'000'000, '['), "t"); }).find("nests deeper"), std::string::npos);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(error_of([&] { parse_json(objects, "t"); }).find("nests deeper"), std::string::npos);
  parse_json(std::string(128, '[') + std::string(128, ']'), "t");
}

}  // namespace
}  // namespace sator
