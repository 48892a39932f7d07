#include "cli/program_options.h"

#include <charconv>
#include <istream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "engine/prompt.h"
#include "ir/visit.h"
#include "relax/nodes.h"
#include "relax/parse.h"
#include "tir/nodes.h"

namespace sator::cli {

std::string read_program_text(const std::string& file, std::istream& in) {
  if (file != "-") return read_file(file);
  return read_text(in, "standard input", "a program in TVMScript; a longer one from a file of its own", "");
}

ModuleRef read_program(const std::string& file, std::istream& in) {
  return relax::parse_program(read_program_text(file, in), file == "-" ? "standard input" : file);
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

void check_bounds(const std::map<std::string, int64_t>& bounds, const Module& program) {
  if (bounds.empty()) return;
  std::set<std::string> names;
  for (const auto& [name, func] : program.functions) {
    auto add = [&](const NodeRef& part) {
      for (const VarRef& v : vars_in(part))
        if (v->dtype.is_int()) names.insert(v->name);
    };
    if (const relax::Function* f = func.as<relax::Function>()) {
      walk(f->body, [&](const relax::RVar& v) { add(v.sinfo); });
      for (const relax::RVarRef& p : f->params) add(p->sinfo);
    } else if (const tir::PrimFunc* p = func.as<tir::PrimFunc>()) {
      for (const VarRef& v : p->params)
        if (v->dtype.is_int()) names.insert(v->name);
      for (const auto& [param, buffer] : p->buffer_map)
        for (const Expr& extent : buffer->shape) add(extent);
    }
  }
  for (const auto& [name, bound] : bounds)
    if (!names.contains(name))
      fail({.what = text("--bounds ", name, "=", bound, ": the program has no size ", name),
            .needs = names.empty() ? std::string("symbolic sizes, and the program has none")
                                   : text("one of ", join(std::vector<std::string>(names.begin(), names.end()), ", ")),
            .hint = "correct the name, or leave it out"});
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
