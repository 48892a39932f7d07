#include <memory>

#include "base/text.h"
#include "support/arrays.h"
#include "support/runners.h"
#include "tir/interp.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir/verify.h"

namespace sator::test {

namespace {

std::string print(const ModuleRef& module, bool is_class) {
  if (is_class) return tir::to_script(*module);
  return tir::to_script(*module->functions.begin()->second.as<tir::PrimFunc>());
}

double number(std::string_view s) { return std::stod(std::string(s)); }

struct NamedArray {
  std::string name;
  tir::ArrayView view;
  std::vector<uint8_t> bytes;
};

std::unique_ptr<NamedArray> named_array(std::string_view line) {
  ArrayLine parsed = parse_array_line(line);
  auto out = std::make_unique<NamedArray>();
  out->name = parsed.name;
  out->view.dtype = parsed.dtype;
  out->view.shape = parsed.shape;
  int64_t count = 1, size = parsed.dtype.bytes();
  for (int64_t extent : parsed.shape) count *= extent;
  out->bytes.resize(static_cast<size_t>(count * size));
  out->view.is_initialised = !parsed.values.empty();
  for (int64_t i = 0; i < count && !parsed.values.empty(); ++i)
    write_element(out->bytes.data() + i * size,
                  parsed.values.size() == 1 ? parsed.values[0] : parsed.values[static_cast<size_t>(i)],
                  parsed.dtype);
  out->view.data = out->bytes.data();
  return out;
}

}  // namespace

std::string run_tir_print(const TestCase& test) {
  const std::string& program = test.text("program");
  bool is_class = program.find("class ") != program.npos;
  ModuleRef module = tir::parse_module(program);
  std::string once = print(module, is_class);
  ModuleRef again = tir::parse_module(once);
  std::string twice = print(again, is_class);
  if (twice != once)
    fail({.what = "the printed program prints differently when it is parsed again:\n" + line_difference(once, twice)});
  const Func &before = module->functions.begin()->second, &after = again->functions.begin()->second;
  if (is_class ? !equal(module, again) : !equal(before, after))
    fail({.what = "the printed program parses to another one:\n" + once});
  return once;
}

std::string run_tir_verify(const TestCase& test) {
  std::string out;
  for (const Reason& r : tir::verify(*tir::parse_function(test.text("program"), "", {.verify = false})))
    out += r.what + "\n";
  return out.empty() ? "well formed" : out;
}

std::string run_tir_run(const TestCase& test) {
  tir::PrimFuncRef func = tir::parse_function(test.text("program"));
  std::vector<std::unique_ptr<NamedArray>> arrays;
  std::vector<tir::Argument> args;
  tir::BlockCounts counts;
  tir::RunOptions options;
  options.max_iterations = 1'000'000;
  for (std::string_view line : split(test.text("run"), '\n')) {
    line = trim(line);
    size_t equals = line.find('=');
    if (line.empty()) continue;
    if (line == "count") {
      options.counts = &counts;
    } else if (line == "detect_uninitialised") {
      options.detect_uninitialised = true;
    } else if (line == "detect_races") {
      options.detect_races = true;
    } else if (line.find('[') == line.npos) {
      double v = number(trim(line.substr(equals + 1)));
      if (func->params.at(args.size())->dtype.is_float())
        args.emplace_back(v);
      else
        args.emplace_back(static_cast<int64_t>(v));
    } else {
      arrays.push_back(named_array(line));
      args.emplace_back(arrays.back()->view);
    }
  }
  tir::Interpreter(func).run(args, options);
  std::string out;
  for (const auto& a : arrays) {
    out += a->name + " =";
    int64_t size = a->view.dtype.bytes();
    for (size_t at = 0; at < a->bytes.size(); at += static_cast<size_t>(size))
      out += text(" ", read_element(a->bytes.data() + at, a->view.dtype));
    out += "\n";
  }
  for (const auto& [name, count] : counts)
    out += text(
        "block ", string_literal(name), ": ", count.instances, " instances, ", count.multiply_adds, " multiply-adds\n");
  return out;
}

}  // namespace sator::test
