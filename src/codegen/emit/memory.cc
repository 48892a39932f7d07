// Loads and stores. A vector access is planned by its lanes: one wide access where they are contiguous, a few wide
// accesses and a shuffle where they are near each other, a gather or single lanes otherwise.
#include <llvm/IR/Constants.h>

#include <algorithm>
#include <bit>

#include "codegen/emit/emit.h"
#include "codegen/emit/lanes.h"

namespace sator::codegen {

namespace {

/// One access to flat memory: where, and what of each lane.
struct Access {
  Memory memory;
  DType element;  ///< of the buffer
  llvm::Type* in_memory;
  llvm::Value* base;  ///< element index of lane offset 0; 64 bits
  std::vector<int64_t> offsets;
  llvm::Value* vector_index = nullptr;  ///< instead of base and offsets: an index for each lane
  bool streaming = false;
  int lanes() const {
    if (!vector_index) return static_cast<int>(offsets.size());
    return static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector_index->getType())->getNumElements());
  }
};

llvm::Align element_align(const Access& a) {
  return llvm::Align(static_cast<uint64_t>(std::max<int64_t>(1, a.element.element_bytes())));
}

llvm::Value* pointer(Emit& e, const Access& a, int64_t offset) {
  // The constant part apart: accesses that differ by it alone are seen not to overlap.
  llvm::Value* at = a.memory.base;
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(a.base)) {
    offset += c->getSExtValue();
  } else {
    at = e.b.CreateInBoundsGEP(a.in_memory, at, a.base);
  }
  return offset ? e.b.CreateInBoundsGEP(a.in_memory, at, e.b.getInt64(static_cast<uint64_t>(offset))) : at;
}

/// An index as a sum of what varies (null: nothing) and a constant.
struct Offset {
  Expr rest;
  int64_t constant = 0;
};
Offset offset_of(const Expr& e) {
  if (auto value = as_int(e)) return {nullptr, *value};
  auto joined = [](const Offset& a, const Offset& b, int sign) {
    Offset out{a.rest, a.constant + sign * b.constant};
    if (b.rest) out.rest = sign > 0 ? (a.rest ? a.rest + b.rest : b.rest) : (a.rest ? a.rest - b.rest : -b.rest);
    return out;
  };
  if (const Add* n = e.as<Add>()) return joined(offset_of(n->a), offset_of(n->b), 1);
  if (const Sub* n = e.as<Sub>()) return joined(offset_of(n->a), offset_of(n->b), -1);
  if (const Mul* n = e.as<Mul>()) {
    Offset a = offset_of(n->a), b = offset_of(n->b);
    if (b.rest) std::swap(a, b);
    if (!b.rest) return {a.rest ? a.rest * b.constant : nullptr, a.constant * b.constant};
  }
  return {e, 0};
}

/// Alignment of an access at a constant place; elsewhere only the element's own is known.
llvm::Align align_at(const Access& a, int64_t offset) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(a.base);
  if (!constant) return element_align(a);
  int64_t bytes = (constant->getSExtValue() + offset) * a.element.element_bytes();
  return llvm::commonAlignment(std::max(a.memory.align, element_align(a)), static_cast<uint64_t>(bytes));
}

llvm::Value* from_memory(Emit& e, llvm::Value* v, DType element) {
  if (element.is_bool()) return e.b.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  if (element.is_integer() && element.bits != element.element_bytes() * 8) {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
    return e.b.CreateTrunc(v, type_of(e, element.with_lanes(vector ? static_cast<int>(vector->getNumElements()) : 1)));
  }
  return v;
}
llvm::Value* to_memory(Emit& e, llvm::Value* v, DType element, llvm::Type* in_memory) {
  llvm::Type* type = in_memory;
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType()))
    type = llvm::FixedVectorType::get(in_memory, vector->getNumElements());
  if (v->getType() == type || !(element.is_bool() || element.is_integer())) return v;
  return element.is_int() ? e.b.CreateSExt(v, type) : e.b.CreateZExt(v, type);
}

