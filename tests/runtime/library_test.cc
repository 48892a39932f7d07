#include "runtime/library.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>

#include "base/file.h"
#include "runtime/executable_builder.h"
#include "runtime/isa.h"

namespace sator::runtime {
namespace {

KernelSignature fill_signature() {
  return {.params = {{.name = "out", .dtype = f32, .dims = {KernelDim::symbolic(0)}}},
          .values = {{.name = "n", .param = 0, .dim = 0}}};
}

std::string fill_program() {
  ExecutableBuilder b;
  b.kernel("fill", fill_signature());
  return b.finish()->save();
}

// A model of three levels, each of which fills its output with its own number.
template <int number>
int32_t fill(void* const* buffers, const int64_t* values, SatorContext*) {
  for (int64_t i = 0; i < values[0]; ++i) static_cast<float*>(buffers[0])[i] = number;
  return 0;
}

struct InMemory {
  std::string bytecode = fill_program();
  SatorKernelEntry entries[3] = {{"fill", fill<1>}, {"fill", fill<2>}, {"fill", fill<3>}};
  SatorKernelTable tables[3] = {{"amx", 1, &entries[0]}, {"avx512", 1, &entries[1]}, {"avx2", 1, &entries[2]}};
  const SatorKernelTable* levels[3] = {&tables[0], &tables[1], &tables[2]};
  SatorModel model = {.abi_version = SATOR_ABI_VERSION,
                      .num_levels = 3,
                      .levels = levels,
                      .source_hash = "0123",
                      .metadata_json = "{\"model_type\": \"test\"}",
                      .executable = reinterpret_cast<const uint8_t*>(bytecode.data()),
                      .executable_bytes = bytecode.size()};
};

class Library : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* value = std::getenv("SATOR_ISA")) saved_ = value;
    unsetenv("SATOR_ISA");
  }
  void TearDown() override {
    if (!saved_.empty())
      setenv("SATOR_ISA", saved_.c_str(), 1);
    else
      unsetenv("SATOR_ISA");
  }
  static std::string refusal(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.reason.what;
    }
    return "no error";
  }
  std::string load_refusal(const SatorModel& m) {
    return refusal([&] { ModelLibrary::from_memory(&m, "test.so"); });
  }
  static float first_of_fill(const ModelLibrary& library) {
    VirtualMachine vm(library.executable(), library.kernels(), ThreadPool::create(1));
    Value out = Tensor::empty(Dims{4}, f32);
    vm.call("fill", {out});
    return out.as<Tensor>()->data_as<float>()[3];
  }
  std::string saved_;
};

TEST_F(Library, TakesTheBestLevelThatTheMachineRuns) {
  InMemory m;
  const char* const names[] = {"amx", "avx512", "avx2"};
  int best = 0;
  while (best < 3 && !find_isa_level(names[best])->available()) ++best;
  if (best == 3) GTEST_SKIP() << "this CPU has not even AVX2";
  Ref<ModelLibrary> library = ModelLibrary::from_memory(&m.model, "test.so");
  EXPECT_EQ(library->isa(), names[best]);
  EXPECT_EQ(first_of_fill(*library), best + 1);
  EXPECT_EQ(library->metadata_json(), "{\"model_type\": \"test\"}");
  EXPECT_EQ(library->source_hash(), "0123");
  setenv("SATOR_ISA", "avx2", 1);
  EXPECT_EQ(first_of_fill(*ModelLibrary::from_memory(&m.model, "test.so")), 3);
}

TEST_F(Library, RefusesLevelsInWords) {
  InMemory m;
  m.tables[0].isa = "quantum";
  m.model.num_levels = 1;
  EXPECT_EQ(load_refusal(m.model),
            text("model library test.so has kernels for quantum; this machine runs ", available_isa_text()));
  setenv("SATOR_ISA", "sse9", 1);
  EXPECT_EQ(load_refusal(m.model), "SATOR_ISA names the unknown level \"sse9\"");
  setenv("SATOR_ISA", "avx2", 1);
  EXPECT_EQ(load_refusal(m.model), "model library test.so has kernels for quantum, but SATOR_ISA asks for avx2");
  for (const IsaLevel& level : isa_levels()) {
    if (level.available()) continue;
    std::string name(level.name);
    m.tables[0].isa = name.c_str();
    setenv("SATOR_ISA", name.c_str(), 1);
    EXPECT_EQ(load_refusal(m.model), text("SATOR_ISA asks for ", name, ", which this machine does not run"));
    unsetenv("SATOR_ISA");
    std::string needs;
    try {
      ModelLibrary::from_memory(&m.model, "test.so");
    } catch (const Error& e) {
      needs = e.reason.needs;
    }
    EXPECT_EQ(needs, text("a level that this machine runs; ", name, " needs ", level.needs));
  }
}

