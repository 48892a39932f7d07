// Text tests of what graphs compute: tensors in, tensors out, by the interpreter and by machine code.
#include "relax/parse.h"
#include "support/arrays.h"
#include "support/graphs.h"
#include "support/runners.h"

namespace sator::test {

std::string run_evaluate(const TestCase& test) {
  const ModuleRef module = relax::parse_module(test.text("program"), "program");
  std::vector<runtime::Value> args;
  for (std::string_view line : split(test.text("evaluate"), '\n')) {
    if (trim(line).empty()) continue;
    ArrayLine parsed = parse_array_line(trim(line));
    auto tensor = runtime::Tensor::empty(runtime::Dims(std::span<const int64_t>(parsed.shape)), parsed.dtype);
    for (int64_t i = 0; i < tensor->num_elements(); ++i)
      set_element(*tensor, i, parsed.values.size() == 1 ? parsed.values[0] : parsed.values.at(static_cast<size_t>(i)));
    args.emplace_back(tensor);
  }
  const runtime::Value meant = relax::GraphInterpreter(module).call("main", copies(args));
  const runtime::Value ran = CompiledGraph(module).call("main", args);
  std::string out = as_lines(meant);
  if (auto differs = difference(meant, ran)) out += "machine code: " + *differs + "\n" + as_lines(ran);
  return out;
}

}  // namespace sator::test
