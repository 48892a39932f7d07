#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "cli/suggest.h"
#include "engine/prompt.h"
#include "frontend/hf_config.h"

namespace sator::cli {

// The parts of an option's name: "-o,--output FOLDER" is flags "-o,--output" and value "FOLDER"; "MODEL" is only a value.
struct OptionName {
  std::string flags, value;
  explicit OptionName(const std::string& name) {
    size_t space = name.find(' ');
    flags = name.substr(0, space);
    if (space != std::string::npos) value = name.substr(space + 1);
  }
  bool positional() const { return flags[0] != '-'; }
};

static int64_t whole_number(const std::string& option, std::string_view word) {
  int64_t v = 0;
  const char* const last = word.data() + word.size();
  if (word.empty()) throw CLI::ValidationError(option, "a number is missing");
  if (auto [end, error] = std::from_chars(word.data(), last, v); error != std::errc() || end != last)
    throw CLI::ConversionError(text("not a whole number of 64 bits: ", word), option);
  return v;
}

// The whole numbers of a range, within 64 bits.
static std::string integers_of(const Range& range) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  const int64_t least = std::isinf(range.least) ? kLeast : static_cast<int64_t>(range.least) + range.beyond_least;
  return text("from ", least, " to ", std::isinf(range.most) ? kMost : static_cast<int64_t>(range.most));
}

// CLI11 reads an empty word as the number 0, one beyond 64 bits as the largest there is, and one that begins with 0 as octal.
static std::string mistake_of_number(const std::string& word, bool is_integer, const Range& range) {
  if (word.empty()) return "a number is missing";
  const size_t sign = word[0] == '+' ? 1 : 0;
  const std::string_view digits = std::string_view(word).substr(word[0] == '+' || word[0] == '-' ? 1 : 0);
  if (is_integer && digits.size() > 1 && digits[0] == '0') return text(word, " is no number in decimal digits");
  int64_t v = 0;
  const auto [end, error] = std::from_chars(word.data() + sign, word.data() + word.size(), v);
  if (!is_integer || error != std::errc::result_out_of_range) return "";
  return text(word, " is not ", integers_of(range));
}

// Hands a slot to the CLI11 call for its type.
struct SlotBinder {
  CLI::App& app;
  const std::string &flags, &help;
  CLI::Option* operator()(bool* v) const { return app.add_flag(flags, *v, help); }
  CLI::Option* operator()(std::vector<std::string>* v) const { return list(app.add_option(flags, *v, help)); }
  CLI::Option* operator()(std::vector<int64_t>* v) const {
    // CLI11's own delimiter leaves out what is empty between commas.
    return list(app.add_option_function<std::vector<std::string>>(
        flags,
        [name = flags, v](const std::vector<std::string>& words) {
          v->clear();
          for (const std::string& word : words)
            for (std::string_view part : split(word, ',')) v->push_back(whole_number(name, trim(part)));
        },
        help));
  }
  template <class T>
  CLI::Option* operator()(std::optional<T>* v) const {
    return app.add_option(flags, *v, help);
  }
  template <class T>
  CLI::Option* operator()(T* v) const {
    return app.add_option(flags, *v, help)->capture_default_str();
  }
  // One value each time the option is given, so that a positional argument may follow; a positional list takes the rest.
  CLI::Option* list(CLI::Option* option) const { return option->allow_extra_args(flags[0] != '-'); }
};

// Adds the option and returns its default value as text, empty if there is none to speak of.
static std::string add_option(CLI::App& app, const Option& option) {
  OptionName name(option.name);
  CLI::Option* bound = std::visit(SlotBinder{app, name.flags, option.help}, option.into);
  bound->required(option.required);
  const Slot& into = option.into;
  const bool is_integer =
      std::holds_alternative<int64_t*>(into) || std::holds_alternative<std::optional<int64_t>*>(into);
  const bool is_real = std::holds_alternative<double*>(into) || std::holds_alternative<std::optional<double>*>(into);
  if (is_integer || is_real || std::holds_alternative<std::vector<int64_t>*>(into))
    bound->check([is_integer, range = option.range.value_or(Range{})](const std::string& word) {
      return mistake_of_number(word, is_integer, range);
    });
  if (!option.choices.empty()) bound->check(CLI::IsMember(option.choices));
  return bound->get_default_str();
}