TEST_F(Library, RefusesWhatIsNotAModelOfThisVersion) {
  InMemory m;
  EXPECT_EQ(refusal([] { ModelLibrary::from_memory(nullptr, "test.so"); }), "model library test.so gives no model");
  SatorModel broken = m.model;
  broken.abi_version = 99;
  EXPECT_EQ(load_refusal(broken), "model library test.so has interface version 99");
  broken = m.model;
  broken.levels = nullptr;
  EXPECT_EQ(load_refusal(broken), "model library test.so has empty tables");
  broken = m.model;
  broken.executable_bytes -= 1;
  EXPECT_NE(load_refusal(broken).find("damaged or cut short"), std::string::npos);
  m.entries[0].run = nullptr;
  EXPECT_EQ(load_refusal(m.model), "model library test.so has empty tables");
}

TEST_F(Library, RefusesFilesThatAreNotLibraries) {
  EXPECT_NE(refusal([] { ModelLibrary::open("/nowhere/model.so"); }).find("cannot be loaded"), std::string::npos);
  fs::path path = fs::temp_directory_path() / text("sator_library_test_", getpid(), ".so");
  write_file(path, "this is text");
  EXPECT_NE(refusal([&] { ModelLibrary::open(path); }).find("cannot be loaded"), std::string::npos);
  fs::remove(path);
  // An ELF header that speaks of sections and segments which the file does not have.
  std::string header("\x7f\x45LF\x02\x01\x01", 7);
  header.resize(64, '\0');
  header[40] = '\x40', header[54] = 56, header[58] = 64, header[60] = 3;  // three section headers from byte 64 on
  write_file(path, header);
  EXPECT_NE(refusal([&] { ModelLibrary::open(path); }).find("is cut off"), std::string::npos);
  header[60] = 0, header[18] = EM_S390;
  write_file(path, header);
  EXPECT_NE(refusal([&] { ModelLibrary::open(path); }).find("is for another processor"), std::string::npos);
  fs::remove(path);
  // A shared library, but not of ours: the C++ runtime that this program has loaded anyway.
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (size_t at = line.find('/'); at != std::string::npos && line.find("libstdc++.so") != std::string::npos) {
      EXPECT_NE(refusal([&] { ModelLibrary::open(line.substr(at)); }).find("does not export sator_model"),
                std::string::npos);
      return;
    }
}

/// Compiles a library with the given text as its source hash.
void compile_named(const fs::path& folder, const std::string& name) {
  fs::create_directories(folder);
  std::string array, isa = available_isa_text();
  for (char c : fill_program()) array += text(static_cast<int>(static_cast<uint8_t>(c)), ',');
  isa = isa.substr(0, isa.find(','));
  write_file(folder / (name + ".c"),
             text("#include \"runtime/abi.h\"\nstatic const uint8_t program[] = {",
                  array,
                  "};\nstatic int32_t fill(void* const* b, const int64_t* v, SatorContext* c) { return 0; }\n"
                  "static const SatorKernelEntry entries[] = {{\"fill\", fill}};\n"
                  "static const SatorKernelTable table = {\"",
                  isa,
                  "\", 1, entries};\nstatic const SatorKernelTable* const levels[] = {&table};\n"
                  "static const SatorModel model = {SATOR_ABI_VERSION, 1, levels, \"",
                  name,
                  "\", \"{}\", program, sizeof program};\nconst SatorModel* sator_model(void) { return &model; }\n"));
  const std::string command = text(SATOR_C_COMPILER " -std=c11 -shared -fPIC -I",
                                   SATOR_SOURCE_DIR,
                                   "/src -o ",
                                   (folder / (name + ".so")).string(),
                                   " ",
                                   (folder / (name + ".c")).string());
  ASSERT_EQ(std::system(command.c_str()), 0);
}

