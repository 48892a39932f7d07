#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"

namespace sator::cli {

/// Where the value of an option goes. A bool is a flag and takes no value. A list of strings takes one value each time the
/// option is given; a list of integers also takes them separated by commas. An optional stays empty unless given.
using Slot = std::variant<bool*, int64_t*, double*, std::string*, std::optional<int64_t>*, std::optional<double>*,
                          std::optional<std::string>*, std::vector<std::string>*, std::vector<int64_t>*>;

/// The numbers that an option takes, the limits among them unless `beyond_least`.
struct Range {
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  bool beyond_least = false;
};
inline Range at_least(double least) { return {.least = least}; }
inline Range above(double limit) { return {.least = limit, .beyond_least = true}; }
inline Range between(double least, double most) { return {.least = least, .most = most}; }

/// One option or positional argument of a command. What the slot holds before is the default, and help shows it.
///   name      "MODEL" takes its value by position; "--max-tokens N", "-o,--output FOLDER", "--greedy" by name
///   choices   the values allowed; empty if any is
///   range     of a number, or of each number of a list; every option of numbers states one
///   instead   another option that fills the place of a required one; both at once are refused
///   writes    a file that the command writes: no other argument may name it
///   writes_into   a folder that it writes a model's weights to; which one may be, it says itself
///   also      what it is called elsewhere, or by those who misremember: proposed, not accepted
struct Option {
  std::string name;
  std::string help;
  Slot into;
  bool required = false;
  std::vector<std::string> choices = {};
  std::optional<Range> range = {};
  std::vector<std::string> also = {};
  std::string instead = {};
  bool writes = false, writes_into = false;
};

/// What a running command reads and writes.
struct Streams {
  std::istream& in;
  std::ostream& out;                     ///< results: standard output
  std::ostream& notes;                   ///< progress and remarks: standard error
  nlohmann::json& json;                  ///< what `--json FILE` writes once the command has ended without an error
  std::optional<Reason> shortfall = {};  ///< why the results are not what was asked for: an error once they are written
};

/// One command of the program: a row of table.cc. The options point into values that `run` owns as well.
/// `--help` and `--json FILE` belong to every command and are not listed.
struct Command {
  std::string name;
  std::string does;  ///< one line, beginning with a verb: "splits text into token ids"
  std::vector<Option> options;
  std::function<void(Streams&)> run;
  std::string details = {};            ///< further help, shown after the options
  std::vector<std::string> also = {};  ///< what it is called elsewhere: proposed, not accepted
};

}  // namespace sator::cli
