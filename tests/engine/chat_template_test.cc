// Chat templates: texts of transformers (tools/make_chat_references.py), what is refused, and damaged templates.
#include "engine/chat_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "engine/tokenizer/unicode.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator {
namespace {

using Ordered = nlohmann::ordered_json;

Ordered tree_of(const char* name) { return Ordered::parse(read_file(reference_data(text("chat/", name)))); }

/// The text, or nothing where the template is refused.
std::optional<std::string> made(const std::function<std::string()>& render) {
  try {
    return render();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("line"), std::string::npos) << e.what();
    EXPECT_FALSE(e.reason.needs.empty()) << e.what();
    return {};
  }
}
std::optional<std::string> text_of(const Ordered& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
}

TEST(ChatTemplate, ConversationsOfTenFamilies) {
  const Ordered all = tree_of("conversations.json");
  int texts = 0;
  for (const Ordered& c : all.at("cases")) {
    const std::string file = c.at("template");
    const ChatTemplate t = ChatTemplate::of(read_file(reference_data("chat/" + file)), file, all.at("special_tokens"));
    Ordered given = all.at("conversations").at(c.at("conversation").get<std::string>());
    const Ordered messages = given.at("messages");
    const bool answers = given.value("add_generation_prompt", true);
    given.erase("messages"), given.erase("add_generation_prompt");
    const auto got = made([&] { return t.render(messages, answers, given); });
    EXPECT_EQ(got, text_of(c.at("text"))) << file << ", " << c.at("conversation");
    texts += got.has_value();
  }
  EXPECT_GT(texts, 150);
}

TEST(ChatTemplate, EachPartOfTheLanguage) {
  const Ordered all = tree_of("language.json");
  for (const Ordered& c : all.at("cases")) {
    const std::string source = c.at("template");
    const auto got = made([&] { return jinja::Template::read(source, "t").render(all.at("variables")); });
    EXPECT_EQ(got, text_of(c.at("text"))) << source;
  }
}

TEST(ChatTemplate, ErrorsNameThePlace) {
  auto error = [](const std::string& source) {
    return error_of([&] { jinja::Template::read(source, "chat_template").render(Ordered{{"l", {1, 2}}, {"s", "x"}}); });
  };
  EXPECT_EQ(error("a\n {{ l.x.y }}"),
            "error: chat_template line 2, column 8: x is undefined, and has no member y\n  needs: a value");
  EXPECT_EQ(error("{% if s %}\n{{ s"),
            "error: chat_template line 2, column 1: what begins here has no end\n  needs: }}");
  EXPECT_NE(error("{% if s %}a").find("has no end\n  needs: {% endif %}"), std::string::npos);
  EXPECT_NE(error("{% extends 'a' %}").find("the statement \"extends\" is not supported"), std::string::npos);
  EXPECT_NE(error("{{ raise_exception('only two turns') }}").find("the template refuses: only two turns"),
            std::string::npos);
  EXPECT_NE(error("{{ s | upperr }}").find("there is no filter \"upperr\""), std::string::npos);
}

// What would take all time or memory ends with words.
// What Jinja 3.1 prints.
TEST(ChatTemplate, SumsOfListsAndDictionariesOfPairs) {
  auto rendered = [](const char* source) { return jinja::Template::read(source, "t").render(Ordered::object()); };
  EXPECT_EQ(rendered("{{ [[1, 2], [3]]|sum(start=[]) }}"), "[1, 2, 3]");
  EXPECT_EQ(rendered("{{ [1, 2]|sum(start=4) }}"), "7");
  EXPECT_EQ(rendered(R"({{ 0x1F + 0b101 + 0o17 }}{{ '\101\60b' }})"), "51A0b");
  EXPECT_EQ(rendered("{{ dict([('a', 1), ('b', 2), ('a', 3)]) }}"), "{'a': 3, 'b': 2}");
  EXPECT_NE(error_of([&] { rendered("{{ [1]|sum(start='x') }}"); }), "");
  EXPECT_NE(error_of([&] { rendered("{{ dict([1]) }}"); }), "");
}

