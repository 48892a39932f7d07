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

// What `tokenizers` 0.23 reads as the scores of a Unigram vocabulary, and writes again in the fewest digits; Python's float() gave the bits.
TEST(Json, DecimalsAsSerdeReadsThem) {
  const std::pair<const char*, double> expected[] = {{"-3.6176108980108053", -0x1.cf0ddfb84e077p+1},
                                                     {"-10.520799606768401", -0x1.50aa63efdae0cp+3},
                                                     {"-11.291453938749731", -0x1.69539735e70e4p+3},
                                                     {"-10.467012864278951", -0x1.4ef1c4f65c75ep+3},
                                                     {"9007199254740993.0", 0x1.0000000000001p+53},
                                                     {"123456789012345678901234.5", 0x1.a249b1f10a06cp+76},
                                                     {"12.345678901234567890123456789", 0x1.8b0fcd32f707ap+3},
                                                     {"18446744073709551616.5", 0x1p+64},
                                                     {"-10000000000000000001", -0x1.158e460913d00p+63},
                                                     {"-2.3", -0x1.2666666666666p+1},
                                                     {"-1.5e-7", -0x1.421f5f40d8376p-23},
                                                     {"4.35E+2", 435},
                                                     {"7.2057594037927937e16", 0x1p+56},
                                                     {"1e308", 0x1.1ccf385ebc8a0p+1023},
                                                     {"3.0000000000000001e-310", 0x0.03739a252b281p-1022},
                                                     {"0.0e999", 0}};
  int others = 0;
  for (const auto& [digits, value] : expected) {
    EXPECT_EQ(parse_json(digits, "t", DuplicateNames::refused, Decimals::serde).get<double>(), value) << digits;
    others += parse_json(digits, "t").get<double>() != value;
  }
  EXPECT_EQ(others, 6);
  EXPECT_NE(error_of([] { parse_json("1e999", "t", DuplicateNames::refused, Decimals::serde); }), "");
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
