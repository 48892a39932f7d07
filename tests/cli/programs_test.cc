// docs/programs.md: its commands do what it shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <regex>
#include <set>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "runtime/npy.h"
#include "shipped_chips.h"
#include "temp_folder.h"

namespace sator::cli {
namespace {

using runtime::Tensor;

/// A command of the page and the lines that it shows below.
struct Shown {
  std::string command;
  std::vector<std::string> lines;
};

std::vector<Shown> shown_commands() {
  const std::string page = read_file(fs::path(SATOR_SOURCE_DIR) / "docs/programs.md");
  const std::string indent = "    ", prompt = "    $ ./sator ";
  std::vector<Shown> out;
  bool inside = false;
  for (std::string_view line : split(page, '\n')) {
    if (line.starts_with(prompt)) {
      out.push_back({std::string(line.substr(prompt.size())), {}});
      inside = true;
    } else if (inside && (line.empty() || line.starts_with(indent))) {
      out.back().lines.emplace_back(line.empty() ? "" : line.substr(indent.size()));
    } else {
      inside = false;
    }
  }
  for (Shown& s : out)
    while (!s.lines.empty() && s.lines.back().empty()) s.lines.pop_back();
  return out;
}

/// Times differ from run to run; their columns do not.
std::string without_times(const std::string& line) {
  return std::regex_replace(std::regex_replace(line, std::regex("[0-9]+\\.[0-9]+"), "#"), std::regex(" +"), " ");
}

std::vector<float> filtered(const Tensor& x, const Tensor& taps, int64_t rows, int64_t columns) {
  std::vector<float> y;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 5; ++k)
        sum += static_cast<double>(x.data_as<float>()[(i + k) * columns + j]) * taps.data_as<float>()[k];
      y.push_back(static_cast<float>(sum));
    }
  return y;
}

class Programs : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("SATOR_CHIPS", chips_folder().c_str(), 1);
    fs::current_path(folder_.path());
    fs::create_directory_symlink(fs::path(SATOR_SOURCE_DIR) / "examples", "examples");
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    auto save = [&](const char* name, const runtime::Dims& shape) {
      Ref<Tensor> tensor = Tensor::empty(shape, f32);
      for (int64_t i = 0; i < tensor->num_elements(); ++i) tensor->data_as<float>()[i] = normal(random);
      runtime::write_npy(name, *tensor);
    };
    save("x.npy", {1004, 64});
    save("taps.npy", {5});
    save("weight.npy", {64, 16});
    save("w.npy", {4, 5});
    // The page says of product.so what it computes.
    write_file("product.py", R"(@R.function
def main(x: R.Tensor(("n", "m"), "float32"), w: R.Tensor(("p", "q"), "float32")):
    y = R.matmul(x, w)
    return y
)");
    std::istringstream in;
    std::ostringstream out, notes;
    ASSERT_EQ(run_app({"build", "product.py", "-o", "product.so"}, command_table(), in, out, notes), 0) << notes.str();
  }
  void TearDown() override {
    fs::current_path(SATOR_SOURCE_DIR);
    ::unsetenv("SATOR_CHIPS");
  }
  TempFolder folder_;
};

TEST_F(Programs, ThePageShowsWhatHappens) {
  const std::vector<Shown> commands = shown_commands();
  ASSERT_GE(commands.size(), 6u);
  for (const Shown& shown : commands) {
    std::vector<std::string> words;
    for (std::string_view word : split(shown.command, ' ')) words.emplace_back(word);
    std::istringstream in;
    std::ostringstream out, notes;
    run_app(words, command_table(), in, out, notes);
    const std::string all = out.str() + notes.str();
    std::vector<std::string_view> lines = split(all, '\n');
    const bool timed = shown.command.find("--profile") != std::string::npos;
    if (timed) {
      // Which function takes longest may change; each is there.
      for (const std::string& line : shown.lines) {
        const std::string name = without_times(line).substr(0, line.find(' '));
        EXPECT_TRUE(std::ranges::any_of(
            lines, [&](std::string_view l) { return without_times(std::string(l)).starts_with(name); }))
            << shown.command << "\n"
            << line << "\n"
            << all;
      }
      continue;
    }
    ASSERT_GE(lines.size(), shown.lines.size()) << shown.command << "\n" << all;
    for (size_t i = 0; i < shown.lines.size(); ++i) {
      const bool has_time = shown.lines[i].starts_with("built in");
      EXPECT_EQ(has_time ? without_times(std::string(lines[i])) : std::string(lines[i]),
                has_time ? without_times(shown.lines[i]) : shown.lines[i])
          << shown.command;
    }
  }
  // The results are those of the arithmetic by hand.
  const Ref<Tensor> x = runtime::read_npy("x.npy"), taps = runtime::read_npy("taps.npy"),
                    weight = runtime::read_npy("weight.npy"), y = runtime::read_npy("y.npy"),
                    shares = runtime::read_npy("shares.npy");
  const std::vector<float> want = filtered(*x, *taps, 1000, 64);
  ASSERT_EQ(y->num_elements(), 64000);
  for (int64_t i = 0; i < y->num_elements(); ++i)
    ASSERT_NEAR(y->data_as<float>()[i], want[static_cast<size_t>(i)], 1e-5) << i;
  for (int64_t i = 0; i < 1000; ++i) {
    std::vector<double> e(16, 0);
    double sum = 0;
    for (int64_t j = 0; j < 16; ++j) {
      double score = 0;
      for (int64_t k = 0; k < 64; ++k)
        score += static_cast<double>(want[static_cast<size_t>(i * 64 + k)]) * weight->data_as<float>()[k * 16 + j];
      sum += e[static_cast<size_t>(j)] = std::exp(score);
    }
    for (int64_t j = 0; j < 16; ++j)
      ASSERT_NEAR(shares->data_as<float>()[i * 16 + j], e[static_cast<size_t>(j)] / sum, 1e-4);
  }
}