Access plan(Emit& e, const BufferRef& buffer, const std::vector<Expr>& indices) {
  if (indices.size() != 1)
    internal_error(text("buffer ", buffer->name, " of rank ", indices.size(), " was not flattened"));
  auto at = e.memory.find(buffer->data.get());
  if (at == e.memory.end()) internal_error(text("buffer ", buffer->name, " has no memory in the kernel"));
  Access a{.memory = at->second, .element = buffer->dtype.element(), .in_memory = memory_type(e, buffer->dtype)};
  a.streaming = std::find(e.streaming.begin(), e.streaming.end(), buffer->data.get()) != e.streaming.end();
  Expr index = indices[0];
  if (!does_not_wrap(index->dtype)) index = cast_to(i64.with_lanes(index->dtype.lanes), index);
  auto scaled = [&](Expr x) {
    if (!buffer->strides.empty()) x = x * cast_to(x->dtype.element(), buffer->strides[0]);
    if (buffer->elem_offset && !is_zero(buffer->elem_offset)) x = x + cast_to(x->dtype.element(), buffer->elem_offset);
    return buffer->dtype.lanes > 1 ? x * int64_t{buffer->dtype.lanes} : x;
  };
  auto place = [&](const Expr& scalar) {
    Offset split = offset_of(scalar);
    a.base = split.rest ? wide_index_of(e, split.rest) : e.b.getInt64(0);
    return split.constant;
  };
  if (index->dtype.lanes == 1) {
    int64_t constant = place(scaled(index));
    for (int i = 0; i < buffer->dtype.lanes; ++i) a.offsets.push_back(constant + i);
    return a;
  }
  if (buffer->dtype.lanes > 1) unsupported("a vector of vectors as a buffer's element");
  index = scaled(index);
  if (auto lanes = lanes_of(index)) {
    int64_t constant = place(lanes->base ? lanes->base : int_imm(0, i64));
    a.offsets = lanes->offsets;
    for (int64_t& offset : a.offsets) offset += constant;
  } else {
    a.vector_index = index_of(e, index);
  }
  return a;
}

/// Whether lanes that a mask switches off may be touched too: a constant place in memory on the stack, all of it inside (with
/// the slack of allocate.cc). LLVM keeps in registers what is loaded and stored without a mask.
bool may_touch_all(const Access& a, int64_t offset, int64_t span) {
  auto* slot = llvm::dyn_cast<llvm::AllocaInst>(a.memory.base);
  auto* base = llvm::dyn_cast<llvm::ConstantInt>(a.base);
  if (!a.memory.is_stack || !slot || !base) return false;
  const int64_t first = base->getSExtValue() + offset;
  auto* type = llvm::cast<llvm::ArrayType>(slot->getAllocatedType());
  const auto bytes =
      static_cast<int64_t>(type->getNumElements() * type->getElementType()->getPrimitiveSizeInBits() / 8);
  return first >= 0 && (first + span) * a.element.element_bytes() <= bytes;
}

llvm::Instruction* wide_load(Emit& e, const Access& a, int64_t offset, int lanes, llvm::Value* mask) {
  llvm::Type* type =
      lanes == 1 && !mask ? a.in_memory : llvm::FixedVectorType::get(a.in_memory, static_cast<unsigned>(lanes));
  llvm::Value* at = pointer(e, a, offset);
  llvm::Align align = align_at(a, offset);
  llvm::Instruction* load;
  if (mask && !may_touch_all(a, offset, lanes))
    load = e.b.CreateMaskedLoad(type, at, align, mask, llvm::Constant::getNullValue(type));
  else
    load = e.b.CreateAlignedLoad(type, at, align);
  e.aliases.mark(load, a.memory);
  return load;
}

llvm::Value* any_lane(Emit& e) {
  return e.b.CreateInsertElement(
      llvm::PoisonValue::get(llvm::FixedVectorType::get(e.b.getInt1Ty(), 1)), e.b.CreateOrReduce(e.mask), uint64_t{0});
}

