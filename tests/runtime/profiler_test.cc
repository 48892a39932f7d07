#include "runtime/profiler.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/executable_builder.h"

namespace sator::runtime {
namespace {

using Json = nlohmann::json;

CallRecord record(const char* name, std::vector<CallRecord::Argument> arguments, double us) {
  CallRecord r;
  r.function = name;
  r.caller = "decode";
  r.annotation = "layers.0";
  r.values = {{"n", 5}};
  r.arguments = std::move(arguments);
  r.duration_us = us;
  return r;
}

Profile sample() {
  Profile p;
  p.records = {record("add", {{f32, Dims{1, 784}}, {f32, Dims{784}}}, 10.5),
               record("matmul", {{f16, Dims{2, 2}}}, 1'234'567.891),
               record("add", {{f32, Dims{1, 784}}, {f32, Dims{784}}}, 20.25),
               record("add", {{f32, Dims{2, 784}}, {f32, Dims{784}}}, 1)};
  p.total_us = 2'469'135.782;
  p.num_threads = 2;
  return p;
}

// Layout after TVM's profiler (reference/tvm.md section 7): first column left, the others right, two spaces between.
TEST(Profile, PrintsTheTableOfTheVirtualMachine) {
  EXPECT_EQ(sample().table(), R"(Name        Duration (us)  Percent  Device  Count                Argument Shapes
matmul       1,234,567.89    50.00    cpu0      1                  float16[2, 2]
add                 30.75     0.00    cpu0      2  float32[1, 784], float32[784]
add                  1.00     0.00    cpu0      1  float32[2, 784], float32[784]
----------
Sum          1,234,599.64    50.00              4
Total        2,469,135.78             cpu0      1

Configuration
-------------
Number of threads: 2
Executor: VM
)");
}

TEST(Profile, CanKeepTheCallsApartAndInOrder) {
  std::string table = sample().table(false, false);
  size_t first = table.find("10.50"), second = table.find("1,234,567.89"), third = table.find("20.25");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_NE(third, std::string::npos);
}

TEST(Profile, AddsUpFurtherColumnsAndListsThemByName) {
  Profile p = sample();
  p.more_columns = [](const CallRecord& r, size_t) {
    return std::map<std::string, Metric>{{"MACs", Metric::count(1000)},
                                         {"Bound", Metric::of_text(r.function + "-bound")}};
  };
  std::string table = p.table();
  std::string header = table.substr(0, table.find('\n'));
  EXPECT_LT(header.find("Argument Shapes"), header.find("Bound"));
  EXPECT_LT(header.find("Bound"), header.find("MACs"));
  EXPECT_NE(table.find("add-bound  2,000\n"), std::string::npos) << table;
  EXPECT_NE(table.find("  4,000\n"), std::string::npos) << table;  // in the row of sums
}

TEST(Profile, WritesCsvThatMachinesRead) {
  std::string csv = sample().csv();
  EXPECT_TRUE(
      csv.starts_with("Name,Duration (us),Percent,Device,Count,Argument Shapes\n"
                      "\"add\",10.5,"))
      << csv;
  EXPECT_NE(csv.find("\"matmul\",1234567.891,50,\"cpu0\",1,\"float16[2, 2]\"\n"), std::string::npos) << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
}

TEST(Profile, WritesJson) {
  Json j = Json::parse(sample().json());
  ASSERT_EQ(j["calls"].size(), 4u);
  EXPECT_EQ(j["calls"][0]["Name"]["string"], "add");
  EXPECT_EQ(j["calls"][0]["Duration (us)"]["microseconds"], 10.5);
  EXPECT_EQ(j["calls"][0]["Count"]["count"], 1);
  EXPECT_EQ(j["device_metrics"]["cpu0"]["Duration (us)"]["microseconds"], 2'469'135.782);
  EXPECT_EQ(j["configuration"]["Number of threads"], 2);
}

TEST(Profile, WritesOneRecordPerLine) {
  Profile p = sample();
  p.records[3].function = "broken \xff utf-8";
  std::istringstream lines(p.records_json_lines());
  std::string line;
  std::vector<Json> records;
  while (std::getline(lines, line)) records.push_back(Json::parse(line));
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0]["function"], "add");
  EXPECT_EQ(records[0]["kind"], "kernel");
  EXPECT_EQ(records[0]["caller"], "decode");
  EXPECT_EQ(records[0]["annotation"], "layers.0");
  EXPECT_EQ(records[0]["values"]["n"], 5);
  EXPECT_EQ(records[0]["arguments"][0]["dtype"], "float32");
  EXPECT_EQ(records[0]["arguments"][0]["shape"], (Json{1, 784}));
  EXPECT_EQ(records[0]["duration_us"], 10.5);
  EXPECT_EQ(records[0]["device"], "cpu0");
}

TEST(Profiler, CollectsFromAMachineAndThenLeavesItAlone) {
  ExecutableBuilder b;
  KernelSignature s{.params = {{.name = "x", .dtype = f32, .dims = {KernelDim::symbolic(0)}}},
                    .values = {{.name = "n", .param = 0, .dim = 0}}};
  b.kernel("touch", s);
  KernelTable table;
  int runs = 0;
  table.add_host("touch", [&](void* const*, const int64_t*, SatorContext*) {
    ++runs;
    return 0;
  });
  VirtualMachine vm(b.finish(), table, ThreadPool::create(1));
  std::vector<Value> args{Tensor::empty(Dims{6}, f32)};
  Profile p = profile(vm, "touch", args);
  EXPECT_EQ(runs, 2);  // one to warm up
  ASSERT_EQ(p.records.size(), 1u);
  EXPECT_EQ(p.records[0].values[0].value, 6);
  EXPECT_GE(p.total_us, p.records[0].duration_us);
  {
    Profiler profiler(vm);
    profiler.time([&] { vm.call("touch", args); });
    profiler.time([&] { vm.call("touch", args); });
    EXPECT_EQ(profiler.take().records.size(), 2u);
    EXPECT_EQ(profiler.take().records.size(), 0u);
  }
  vm.call("touch", args);
  EXPECT_EQ(runs, 5);
}

}  // namespace
}  // namespace sator::runtime
