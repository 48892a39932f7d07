// What commands that take programs in TVMScript share: opt, build, compile.
#pragma once

#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "ir/module.h"
#include "rules/default_schedule.h"

namespace sator::cli {

/// The text of a file in TVMScript; "-" reads `in`, in which no text of more than kMostTextBytes is taken. Errors: those of reading.
std::string read_program_text(const std::string& file, std::istream& in);

/// The module of a file in TVMScript; "-" reads `in`. Errors: those of reading and parsing.
ModuleRef read_program(const std::string& file, std::istream& in);

/// The words of options that may be given several times, each with several words between commas.
std::vector<std::string> listed_words(const std::vector<std::string>& given);

/// NAME=NUMBER, ... of an option; `refusal` says what it needs where a word is not of that form.
std::map<std::string, int64_t> named_numbers(const std::vector<std::string>& given, const Reason& refusal);

/// --bounds.
std::map<std::string, int64_t> bounds_of(const std::vector<std::string>& given);
/// Errors: a bound of a size that the program does not have.
void check_bounds(const std::map<std::string, int64_t>& bounds, const Module& program);

/// --each-pass. Errors: it is given without --debug-dump.
bool each_pass_of(bool given, const std::optional<std::string>& debug_dump);
inline constexpr const char* kEachPassHelp = "with --debug-dump: also after each pass, pass-001-NAME.py and so on";

/// How a rule scheduled a function, for --explain-schedule.
Json json_of(const rules::AppliedSchedule& schedule);

inline constexpr const char* kTargetHelp =
    "llvm, llvm -mcpu=..., native, portable, levels of instruction sets, cuda -arch=..., a tag as nvidia/nvidia-a100, "
    "a described chip, or JSON";

}  // namespace sator::cli