int run(std::vector<std::string> words, std::string& all) {
  std::istringstream in;
  std::ostringstream out, notes;
  const int status = run_app(words, command_table(), in, out, notes);
  all = out.str() + notes.str();
  return status;
}

// The files stand in the order of the passes, from what was read to what is compiled.
TEST_F(Programs, EachPassLeavesItsProgram) {
  std::string all;
  const std::string file = "examples/programs/filter.py";
  ASSERT_EQ(run({"build", file, "-o", "f.so", "--debug-dump", "all", "--each-pass"}, all), 0) << all;
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("all"))
    if (const std::string name = entry.path().filename().string(); name.starts_with("pass-")) names.insert(name);
  ASSERT_GT(names.size(), 20U);
  EXPECT_EQ(*names.begin(), "pass-001-AttachVariableBounds.py");
  const auto legalized =
      std::ranges::find_if(names, [](const std::string& s) { return s.ends_with("-LegalizeOps.py"); });
  ASSERT_NE(legalized, names.end());
  EXPECT_NE(read_file("all/" + *std::prev(legalized)).find("R.matmul"), std::string::npos);
  EXPECT_EQ(read_file("all/" + *legalized).find("R.matmul"), std::string::npos);
  EXPECT_EQ(read_file("all/" + *names.rbegin()), read_file("all/debug-final.py"));

  ASSERT_EQ(run({"opt", file, "--passes", "LegalizeOps,FuseOps", "--debug-dump", "two", "--each-pass"}, all), 0) << all;
  EXPECT_EQ(read_file("two/pass-002-FuseOps.py"), read_file("two/debug-final.py"));
  EXPECT_NE(read_file("two/pass-001-LegalizeOps.py"), read_file("two/debug-input.py"));
  EXPECT_NE(run({"opt", file, "--each-pass"}, all), 0);
  EXPECT_NE(all.find("--each-pass without --debug-dump"), std::string::npos);
}

TEST_F(Programs, ASizeAboveItsBoundIsNamed) {
  std::string all;
  write_file("b.py", R"(
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    return R.exp(R.exp(x))
)");
  ASSERT_EQ(run({"build", "b.py", "-o", "b.so", "--bounds", "n=8"}, all), 0) << all;
  for (const int64_t n : {8, 9}) {
    runtime::write_npy("x.npy", *Tensor::empty({n, 4}, f32));
    EXPECT_EQ(run({"run", "b.so", "--input", "x.npy"}, all) == 0, n == 8) << all;
  }
  EXPECT_NE(all.find("n = 9 by x"), std::string::npos) << all;
  EXPECT_NE(all.find("above its upper bound 8"), std::string::npos) << all;
  EXPECT_NE(all.find("build it again with --bounds n=9"), std::string::npos) << all;
}

