// A command as a user runs it, with what it prints and writes.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "temp_folder.h"

namespace sator::cli {

struct CommandRun {
  int status = 0;
  std::string out, notes;
  nlohmann::json json;  // what --json writes
};

/// Runs a command of the program with these words and --json.
///   status  that it ends with
inline CommandRun run_command(std::vector<std::string> words, const TempFolder& folder, int status = 0) {
  const fs::path json = folder.path() / "command.json";
  words.insert(words.end(), {"--json", json.string()});
  std::istringstream in;
  std::ostringstream out, notes;
  CommandRun run{.status = run_app(words, command_table(), in, out, notes)};
  run.out = out.str(), run.notes = notes.str();
  EXPECT_EQ(run.status, status) << run.notes;
  if (fs::exists(json)) run.json = parse_json(read_file(json), json.string());
  return run;
}

}  // namespace sator::cli