llvm::Value* gather_at(Emit& e, const Access& a, llvm::Value* pointers, llvm::Value* mask) {
  const auto lanes = llvm::cast<llvm::FixedVectorType>(pointers->getType())->getNumElements();
  auto* type = llvm::FixedVectorType::get(a.in_memory, lanes);
  llvm::Instruction* load = e.b.CreateMaskedGather(
      type, pointers, element_align(a), mask, mask ? llvm::Constant::getNullValue(type) : nullptr);
  e.aliases.mark(load, a.memory);
  return load;
}

llvm::Value* gather(Emit& e, const Access& a, llvm::Value* mask) {
  llvm::Value* index = a.vector_index;
  unsigned lanes = static_cast<unsigned>(a.lanes());
  if (!index) {
    std::vector<llvm::Constant*> offsets;
    for (int64_t o : a.offsets) offsets.push_back(llvm::ConstantInt::get(a.base->getType(), static_cast<uint64_t>(o)));
    index = e.b.CreateAdd(e.b.CreateVectorSplat(lanes, a.base), llvm::ConstantVector::get(offsets), "", false, true);
  }
  llvm::Value* pointers = e.b.CreateInBoundsGEP(a.in_memory, a.memory.base, index);
  if (std::has_single_bit(lanes)) return gather_at(e, a, pointers, mask);
  // LLVM would widen an odd number of lanes by lanes whose index is anything, and may let such a gather write the register
  // that it takes for the index, which x86 refuses as an invalid instruction. So each part has a power of two; what the last
  // one lacks repeats the last lane.
  constexpr unsigned kWidest = 16;
  llvm::Value* out = nullptr;
  for (unsigned first = 0; first < lanes; first += kWidest) {
    const unsigned width = std::min(std::bit_ceil(lanes - first), kWidest);
    std::vector<int> picked, spread, merge;
    for (unsigned i = 0; i < width; ++i) picked.push_back(static_cast<int>(std::min(first + i, lanes - 1)));
    for (unsigned i = 0; i < lanes; ++i) {
      const bool here = i >= first && i < first + width;
      spread.push_back(here ? static_cast<int>(i - first) : -1);
      merge.push_back(static_cast<int>(here ? lanes + i : i));
    }
    llvm::Value* part = gather_at(
        e, a, e.b.CreateShuffleVector(pointers, picked), mask ? e.b.CreateShuffleVector(mask, picked) : nullptr);
    llvm::Value* spread_part = e.b.CreateShuffleVector(part, spread);
    out = out ? e.b.CreateShuffleVector(out, spread_part, merge) : spread_part;
  }
  return out;
}

/// Lanes near each other: wide loads side by side that cover them all, then one pick of each. Nothing beyond the first
/// and the last lane is touched.
llvm::Value* load_near(Emit& e, const Access& a, int64_t lowest, int64_t span) {
  int64_t lanes = a.lanes(), width = std::min(span, lanes);
  std::vector<int64_t> starts;
  for (int64_t s = 0; s < span; s += width) starts.push_back(std::min(s, span - width));
  llvm::Value* out = nullptr;
  for (size_t t = 0; t < starts.size(); ++t) {
    llvm::Value* part = wide_load(e, a, lowest + starts[t], static_cast<int>(width), nullptr);
    if (!part->getType()->isVectorTy()) part = e.b.CreateVectorSplat(1, part);
    // First spread this part over the lanes, then take from it the lanes that begin in it.
    std::vector<int> spread, merge;
    for (int64_t i = 0; i < lanes; ++i) {
      int64_t at = a.offsets[static_cast<size_t>(i)] - lowest - starts[t];
      bool here = at >= 0 && at < width;
      spread.push_back(here ? static_cast<int>(at) : -1);
      merge.push_back(static_cast<int>(here ? lanes + i : i));
    }
    llvm::Value* spread_part = e.b.CreateShuffleVector(part, spread);
    out = out ? e.b.CreateShuffleVector(out, spread_part, merge) : spread_part;
  }
  return out;
}

constexpr int64_t kMaxNearSpan = 4;  ///< wide loads for one vector of lanes, before a gather is better

bool is_contiguous(const std::vector<int64_t>& offsets) {
  for (size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] != offsets[0] + static_cast<int64_t>(i)) return false;
  return true;
}