// What a schedule left stays: a rule would have made the loops of `smooth` others.
TEST_F(Programs, SchedulesOfTheUserStay) {
  std::string all;
  const std::string file = "examples/programs/filter.py", trace = "examples/programs/filter_schedule.py";
  ASSERT_EQ(run({"build", file, "-o", "f.so", "--schedule", trace, "--explain-schedule", "--debug-dump", "dump"}, all),
            0)
      << all;
  EXPECT_EQ(all.find("smooth\n  block"), std::string::npos) << all;
  EXPECT_NE(all.find("matmul\n  block"), std::string::npos) << all;
  const std::string scheduled = read_file("dump/debug-phase4.py");
  EXPECT_NE(scheduled.find("T.block(\"Y_update\")"), std::string::npos);
  // Costs are those of the program as it was written.
  EXPECT_EQ(read_file("dump/debug-phase3.py").find("Y_update"), std::string::npos);

  // Loops that came with the text stay too, and nothing is scheduled without rules.
  write_file("own.py", R"(
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in T.parallel(4):
        for j in range(16):
            with T.block("B"):
                v = T.axis.spatial(64, i * 16 + j)
                B[v] = A[v] + T.float32(1)
@T.prim_func
def g(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            v = T.axis.spatial(64, i)
            B[v] = A[v] + T.float32(1)
)");
  ASSERT_EQ(run({"build", "own.py", "-o", "own.so", "--explain-schedule"}, all), 0) << all;
  EXPECT_EQ(all.find("f\n  block"), std::string::npos) << all;
  EXPECT_NE(all.find("g\n  block"), std::string::npos) << all;
  ASSERT_EQ(run({"build", "own.py", "-o", "own.so", "--explain-schedule", "--rules", "none"}, all), 0) << all;
  EXPECT_EQ(all.find("block"), std::string::npos) << all;
  runtime::write_npy("a.npy", *Tensor::of(std::vector<float>(64, 2), {64}, f32));
  ASSERT_EQ(run({"run", "own.so", "g", "--input", "a.npy", "--output", "b.npy"}, all), 0) << all;
  EXPECT_EQ(runtime::read_npy("b.npy")->data_as<float>()[63], 3);
}

// What a function needs is asked when it is called: others of the library run without it.
TEST_F(Programs, OneFunctionCallsWhatIsNotRegistered) {
  std::string all;
  write_file("f.py", R"(
@I.ir_module
class Module:
    @R.function
    def f(x: R.Tensor((2,), "float32")):
        y = R.add(x, x)
        return y
    @R.function
    def g(x: R.Tensor((2,), "float32")):
        y = R.call_pure_packed("my.square", x, sinfo_args=R.Tensor((2,), "float32"))
        return y
)");
  ASSERT_EQ(run({"build", "f.py", "-o", "f.so"}, all), 0) << all;
  runtime::write_npy("a.npy", *Tensor::of(std::vector<float>{2, 3}, {2}, f32));
  ASSERT_EQ(run({"run", "f.so", "f", "--input", "a.npy", "--output", "b.npy"}, all), 0) << all;
  EXPECT_EQ(runtime::read_npy("b.npy")->data_as<float>()[1], 6);
  EXPECT_EQ(run({"run", "f.so", "g", "--input", "a.npy"}, all), 1);
  EXPECT_NE(all.find("calls the function \"my.square\", which is not registered"), std::string::npos) << all;
}

// A GPU gets no code: the program as the rules schedule it, or as its user did; on a CPU the rules for CPUs stay.
TEST_F(Programs, DLightSchedulesForGpus) {
  std::string all;
  write_file("f.py", R"(
@T.prim_func
def f(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32")):
    for i in range(4096):
        with T.block("B"):
            v = T.axis.spatial(4096, i)
            B[v] = A[v] + T.float32(1)
)");
  const std::vector<std::string> build = {
      "build", "f.py", "-o", "out.py", "--target", "nvidia/nvidia-a100", "--explain-schedule"};
  const auto with = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> words = build;
    words.insert(words.end(), more);
    return words;
  };
  ASSERT_EQ(run(with({"--rules", "dlight"}), all), 0) << all;
  EXPECT_NE(all.find("f\n  block B, rule Fallback"), std::string::npos) << all;
  EXPECT_NE(read_file("out.py").find("T.thread_binding(4, thread=\"blockIdx.x\")"), std::string::npos);
  ASSERT_EQ(run(with({"--rules", "none"}), all), 0) << all;
  EXPECT_EQ(read_file("out.py").find("thread_binding"), std::string::npos);
  write_file("own.py", "b = sch.get_block(\"B\")\nsch.bind(sch.get_loops(b)[0], \"blockIdx.x\")\n");
  ASSERT_EQ(run(with({"--schedule", "own.py"}), all), 0) << all;
  EXPECT_NE(read_file("out.py").find("T.thread_binding(4096, thread=\"blockIdx.x\")"), std::string::npos);
  EXPECT_EQ(all.find("rule"), std::string::npos) << all;

  ASSERT_EQ(run({"build", "f.py", "-o", "f.so", "--rules", "dlight"}, all), 0) << all;
  EXPECT_NE(all.find("note: DLight's rules bind loops to a GPU's threads, and take nothing for llvm"),
            std::string::npos)
      << all;
}

// A library's functions take the names that the text gave their parameters, those of the languages too.
TEST_F(Programs, ParametersMayBeNamedAsLanguages) {
  std::string all;
  write_file("f.py", R"(
from tvm.script import tir
@tir.prim_func
def f(I: tir.Buffer((4,), "float32"), T: tir.Buffer((4,), "float32"), R: tir.Buffer((4,), "float32")):
    for i in range(4):
        R[i] = I[i] + T[i]
)");
  ASSERT_EQ(run({"build", "f.py", "-o", "f.so"}, all), 0) << all;
  runtime::write_npy("a.npy", *Tensor::of(std::vector<float>(4, 2), {4}, f32));
  ASSERT_EQ(run({"run", "f.so", "--input", "I=a.npy", "--input", "T=a.npy", "--output", "R=b.npy"}, all), 0) << all;
  EXPECT_EQ(runtime::read_npy("b.npy")->data_as<float>()[3], 4);
}

TEST_F(Programs, ALibraryReplacesNothingThatIsRead) {
  std::string all;
  const std::string program = "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    A[0] = 1.0\n";
  write_file("f.py", program);
  write_file("t.py", "sch.get_block(\"root\")\n");
  EXPECT_NE(run({"build", "f.py", "-o", "./f.py"}, all), 0);
  EXPECT_NE(all.find("-o ./f.py would replace f.py, which is read"), std::string::npos) << all;
  EXPECT_NE(run({"build", "f.py", "-o", "t.py", "--schedule", "t.py"}, all), 0);
  EXPECT_NE(run({"compile", "f.py", "-o", "f.py"}, all), 0);
  EXPECT_EQ(read_file("f.py"), program);
}

TEST_F(Programs, FmtRewritesAFileInPlaceUnlessCommentsWouldBeLost) {
  std::string all;
  const std::string program = "@T.prim_func\ndef f(A: T.Buffer[(4,), \"float32\"]):\n    A[0] = 1.0\n";
  write_file("f.py", program);
  ASSERT_EQ(run({"fmt", "f.py", "-i", "--upgrade"}, all), 0) << all;
  EXPECT_EQ(all, "");
  const std::string once = read_file("f.py");
  EXPECT_NE(once.find("    def f(A: T.Buffer((4,), \"float32\")):\n        A[0] = T.float32(1)\n"), std::string::npos)
      << once;
  ASSERT_EQ(run({"fmt", "f.py", "-i"}, all), 0) << all;
  EXPECT_EQ(read_file("f.py"), once);
  write_file("f.py", program + "    A[1] = 2.0  # two: \"#\"\n");
  EXPECT_EQ(run({"fmt", "f.py", "-i", "--upgrade"}, all), kUserMistake);
  EXPECT_NE(all.find("1 comments, which would be lost: # two"), std::string::npos) << all;
  ASSERT_EQ(run({"fmt", "f.py", "--upgrade"}, all), 0) << all;
  EXPECT_NE(all.find("note: 1 comments are left out"), std::string::npos) << all;
}

TEST_F(Programs, RefuseInWords) {
  std::string all;
  write_file("f.py", "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\")):\n    A[0] = T.float32(1)\n");
  struct Row {
    std::vector<std::string> words;
    std::string says;
  };
  write_file("wrong.py", "from tvm import tir\nb = sch.get_block(\"Z\")\n");
  write_file("import.py", "pass\nimport os\nsch.get_block(\"Z\")\n");
  ASSERT_EQ(run({"build", "f.py", "-o", "f.so"}, all), 0) << all;
  for (const Row& row : {
           Row{{"run", "f.so", "g"}, "one of f"},
           Row{{"run", "f.so", "--output", "B=b.npy"}, "there is no result B"},
           Row{{"run", "f.so", "--output", "a.npy", "--output", "b.npy"}, "2 files without a name for 1 result"},
           Row{{"run", "f.so", "--pe", "4x4"}, "without a chip"},
           Row{{"run", "f.so", "--threads", "4294967297"}, "--threads 4294967297\n  needs: from 1 to 1024"},
           Row{{"run", "f.so", "--input", "missing.npy"}, "missing.npy"},
           Row{{"build", "f.py", "-o", "g.so", "--rules", "dlight", "--target", "cuda"}, "-o FILE.py writes"},
           Row{{"build", "f.py", "-o", "g.so", "--schedule", "f.py"}, "one primitive per line"},
           Row{{"build", "f.py", "-o", "g.so", "--schedule", "wrong.py"},
               "no block is named \"Z\"\n  in wrong.py line 2, column 5, in func f, after 0 steps\n"},
           Row{{"build", "f.py", "-o", "g.so", "--schedule", "import.py"},
               "a schedule script imports os\n  in import.py line 2, column 1\n  |    import os\n"},
       }) {
    EXPECT_EQ(run(row.words, all), kUserMistake) << join(row.words, " ");
    EXPECT_NE(all.find(row.says), std::string::npos) << row.says << "\n" << all;
  }
}

}  // namespace
}  // namespace sator::cli
