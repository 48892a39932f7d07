// Steps that do not keep a program's meaning by themselves: the user answers for it.
#include <algorithm>

#include "schedule/buffers.h"
#include "schedule/edit.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

/// Gives a buffer that a block of the function allocates another dtype: what is stored is cast to it, what is loaded is cast
/// back, so that the range and the precision of the new dtype show in the results.
static void do_unsafe_set_dtype(Schedule& s, BlockHandle block, int index, std::string name) {
  auto dtype = DType::parse(name);
  if (!dtype || dtype->is_handle() || dtype->lanes != 1)
    s.fail({.what = text(string_literal(name), " is no dtype of elements"),
            .needs = "a dtype of numbers",
            .hint = "\"float16\", \"int8\", ..."});
  BufferSelector which;
  which.which = int64_t{index};
  which.is_write = true;
  BufferRef old = selected_buffer(s, block, which, true);
  if (!is_allocated(s, old))
    s.fail({.what = text("buffer ", old->name, " is a parameter of the function"),
            .needs = "a buffer that a block of the function allocates",
            .hint = text("cache_write ", old->name, " first"),
            .at = {{Stmt(&s.realize(block)), "writes it"}}});
  if (old->dtype == *dtype) return;
  Stmt body = s.func()->body;
  std::vector<BufferRef> changed = {old};
  walk(body, [&](const MatchBuffer& m) {  // names for parts of it change too
    if (std::ranges::find(changed, m.source->buffer) != changed.end()) changed.push_back(m.buffer);
  });
  const DType was = old->dtype;
  NodeMap map;
  std::vector<BufferRef> fresh;
  for (const BufferRef& b : changed) {
    BufferRef other =
        with(with(b, &Buffer::dtype, *dtype), &Buffer::data, make_pointer(b->data->name, *dtype, b->data->scope));
    fresh.push_back(other);
    map.emplace(b, other);
    map.emplace(b->data, other->data);
  }
  body = replaced(body, map);
  auto is_fresh = [&](const BufferRef& b) { return std::ranges::find(fresh, b) != fresh.end(); };
  body = transform(
      body,
      [&](const BufferLoad& n) -> Expr {
        return is_fresh(n.buffer) ? cast_to(was.with_lanes(n.dtype.all_lanes()), load(n.buffer, n.indices)) : Expr(&n);
      },
      [&](const BufferStore& n) -> Stmt {
        return is_fresh(n.buffer)
                   ? store(n.buffer, cast_to(dtype->with_lanes(n.value->dtype.all_lanes()), n.value), n.indices)
                   : Stmt(&n);
      });
  s.replace_body(body);
}

/// Takes regions out of a block's reads or writes: later steps do not see these accesses.
static void do_unsafe_hide_buffer_access(Schedule& s, BlockHandle block, std::string side,
                                         std::vector<int64_t> indices) {
  if (side != "read" && side != "write")
    s.fail({.what = text(string_literal(side), " is no side of a block"),
            .needs = "\"read\" or \"write\"",
            .hint = "name the list that the numbers count in"});
  const BlockRealize& old = s.realize(block);
  const bool reads = side == "read";
  std::vector<BufferRegionRef> kept;
  const std::vector<BufferRegionRef>& regions = reads ? old.block->reads : old.block->writes;
  for (int64_t i : indices) {
    if (i < 0 || i >= static_cast<int64_t>(regions.size()))
      s.fail(block_refusal(s,
                           s.site(block),
                           text("has ", regions.size(), " ", side, " regions, and no number ", i),
                           text("0 <= index < ", regions.size()),
                           "count the entries of T.reads or T.writes"));
  }
  for (size_t i = 0; i < regions.size(); ++i) {
    if (std::ranges::find(indices, static_cast<int64_t>(i)) == indices.end()) kept.push_back(regions[i]);
  }
  BlockRef hidden = with(old.block, reads ? &Block::reads : &Block::writes, std::move(kept));
  s.replace(Stmt(&old), with(old, &BlockRealize::block, hidden));
}

/// P - c * S, of which P is a sum of products; c is a constant.
struct Correction {
  Expr whole, sums;
  int64_t zero;
};
/// The one that the block subtracts; nothing where there is none, or more than one.
static std::optional<Correction> correction_of(const Block& block) {
  std::vector<Correction> found;
  walk(block.body, [&](const Sub& n) {
    const Mul* term = n.b.as<Mul>();
    const auto zero = term ? as_int(term->a) : std::nullopt;
    if (n.a.as<BufferLoad>() && zero && term->b.as<BufferLoad>() && n.dtype == i32)
      found.push_back({Expr(&n), n.a, *zero});
  });
  if (found.size() != 1) return {};
  return found.front();
}

