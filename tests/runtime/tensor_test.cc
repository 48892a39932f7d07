#include "runtime/tensor.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/memory.h"
#include "runtime/value.h"
#include "runtime/workspace.h"

namespace sator::runtime {
namespace {

bool aligned(const void* p, int64_t to) { return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(to) == 0; }

TEST(Dims, KeepsExtentsBeyondTheInlineOnes) {
  Dims dims{1, 2, 3, 4, 5, 6};
  dims.resize(8);
  dims[7] = 9;
  EXPECT_EQ(dims, (Dims{1, 2, 3, 4, 5, 6, 0, 9}));
  Dims copy = dims;
  dims.resize(2);
  EXPECT_EQ(dims, (Dims{1, 2}));
  dims.resize(4);
  EXPECT_EQ(dims, (Dims{1, 2, 0, 0}));
  EXPECT_EQ(text(copy), "[1, 2, 3, 4, 5, 6, 0, 9]");
}

TEST(CountElements, RefusesOverflowEvenBesideAZero) {
  int64_t big = int64_t{1} << 40;
  EXPECT_EQ(count_elements(Dims{}), 1);
  EXPECT_EQ(count_elements(Dims{3, 0, 5}), 0);
  EXPECT_EQ(count_elements(Dims{big, big}), std::nullopt);
  EXPECT_EQ(count_elements(Dims{0, big, big}), std::nullopt);
  EXPECT_EQ(count_elements(Dims{2, -1}), std::nullopt);
}

TEST(Storage, IsAlignedToACacheLineAndFromTwoMegabytesOnToAHugePage) {
  for (int64_t size : {0, 1, 63, 64, 4097}) EXPECT_TRUE(aligned(Storage::allocate(size)->data(), 64)) << size;
  for (int64_t size : {kHugePage, kHugePage + 1, 3 * kHugePage - 5}) {
    auto storage = Storage::allocate(size);
    EXPECT_TRUE(aligned(storage->data(), kHugePage)) << size;
    static_cast<char*>(storage->data())[size - 1] = 1;
  }
}

TEST(Storage, SaysHowMuchMemoryIsMissing) {
  try {
    Storage::allocate(int64_t{1} << 61);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.reason.what.find("2,305,843,009,213,693,952 bytes"), std::string::npos) << e.what();
  }
}

TEST(StoragePool, ReusesWhatWasDropped) {
  Ref<StoragePool> pool(new StoragePool());
  void* first = pool->allocate(100'000)->data();
  EXPECT_EQ(pool->allocate(99'000)->data(), first);
  auto held = pool->allocate(100'000);
  auto other = pool->allocate(100'000);
  EXPECT_NE(held->data(), other->data());
  EXPECT_EQ(pool->stats().system_allocations, 2);
  held = nullptr;
  other = nullptr;
  pool->trim();
  EXPECT_EQ(pool->stats().held_bytes, 0);
  EXPECT_GE(pool->stats().peak_held_bytes, 200'000);
  EXPECT_LE(pool->stats().peak_held_bytes, 200'000 * 9 / 8);
}

TEST(StoragePool, OutlivesItsLastStorage) {
  Ref<StoragePool> pool(new StoragePool());
  auto storage = pool->allocate(10);
  pool = nullptr;
  static_cast<char*>(storage->data())[9] = 1;
}

TEST(Storage, BorrowedMemoryKeepsItsOwner) {
  struct Owner : Object {
    explicit Owner(bool* gone) : gone(gone) {}
    ~Owner() override { *gone = true; }
    bool* gone;
  };
  bool gone = false;
  float values[4] = {1, 2, 3, 4};
  auto tensor = Tensor::view(Storage::borrow(values, sizeof values, Ref<Owner>(new Owner(&gone))), 4, Dims{3}, f32);
  EXPECT_EQ(tensor->data_as<float>()[0], 2);
  EXPECT_FALSE(gone);
  tensor = nullptr;
  EXPECT_TRUE(gone);
}

TEST(Tensor, ViewsStayInsideTheirStorage) {
  auto storage = Storage::allocate(64);
  EXPECT_EQ(Tensor::view(storage, 32, Dims{2, 4}, f32)->size_bytes(), 32);
  EXPECT_THROW(Tensor::view(storage, 36, Dims{2, 4}, f32), Error);
  EXPECT_THROW(Tensor::view(storage, -4, Dims{1}, f32), Error);
  EXPECT_THROW(Tensor::view(storage, 2, Dims{1}, f32), Error);  // not aligned
  EXPECT_THROW(Tensor::view(storage, 0, Dims{-1}, f32), Error);
  EXPECT_THROW(Tensor::view(storage, 0, Dims{int64_t{1} << 61}, f32), Error);
  EXPECT_THROW(Tensor::view(storage, int64_t{1} << 62, Dims{1}, f32), Error);
}

TEST(Tensor, ReshapeSharesTheElements) {
  auto tensor = Tensor::of<float>({1, 2, 3, 4, 5, 6}, Dims{2, 3}, f32);
  auto row = tensor->reshaped(Dims{6});
  row->data_as<float>()[5] = 60;
  EXPECT_EQ(tensor->data_as<float>()[5], 60);
  EXPECT_EQ(text(*tensor), "float32[2, 3]");
  EXPECT_THROW(tensor->reshaped(Dims{4}), Error);
  EXPECT_THROW(Tensor::of<int64_t>({1}, Dims{1}, f32), Error);
}

TEST(Value, KnowsWhatItHolds) {
  EXPECT_EQ(Value().describe(), "nothing");
  EXPECT_EQ(Value(Ref<Tensor>()).describe(), "nothing");
  EXPECT_EQ(Value(true).describe(), "the integer 1");
  EXPECT_EQ(Value(0.5).describe(), "the float 0.5");
  EXPECT_EQ(Value(f32).describe(), "the dtype float32");
  EXPECT_EQ(Value("a").describe(), "the string \"a\"");
  EXPECT_EQ(Value(Shape::of({2, 3})).describe(), "the shape [2, 3]");
  Value tuple = Tuple::of({Value(1), Value(2.5)});
  EXPECT_EQ(tuple.describe(), "a tuple of 2 fields");
  EXPECT_EQ(tuple.as<Shape>(), nullptr);
  EXPECT_EQ(*tuple.as<Tuple>()->fields[0].as_int(), 1);
}

TEST(Workspace, GivesAlignedMemoryInAStack) {
  Workspace workspace;
  void* a = workspace.push(100);
  void* b = workspace.push(1);
  EXPECT_TRUE(aligned(a, 64));
  EXPECT_EQ(static_cast<char*>(b) - static_cast<char*>(a), 128);
  workspace.pop(b);
  EXPECT_EQ(workspace.push(5), b);
  workspace.pop(a);  // and what came after it
  EXPECT_EQ(workspace.mark(), 0u);
  EXPECT_EQ(workspace.push(-1), nullptr);
  EXPECT_EQ(workspace.push(int64_t{1} << 61), nullptr);
}

TEST(Workspace, GrowsAndThenStaysAsItIs) {
  Workspace workspace;
  auto use = [&] {
    std::vector<char*> blocks;
    for (int i = 0; i < 10; ++i) {
      blocks.push_back(static_cast<char*>(workspace.push(50'000)));
      std::fill_n(blocks.back(), 50'000, static_cast<char>(i));
    }
    for (int i = 0; i < 10; ++i) EXPECT_EQ(blocks[i][49'999], i);  // no overlap
    while (!blocks.empty()) {
      workspace.pop(blocks.back());
      blocks.pop_back();
    }
  };
  use();
  int64_t capacity = workspace.capacity_bytes();
  for (int i = 0; i < 5; ++i) use();
  EXPECT_EQ(workspace.capacity_bytes(), capacity);
}

// A loop that pushes across a block's end while something below stays pushed must not grow from turn to turn.
TEST(Workspace, DoesNotGrowUnderALoopThatReturnsWhatItTook) {
  Workspace workspace;
  workspace.push(60'000);
  int64_t after_first = 0;
  for (int i = 0; i < 100; ++i) {
    void* a = workspace.push(1'000);
    workspace.push(100'000);
    workspace.pop(a);
    if (i == 1) after_first = workspace.capacity_bytes();
  }
  EXPECT_EQ(workspace.capacity_bytes(), after_first);
}

}  // namespace
}  // namespace sator::runtime
