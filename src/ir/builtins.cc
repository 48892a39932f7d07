#include "ir/builtins.h"

#include <unordered_map>

namespace sator {

namespace {

constexpr DType kVoid = DType::Void(), kHandle = DType::Handle();

constexpr Builtin math(std::string_view op, std::string_view script, int args = 1) {
  return {.op = op, .script = script, .min_args = args, .max_args = args, .is_lanewise = true};
}
constexpr Builtin test(std::string_view op, std::string_view script) {
  return {.op = op,
          .script = script,
          .min_args = 1,
          .max_args = 1,
          .rule = ResultRule::fixed,
          .dtype = boolean,
          .is_lanewise = true};
}
constexpr Builtin fixed(std::string_view op, std::string_view script, DType dtype, int min_args, int max_args,
                        Effect effect = Effect::updates) {
  return {.op = op,
          .script = script,
          .min_args = min_args,
          .max_args = max_args,
          .effect = effect,
          .rule = ResultRule::fixed,
          .dtype = dtype};
}
constexpr Builtin written(std::string_view op, std::string_view script, int min_args, int max_args,
                          Effect effect = Effect::updates, ResultRule rule = ResultRule::written_first) {
  return {.op = op, .script = script, .min_args = min_args, .max_args = max_args, .effect = effect, .rule = rule};
}

constexpr Builtin kTable[] = {
    // Mathematics, each lane alone.
    math("tir.exp", "exp"),
    math("tir.exp2", "exp2"),
    math("tir.exp10", "exp10"),
    math("tir.erf", "erf"),
    math("tir.tanh", "tanh"),
    math("tir.sigmoid", "sigmoid"),
    math("tir.log", "log"),
    math("tir.log2", "log2"),
    math("tir.log10", "log10"),
    math("tir.log1p", "log1p"),
    math("tir.tan", "tan"),
    math("tir.cos", "cos"),
    math("tir.cosh", "cosh"),
    math("tir.sin", "sin"),
    math("tir.sinh", "sinh"),
    math("tir.acos", "acos"),
    math("tir.acosh", "acosh"),
    math("tir.asin", "asin"),
    math("tir.asinh", "asinh"),
    math("tir.atan", "atan"),
    math("tir.atanh", "atanh"),
    math("tir.atan2", "atan2", 2),
    math("tir.sqrt", "sqrt"),
    math("tir.rsqrt", "rsqrt"),
    // round: halves away from zero; nearbyint: halves to even.
    math("tir.floor", "floor"),
    math("tir.ceil", "ceil"),
    math("tir.trunc", "trunc"),
    math("tir.round", "round"),
    math("tir.nearbyint", "nearbyint"),
    math("tir.fabs", "fabs"),
    math("tir.pow", "pow", 2),
    math("tir.fmod", "fmod", 2),
    math("tir.nextafter", "nextafter", 2),
    math("tir.hypot", "hypot", 2),
    math("tir.copysign", "copysign", 2),
    math("tir.ldexp", "ldexp", 2),
    math("tir.popcount", "popcount"),
    math("tir.fma", "fma", 3),
    test("tir.isnan", "isnan"),
    {.op = "tir.clz",
     .script = "clz",
     .min_args = 1,
     .max_args = 1,
     .rule = ResultRule::fixed,
     .dtype = i32,
     .is_lanewise = true},
    math("tir.bitwise_and", "bitwise_and", 2),
    math("tir.bitwise_or", "bitwise_or", 2),
    math("tir.bitwise_xor", "bitwise_xor", 2),
    math("tir.bitwise_not", "bitwise_not"),
    math("tir.shift_left", "shift_left", 2),
    math("tir.shift_right", "shift_right", 2),
    /// round(x * y * 2^-s) in fixed point with q fraction bits.
    {.op = "tir.q_multiply_shift",
     .script = "q_multiply_shift",
     .min_args = 4,
     .max_args = 4,
     .rule = ResultRule::fixed,
     .dtype = i32,
     .is_lanewise = true},
    {.op = "tir.q_multiply_shift_per_axis",
     .script = "q_multiply_shift_per_axis",
     .min_args = 7,
     .max_args = 7,
     .rule = ResultRule::fixed,
     .dtype = i32,
     .is_lanewise = true},

    // Choice and hints. if_then_else evaluates only the value it takes.
    {.op = "tir.if_then_else", .script = "if_then_else", .min_args = 3, .max_args = 3, .rule = ResultRule::like_second},
    math("tir.likely", "likely"),
    fixed("tir.assume", "assume", boolean, 1, 1, Effect::updates),
    fixed("tir.undef", "undef", i32, 0, 0, Effect::reads),
    {.op = "tir.tvm_thread_invariant", .script = "tvm_thread_invariant", .min_args = 1, .max_args = 1},
    fixed("tir.vscale", "vscale", i32, 0, 0, Effect::pure),
    {.op = "tir.ret", .script = "ret", .min_args = 1, .max_args = 1, .effect = Effect::updates},

    // Bits, vectors, products.
    {.op = "tir.reinterpret",
     .script = "reinterpret",
     .min_args = 1,
     .max_args = 1,
     .rule = ResultRule::written_first,
     .is_lanewise = true},
    written("tir.vectorlow", "vectorlow", 1, 1, Effect::pure),
    written("tir.vectorhigh", "vectorhigh", 1, 1, Effect::pure),
    written("tir.vectorcombine", "vectorcombine", 2, 2, Effect::pure),
    written("tir.get_active_lane_mask", "get_active_lane_mask", 2, 2, Effect::pure),
    /// dot4(acc, a, b): acc[l] + sum over j < 4 of a[4l + j] * b[4l + j]; acc int32, a and b 8-bit integers of four times
    /// the lanes. What VNNI's vpdpbusd and Arm's udot/sdot compute; sums wrap at 32 bits.
    math("tir.dot4", "dot4", 3),
    /// dot2(acc, a, b): the same over pairs; acc float32, a and b bfloat16 or float16. Of each pair the second product is
    /// added first, each sum rounded to float32 once. What AVX512_BF16's vdpbf16ps computes, which takes denormals for 0.
    math("tir.dot2", "dot2", 3),
    /// tile_product(acc, acc_stride, a, a_stride, b, b_stride, rows, columns, depth, ahead, from_zero, count, acc_step, a_step, b_step,
    /// lines):
    /// for p < count, i < rows and j < columns, in elements,
    ///   acc[p * acc_step + i * acc_stride + j] += sum over k < depth of
    ///       a[p * a_step + i * a_stride + k] * b[p * b_step + j // 32 * b_stride + k // g * 32 * g + j % 32 * g + k % g],
    /// where 16 columns have b_stride in the place of 32 g: b is half a panel, or anything else with 16 g side by side;
    /// or the sum alone with from_zero. acc, a, b: T.address_of; rows at most 32, and none if negative; the other numbers but ahead are
    /// constants below 2^31, columns 16 or a multiple of 32 up to 1024, depth and count at least 1, lines at most 32. With each 2048 bytes of b
    /// so many cache lines are asked for that begin `ahead` bytes behind their first one.
    /// Bytes in int32, g = 4: sums wrap; a word of b is four unsigned bytes. bfloat16 in float32, g = 2, depth a multiple of 32: of each
    /// 32 k the products of even ones are summed, and those of odd ones, one after the other, then both sums, and that is added to
    /// acc. What AMX's tdpb*d and tdpbf16ps compute, which take denormals for 0; one row alone, summed in vectors, keeps them.
    /// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS.
    fixed("tir.tile_product", "tile_product", i32, 16, 16),
    /// tile_dot(t, a, a_stride, b, depth, from_zero): the same of bytes for 16 rows and 16 columns, half of a panel, but the sums stay in
    /// the thread's matrix tile t. All but a and b are constants, t below 4, depth at most 64.
    fixed("tir.tile_dot", "tile_dot", i32, 6, 6),
    /// tile_store(t, acc, acc_stride): acc[i * acc_stride + j] = the sum of row i and column j in tile t. No tile_product runs between
    /// tile_dot and the tile's last tile_store: it has sums in the same tiles.
    fixed("tir.tile_store", "tile_store", i32, 3, 3),
    /// Whether the function is compiled for a CPU level with matrix tiles; false where it is interpreted. An `if` whose whole condition it
    /// is has code for the chosen statement alone, so that the other one may be of things that the level lacks.
    fixed("tir.has_matrix_tiles", "has_matrix_tiles", boolean, 0, 0, Effect::pure),
    /// lookup16(index, w0, w1, w2, w3): byte `index` (its lower four bits) of the words, which are constants, lowest first. uint8. What
    /// SSSE3's pshufb and Arm's tbl compute.
    {.op = "tir.lookup16",
     .script = "lookup16",
     .min_args = 5,
     .max_args = 5,
     .rule = ResultRule::fixed,
     .dtype = u8,
     .is_lanewise = true},
    {.op = "tir.dp4a", .script = "dp4a", .min_args = 3, .max_args = 3, .rule = ResultRule::fixed, .dtype = i32},
    written("tir.type_annotation", "type_annotation", 0, 0, Effect::pure),

    // Memory.
    fixed("tir.address_of", "address_of", kHandle, 1, 1, Effect::pure),
    fixed("tir.tvm_access_ptr", "tvm_access_ptr", kHandle, 5, 5, Effect::pure),
    fixed("tir.isnullptr", "isnullptr", boolean, 1, 1, Effect::pure),
    fixed("tir.lookup_param", "lookup_param", kHandle, 1, 1, Effect::pure),
    fixed("tir.tvm_tuple", "tvm_tuple", kHandle, 0, -1, Effect::pure),
    written("tir.tvm_struct_get", "tvm_struct_get", 3, 3, Effect::reads, ResultRule::written_last),
    fixed("tir.tvm_struct_set", "tvm_struct_set", i32, 4, 4),
    fixed("tir.tvm_stack_alloca", "tvm_stack_alloca", kHandle, 2, 2),
    fixed("tir.tvm_stack_make_shape", "tvm_stack_make_shape", kHandle, 0, -1),
    fixed("tir.tvm_stack_make_array", "tvm_stack_make_array", kHandle, 6, 6),
    fixed("tir.TVMBackendAllocWorkspace", "TVMBackendAllocWorkspace", kHandle, 5, 5),
    fixed("tir.TVMBackendFreeWorkspace", "TVMBackendFreeWorkspace", i32, 3, 3),
    written("tir.atomic_add", "atomic_add", 2, 2),
    fixed("tir.prefetch", "prefetch", i32, 4, 4),

    // Calls of other functions.
    written("tir.call_extern", "call_extern", 1, -1),
    written("tir.call_pure_extern", "call_pure_extern", 1, -1, Effect::pure),
    written("tir.call_llvm_intrin", "call_llvm_intrin", 1, -1),
    written("tir.call_llvm_pure_intrin", "call_llvm_pure_intrin", 1, -1, Effect::pure),
    fixed("tir.tvm_call_packed", "call_packed", i32, 0, -1),
    fixed("tir.tvm_call_cpacked", "call_cpacked", i32, 0, -1),
    fixed("tir.tvm_call_packed_lowered", "call_packed_lowered", i32, 0, -1),
    fixed("tir.tvm_call_cpacked_lowered", "call_cpacked_lowered", i32, 0, -1),
    fixed("tir.tvm_check_return", "tvm_check_return", i32, 3, 3),
    fixed("tir.tvm_throw_last_error", "tvm_throw_last_error", kHandle, 0, 0),
    // The context of a device: an object that the argument makes, and that is made once for each thread.
    fixed("tir.tvm_thread_context", "tvm_thread_context", kHandle, 1, 1, Effect::pure),
    fixed("tir.start_profile_intrinsic", "start_profile_intrinsic", kHandle, 1, 1),
    fixed("tir.end_profile_intrinsic", "end_profile_intrinsic", kHandle, 1, 1),
    fixed("tir.anylist_getitem", "anylist_getitem", kHandle, 2, 2, Effect::reads),
    fixed("tir.anylist_resetitem", "anylist_resetitem", i32, 2, 2),
    fixed("tir.anylist_setitem_call_packed", "anylist_setitem_call_packed", i32, 3, -1),
    fixed("tir.anylist_setitem_call_cpacked", "anylist_setitem_call_cpacked", i32, 3, -1),

    // Threads of a GPU.
    fixed("tir.tvm_storage_sync", "tvm_storage_sync", i32, 1, 3),
    fixed("tir.tvm_thread_allreduce", "tvm_thread_allreduce", kHandle, 4, -1),
    {.op = "tir.tvm_warp_shuffle",
     .script = "tvm_warp_shuffle",
     .min_args = 5,
     .max_args = 5,
     .effect = Effect::updates,
     .rule = ResultRule::like_second},
    {.op = "tir.tvm_warp_shuffle_up",
     .script = "tvm_warp_shuffle_up",
     .min_args = 5,
     .max_args = 5,
     .effect = Effect::updates,
     .rule = ResultRule::like_second},
    {.op = "tir.tvm_warp_shuffle_down",
     .script = "tvm_warp_shuffle_down",
     .min_args = 5,
     .max_args = 5,
     .effect = Effect::updates,
     .rule = ResultRule::like_second},
    fixed("tir.tvm_warp_activemask", "tvm_warp_activemask", u32, 0, 0),
    fixed("tir.tvm_load_matrix_sync", "tvm_load_matrix_sync", kHandle, 8, 8),
    fixed("tir.tvm_mma_sync", "tvm_mma_sync", kHandle, 8, 8),
    fixed("tir.tvm_bmma_sync", "tvm_bmma_sync", kHandle, 8, 8),
    fixed("tir.tvm_fill_fragment", "tvm_fill_fragment", kHandle, 6, 6),
    fixed("tir.tvm_store_matrix_sync", "tvm_store_matrix_sync", kHandle, 8, 8),
    written("tir.ptx_mma", "ptx_mma", 13, 14),
    written("tir.ptx_mma_sp", "ptx_mma_sp", 16, 16),
    written("tir.ptx_ldmatrix", "ptx_ldmatrix", 7, 7),
    written("tir.ptx_cp_async", "ptx_cp_async", 5, 6),
    written("tir.ptx_cp_async_bulk", "ptx_cp_async_bulk", 6, 6),
    written("tir.mma_store", "mma_store", 6, 6),
    written("tir.mma_fill", "mma_fill", 3, 3),
    fixed("tir.ptx_commit_group", "ptx_commit_group", kVoid, 0, 0),
    fixed("tir.ptx_wait_group", "ptx_wait_group", kVoid, 1, 1),
    fixed("tir.ptx_cp_async_barrier", "ptx_cp_async_barrier", kVoid, 1, 1),
    fixed("tir.ptx_init_barrier_thread_count", "ptx_init_barrier_thread_count", kVoid, 2, 2),
    fixed("tir.ptx_arrive_barrier", "ptx_arrive_barrier", kVoid, 1, 1),
    fixed("tir.ptx_arrive_barrier_expect_tx", "ptx_arrive_barrier_expect_tx", kVoid, 2, 2),
    fixed("tir.ptx_wait_barrier", "ptx_wait_barrier", kVoid, 1, 1),
    fixed("tir.create_barriers", "create_barriers", kVoid, 1, 1),
    fixed("tir.make_filled_simdgroup_matrix", "make_filled_simdgroup_matrix", kHandle, 5, 5),
    fixed("tir.simdgroup_load", "simdgroup_load", kHandle, 7, 7),
    fixed("tir.simdgroup_store", "simdgroup_store", kHandle, 7, 7),
    fixed("tir.simdgroup_multiply_accumulate", "simdgroup_multiply_accumulate", kHandle, 8, 8),
};

/// Other names under which scripts know a builtin.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"tvm_call_packed", "tir.tvm_call_packed"},
    {"tvm_call_cpacked", "tir.tvm_call_cpacked"},
    {"tvm_call_packed_lowered", "tir.tvm_call_packed_lowered"},
    {"tvm_call_cpacked_lowered", "tir.tvm_call_cpacked_lowered"},
    {"power", "tir.pow"},
    {"left_shift", "tir.shift_left"},
    {"right_shift", "tir.shift_right"},
};

using Index = std::unordered_map<std::string_view, const Builtin*>;

const Index& by_op() {
  static const Index index = [] {
    Index out;
    for (const Builtin& b : kTable) out.emplace(b.op, &b);
    return out;
  }();
  return index;
}

const Index& by_script() {
  static const Index index = [] {
    Index out;
    for (const Builtin& b : kTable) out.emplace(b.script, &b);
    for (const auto& [name, op] : kOtherNames) out.emplace(name, by_op().at(op));
    return out;
  }();
  return index;
}

const Builtin* find(const Index& index, std::string_view key) {
  auto at = index.find(key);
  return at == index.end() ? nullptr : at->second;
}

}  // namespace