/// Whether each read of a buffer is cast at once, and one statement alone stores to it.
static bool is_read_by_casts(const Stmt& body, const Buffer& buffer) {
  int reads = 0, casts = 0, stores = 0;
  walk(
      body,
      [&](const BufferLoad& n) { reads += n.buffer.get() == &buffer; },
      [&](const Cast& n) {
        const BufferLoad* load = n.value.as<BufferLoad>();
        casts += load && load->buffer.get() == &buffer;
      },
      [&](const BufferStore& n) { stores += n.buffer.get() == &buffer; });
  return reads == casts && stores == 1;
}

/// Subtracts a constant where integers are made instead of where sums of their products are used:
///   B[..] = b        P[..] += int32(A[..]) * int32(B[..])    .. P[..] - c * S[..] ..
///   => B[..] = int8(b) - int8(c), of int8                     .. P[..] ..
/// The user answers for S, the sum of the A that P goes over, and for b - c, which has room in 8 bits.
static void do_unsafe_subtract_early(Schedule& s, BlockHandle block, BlockHandle consumer) {
  const BufferStore* made = s.get(block).body.as<BufferStore>();
  if (!made || made->buffer->dtype != u8 || !is_allocated(s, made->buffer) || made->value->dtype.lanes != 1 ||
      !is_read_by_casts(s.func()->body, *made->buffer))
    s.fail(block_refusal(
        s,
        s.site(block),
        "makes no bytes whose type may change",
        "a block that stores single uint8 to a buffer which the function allocates, nobody else stores to and all "
        "others read in a cast",
        "name the block that makes the codes"));
  const std::optional<Correction> correction = correction_of(s.get(consumer));
  if (!correction)
    s.fail(block_refusal(s,
                         s.site(consumer),
                         "subtracts no product of a constant and an element",
                         "P[..] - c * S[..] of int32, once",
                         "name the block that uses the sums"));
  constexpr int64_t kLeastZero = -127, kMostZero = 255;  // that leave room in int8 for some byte
  if (correction->zero < kLeastZero || correction->zero > kMostZero)
    s.fail(
        block_refusal(s,
                      s.site(consumer),
                      text("subtracts ", correction->zero, " times the sums"),
                      text("a constant from ", kLeastZero, " to ", kMostZero, ": no byte less another one fits int8"),
                      "leave the sums as they are"));
  const BufferRef old = made->buffer;
  const BufferRef fresh =
      with(with(old, &Buffer::dtype, i8), &Buffer::data, make_pointer(old->data->name, i8, old->data->scope));
  const std::vector<BufferRef> visible = buffers_of(*s.func());
  Stmt body = transform(
      replaced(s.func()->body, {{old, fresh}, {old->data, fresh->data}}),
      [&](const Sub& n) -> Expr { return Expr(&n) == correction->whole ? correction->sums : Expr(&n); },
      [&](const BufferStore& n) -> Stmt {
        if (n.buffer != fresh) return Stmt(&n);
        return store(fresh, cast_to(i8, n.value) - int_imm(correction->zero, i8), n.indices);
      });
  const BlockHandle changed = s.get(consumer).name;
  body = transform(body, [&](const Block& n) -> Stmt {
    return n.name == changed ? Stmt(with_detected_regions(ref(n), visible, true, false)) : Stmt(&n);
  });
  s.replace_body(body);
}

const Primitive<void(BlockHandle, int, std::string)> unsafe_set_dtype{"unsafe_set_dtype",
                                                                      do_unsafe_set_dtype,
                                                                      {"block", "buffer_index", "dtype"},
                                                                      "gives an allocated buffer another dtype"};
const Primitive<void(BlockHandle, std::string, std::vector<int64_t>)> unsafe_hide_buffer_access{
    "unsafe_hide_buffer_access",
    do_unsafe_hide_buffer_access,
    {"block", "buf_type", "buf_index_array"},
    "takes accesses out of a block's regions"};
const Primitive<void(BlockHandle, BlockHandle)> unsafe_subtract_early{
    "unsafe_subtract_early",
    do_unsafe_subtract_early,
    {"block", "consumer"},
    "subtracts a constant from the bytes that are multiplied, not from the sums"};

}  // namespace sator::schedule
