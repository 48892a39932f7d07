#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "runtime/abi.h"

namespace sator::cli {

#ifdef __clang__
static constexpr const char* kCompiler = "Clang " __clang_version__;
#else
static constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

std::string version_line() { return "sator " SATOR_VERSION; }

Command version_command() {
  return {
      .name = "version",
      .does = "prints the version of the program and of the model libraries it loads",
      .options = {},
      .run =
          [](Streams& io) {
            io.json = {{"version", SATOR_VERSION}, {"model_library_abi", SATOR_ABI_VERSION}, {"compiler", kCompiler}};
            io.out << text(
                version_line(), "\n", "model library ABI ", SATOR_ABI_VERSION, "\n", "built by ", kCompiler, "\n");
          },
  };
}

}  // namespace sator::cli
