// Every op that has a formula against NumPy: tests/graphs/reference/op_cases.jsonl, which the script beside it writes. The
// interpreter and machine code are held to the same figures.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "passes/run.h"
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
    const std::string call = j["call"];
    OpCase c{.op = call.substr(2, call.find('(') - 2), .call = call, .tolerance = j.value("tolerance", 2e-5)};
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

/// Whether the function calls tensor programs and none of the table's ops.
bool is_legal(const Module& module, const std::string& name) {
  bool has_op = false;
  walk(module.functions.at(name), [&](const relax::Op& op) { has_op |= has_formula(relax::op_named(op.name)); });
  return !has_op;
}

/// Whether the operator library of TVM gives NumPy's result: its maxima begin at the least finite number, and the position of a
/// maximum stays -1 where no element is greater than the least of its dtype. The gradient of nll_loss reads ignored classes. Halves are
/// rounded away from 0.
bool is_as_numpy(const OpCase& c) {
  if (c.op == "round") return false;
  const bool position = c.op == "argmax" || c.op == "argmin";
  if (c.op == "grad.nll_loss_backward") {
    const Tensor& targets = *c.inputs[2].as<Tensor>();
    for (int64_t i = 0; i < targets.num_elements(); ++i)
      if (element(targets, i) < 0) return false;
  }
  return std::ranges::all_of(c.inputs, [&](const Value& v) {
    const Tensor& t = *v.as<Tensor>();
    if (position && !t.dtype().is_float()) return false;
    for (int64_t i = 0; i < t.num_elements(); ++i)
      if (!std::isfinite(element(t, i))) return false;
    return true;
  });
}

class AgainstNumPy : public testing::TestWithParam<std::string> {};

/// Fails where `run` of the case's inputs gives something else than NumPy.
void compare(const char* who, const OpCase& c, FunctionRef<Value(const std::vector<Value>&)> run) {
  try {
    Value got = run(copies(c.inputs));
    if (auto differs = difference(c.expected, got, c.tolerance))
      ADD_FAILURE() << who << ", " << c.call << ": " << *differs << "\nNumPy: " << as_lines(c.expected)
                    << "here:  " << as_lines(got);
  } catch (const std::exception& e) {
    ADD_FAILURE() << who << ", " << c.call << ": " << e.what();
  }
}

TEST_P(AgainstNumPy, InterpreterAndMachineCode) {
  const std::vector<OpCase>& mine = cases().at(GetParam());
  ModuleRef module = relax::parse_module(module_of(mine));
  relax::GraphInterpreter interpreter(module);
  CompiledGraph compiled(module);
  for (size_t i = 0; i < mine.size(); ++i) {
    const std::string name = text("case_", i);
    compare("interpreter", mine[i], [&](const std::vector<Value>& args) { return interpreter.call(name, args); });
    compare("machine code", mine[i], [&](const std::vector<Value>& args) { return compiled.call(name, args); });
  }
}

/// What LegalizeOps makes of each op, in both of its forms, as the interpreter of tensor programs runs it.
TEST_P(AgainstNumPy, BothLegalForms) {
  const std::vector<OpCase>& mine = cases().at(GetParam());
  const ModuleRef module = relax::parse_module(module_of(mine));
  for (const char* form : {"", "topi"}) {
    passes::PassContext ctx;
    if (*form) ctx.config["LegalizeOps.form"] = string_imm(form);
    const ModuleRef legal = passes::run_pass(passes::pass_named("LegalizeOps"), module, ctx);
    relax::GraphInterpreter interpreter(legal);
    const std::string who = text("LegalizeOps", *form ? " in the form " : "", form);
    for (size_t i = 0; i < mine.size(); ++i) {
      const std::string name = text("case_", i);
      EXPECT_TRUE(is_legal(*legal, name)) << who << " leaves " << mine[i].call;
      if (*form && !is_as_numpy(mine[i])) continue;
      compare(who.c_str(), mine[i], [&](const std::vector<Value>& args) { return interpreter.call(name, args); });
    }
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
