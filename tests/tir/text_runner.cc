#include <charconv>
#include <cstring>
#include <memory>

#include "base/float16.h"
#include "base/text.h"
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

double read_element(const uint8_t* p, DType d) {
  auto as = [&]<class T>(T) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
  };
  if (d == f32) return as(float());
  if (d == f64) return as(double());
  if (d.is_bfloat()) return bf16_to_f32(as(uint16_t()));
  if (d.is_float()) return f16_to_f32(as(uint16_t()));
  switch (d.element_bytes()) {
    case 1: return d.is_int() ? static_cast<double>(as(int8_t())) : static_cast<double>(as(uint8_t()));
    case 2: return d.is_int() ? static_cast<double>(as(int16_t())) : static_cast<double>(as(uint16_t()));
    case 4: return d.is_int() ? static_cast<double>(as(int32_t())) : static_cast<double>(as(uint32_t()));
    default: return static_cast<double>(as(int64_t()));
  }
}

void write_element(uint8_t* p, double v, DType d) {
  auto put = [&](auto x) { std::memcpy(p, &x, sizeof x); };
  if (d == f32)
    put(static_cast<float>(v));
  else if (d == f64)
    put(v);
  else if (d.is_bfloat())
    put(f32_to_bf16(static_cast<float>(v)));
  else if (d.is_float())
    put(f32_to_f16(static_cast<float>(v)));
  else if (d.element_bytes() == 1)
    put(static_cast<uint8_t>(static_cast<int64_t>(v)));
  else if (d.element_bytes() == 2)
    put(static_cast<uint16_t>(static_cast<int64_t>(v)));
  else if (d.element_bytes() == 4)
    put(static_cast<uint32_t>(static_cast<int64_t>(v)));
  else
    put(static_cast<int64_t>(v));
}

double number(std::string_view s) { return std::stod(std::string(s)); }

struct NamedArray {
  std::string name;
  tir::ArrayView view;
  std::vector<uint8_t> bytes;
};

/// "A float32[2, 3]"
std::unique_ptr<NamedArray> parse_array(std::string_view head, std::string_view values) {
  auto out = std::make_unique<NamedArray>();
  size_t space = head.find(' '), open = head.find('['), close = head.find(']');
  if (space == head.npos || open == head.npos || close == head.npos)
    fail({.what = text("cannot read the argument ", string_literal(head)),
          .needs = "NAME dtype[extents] = values",
          .hint = "correct the line"});
  out->name = std::string(head.substr(0, space));
  out->view.dtype = DType::parse(trim(head.substr(space, open - space))).value();
  int64_t count = 1;
  for (std::string_view extent : split(head.substr(open + 1, close - open - 1), ',')) {
    if (trim(extent).empty()) continue;
    out->view.shape.push_back(static_cast<int64_t>(number(trim(extent))));
    count *= out->view.shape.back();
  }
  int64_t size = out->view.dtype.bytes();
  out->bytes.resize(static_cast<size_t>(count * size));
  std::vector<double> numbers;
  for (std::string_view word : split(values, ' ')) {
    if (!word.empty()) numbers.push_back(number(word));
  }
  out->view.is_initialised = !numbers.empty();
  for (int64_t i = 0; i < count && !numbers.empty(); ++i)
    write_element(out->bytes.data() + i * size,
                  numbers.size() == 1 ? numbers[0] : numbers.at(static_cast<size_t>(i)),
                  out->view.dtype);
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
      arrays.push_back(parse_array(trim(line.substr(0, equals)), equals == line.npos ? "" : line.substr(equals + 1)));
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
