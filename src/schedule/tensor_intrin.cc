#include "schedule/tensor_intrin.h"

#include <map>
#include <mutex>

#include "schedule/intrinsics/dot_product.h"
#include "schedule/intrinsics/wmma.h"

namespace sator::schedule {

using namespace tir;

namespace {

struct Table {
  std::mutex mutex;
  std::map<std::string, TensorIntrin> rows;
};
Table& table() {
  static Table t;
  return t;
}

}  // namespace

BlockRef intrinsic_block(const PrimFunc& func) {
  const BlockRealize* realize = func.body.as<BlockRealize>();
  return realize ? realize->block : nullptr;
}

void register_tensor_intrin(const std::string& name, PrimFuncRef desc, PrimFuncRef impl) {
  auto refuse = [&](std::string what) {
    fail(
        {.what = text("tensor intrinsic ", name, ": ", what),
         .needs = "a description and an implementation over the same buffers, each one block with its reads and writes",
         .hint = "declare T.reads and T.writes of the root block"});
  };
  if (!intrinsic_block(*desc) || !intrinsic_block(*impl)) refuse("a body that is not a block");
  if (desc->buffer_map.size() != impl->buffer_map.size() || desc->params.size() != impl->params.size() ||
      desc->buffer_map.size() != desc->params.size())
    refuse("parameters that are not the same buffers");
  for (size_t i = 0; i < desc->buffer_map.size(); ++i) {
    const Buffer &a = *desc->buffer_map[i].second, &b = *impl->buffer_map[i].second;
    bool same = a.dtype == b.dtype && a.shape.size() == b.shape.size();
    for (size_t d = 0; same && d < a.shape.size(); ++d) same = equal(a.shape[d], b.shape[d]);
    if (!same) refuse(text("buffer ", a.name, " is of another shape or dtype than ", b.name));
  }
  std::lock_guard lock(table().mutex);
  table().rows[name] = {std::move(desc), std::move(impl)};
}

TensorIntrin tensor_intrin(const std::string& name) {
  std::lock_guard lock(table().mutex);
  auto at = table().rows.find(name);
  if (at != table().rows.end()) return at->second;
  std::vector<std::string> names;
  for (const TextIntrins* shipped : {&wmma_intrins(), &dot_product_intrins()}) {
    if (const TensorIntrin* intrin = shipped->find(name)) return *intrin;
    for (std::string& n : shipped->names()) names.push_back(std::move(n));
  }
  for (const auto& [n, row] : table().rows) names.push_back(n);
  const std::vector<std::string> near = nearest_names(name, names);
  fail({.what = text("there is no tensor intrinsic ", string_literal(name)),
        .needs = "an intrinsic of dot products or of NVIDIA's warp matrices, or one that has been registered",
        .hint = near.empty() ? std::string("register_tensor_intrin adds one")
                             : text("the nearest are: ", join(near, ", "))});
}

}  // namespace sator::schedule
