#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/tokenizer/regex.h"

#include <pcre2.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/interrupt.h"
#include "engine/tokenizer/unicode.h"

namespace sator {

struct Regex::Compiled {
  std::string shown;
  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;
  ~Compiled() {
    pcre2_match_context_free(context);
    pcre2_code_free(code);
  }
};

std::shared_ptr<const Regex::Compiled> Regex::compile(const std::string& pcre, std::string_view shown, bool lines) {
  auto compiled = std::make_shared<Compiled>();
  compiled->shown = shown;
  int code = 0;
  PCRE2_SIZE offset = 0;
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pcre.data()),
                                 pcre.size(),
                                 PCRE2_UTF | PCRE2_UCP | (lines ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY),
                                 &code,
                                 &offset,
                                 nullptr);
  if (!compiled->code) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(code, message, sizeof message);
    fail({.what = text("the regular expression ",
                       string_literal(shown),
                       " is not accepted: ",
                       reinterpret_cast<const char*>(message)),
          .needs = "a pattern that its own syntax (Oniguruma, or Rust's fancy_regex) and PCRE2 both know",
          .hint = text("translated to ", string_literal(pcre), ", it fails at byte ", offset)});
  }
  pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE);  // where there is no JIT, the interpreter matches
  compiled->context = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(compiled->context, 10'000'000);
  return compiled;
}

Regex::Regex(std::string_view pattern) : compiled_(compile(pcre_from_oniguruma(pattern), pattern)) {}

Regex Regex::of_rust(std::string_view pattern) { return Regex(compile(pcre_from_rust(pattern), pattern, false)); }

Regex Regex::literal(std::string_view literal) {
  std::string escaped;
  for (char c : literal) {
    if (std::string_view("\\^$.[]|()?*+{}#-").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return Regex(compile(escaped, literal));
}

namespace {

struct MatchData {
  pcre2_match_data* data;
  explicit MatchData(const pcre2_code* code) : data(pcre2_match_data_create_from_pattern(code, nullptr)) {}
  ~MatchData() { pcre2_match_data_free(data); }
  MatchData(const MatchData&) = delete;
};

}  // namespace

static std::optional<std::pair<size_t, size_t>> match_at(const pcre2_code* code, pcre2_match_context* context,
                                                         MatchData& match, std::string_view subject, size_t from,
                                                         std::string_view shown) {
  auto run = [&](uint32_t options) {
    return pcre2_match(code,
                       reinterpret_cast<PCRE2_SPTR>(subject.data()),
                       subject.size(),
                       from,
                       PCRE2_NO_UTF_CHECK | options,
                       match.data,
                       context);
  };
  int rc = run(0);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) rc = run(PCRE2_NO_JIT);  // its stack lies on the heap
  if (rc == PCRE2_ERROR_NOMATCH) return {};
  if (rc < 0) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(rc, message, sizeof message);
    fail({.what = text("matching ", string_literal(shown), " gave up: ", reinterpret_cast<const char*>(message)),
          .needs = "a text and a pattern that match in bounded steps"});
  }
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match.data);
  return std::pair<size_t, size_t>(ends[0], std::max(ends[0], ends[1]));  // \K in a lookahead can turn them round
}

std::optional<std::pair<size_t, size_t>> Regex::find(std::string_view subject, size_t from) const {
  MatchData match(compiled_->code);
  return match_at(compiled_->code, compiled_->context, match, subject, from, compiled_->shown);
}

void Regex::each_match(std::string_view subject, const std::function<void(size_t, size_t)>& visit) const {
  MatchData match(compiled_->code);
  size_t from = 0;
  std::optional<size_t> last_end;
  RareInterruptCheck check;
  while (from <= subject.size()) {
    check();
    auto found = match_at(compiled_->code, compiled_->context, match, subject, from, compiled_->shown);
    if (!found) return;
    auto [begin, end] = *found;
    if (begin == end && last_end == end) {
      from = end < subject.size() ? end + char_bytes(subject[end]) : subject.size() + 1;
      continue;
    }
    visit(begin, end);
    last_end = end;
    // An empty match is met again at the same place and skipped there.
    from = end;
  }
}

}  // namespace sator
