// Shows what becomes of a TVMScript function: codegen_show_bench FILE LEVEL [pass|lowered|ir|optimized|assembly]
// A pass is named as in the table of passes/lower; without one, each pass's output is shown where it changed something.
#include <cstdio>
#include <string>

#include "base/file.h"
#include "codegen/llvm.h"
#include "passes/lower/lower.h"
#include "tir/parse.h"
#include "tir/print.h"

using namespace sator;

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--json") return 0;  // no benchmark: it has nothing to measure
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s FILE LEVEL [PASS|lowered|ir|optimized|assembly]\n", argv[0]);
    return 1;
  }
  try {
    std::string what = argc > 3 ? argv[3] : "";
    tir::PrimFuncRef func = tir::parse_function(read_file(argv[1]), argv[1]);
    passes::LowerOptions options;
    options.note = [](const Reason& reason) { std::fprintf(stderr, "note: %s\n", reason.render().c_str()); };
    for (const passes::LowerPass& pass : passes::lower_passes()) {
      tir::PrimFuncRef next = pass.run(func, options);
      if (what == pass.name || (what.empty() && next != func))
        std::printf("# %s\n%s\n", std::string(pass.name).c_str(), tir::to_script(*next).c_str());
      func = next;
    }
    if (what == "lowered") std::puts(tir::to_script(*func).c_str());
    if (what == "ir" || what == "optimized" || what == "assembly") {
      codegen::Listing l = codegen::compile_listing(*func, "kernel", target::cpu_level(argv[2]));
      std::puts((what == "ir" ? l.ir : what == "optimized" ? l.optimized : l.assembly).c_str());
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