// The names by which options may be given: for the hint after a misspelled one.
static std::vector<KnownName> option_names(const Command& command) {
  std::vector<KnownName> names = {{"--help", {}}, {"--json", {}}};
  for (const Option& option : command.options) {
    const OptionName name(option.name);
    for (std::string_view flag : split(name.flags, ','))
      if (flag.starts_with("-")) names.push_back({std::string(flag), option.also});
  }
  return names;
}

// The numbers that an option was given, or has by default.
static std::vector<double> numbers_of(const Slot& into) {
  struct Reader {
    std::vector<double> operator()(const int64_t* v) const { return {static_cast<double>(*v)}; }
    std::vector<double> operator()(const double* v) const { return {*v}; }
    std::vector<double> operator()(const std::optional<int64_t>* v) const {
      return *v ? std::vector<double>{static_cast<double>(**v)} : std::vector<double>{};
    }
    std::vector<double> operator()(const std::optional<double>* v) const {
      return *v ? std::vector<double>{**v} : std::vector<double>{};
    }
    std::vector<double> operator()(const std::vector<int64_t>* v) const { return {v->begin(), v->end()}; }
    std::vector<double> operator()(const void*) const { return {}; }
  };
  return std::visit([](auto* v) { return Reader{}(v); }, into);
}

static std::string number_words(double v) {
  return v == std::floor(v) && std::abs(v) < 1e15 ? text(static_cast<int64_t>(v)) : text(v);
}

static std::string words_of(const Range& range) {
  if (std::isinf(range.most)) return text(range.beyond_least ? "more than " : "at least ", number_words(range.least));
  return text(range.beyond_least ? "above " : "from ",
              number_words(range.least),
              range.beyond_least ? ", at most " : " to ",
              number_words(range.most));
}

// The one place that looks at numbers: each option states its range.
static void check_range(const Option& option, const std::string& default_value) {
  if (!option.range) return;
  const Range& range = *option.range;
  for (double v : numbers_of(option.into)) {
    if (std::isfinite(v) && v >= range.least && v <= range.most && !(range.beyond_least && v == range.least)) continue;
    const OptionName name(option.name);
    const std::string flag(split(name.flags, ',').back());
    fail({.what = text(flag, " ", number_words(v)),
          .needs = words_of(range),
          .hint = option.required         ? "correct the value"
                  : default_value.empty() ? text("leave ", flag, " out for its default")
                                          : text("leave it out for ", default_value)});
  }
}

static std::string usage(const std::string& called, const Command& command) {
  std::string line = called;
  for (const Option& option : command.options)
    if (OptionName name(option.name); name.positional())
      line += option.required ? " " + option.name : " [" + option.name + "]";
    else if (option.required)
      line += " " + option.name + (option.instead.empty() ? "" : "|" + option.instead);
  return line + " [OPTIONS]";
}

// The text of `--help`. `defaults` has one entry per option.
static std::string help(const std::string& called, const Command& command, const std::vector<Option>& options,
                        const std::vector<std::string>& defaults) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (size_t i = 0; i < options.size(); ++i) {
    OptionName name(options[i].name);
    std::string about = options[i].help;
    if (!options[i].choices.empty()) about += text(": ", join(options[i].choices, ", "));
    if (!defaults[i].empty()) about += text(" [", defaults[i], "]");
    rows.emplace_back(join(split(name.flags, ','), ", ") + (name.value.empty() ? "" : " " + name.value), about);
  }
  rows.emplace_back("-h, --help", "print this");
  size_t width = 0;
  for (const auto& [name, about] : rows) width = std::max(width, name.size());
  std::string out = text(called, ": ", command.does, "\n\nusage: ", usage(called, command), "\n\n");
  for (const auto& [name, about] : rows)
    out += text("  ", name, std::string(width + 2 - name.size(), ' '), about, "\n");
  if (!command.details.empty()) out += text("\n", command.details, "\n");
  return out;
}