llvm::Value* load_lanes(Emit& e, const Access& a) {
  int lanes = a.lanes();
  llvm::Value* mask = lanes > 1 ? mask_for(e, lanes) : nullptr;
  if (a.vector_index) return gather(e, a, mask);
  auto [low, high] = std::minmax_element(a.offsets.begin(), a.offsets.end());
  if (*low == *high) {  // one element in every lane
    llvm::Value* one = mask || e.mask ? wide_load(e, a, *low, 1, any_lane(e)) : wide_load(e, a, *low, 1, nullptr);
    if (one->getType()->isVectorTy()) one = e.b.CreateExtractElement(one, uint64_t{0});
    return splat(e, one, lanes);
  }
  if (is_contiguous(a.offsets)) return wide_load(e, a, *low, lanes, mask);
  // Offsets of lanes may lie further apart than int64 counts.
  const uint64_t distance = static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low);
  if (distance >= static_cast<uint64_t>(kMaxNearSpan * lanes)) return gather(e, a, mask);
  const int64_t span = static_cast<int64_t>(distance) + 1;
  return !mask || may_touch_all(a, *low, span) ? load_near(e, a, *low, span) : gather(e, a, mask);
}

void store_lanes(Emit& e, const Access& a, llvm::Value* value) {
  int lanes = a.lanes();
  llvm::Value* mask = lanes > 1 ? mask_for(e, lanes) : nullptr;
  if (!a.vector_index && is_contiguous(a.offsets)) {
    llvm::Value* at = pointer(e, a, a.offsets[0]);
    llvm::Align align = align_at(a, a.offsets[0]);
    llvm::Instruction* store;
    if (mask && may_touch_all(a, a.offsets[0], lanes))
      store =
          e.b.CreateAlignedStore(e.b.CreateSelect(mask, value, wide_load(e, a, a.offsets[0], lanes, mask)), at, align);
    else if (mask)
      store = e.b.CreateMaskedStore(value, at, align, mask);
    else
      store = e.b.CreateAlignedStore(value, at, align);
    e.aliases.mark(store, a.memory);
    if (a.streaming && !mask)
      store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                         llvm::MDNode::get(e.llvm, llvm::ConstantAsMetadata::get(e.b.getInt32(1))));
    return;
  }
  if (mask) {
    llvm::Value* index = a.vector_index;
    if (!index) {
      std::vector<llvm::Constant*> offsets;
      for (int64_t o : a.offsets)
        offsets.push_back(llvm::ConstantInt::get(a.base->getType(), static_cast<uint64_t>(o)));
      index = e.b.CreateAdd(splat(e, a.base, lanes), llvm::ConstantVector::get(offsets), "", false, true);
    }
    llvm::Value* pointers = e.b.CreateInBoundsGEP(a.in_memory, a.memory.base, index);
    e.aliases.mark(e.b.CreateMaskedScatter(value, pointers, element_align(a), mask), a.memory);
    return;
  }
  for (int i = 0; i < lanes; ++i) {
    llvm::Value* at =
        a.vector_index
            ? e.b.CreateInBoundsGEP(
                  a.in_memory, a.memory.base, e.b.CreateExtractElement(a.vector_index, static_cast<uint64_t>(i)))
            : pointer(e, a, a.offsets[static_cast<size_t>(i)]);
    llvm::Value* lane = e.b.CreateExtractElement(value, static_cast<uint64_t>(i));
    e.aliases.mark(e.b.CreateAlignedStore(lane, at, element_align(a)), a.memory);
  }
}

}  // namespace

namespace {

int width_of(llvm::Value* mask) {
  return static_cast<int>(llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements());
}

/// Each lane `times` times in a row.
llvm::Value* repeat_lanes(Emit& e, llvm::Value* mask, int times) {
  if (times == 1) return mask;
  std::vector<int> repeat;
  for (int i = 0; i < width_of(mask) * times; ++i) repeat.push_back(i / times);
  return e.b.CreateShuffleVector(mask, repeat);
}

}  // namespace

