#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/program_options.h"
#include "ir/script/lexer.h"
#include "relax/parse.h"
#include "relax/print.h"

namespace sator::cli {

namespace {

struct FmtArguments {
  std::string file, style = "v0.17";
  bool upgrade = false, in_place = false;
};

/// A spelling that TVM v0.17 does not print: a word between two others ("" stands for any).
struct Spelling {
  std::string_view before, word, after, age, instead;
};

constexpr std::string_view kFlags = "a flag and a condition";
constexpr Spelling kSpellings[] = {
    {".", "Buffer", "[", "older", "T.Buffer(shape, dtype)"},
    {".", "buffer_decl", "", "older", "T.Buffer"},
    {"@", "tvm", ".", "older", "@I.ir_module, @T.prim_func"},
    {"", "tirx", "", "newer", "tir"},
    {".", "sblock", "", "newer", "T.block"},
    {".", "sblock_attr", "", "newer", "T.block_attr"},
    {".", "sblock_alloc_buffer", "", "newer", "T.alloc_buffer"},
    {".", "alloc_local", "", "newer", "T.decl_buffer(..., scope=\"local\")"},
    {".", "alloc_shared", "", "newer", "T.decl_buffer(..., scope=\"shared\")"},
    {".", "let", "[", "newer", "x: T.float32 = ..."},
    {".", "Any", "", "newer", "R.Object"},
    {"", "out_ty", "=", "newer", "out_sinfo"},
    {"", "s_tir", "=", "newer", "@T.prim_func"},
    {"", "TypeVar", "(", "newer", "sizes as texts: R.Tensor((\"n\", 4))"},
    {"", "step", "=", "newer", "a loop from 0, the index computed from its variable"},
    {"", "break", "", "newer", kFlags},
    {"", "continue", "", "newer", kFlags},
    {".", "break_loop", "", "newer", kFlags},
    {".", "continue_loop", "", "newer", kFlags},
    {"", "in", "[", "newer", "the body once for each item"},
};

/// Errors: the text has a spelling of another version.
void require_own_spellings(const script::Source& source, const std::vector<script::Token>& tokens) {
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].kind != script::TokenKind::name) continue;
    for (const Spelling& s : kSpellings)
      if (tokens[i].text == s.word && (s.before.empty() || (i > 0 && tokens[i - 1].text == s.before)) &&
          (s.after.empty() || tokens[i + 1].text == s.after))
        source.fail(tokens[i].place,
                    {.what = text(s.word, " is ", s.age, " than TVM v0.17"),
                     .needs = text("v0.17's own: ", s.instead),
                     .hint = "--upgrade rewrites it"});
  }
}

/// The comments that the printer would not write itself.
std::vector<std::string> comments_of(std::string_view text, const std::vector<script::Token>& tokens) {
  constexpr std::string_view kOwn[] = {
      "# from tvm.", "# from typing ", "# with T.block(", "# with T.sblock(", "# Metadata omitted"};
  std::vector<std::string> out;
  size_t from = 0;
  for (const script::Token& token : tokens) {
    const std::string_view gap = text.substr(from, std::max<size_t>(token.place.begin, from) - from);
    from = std::max<size_t>(from, token.place.end);
    for (std::string_view line : split(gap, '\n')) {
      const size_t at = line.find('#');
      if (at == line.npos) continue;
      line.remove_prefix(at);
      if (std::ranges::none_of(kOwn, [&](std::string_view own) { return line.starts_with(own); }))
        out.emplace_back(line);
    }
  }
  return out;
}

void run(const FmtArguments& a, Streams& io) {
  if (a.in_place && a.file == "-")
    fail({.what = "-i rewrites a file, and standard input is none", .needs = "a file", .hint = "leave -i out"});
  const std::string name = a.file == "-" ? "standard input" : a.file;
  const std::string given = read_program_text(a.file, io.in);
  const script::Source source(given, name);
  const std::vector<script::Token> tokens = script::tokenize(source);
  if (!a.upgrade && a.style == "v0.17") require_own_spellings(source, tokens);
  const ModuleRef module = relax::parse_module(given, name);
  relax::ScriptOptions options;
  options.style = a.style == "head" ? script::Style::head : script::Style::v0_17;
  const std::string out = relax::to_script(*module, options) + "\n";
  const ModuleRef again = relax::parse_module(out, "the rewritten program");
  // What the newest TVM declares in the midst of statements may be declared for the whole function here.
  if (options.style == script::Style::v0_17 && !equal(again, module))
    internal_error("the rewritten program is another one:\n" + out);
  const std::vector<std::string> comments = comments_of(given, tokens);
  if (a.in_place && !comments.empty())
    fail({.what = text("the file has ", comments.size(), " comments, which would be lost: ", comments.front()),
          .needs = "-i without comments",
          .hint = text("sator fmt ", a.file, " > OTHER"),
          .where = name});
  if (!comments.empty()) io.notes << "note: " << comments.size() << " comments are left out\n";
  io.json = {{"changed", out != given}};
  if (!a.in_place)
    io.out << out;
  else if (out != given)
    write_file(a.file, out);
}

}  // namespace

Command fmt_command() {
  auto a = std::make_shared<FmtArguments>();
  return {.name = "fmt",
          .does = "prints a program in TVMScript in one form, also from older and newer spellings",
          .options = {{.name = "FILE",
                       .help = "tensor programs, graphs, or a module of both; - for standard input",
                       .into = &a->file,
                       .required = true},
                      {"--upgrade", "take spellings that are older or newer than TVM v0.17's", &a->upgrade},
                      {.name = "--style NAME",
                       .help = "whose spellings are printed: head is apache-tvm 0.27; it takes all of them",
                       .into = &a->style,
                       .choices = {"v0.17", "head"}},
                      {"-i", "rewrite the file instead of printing", &a->in_place}},
          .run = [a](Streams& io) { run(*a, io); },
          .details = "The printed program is read again; in v0.17's spelling it is compared with the given one.",
          .also = {"format", "upgrade"}};
}

}  // namespace sator::cli