// An option of words that has none yet, and takes what stands where nothing is expected: "generate MODEL Once upon" lacks --prompt.
static const Option* missing_text(const Command& command) {
  for (const Option& option : command.options)
    if (option.required && !OptionName(option.name).positional() && option.name.ends_with(" TEXT")) return &option;
  return nullptr;
}

[[noreturn]] static void fail_usage(const std::string& called, const Command& command,
                                    const std::vector<std::string>& left, const CLI::ParseError& error) {
  Reason reason{.what = text(called, ": ", error.what()),
                .needs = usage(called, command),
                .hint = text("`", called, " --help` lists the options")};
  // A required option may be missing because its name was misspelled.
  const std::vector<KnownName> known = option_names(command);
  for (const std::string& arg : left) {
    const std::string name = arg.substr(0, arg.find('='));
    const bool is_known = std::ranges::any_of(known, [&](const KnownName& k) { return k.name == name; });
    if (!name.starts_with("-") || name == "-" || is_known) continue;
    reason.what = text(called, " has no option ", name);
    reason.hint = did_you_mean(meant_names(name, known), reason.hint);
    fail(std::move(reason));
  }
  const Option* lacks = missing_text(command);
  if (lacks && reason.what.find(std::string(OptionName(lacks->name).flags)) != std::string::npos)
    reason.hint = text(OptionName(lacks->name).flags,
                       " ",
                       left.empty() ? "TEXT" : string_literal(join(left, " ")),
                       ", or ",
                       OptionName(lacks->name).flags,
                       " - to read it from standard input");
  fail(std::move(reason));
}

// An option of one value that is given several times.
static void refuse_repeated(const CLI::App& app, const std::vector<Option>& options) {
  for (const Option& option : options) {
    const bool is_list = std::holds_alternative<std::vector<std::string>*>(option.into) ||
                         std::holds_alternative<std::vector<int64_t>*>(option.into);
    const OptionName name(option.name);
    if (is_list || std::holds_alternative<bool*>(option.into) || name.positional()) continue;
    const std::string flag(split(name.flags, ',').back());
    if (const size_t times = app.get_option(flag)->count(); times > 1)
      fail({.what = text(flag, " is given ", times, " times"),
            .needs = text(flag, " at most once"),
            .hint = "keep the one that is meant"});
  }
}

// A required option that another one replaces: exactly one of the two is given.
static void replace_required(std::vector<Option>& options, const std::vector<std::string>& args) {
  auto is_given = [&](std::string_view flag) {
    return std::ranges::any_of(args, [&](const std::string& arg) { return arg.substr(0, arg.find('=')) == flag; });
  };
  for (Option& option : options) {
    if (option.instead.empty()) continue;
    const std::string flag(OptionName(option.name).flags), other(split(option.instead, ' ')[0]);
    if (!is_given(other)) continue;
    if (is_given(flag))
      fail({.what = text(flag, " beside ", other), .needs = "one of the two", .hint = "leave one out"});
    option.required = false;
  }
}

// The words of a command line that no option takes: CLI11 tells of them only where nothing else is wrong.
static std::vector<std::string> unread_words(const Command& command, const std::vector<std::string>& args) {
  size_t places = 0;
  for (const Option& option : command.options) places += OptionName(option.name).positional();
  std::vector<std::string> left;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool is_name = args[i].starts_with("-") && args[i] != "-";
    if (!is_name) {
      if (places > 0)
        --places;
      else
        left.push_back(args[i]);
      continue;
    }
    const std::string name = args[i].substr(0, args[i].find('='));
    const Option* option = nullptr;
    for (const Option& o : command.options) {
      const OptionName names(o.name);
      const auto flags = split(names.flags, ',');
      if (std::ranges::find(flags, name) != flags.end()) option = &o;
    }
    const bool takes_value = name == "--json" || (option && !std::holds_alternative<bool*>(option->into));
    if (!option && name != "--json" && name != "--help") left.push_back(args[i]);
    if (takes_value && name == args[i]) ++i;
  }
  return left;
}

