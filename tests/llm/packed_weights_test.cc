#include "llm/packed_weights.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "base/digest.h"
#include "runtime/tensor.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

using runtime::Tensor;
using runtime::Value;

/// Tensors of several dtypes, one of them empty, one larger than a part that a thread reads.
Ref<runtime::Tuple> some_weights() {
  std::vector<float> large(static_cast<size_t>(17) << 20);
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i % 8191);
  return runtime::Tuple::of({Tensor::of(std::vector<float>{1.5f, -2.f, 3.f}, {3}, f32),
                             Tensor::of(std::vector<int8_t>(), {0, 4}, i8),
                             Tensor::of(large, {17, 1 << 20}, f32),
                             Tensor::of(std::vector<uint16_t>{1, 2, 3, 4, 5, 6}, {2, 3}, f16)});
}

void expect_same(const runtime::Tuple& a, const runtime::Tuple& b) {
  ASSERT_EQ(a.fields.size(), b.fields.size());
  for (size_t i = 0; i < a.fields.size(); ++i) {
    const Tensor &x = *a.fields[i].as<Tensor>(), &y = *b.fields[i].as<Tensor>();
    EXPECT_EQ(x.shape(), y.shape());
    EXPECT_EQ(x.dtype(), y.dtype());
    EXPECT_EQ(std::memcmp(x.data(), y.data(), static_cast<size_t>(x.size_bytes())), 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(y.data()) % 64, 0u);
  }
}

TEST(PackedWeights, AreReadAsTheyWereKept) {
  TempFolder folder;
  ::setenv("SATOR_HOME", folder.path().c_str(), 1);
  const fs::path path = weights_cache().path_of("m-int4", std::string(32, 'a'));
  fs::create_directories(path.parent_path());
  std::vector<std::string> remarks;
  const auto remark = [&](const std::string& words) { remarks.push_back(words); };
  EXPECT_FALSE(read_packed_weights(path, 2, remark));
  const Ref<runtime::Tuple> weights = some_weights();
  keep_packed_weights(path, *weights, remark);
  for (int threads : {1, 3}) {
    const auto read = read_packed_weights(path, threads, remark);
    ASSERT_TRUE(read);
    expect_same(*weights, *read->as<runtime::Tuple>());
  }
  EXPECT_TRUE(remarks.empty());
  EXPECT_TRUE(weights_cache().is_whole(weights_cache().entries().at(0)));

  // Changed within, cut off, or of another kind: told of, and gone.
  const std::string whole = read_file(path);
  std::string changed = whole;
  changed[changed.size() / 2] ^= 1;
  for (const std::string& bytes : {changed,
                                   whole.substr(0, whole.size() - 7),
                                   std::string("x"),
                                   sealed("SATORWT1"),
                                   sealed(std::string("SATORWT1\x02\0\0\0\0\0\0\0[{", 18))}) {
    write_file(path, bytes);
    remarks.clear();
    EXPECT_FALSE(read_packed_weights(path, 2, remark));
    EXPECT_EQ(remarks.size(), 1);
    EXPECT_FALSE(fs::exists(path));
  }

  // Nothing is kept beyond the limit.
  ::setenv("SATOR_WEIGHTS_LIMIT", "1M", 1);
  keep_packed_weights(path, *weights, remark);
  EXPECT_FALSE(fs::exists(path));
  ::setenv("SATOR_WEIGHTS_LIMIT", "much", 1);
  EXPECT_NE(error_of([] { weights_limit_bytes(); }).find("SATOR_WEIGHTS_LIMIT is \"much\""), std::string::npos);
  ::unsetenv("SATOR_WEIGHTS_LIMIT");
}

TEST(PackedWeights, KeysFollowContentsAndNotNames) {
  TempFolder folder;
  ::setenv("SATOR_HOME", (folder.path() / "home").c_str(), 1);
  auto file = [&](const char* name, const std::string& content) {
    write_file(folder.path() / name, content);
    return folder.path() / name;
  };
  const fs::path library = file("l.so", "library"), a = file("a", "weights"), b = file("b", "weights"),
                 c = file("c", "Weights"), text = file("t", "a text");
  const std::string key = packed_weights_key(library, {a}, {});
  EXPECT_EQ(packed_weights_key(library, {b}, {}), key);
  EXPECT_NE(packed_weights_key(library, {c}, {}), key);
  EXPECT_NE(packed_weights_key(library, {a, b}, {}), key);
  EXPECT_NE(packed_weights_key(a, {a}, {}), key);
  EXPECT_NE(packed_weights_key(library, {a}, text), key);
  // The same file with another content, in the very same size.
  file("a", "weighty");
  EXPECT_NE(packed_weights_key(library, {a}, {}), key);
}

}  // namespace
}  // namespace sator::llm
