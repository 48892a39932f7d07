// Every op that has a formula against NumPy: tests/graphs/reference/op_cases.jsonl, which the script beside it writes. The
// interpreter and machine code are held to the same figures.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "relax/ops/table.h"
#include "relax/parse.h"
#include "support/arrays.h"
#include "support/graphs.h"

namespace sator::test {
namespace {

using runtime::Tensor;
using runtime::Value;

struct OpCase {
  std::string op, call;
  std::vector<Value> inputs;
  Value expected;
  double tolerance = 0;
};

Value tensor_of(const nlohmann::json& array) {
  auto shape = array[1].get<std::vector<int64_t>>();
  Ref<Tensor> t =
      Tensor::empty(runtime::Dims(std::span<const int64_t>(shape)), *DType::parse(array[0].get<std::string>()));
  for (int64_t i = 0; i < t->num_elements(); ++i) {
    const nlohmann::json& v = array[2][static_cast<size_t>(i)];
    set_element(*t, i, v.is_string() ? std::stod(v.get<std::string>()) : v.get<double>());
  }
  return t;
}

std::map<std::string, std::vector<OpCase>> read_cases() {
  std::map<std::string, std::vector<OpCase>> out;
  std::ifstream file(SATOR_SOURCE_DIR "/tests/graphs/reference/op_cases.jsonl");
  for (std::string line; std::getline(file, line);) {
    nlohmann::json j = nlohmann::json::parse(line);
    OpCase c{.op = j["op"], .call = j["call"], .tolerance = j["tolerance"]};
    for (const nlohmann::json& array : j["in"]) c.inputs.push_back(tensor_of(array));
    std::vector<Value> outputs;
    for (const nlohmann::json& array : j["out"]) outputs.push_back(tensor_of(array));
    c.expected = outputs.size() == 1 ? outputs[0] : Value(runtime::Tuple::of(outputs));
    out[c.op].push_back(std::move(c));
  }
  return out;
}

const std::map<std::string, std::vector<OpCase>>& cases() {
  static const auto all = read_cases();
  return all;
}

/// A function case_0, case_1, ... per case.
std::string module_of(const std::vector<OpCase>& cases) {
  std::string out = "@I.ir_module\nclass Module:\n";
  for (size_t i = 0; i < cases.size(); ++i) {
    std::string params;
    for (size_t k = 0; k < cases[i].inputs.size(); ++k) {
      const Tensor& t = *cases[i].inputs[k].as<Tensor>();
      std::string shape;
      for (int64_t extent : t.shape()) shape += text(extent, ", ");
      params += text(k ? ", " : "", "x", k, ": R.Tensor((", shape, "), \"", t.dtype(), "\")");
    }
    out += text(
        "    @R.function\n    def case_", i, "(", params, "):\n        gv = ", cases[i].call, "\n        return gv\n");
  }
  return out;
}

bool has_formula(const relax::OpDef& op) { return op.has_formula() || op.name == "linear"; }

TEST(OpCases, EveryOpWithAFormulaHasFiveShapes) {
  for (const relax::OpDef& op : relax::op_table()) {
    auto at = cases().find(op.name);
    size_t count = at == cases().end() ? 0 : at->second.size();
    if (has_formula(op)) {
      EXPECT_GE(count, 5u) << op.name << " needs cases in tests/graphs/reference/op_cases.py";
    }
  }
}

class AgainstNumPy : public testing::TestWithParam<std::string> {};

TEST_P(AgainstNumPy, InterpreterAndMachineCode) {
  const std::vector<OpCase>& mine = cases().at(GetParam());
  ModuleRef module = relax::parse_module(module_of(mine));
  relax::GraphInterpreter interpreter(module);
  CompiledGraph compiled(module);
  for (size_t i = 0; i < mine.size(); ++i) {
    const OpCase& c = mine[i];
    const std::string name = text("case_", i);
    auto compare = [&](const char* who, auto&& run) {
      try {
        Value got = run(copies(c.inputs));
        if (auto differs = difference(c.expected, got, c.tolerance))
          ADD_FAILURE() << who << ", " << c.call << ": " << *differs << "\nNumPy: " << as_lines(c.expected)
                        << "here:  " << as_lines(got);
      } catch (const std::exception& e) {
        ADD_FAILURE() << who << ", " << c.call << ": " << e.what();
      }
    };
    compare("interpreter", [&](const std::vector<Value>& args) { return interpreter.call(name, args); });
    compare("machine code", [&](const std::vector<Value>& args) { return compiled.call(name, args); });
  }
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, list] : cases()) out.push_back(name);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Ops, AgainstNumPy, testing::ValuesIn(names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace sator::test