/// The texts that an option was given.
static std::vector<std::string> texts_of(const Option& option) {
  if (auto* one = std::get_if<std::string*>(&option.into)) return {**one};
  if (auto* some = std::get_if<std::optional<std::string>*>(&option.into))
    return **some ? std::vector{***some} : std::vector<std::string>{};
  if (auto* all = std::get_if<std::vector<std::string>*>(&option.into)) return **all;
  return {};
}

/// The files that an argument stands for: itself, and of a model or an adapter those that it is read from. A folder's other files, as results of
/// an earlier run, are not read.
static std::vector<fs::path> files_of(const fs::path& argument) {
  std::error_code error;  // texts that are no paths stand for none
  std::vector<fs::path> files = {argument};
  const bool is_folder = fs::is_directory(argument, error);
  if (!is_folder && !(is_model_file(argument) && fs::is_regular_file(argument, error))) return files;
  const fs::path parent = argument.has_parent_path() ? argument.parent_path() : fs::path(".");
  for (const fs::directory_entry& entry : fs::directory_iterator(is_folder ? argument : parent, error))
    if (is_model_file(entry.path()) && entry.path() != argument) files.push_back(entry.path());
  return files;
}

/// Whether a file has a name that models are read by, in a folder that an argument is.
static bool is_of_model_in(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  const fs::path parent = file.has_parent_path() ? file.parent_path() : fs::path(".");
  return is_model_file(file) && fs::weakly_canonical(parent, error) == fs::weakly_canonical(folder, error);
}

/// What is written must not be what another argument names, to read or to write it, nor a file of a model in a folder that one names.
static void require_other_files(const std::vector<Option>& options) {
  std::error_code error;  // texts that are no paths are none of these
  auto keeps = [&](const fs::path& path) { return fs::is_regular_file(path, error) || fs::is_directory(path, error); };
  auto is_same = [&](const fs::path& a, const fs::path& b) {
    return fs::equivalent(a, b, error) || fs::weakly_canonical(a, error) == fs::weakly_canonical(b, error);
  };
  auto flag_of = [](const Option& option) {
    const std::string flags = OptionName(option.name).flags;
    return flags.substr(0, flags.find(','));
  };
  for (const Option& out : options) {
    if (!out.writes) continue;
    for (const std::string& file : texts_of(out)) {
      if (file.empty() || (fs::exists(file, error) && !keeps(file))) continue;  // a device may be named twice
      for (const Option& other : options)
        for (const std::string& argument : &other == &out ? std::vector<std::string>() : texts_of(other))
          for (const fs::path& kept : other.writes ? std::vector<fs::path>{argument} : files_of(argument))
            if (((other.writes || keeps(kept)) && is_same(file, kept)) ||
                ((other.writes_into || fs::is_directory(kept, error)) && is_of_model_in(file, kept)))
              fail({.what = text(flag_of(out),
                                 " ",
                                 file,
                                 is_same(file, kept)       ? " would replace "
                                 : fs::exists(file, error) ? " would replace a file of the model in "
                                                           : " would be a file of the model in ",
                                 kept.string(),
                                 other.writes        ? text(", which ", flag_of(other), " writes too")
                                 : other.writes_into ? text(", where ", flag_of(other), " writes")
                                                     : ", which is read"),
                    .needs = "a file of its own",
                    .hint = "take another name, or another ending"});
    }
  }
}

