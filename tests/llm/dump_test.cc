// The program of a model after each phase, as text: parsed back it is the same program.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "llm/open.h"
#include "reference_data.h"
#include "relax/parse.h"
#include "relax/print.h"

namespace sator::llm {
namespace {

void expect_parses_back(const ModuleRef& module, const std::string& what) {
  std::string printed = relax::to_script(*module);
  ModuleRef again;
  try {
    again = relax::parse_module(printed);
  } catch (const Error& e) {
    FAIL() << what << "\n" << e.what();
  }
  EXPECT_EQ(relax::to_script(*again), printed) << what;
  for (const auto& [name, func] : module->functions) {
    auto at = again->functions.find(name);
    ASSERT_NE(at, again->functions.end()) << what << ": " << name;
    EXPECT_TRUE(equal(func, at->second)) << what << ": " << name;
  }
  EXPECT_TRUE(equal(module, again)) << what;
}

void expect_all_phases_parse_back(const fs::path& folder, const std::string& scheme) {
  const Program program = program_of(folder, {.scheme = parse_scheme(scheme)});
  const std::string what = folder.filename().string() + " " + scheme;
  expect_parses_back(program.module, what + " before phase 0");
  driver::CompileOptions options{.bounds = {{"seq_len", program.limits.prefill_chunk}}};
  ModuleRef module = program.module;
  for (const driver::Phase& phase : driver::backend_of(options.target).phases) {
    if (phase.number > 2) break;
    module = driver::run_phase(phase, module, {.bounds = options.bounds, .target = options.target});
    expect_parses_back(module, text(what, " after phase ", phase.number));
  }
  driver::Compiled compiled = driver::compile(program.module, options);
  expect_parses_back(compiled.phase3, what + " after phase 3");
  expect_parses_back(compiled.scheduled, what + " after phase 4");
  expect_parses_back(compiled.final, what + " after phase 5");
}

fs::path tiny(const std::string& name) { return reference_data("models/tiny/" + name); }

TEST(Dump, Gpt2) { expect_all_phases_parse_back(tiny("gpt2-a"), "f32"); }
TEST(Dump, Llama) { expect_all_phases_parse_back(tiny("llama-a"), "f32"); }
TEST(Dump, QuantizedWeights) { expect_all_phases_parse_back(tiny("llama-a"), "int4-group32"); }
TEST(Dump, QuantizedActivations) { expect_all_phases_parse_back(tiny("gpt2-a"), "int8-channel+a8"); }
TEST(Dump, Example) {
  expect_all_phases_parse_back(fs::path(SATOR_SOURCE_DIR) / "examples" / "gpt2-stories", "int4-group32+a8");
}

}  // namespace
}  // namespace sator::llm