std::span<const Builtin> builtins() { return kTable; }
const Builtin* find_builtin(std::string_view op) { return find(by_op(), op); }
const Builtin* find_builtin_by_script(std::string_view name) { return find(by_script(), name); }

bool is_pure(const Expr& e) {
  bool pure = true;
  walk(
      e,
      [&](const BufferLoad&) {
        pure = false;
        return false;
      },
      [&](const Call& c) {
        const Builtin* b = find_builtin(c.op);
        pure &= b && b->effect == Effect::pure;
        return pure;
      });
  return pure;
}

namespace {

struct LlvmIntrinsic {
  std::string_view name, op;
  size_t arguments = 1;
};
constexpr LlvmIntrinsic kLlvmIntrinsics[] = {
    {"llvm.ceil", "tir.ceil"},
    {"llvm.copysign", "tir.copysign", 2},
    {"llvm.cos", "tir.cos"},
    {"llvm.ctpop", "tir.popcount"},
    {"llvm.exp", "tir.exp"},
    {"llvm.exp10", "tir.exp10"},
    {"llvm.exp2", "tir.exp2"},
    {"llvm.fabs", "tir.fabs"},
    {"llvm.floor", "tir.floor"},
    {"llvm.fma", "tir.fma", 3},
    {"llvm.fmuladd", "tir.fma", 3},
    {"llvm.log", "tir.log"},
    {"llvm.log10", "tir.log10"},
    {"llvm.log2", "tir.log2"},
    {"llvm.nearbyint", "tir.nearbyint"},
    {"llvm.pow", "tir.pow", 2},
    {"llvm.rint", "tir.nearbyint"},
    {"llvm.round", "tir.round"},
    {"llvm.roundeven", "tir.nearbyint"},
    {"llvm.sin", "tir.sin"},
    {"llvm.sqrt", "tir.sqrt"},
    {"llvm.tan", "tir.tan"},
    {"llvm.trunc", "tir.trunc"},
    {"llvm.x86.avx512.vpdpbusd", "tir.dot4", 3},
};

/// The row of an intrinsic, whose name may end in its types or its width: "llvm.fabs.v8f32".
const LlvmIntrinsic* llvm_intrinsic(std::string_view name) {
  for (const LlvmIntrinsic& row : kLlvmIntrinsics)
    if (name == row.name || (name.starts_with(row.name) && name[row.name.size()] == '.')) return &row;
  return nullptr;
}

}  // namespace