// `called` is how the user named the command: "sator version".
static void run_command(const std::string& called, const Command& command, const std::vector<std::string>& args,
                        std::istream& in, std::ostream& out, std::ostream& notes) {
  CLI::App app;
  std::string json_path;
  std::vector<Option> options = command.options;
  replace_required(options, args);
  options.push_back({.name = "--json FILE",
                     .help = "also write the results to this file as JSON",
                     .into = &json_path,
                     .writes = true});
  std::vector<std::string> defaults;
  for (const Option& option : options) defaults.push_back(add_option(app, option));
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::CallForHelp&) {
    out << help(called, command, options, defaults);
    return;
  } catch (const CLI::ParseError& error) {
    refuse_repeated(app, options);
    fail_usage(called, command, unread_words(command, args), error);
  }
  for (size_t i = 0; i < options.size(); ++i) check_range(options[i], defaults[i]);
  require_other_files(options);
  nlohmann::json json;
  Streams streams{.in = in, .out = out, .notes = notes, .json = json};
  command.run(streams);
  if (!json_path.empty())
    write_file(json_path, json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  if (streams.shortfall) fail(std::move(*streams.shortfall));
}

static std::string overview(const std::vector<Command>& commands) {
  size_t width = 0;
  for (const Command& command : commands) width = std::max(width, command.name.size());
  std::string out =
      version_line() + ": compiles language models, runs them, and tells what they would cost on another chip\n\n";
  out += "usage: sator COMMAND [OPTIONS]\n\n";
  for (const Command& command : commands)
    out += text("  ", command.name, std::string(width + 2 - command.name.size(), ' '), command.does, "\n");
  return out + "\n`sator COMMAND --help` lists a command's options.\n";
}

void dispatch(const std::vector<std::string>& args, const std::vector<Command>& commands, std::istream& in,
              std::ostream& out, std::ostream& notes) {
  if (args.size() == 2 && args[0] == "help") return dispatch({args[1], "--help"}, commands, in, out, notes);
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    out << overview(commands);
    return;
  }
  if (args[0] == "--version") {
    out << version_line() << "\n";
    return;
  }
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.name == args[0])
      return run_command("sator " + command.name, command, {args.begin() + 1, args.end()}, in, out, notes);
    names.push_back(command.name);
  }
  std::vector<KnownName> known;
  for (const Command& command : commands) known.push_back({command.name, command.also});
  fail({.what = text("sator has no command ", args[0]),
        .needs = text("one of ", join(names, ", ")),
        .hint = did_you_mean(meant_names(args[0], known), "`sator --help` says what each does")});
}

// Runs `work` and turns whatever it throws into words and an exit status.
template <class Work>
static int guarded(std::ostream& out, std::ostream& notes, const Work& work) {
  auto end = [&](const Reason& reason) {
    out.flush();
    notes << reason.render() << std::endl;
    return kUserMistake;
  };
  try {
    work();
    if (!out.flush())
      fail({.what = "standard output could not be written",
            .needs = "a destination that takes all of the output",
            .hint = "is the disk full, or has the reader gone?"});
    return kSuccess;
  } catch (const Error& error) {
    return end(error.reason);
  } catch (const std::bad_alloc&) {
    out.flush();
    notes << kMemoryRanOut << std::flush;
    return kUserMistake;
  } catch (const std::filesystem::filesystem_error& error) {
    return end({.what = error.what(),
                .needs = "files and folders that this user may use",
                .hint = "check the path and its permissions"});
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again)
      return end({.what = "no further thread can be started",
                  .needs = "memory, and leave, for one thread per core",
                  .hint = "close other programs, raise the limits (`ulimit -u`, `ulimit -v`), or give --threads 1"});
    notes << "internal error: " << error.what() << std::endl;
  } catch (const InternalError& error) {
    notes << error.what() << std::endl;
  } catch (const std::exception& error) {
    notes << "internal error: " << error.what() << std::endl;
  }
  return kOurMistake;
}

std::string standard_input(Streams& io) {
  return read_text(io.in, "standard input", "a text: - reads it from there", "echo 'Once upon a time' | sator ...");
}

int run_app(const std::vector<std::string>& args, const std::vector<Command>& commands, std::istream& in,
            std::ostream& out, std::ostream& notes) {
  return guarded(out, notes, [&] { dispatch(args, commands, in, out, notes); });
}

int run_single(const std::vector<std::string>& args, const Command& command, std::istream& in, std::ostream& out,
               std::ostream& notes) {
  return guarded(out, notes, [&] { run_command(command.name, command, args, in, out, notes); });
}

}  // namespace sator::cli