llvm::Value* mask_for(Emit& e, int lanes) {
  if (!e.mask) return nullptr;
  const int width = width_of(e.mask);
  if (std::max(width, lanes) % std::min(width, lanes) != 0)
    unsupported(text("a mask of ", width, " lanes over an access of ", lanes));
  if (width <= lanes) return repeat_lanes(e, e.mask, lanes / width);
  std::vector<int> picked;
  for (int i = 0; i < width; ++i) picked.push_back(i / (width / lanes));
  return mask_of_operand(e, picked, lanes);
}

llvm::Value* mask_of_operand(Emit& e, const std::vector<int>& picked, int lanes, int first) {
  llvm::Value* mask = mask_for(e, static_cast<int>(picked.size()));
  if (!mask) return nullptr;
  std::vector<std::vector<int>> users(static_cast<size_t>(lanes));
  size_t most = 0;
  for (size_t i = 0; i < picked.size(); ++i) {
    if (picked[i] < first || picked[i] >= first + lanes) continue;
    std::vector<int>& of = users[static_cast<size_t>(picked[i] - first)];
    of.push_back(static_cast<int>(i));
    most = std::max(most, of.size());
  }
  llvm::Value* none = llvm::Constant::getNullValue(mask->getType());
  llvm::Value* any = nullptr;
  for (size_t k = 0; k < std::max<size_t>(most, 1); ++k) {
    std::vector<int> from;
    for (const std::vector<int>& of : users) from.push_back(k < of.size() ? of[k] : static_cast<int>(picked.size()));
    llvm::Value* part = e.b.CreateShuffleVector(mask, none, from);
    any = any ? e.b.CreateOr(any, part) : part;
  }
  return any;
}

llvm::Value* mask_where(Emit& e, llvm::Value* condition, int lanes) {
  if (!e.mask) return condition;
  const int width = std::max(width_of(e.mask), lanes);
  return e.b.CreateAnd(mask_for(e, width), repeat_lanes(e, condition, width / lanes));
}

llvm::Value* emit_load(Emit& e, const BufferLoad& n) {
  bool outer = std::exchange(e.in_index, false);
  Access a = plan(e, n.buffer, n.indices);
  llvm::Value* value = from_memory(e, load_lanes(e, a), a.element);
  e.in_index = outer;
  return value;
}

void emit_store(Emit& e, const tir::BufferStore& n) {
  llvm::Value* value = value_of(e, n.value);
  Access a = plan(e, n.buffer, n.indices);
  int lanes = a.lanes();
  if (n.value->dtype.lanes == 1) value = splat(e, value, lanes);
  if (n.value->dtype.lanes != lanes && n.value->dtype.lanes != 1)
    unsupported(text("a store of ", n.value->dtype.lanes, " lanes into ", lanes, " elements"));
  store_lanes(e, a, to_memory(e, value, a.element, a.in_memory));
}

namespace {

llvm::Value* address(Emit& e, const Access& a) {
  if (a.vector_index) unsupported("the address of scattered lanes");
  int64_t offset = *std::min_element(a.offsets.begin(), a.offsets.end());
  return e.b.CreateGEP(a.in_memory,
                       a.memory.base,
                       e.b.CreateAdd(a.base, llvm::ConstantInt::get(a.base->getType(), static_cast<uint64_t>(offset))));
}

}  // namespace

llvm::Value* address_of(Emit& e, const BufferLoad& n) { return address(e, plan(e, n.buffer, n.indices)); }

void emit_prefetch(Emit& e, const BufferLoad& n, int write, int locality) {
  Access a = plan(e, n.buffer, n.indices);
  llvm::Value* at = address(e, a);
  auto option = [&](int v) { return e.b.getInt32(static_cast<uint32_t>(v)); };
  // It takes part in alias analysis like a load, or it would pin other buffers' values in memory.
  e.aliases.mark(
      e.b.CreateIntrinsic(llvm::Intrinsic::prefetch, {at->getType()}, {at, option(write), option(locality), option(1)}),
      a.memory);
}

}  // namespace sator::codegen