TEST(ChatTemplate, HasLimits) {
  auto error = [](const std::string& source) {
    return error_of([&] { jinja::Template::read(source, "t").render(Ordered::object()); });
  };
  auto repeated = [](const std::string& part, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += part;
    return out;
  };
  const std::string digits = "range(1000)";
  EXPECT_NE(error("{% for a in " + digits + " %}{% for b in " + digits + " %}{% for c in " + digits +
                  " %}{% set d = 1 %}{% endfor %}{% endfor %}{% endfor %}")
                .find("10000000 steps"),
            std::string::npos);
  EXPECT_NE(error("{{ 'abcd' * 99999999 }}").find("a text of"), std::string::npos);
  EXPECT_NE(
      error("{% set ns = namespace(x='abcdefgh') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}")
          .find("a text of"),
      std::string::npos);
  for (const char* deeper :
       {"[ns.x]", "{'a': ns.x}", "namespace(x=ns.x)", "[ns.x]|map('string')", "[ns.x].index", "cycler(ns.x)"})
    EXPECT_NE(
        error(
            text("{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = ", deeper, " %}{% endfor %}"))
            .find("hold each other"),
        std::string::npos)
        << deeper;
  EXPECT_NE(error("{{ range(99999999999) }}").find("a list of"), std::string::npos);
  EXPECT_NE(error("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").find("too deeply"), std::string::npos);
  EXPECT_NE(error("{{ " + repeated("(", 100000) + repeated(")", 100000) + " }}").find("too deeply"), std::string::npos);
  EXPECT_NE(error("{{ " + repeated("[", 100000) + repeated("]", 100000) + " }}").find("too deeply"), std::string::npos);
  EXPECT_NE(error("{{ 1" + repeated(" + 1", 100000) + " }}").find("too long"), std::string::npos);
  EXPECT_NE(error("{{ x" + repeated(".x", 100000) + " }}").find("too many members"), std::string::npos);
  EXPECT_NE(error("{{ x" + repeated("|upper", 100000) + " }}").find("too long"), std::string::npos);
  EXPECT_NE(error("{{ " + repeated("-", 100000) + "1 }}").find("too deeply"), std::string::npos);
  EXPECT_NE(error("{{ " + repeated("not ", 100000) + "1 }}").find("too deeply"), std::string::npos);
  EXPECT_NE(error(repeated("{% if 1 %}", 100000)).find("too deeply"), std::string::npos);
  EXPECT_NE(
      error("{% macro m(i) %}{{ " + repeated("(", 150) + "m(i)" + repeated(")", 150) + " }}{% endmacro %}{{ m(1) }}")
          .find("too deeply"),
      std::string::npos);
}

// Ten templates with parts lost, doubled or exchanged: a text or words, nothing else.
TEST(ChatTemplate, DamagedTemplatesEndWithWords) {
  const Ordered all = tree_of("conversations.json");
  const Ordered& given = all.at("conversations").at("calls");
  std::mt19937 random(5);
  int refused = 0;
  for (const auto& entry : fs::directory_iterator(reference_data("chat"))) {
    if (entry.path().extension() != ".jinja") continue;
    const std::string source = read_file(entry.path());
    for (int round = 0; round < 200; ++round) {
      std::string damaged = source;
      for (int i = 0; i < 1 + round % 4; ++i) {
        const size_t from = random() % damaged.size(), size = 1 + random() % 12, to = random() % damaged.size();
        const std::string part = damaged.substr(from, size);
        if (random() % 2) damaged.erase(from, size);
        if (random() % 2) damaged.insert(std::min(to, damaged.size()), part);
      }
      try {
        const ChatTemplate t = ChatTemplate::of(lossy_utf8(damaged), "damaged", all.at("special_tokens"));
        t.render(given.at("messages"), true, Ordered{{"tools", given.at("tools")}});
      } catch (const Error& e) {
        EXPECT_FALSE(e.reason.needs.empty()) << e.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 500);
}

TEST(ChatTemplate, FoundInAFolder) {
  TempFolder folder;
  const Ordered messages = Ordered::array({{{"role", "user"}, {"content", "x"}}});
  auto render = [&] { return ChatTemplate::load(folder.path())->render(messages, false, Ordered::object()); };
  EXPECT_FALSE(ChatTemplate::load(folder.path()));
  auto config = [&](const Ordered& tree) { write_file(folder.path() / "tokenizer_config.json", tree.dump()); };
  config({{"bos_token", "<s>"}});
  EXPECT_FALSE(ChatTemplate::load(folder.path()));
  config({{"bos_token", {{"content", "<s>"}, {"lstrip", false}}},
          {"chat_template", "{{ bos_token }}1{{ messages[0].content }}"}});
  EXPECT_EQ(render(), "<s>1x");
  config({{"eos_token", "</s>"},
          {"chat_template",
           {{{"name", "rag"}, {"template", "r"}},
            {{"name", "default"}, {"template", "2{{ eos_token }}{{ bos_token }}"}}}}});
  EXPECT_EQ(render(), "2</s>");
  config({{"chat_template", {{{"name", "rag"}, {"template", "r"}}}}});
  EXPECT_NE(error_of(render).find("one called default"), std::string::npos);
  config({{"chat_template", 7}});
  EXPECT_NE(error_of(render).find("chat_template"), std::string::npos);
  write_file(folder.path() / "chat_template.json", R"({"chat_template": "3"})");
  EXPECT_EQ(render(), "3");
  write_file(folder.path() / "chat_template.jinja", "4{{ tools is none }}");
  EXPECT_EQ(render(), "4True");
}

}  // namespace
}  // namespace sator
