#include "cli/program_options.h"

#include <charconv>
#include <istream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "relax/parse.h"

namespace sator::cli {

ModuleRef read_program(const std::string& file, std::istream& in) {
  if (file != "-") return relax::parse_program(read_file(file), file);
  return relax::parse_program({std::istreambuf_iterator<char>(in), {}}, "standard input");
}

bool each_pass_of(bool given, const std::optional<std::string>& debug_dump) {
  if (given && !debug_dump)
    fail({.what = "--each-pass without --debug-dump",
          .needs = "a folder for the program after each pass",
          .hint = "add --debug-dump DIR"});
  return given;
}

std::vector<std::string> listed_words(const std::vector<std::string>& given) {
  std::vector<std::string> out;
  for (const std::string& list : given) {
    for (std::string_view word : split(list, ',')) {
      if (!trim(word).empty()) out.emplace_back(trim(word));
    }
  }
  return out;
}

std::map<std::string, int64_t> named_numbers(const std::vector<std::string>& given, const Reason& refusal) {
  std::map<std::string, int64_t> out;
  for (const std::string& word : listed_words(given)) {
    size_t equals = word.find('=');
    std::string name(trim(std::string_view(word).substr(0, equals)));
    std::string_view number = equals == word.npos ? "" : trim(std::string_view(word).substr(equals + 1));
    int64_t value = 0;
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (name.empty() || error != std::errc() || end != number.data() + number.size() || value < 0) {
      Reason reason = refusal;
      reason.what = text(refusal.what, " ", word);
      fail(std::move(reason));
    }
    out[name] = value;
  }
  return out;
}

std::map<std::string, int64_t> bounds_of(const std::vector<std::string>& given) {
  return named_numbers(given,
                       {.what = "--bounds",
                        .needs = "NAME=NUMBER, the largest value of a symbolic size",
                        .hint = "as in --bounds seq_len=512,batch=8"});
}

Json json_of(const rules::AppliedSchedule& s) {
  Json declined = Json::array();
  for (const auto& d : s.declined) declined.push_back({{"rule", d.rule}, {"why", d.why.what}, {"needs", d.why.needs}});
  return {{"function", s.function},
          {"calls", s.calls.empty() ? "all" : s.calls},
          {"block", s.block},
          {"rule", s.rule},
          {"form", s.form},
          {"configuration", s.configuration},
          {"trace", s.trace},
          {"declined", declined}};
}

}  // namespace sator::cli