std::vector<Expr> arguments_of_llvm(const Call& call, size_t count) {
  const bool tells = call.args.size() == count + 2 && call.args[1].as<IntImm>();
  return {call.args.begin() + (tells ? 2 : 1), call.args.end()};
}

Expr builtin_of_llvm(const Call& call) {
  if (call.op != "tir.call_llvm_pure_intrin" && call.op != "tir.call_llvm_intrin") return nullptr;
  const StringImm* name = call.args.empty() ? nullptr : call.args[0].as<StringImm>();
  const LlvmIntrinsic* row = name ? llvm_intrinsic(name->value) : nullptr;
  if (!row) return nullptr;
  std::vector<Expr> args = arguments_of_llvm(call, row->arguments);
  if (args.size() != row->arguments)
    fail({.what = text(name->value, " of ", args.size(), " arguments"),
          .needs = text(row->arguments, " of them"),
          .hint = "correct the call"});
  if (row->op == "tir.dot4")  // words of four bytes, unsigned ones by signed ones
    for (size_t i : {1u, 2u}) {
      const DType bytes = i == 1 ? DType::UInt(8, 4 * call.dtype.lanes) : DType::Int(8, 4 * call.dtype.lanes);
      args[i] = sator::call(bytes, "tir.reinterpret", {args[i]});
    }
  return sator::call(call.dtype, std::string(row->op), std::move(args));
}