// The second time a file is opened it has another descriptor; once that is closed, the next file's has its number.
TEST_F(Library, AFileOpenedTwiceIsNotTakenForTheNextOne) {
  const fs::path folder = fs::temp_directory_path() / text("sator_library_twice_", getpid());
  for (const char* name : {"one", "two"}) compile_named(folder, name);
  const Ref<ModelLibrary> first = ModelLibrary::open(folder / "one.so");
  EXPECT_EQ(ModelLibrary::open(folder / "one.so")->source_hash(), "one");
  const Ref<ModelLibrary> second = ModelLibrary::open(folder / "two.so");
  EXPECT_EQ(second->source_hash(), "two");
  EXPECT_EQ(first->source_hash(), "one");
  fs::remove_all(folder);
}

// A library written in C against abi.h alone, as generated code is: compiled here, loaded, run on two threads.
TEST_F(Library, LoadsAndRunsALibraryFromDisk) {
  fs::path folder = fs::temp_directory_path() / text("sator_library_test_", getpid());
  fs::create_directories(folder);
  std::string bytes = fill_program(), array;
  for (char c : bytes) array += text(static_cast<int>(static_cast<uint8_t>(c)), ',');
  std::string isa = available_isa_text();
  isa = isa.substr(0, isa.find(','));
  write_file(folder / "model.c",
             text(R"(
#include "runtime/abi.h"
static const uint8_t program[] = {)",
                  array,
                  R"(};
struct Fill { float* out; };
static int32_t chunk(void* closure, int64_t begin, int64_t end, SatorContext* ctx) {
  int64_t* scratch = ctx->workspace_push(ctx, 8);
  *scratch = begin;
  for (int64_t i = *scratch; i < end; ++i) ((struct Fill*)closure)->out[i] = (float)(i * 10 + (*scratch > 0));
  ctx->workspace_pop(ctx, scratch);
  return 0;
}
static int32_t fill(void* const* buffers, const int64_t* values, SatorContext* ctx) {
  struct Fill f = {buffers[0]};
  if (values[0] > 100) { ctx->set_error(ctx, "too long"); return 1; }
  return ctx->parallel_for(ctx, values[0], chunk, &f);
}
static const SatorKernelEntry entries[] = {{"fill", fill}};
static const SatorKernelTable table = {")",
                  isa,
                  R"(", 1, entries};
static const SatorKernelTable* const levels[] = {&table};
static const SatorModel model = {SATOR_ABI_VERSION, 1, levels, "hash", "{}", program, sizeof program};
const SatorModel* sator_model(void) { return &model; }
)"));
  std::string command = text(SATOR_C_COMPILER " -std=c11 -Wall -Werror -shared -fPIC -I",
                             SATOR_SOURCE_DIR,
                             "/src -o ",
                             (folder / "model.so").string(),
                             " ",
                             (folder / "model.c").string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  KernelTable kernels;
  Ref<Executable> executable;
  {
    Ref<ModelLibrary> library = ModelLibrary::open(folder / "model.so");
    EXPECT_EQ(library->isa(), isa);
    kernels = library->kernels();
    executable = library->executable();
  }  // the kernel table keeps the library loaded
  VirtualMachine vm(executable, std::move(kernels), ThreadPool::create(2));
  Value out = Tensor::empty(Dims{5}, f32);
  vm.call("fill", {out});
  const float* x = out.as<Tensor>()->data_as<float>();
  EXPECT_EQ(std::vector<float>(x, x + 5), (std::vector<float>{0, 10, 20, 31, 41}));
  EXPECT_EQ(refusal([&] { vm.call("fill", {Tensor::empty(Dims{101}, f32)}); }), "kernel fill failed: too long");
  fs::remove_all(folder);
}

TEST(Isa, LevelsBuildOnEachOther) {
  if (find_isa_level("amx")->available()) {
    EXPECT_TRUE(find_isa_level("avx512")->available());
  }
  if (find_isa_level("avx512")->available()) {
    EXPECT_TRUE(find_isa_level("avx2")->available());
  }
  EXPECT_EQ(find_isa_level("sse9"), nullptr);
#if defined(__x86_64__)
  // What the operating system lists is what cpuid says.
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("flags")) continue;
    line += ' ';
    EXPECT_EQ(line.find(" avx2 ") != std::string::npos && line.find(" fma ") != std::string::npos,
              find_isa_level("avx2")->available());
    EXPECT_EQ(line.find(" avx512_vnni ") != std::string::npos, find_isa_level("avx512")->available());
    if (line.find(" avx512_bf16 ") == std::string::npos) {
      EXPECT_FALSE(find_isa_level("avx512_bf16")->available());
    }
    break;
  }
#endif
}

}  // namespace
}  // namespace sator::runtime
