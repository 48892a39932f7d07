#include "codegen/library.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "codegen/programs.h"
#include "codegen/run_kernel.h"
#include "runtime/executable_builder.h"
#include "runtime/library.h"
#include "temp_folder.h"

namespace sator::codegen {
namespace {

/// B[i] = A[i] * factor
tir::PrimFuncRef scaled(const std::string& name, float factor) {
  BufferRef a = make_buffer("A", {int_imm(64, i64)}, f32), b = make_buffer("B", {int_imm(64, i64)}, f32);
  VarRef i = make_var("i", i64);
  tir::PrimFuncRef f =
      prim_func({a, b}, tir::for_loop(i, int_imm(64, i64), tir::store(b, load(a, {i}) * float_imm(factor), {i})));
  Attrs attrs = f->attrs;
  attrs["global_symbol"] = string_imm(name);
  return with(f, &tir::PrimFunc::attrs, attrs);
}

std::string empty_program() {
  runtime::ExecutableBuilder builder;
  return builder.finish()->save();
}

LibrarySource source_for(const std::vector<const target::CpuLevel*>& levels) {
  LibrarySource source;
  for (const target::CpuLevel* level : levels)
    source.levels.push_back(
        {level, {{"twice", scaled("twice", 2)}, {"half", scaled("half", 0.5)}, {"layer.1/twice", scaled("other", 2)}}});
  source.executable = empty_program();
  source.metadata_json = "{\"model\": \"test\"}";
  source.source_hash = "0123";
  return source;
}

TEST(Library, IsLoadedByTheRuntimeAndRuns) {
  TempFolder folder;
  fs::path path = folder.path() / "model.so";
  build_library(source_for(target::levels_for("portable")), path);
  Ref<runtime::ModelLibrary> library = runtime::ModelLibrary::open(path);
  const auto levels = target::levels_for("portable");  // the best of them that runs here
  EXPECT_EQ(library->isa(), (*std::ranges::find_if(levels, [](const auto* l) { return target::host_runs(*l); }))->name);
  EXPECT_EQ(library->metadata_json(), "{\"model\": \"test\"}");
  EXPECT_EQ(library->source_hash(), "0123");
  Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(1);
  Data<float> a(64), b(64);
  for (size_t i = 0; i < 64; ++i) a[i] = static_cast<float>(i);
  void* buffers[] = {a.raw(), b.raw()};
  runtime::KernelTable kernels = library->kernels();
  for (auto [name, factor] : {std::pair("twice", 2.0f), {"half", 0.5f}, {"layer.1/twice", 2.0f}}) {
    const runtime::KernelTable::Entry* entry = kernels.find(name);
    ASSERT_NE(entry, nullptr) << name;
    ASSERT_EQ(entry->run(buffers, nullptr, pool->context()), 0);
    for (size_t i = 0; i < 64; ++i) ASSERT_EQ(b[i], a[i] * factor) << name;
  }
}

TEST(Library, CompilesEqualFunctionsOnceAndTheSameBytes) {
  TempFolder folder;
  KernelCache cache;
  LibraryOptions options{.num_threads = 2, .cache = &cache};
  LibrarySource source = source_for({&target::cpu_level("avx2")});
  build_library(source, folder.path() / "a.so", options);
  EXPECT_EQ(cache.num_compiled(), 2);  // "layer.1/twice" is "twice"
  build_library(source, folder.path() / "b.so", options);
  EXPECT_EQ(cache.num_compiled(), 2);
  build_library(source, folder.path() / "c.so", {.num_threads = 1});
  EXPECT_EQ(read_file(folder.path() / "a.so"), read_file(folder.path() / "b.so"));
  EXPECT_EQ(read_file(folder.path() / "a.so"), read_file(folder.path() / "c.so"));
}

TEST(Library, NamesTheKernelThatCannotBeCompiled) {
  TempFolder folder;
  LibrarySource source = source_for({&target::cpu_level("avx2")});
  BufferRef a = make_buffer("A", {int_imm(4, i64)}, f32);
  source.levels[0].kernels.push_back(
      {"on_gpu", prim_func({a}, tir::store(a, call(f32, "tir.tvm_warp_activemask", {}), {int_imm(0, i64)}))});
  try {
    build_library(source, folder.path() / "a.so");
    FAIL() << "compiled a GPU builtin for a CPU";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("on_gpu"), std::string::npos) << e.what();
  }
  EXPECT_FALSE(fs::exists(folder.path() / "a.so"));
}

TEST(Library, LeavesNothingBehindWhenTheLinkerIsMissing) {
  TempFolder folder;
  setenv("SATOR_LINKER", "/bin/false", 1);
  EXPECT_THROW(build_library(source_for({&target::cpu_level("avx2")}), folder.path() / "a.so"), Error);
  unsetenv("SATOR_LINKER");
  EXPECT_FALSE(fs::exists(folder.path() / "a.so"));
}

}  // namespace
}  // namespace sator::codegen