bool has_side_effect(const Expr& e) {
  bool updates = false;
  walk(e, [&](const Call& c) {
    const Builtin* b = find_builtin(c.op);
    updates |= !b || b->effect == Effect::updates;
    return !updates;
  });
  return updates;
}

Expr call_builtin(std::string_view op, std::vector<Expr> args) {
  const Builtin* b = find_builtin(op);
  if (!b) internal_error(text("no builtin ", op));
  int n = static_cast<int>(args.size());
  if (n < b->min_args || (b->max_args >= 0 && n > b->max_args))
    fail({.what = text(b->script, " takes ", b->min_args, " arguments, but got ", n),
          .needs = text(b->min_args, b->max_args == b->min_args ? "" : " or more", " arguments"),
          .hint = "correct the call"});
  DType dtype = b->dtype;
  switch (b->rule) {
    case ResultRule::like_first: dtype = args[0]->dtype; break;
    case ResultRule::like_second: dtype = args[1]->dtype; break;
    case ResultRule::fixed:
      if (b->is_lanewise && !args.empty()) dtype = dtype.with_lanes(args[0]->dtype.all_lanes());
      break;
    default: internal_error(text("the dtype of ", op, " must be given"));
  }
  return call(dtype, std::string(op), std::move(args));
}

Expr predicated_load(const Expr& load, const Expr& predicate) {
  return call(load->dtype, "tir.if_then_else", {predicate, load, constant(0, load->dtype)});
}

std::pair<const BufferLoad*, Expr> as_predicated_load(const Call& call) {
  const BufferLoad* load = call.op == "tir.if_then_else" ? call.args[1].as<BufferLoad>() : nullptr;
  const bool is_vector = load && load->dtype.lanes > 1 && call.args[0]->dtype.all_lanes() == load->dtype.all_lanes();
  if (!is_vector || !equal(call.args[2], constant(0, load->dtype))) return {nullptr, nullptr};
  return {load, call.args[0]};
}

Expr if_then_else(Expr condition, Expr true_value, Expr false_value) {
  // The branches are brought to one dtype as the two values of a selection are.
  bool is_constant = condition.as<IntImm>();
  Expr chosen = select(std::move(condition), std::move(true_value), std::move(false_value));
  if (is_constant) return chosen;
  const Select& s = *chosen.as<Select>();
  return call(s.dtype, "tir.if_then_else", {s.condition, s.true_value, s.false_value});
}

}  // namespace sator
