// Products of matrix tiles (AMX): 32 rows by a panel of 32 columns in four tiles of sums. Configuring the tiles takes as long as two
// steps of a product out of the L1 cache (47 ns and 20 on an Intel Xeon; a product of 768 bytes has twelve), so a function does it where it begins, for full tiles, and again only around what has
// other ones: the last rows, a depth that ends in the middle of a step. One row of bfloat16 has no use for tiles: it is summed in the
// same order in vectors.
// Source: Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter "Intel Advanced Matrix Extensions".
#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <array>

#include "codegen/emit/builtins.h"

namespace sator::codegen {

namespace {

constexpr int64_t kRows = 16;       // of a tile
constexpr int64_t kRowBytes = 64;   // of a tile's row
constexpr int64_t kPanel = 32;      // columns
constexpr size_t kTileColumns = 2;  // tiles next to each other
using llvm::Intrinsic::ID;

/// T.tile_product, strides in bytes.
struct TileProduct {
  llvm::Value *acc, *a, *b;
  int64_t acc_stride, a_stride, b_stride;
  int64_t columns, depth_bytes;
  llvm::Value* ahead;
  bool from_zero;
  int64_t count, acc_step, a_step, b_step;  ///< products
  int64_t lines;                            ///< that are asked for in advance, with each step
  ID product;                               ///< of two tiles

  int64_t steps() const { return depth_bytes / kRowBytes; }
  /// Of b, from 4 bytes of k to the next: a panel's row, or what 16 columns have.
  int64_t b_row() const { return columns < kPanel ? b_stride : kTileColumns * kRowBytes; }
  /// Of b, from one step to the next.
  int64_t b_rows_of_step() const { return kRowBytes / 4 * b_row(); }
  int64_t panels() const { return (columns + kPanel - 1) / kPanel; }
  /// Of sums of a panel, next to each other: two, or one of the half panel that 16 columns are.
  size_t tiles_of_columns() const { return columns < kPanel ? 1 : kTileColumns; }
};

llvm::Value* at(Emit& e, llvm::Value* base, llvm::Value* bytes) { return e.b.CreateGEP(e.b.getInt8Ty(), base, bytes); }
llvm::Value* at(Emit& e, llvm::Value* base, int64_t bytes) {
  return at(e, base, llvm::ConstantInt::getSigned(e.b.getInt64Ty(), bytes));
}
llvm::Value* i64_of(Emit& e, int64_t v) { return llvm::ConstantInt::getSigned(e.b.getInt64Ty(), v); }
/// The number of a tile register.
llvm::Value* tile(Emit& e, size_t number) { return e.b.getInt8(static_cast<uint8_t>(number)); }

// Registers: sums of the first rows, of the second; the rows' operands; the columns' operands.
constexpr size_t kSums = 0, kLeft = 4, kRight = 6, kTiles = 8;
constexpr int64_t kMostUnrolled = 8;  // products of one step, written out
// What a call may ask for: its panels and lines are written out, and its numbers become bytes.
constexpr int64_t kMostColumns = 1024, kMostLines = 32, kMostNumber = int64_t{1} << 31;

void load_tile(Emit& e, size_t number, llvm::Value* from, int64_t stride) {
  e.b.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {}, {tile(e, number), from, i64_of(e, stride)});
}

/// Palette 1: bytes of each tile's rows from byte 16 on, 16 bits each, and their number from byte 48 on.
/// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, LDTILECFG.
constexpr size_t kConfigBytes = 64, kBytesAt = 16, kRowsAt = 48;

/// A configuration for full tiles of rows over `step_bytes` of k.
std::array<uint8_t, kConfigBytes> full_tiles(int64_t step_bytes) {
  std::array<uint8_t, kConfigBytes> out{};
  out[0] = 1;
  for (size_t t = 0; t < kTiles; ++t) {
    const bool left = t >= kLeft && t < kRight;
    out[kBytesAt + 2 * t] = static_cast<uint8_t>(left ? step_bytes : kRowBytes);
    out[kRowsAt + t] = static_cast<uint8_t>(t >= kRight ? step_bytes / 4 : kRows);
  }
  return out;
}

llvm::Constant* config_data(Emit& e, int64_t step_bytes) {
  return llvm::ConstantDataArray::get(e.llvm, llvm::ArrayRef<uint8_t>(full_tiles(step_bytes)));
}

void configure(Emit& e, llvm::IRBuilder<>& b, int64_t step_bytes) {
  const std::string name = text("sator.tiles.", step_bytes);
  llvm::Constant* data = config_data(e, step_bytes);
  auto* config = e.module.getGlobalVariable(name, true);
  if (!config)
    config = new llvm::GlobalVariable(e.module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, name);
  b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {config});
}

/// Full tiles from where the function begins on, unless it has some already.
void configure_function(Emit& e, int64_t step_bytes) {
  if (e.tile_step_bytes != 0) return;
  e.tile_step_bytes = step_bytes;
  llvm::BasicBlock& entry = e.function->getEntryBlock();
  llvm::IRBuilder<> b(&entry, entry.begin());
  configure(e, b, step_bytes);
}

/// For fewer rows: one tile of them, or a full one and another.
///   rows   of the last tile, int64
void configure_rows(Emit& e, int64_t step_bytes, size_t tiles, llvm::Value* rows) {
  llvm::IRBuilder<> entry(&e.function->getEntryBlock(), e.function->getEntryBlock().begin());
  llvm::Constant* data = config_data(e, step_bytes);
  llvm::AllocaInst* config = entry.CreateAlloca(data->getType());
  e.b.CreateStore(data, config);
  llvm::Value* narrow = e.b.CreateTrunc(rows, e.b.getInt8Ty());
  const size_t r = tiles - 1;
  for (size_t t : {kSums + r * kTileColumns, kSums + r * kTileColumns + 1, kLeft + r})
    e.b.CreateStore(narrow, at(e, config, static_cast<int64_t>(kRowsAt + t)));
  e.b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {config});
}

/// for step in [0, steps) with values that each step replaces: those after the last.
std::vector<llvm::Value*> emit_carried(Emit& e, int64_t steps, std::vector<llvm::Value*> values,
                                       FunctionRef<void(llvm::Value*, std::vector<llvm::Value*>&)> body) {
  if (steps == 0) return values;
  llvm::BasicBlock* before = e.b.GetInsertBlock();
  llvm::BasicBlock* loop = llvm::BasicBlock::Create(e.llvm, "steps", e.function);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(e.llvm, "endsteps", e.function);
  e.b.CreateBr(loop);
  e.b.SetInsertPoint(loop);
  llvm::PHINode* step = e.b.CreatePHI(e.b.getInt64Ty(), 2);
  step->addIncoming(e.b.getInt64(0), before);
  std::vector<llvm::PHINode*> carried;
  for (llvm::Value*& v : values) {
    carried.push_back(e.b.CreatePHI(v->getType(), 2));
    carried.back()->addIncoming(v, before);
    v = carried.back();
  }
  body(step, values);
  llvm::Value* next = e.b.CreateNUWAdd(step, e.b.getInt64(1));
  step->addIncoming(next, e.b.GetInsertBlock());
  for (size_t i = 0; i < values.size(); ++i) carried[i]->addIncoming(values[i], e.b.GetInsertBlock());
  e.b.CreateCondBr(e.b.CreateICmpULT(next, i64_of(e, steps)), loop, done);
  e.b.SetInsertPoint(done);
  return values;
}

void prefetch(Emit& e, llvm::Value* place) {
  e.b.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {place->getType()}, {place, e.b.getInt32(0), e.b.getInt32(3), e.b.getInt32(1)});
}

/// One product after the other.
void each_product(Emit& e, const TileProduct& t, FunctionRef<void(const TileProduct&)> body) {
  if (t.count == 1) return body(t);
  emit_loop(e, i64_of(e, 0), i64_of(e, t.count), [&](llvm::Value* p) {
    TileProduct one = t;
    one.acc = at(e, t.acc, e.b.CreateMul(p, i64_of(e, t.acc_step)));
    one.a = at(e, t.a, e.b.CreateMul(p, i64_of(e, t.a_step)));
    one.b = at(e, t.b, e.b.CreateMul(p, i64_of(e, t.b_step)));
    body(one);
  });
}

/// A tile of sums, zero or what lies there.
void begin_sums(Emit& e, const TileProduct& t, size_t number, llvm::Value* place) {
  if (t.from_zero)
    e.b.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {tile(e, number)});
  else
    load_tile(e, number, place, t.acc_stride);
}

/// A panel for so many tiles of rows, over whole steps of k or over the rest behind them. The tiles are configured.
void emit_panel(Emit& e, const TileProduct& t, size_t row_tiles, int64_t panel, bool rest) {
  llvm::Value *acc = at(e, t.acc, panel * kPanel * 4), *b = at(e, t.b, panel * t.b_stride);
  auto each_sum = [&](FunctionRef<void(size_t, llvm::Value*)> body) {
    for (size_t r = 0; r < row_tiles; ++r)
      for (size_t c = 0; c < t.tiles_of_columns(); ++c)
        body(kSums + r * kTileColumns + c,
             at(e, acc, static_cast<int64_t>(r) * kRows * t.acc_stride + static_cast<int64_t>(c) * kRowBytes));
  };
  auto multiply = [&](llvm::Value* step) {
    llvm::Value* right = at(e, b, e.b.CreateMul(step, i64_of(e, t.b_rows_of_step())));
    llvm::Value* left = at(e, t.a, e.b.CreateMul(step, i64_of(e, kRowBytes)));
    llvm::Value* later = t.lines > 0 ? at(e, right, t.ahead) : nullptr;
    for (int64_t line = 0; line < t.lines; ++line) prefetch(e, at(e, later, line * kRowBytes));
    for (size_t c = 0; c < t.tiles_of_columns(); ++c)
      load_tile(e, kRight + c, at(e, right, static_cast<int64_t>(c) * kRowBytes), t.b_row());
    for (size_t r = 0; r < row_tiles; ++r)
      load_tile(e, kLeft + r, at(e, left, static_cast<int64_t>(r) * kRows * t.a_stride), t.a_stride);
    for (size_t r = 0; r < row_tiles; ++r)
      for (size_t c = 0; c < t.tiles_of_columns(); ++c)
        e.b.CreateIntrinsic(
            t.product, {}, {tile(e, kSums + r * kTileColumns + c), tile(e, kLeft + r), tile(e, kRight + c)});
  };
  TileProduct part = t;
  part.from_zero &= !(rest && t.steps() > 0);
  each_sum([&](size_t number, llvm::Value* place) { begin_sums(e, part, number, place); });
  if (rest)
    multiply(i64_of(e, t.steps()));
  else
    emit_loop(e, i64_of(e, 0), i64_of(e, t.steps()), multiply);
  each_sum([&](size_t number, llvm::Value* place) {
    e.b.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {}, {tile(e, number), place, i64_of(e, t.acc_stride)});
  });
}

/// All products where one step sums each. A tile of sums is stored when two others have been multiplied after it: one that is stored
/// at once waits for its product, and multiplying waits for it (Intel Xeon with AMX: 33 ns a product of 32 bytes, 25 so).
void emit_short_products(Emit& e, const TileProduct& t, size_t row_tiles) {
  constexpr size_t kLag = 2;
  struct Store {
    size_t number;
    llvm::Value* place;
  };
  std::vector<Store> waiting;
  auto store_first = [&] {
    e.b.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64,
                        {},
                        {tile(e, waiting.front().number), waiting.front().place, i64_of(e, t.acc_stride)});
    waiting.erase(waiting.begin());
  };
  for (int64_t p = 0; p < t.count; ++p)
    for (int64_t panel = 0; panel < t.panels(); ++panel) {
      llvm::Value* acc = at(e, t.acc, p * t.acc_step + panel * kPanel * 4);
      llvm::Value *a = at(e, t.a, p * t.a_step), *b = at(e, t.b, p * t.b_step + panel * t.b_stride);
      for (size_t r = 0; r < row_tiles; ++r)
        for (size_t c = 0; c < t.tiles_of_columns(); ++c) {
          const size_t number = kSums + r * kTileColumns + c;
          llvm::Value* place =
              at(e, acc, static_cast<int64_t>(r) * kRows * t.acc_stride + static_cast<int64_t>(c) * kRowBytes);
          while (std::ranges::any_of(waiting, [&](const Store& s) { return s.number == number; })) store_first();
          if (r == 0) load_tile(e, kRight + c, at(e, b, static_cast<int64_t>(c) * kRowBytes), t.b_row());
          if (c == 0) load_tile(e, kLeft + r, at(e, a, static_cast<int64_t>(r) * kRows * t.a_stride), t.a_stride);
          begin_sums(e, t, number, place);
          e.b.CreateIntrinsic(t.product, {}, {tile(e, number), tile(e, kLeft + r), tile(e, kRight + c)});
          waiting.push_back({number, place});
          if (waiting.size() > kLag) store_first();
        }
    }
  while (!waiting.empty()) store_first();
}

/// if condition: body
void emit_if(Emit& e, llvm::Value* condition, FunctionRef<void()> body) {
  llvm::BasicBlock* then = llvm::BasicBlock::Create(e.llvm, "then", e.function);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(e.llvm, "endif", e.function);
  e.b.CreateCondBr(condition, then, done);
  e.b.SetInsertPoint(then);
  body();
  e.b.CreateBr(done);
  e.b.SetInsertPoint(done);
}

/// All products, with tiles that configure(step_bytes) makes ready.
void emit_products(Emit& e, const TileProduct& t, size_t row_tiles, FunctionRef<void(int64_t)> configure_for) {
  if (t.depth_bytes <= kRowBytes && t.lines == 0 && t.count <= kMostUnrolled) {
    configure_for(t.depth_bytes);
    emit_short_products(e, t, row_tiles);
    return;
  }
  for (bool rest : {false, true}) {
    const int64_t step_bytes = rest ? t.depth_bytes % kRowBytes : kRowBytes;
    if (step_bytes == 0 || (!rest && t.steps() == 0)) continue;
    configure_for(step_bytes);
    each_product(e, t, [&](const TileProduct& one) {
      for (int64_t panel = 0; panel < t.panels(); ++panel) emit_panel(e, one, row_tiles, panel, rest);
    });
  }
}

void emit_on_tiles(Emit& e, const TileProduct& t, llvm::Value* rows) {
  configure_function(e, std::min(t.depth_bytes, kRowBytes));
  int64_t ready = e.tile_step_bytes;  // for full tiles over so many bytes
  auto prepare = [&](int64_t step_bytes) {
    if (std::exchange(ready, step_bytes) != step_bytes) configure(e, e.b, step_bytes);
  };
  llvm::Value *one = i64_of(e, kRows), *two = i64_of(e, 2 * kRows);
  emit_if(e, e.b.CreateICmpSGE(rows, two), [&] {
    emit_products(e, t, 2, prepare);
    prepare(e.tile_step_bytes);
  });
  emit_if(e, e.b.CreateAnd(e.b.CreateICmpSGT(rows, i64_of(e, 0)), e.b.CreateICmpSLT(rows, two)), [&] {
    auto tiles_of = [&](size_t tiles) {
      llvm::Value* last = tiles == 2 ? e.b.CreateSub(rows, one) : rows;
      emit_products(e, t, tiles, [&](int64_t step_bytes) { configure_rows(e, step_bytes, tiles, last); });
    };
    llvm::Value* more = e.b.CreateICmpSGT(rows, one);
    emit_if(e, more, [&] { tiles_of(2); });
    emit_if(e, e.b.CreateNot(more), [&] { tiles_of(1); });
    configure(e, e.b, e.tile_step_bytes);
  });
}

/// One row of bfloat16 in vectors of 16 columns, all panels side by side: each is a stream from memory.
void emit_one_row(Emit& e, const TileProduct& t) {
  auto* floats = llvm::FixedVectorType::get(e.b.getFloatTy(), 16);
  auto* words = llvm::FixedVectorType::get(e.b.getInt32Ty(), 16);
  const int64_t vectors = t.columns / 16;
  auto halves = [&](llvm::Value* pairs) {
    llvm::Value* even = e.b.CreateShl(pairs, llvm::ConstantInt::get(words, 16));
    llvm::Value* odd = e.b.CreateAnd(pairs, llvm::ConstantInt::get(words, 0xffff0000U));
    return std::array{e.b.CreateBitCast(even, floats), e.b.CreateBitCast(odd, floats)};
  };
  auto fma = [&](llvm::Value* x, llvm::Value* y, llvm::Value* z) {
    return e.b.CreateIntrinsic(llvm::Intrinsic::fma, {floats}, {x, y, z});
  };
  std::vector<llvm::Value*> sums;
  for (int64_t v = 0; v < vectors; ++v) {
    llvm::Value* zero = llvm::Constant::getNullValue(floats);
    sums.push_back(t.from_zero ? zero : e.b.CreateAlignedLoad(floats, at(e, t.acc, v * kRowBytes), llvm::Align(4)));
  }
  sums =
      emit_carried(e, t.depth_bytes / kRowBytes, std::move(sums), [&](llvm::Value* step, std::vector<llvm::Value*>& c) {
        std::vector<std::array<llvm::Value*, 2>> parts(c.size());
        for (auto& p : parts) p.fill(llvm::Constant::getNullValue(floats));
        llvm::Value* left = at(e, t.a, e.b.CreateMul(step, i64_of(e, kRowBytes)));
        llvm::Value* panels = at(e, t.b, e.b.CreateMul(step, i64_of(e, t.b_rows_of_step())));
        for (int64_t k = 0; k < 16; ++k) {
          llvm::Value* pair = e.b.CreateAlignedLoad(e.b.getInt32Ty(), at(e, left, k * 4), llvm::Align(2));
          const auto x = halves(e.b.CreateVectorSplat(16, pair));
          for (int64_t v = 0; v < vectors; ++v) {
            llvm::Value* place = at(e, panels, v / 2 * t.b_stride + k * t.b_row() + v % 2 * kRowBytes);
            if (t.lines > 0) prefetch(e, at(e, place, t.ahead));
            const auto y = halves(e.b.CreateAlignedLoad(words, place, llvm::Align(2)));
            auto& p = parts[static_cast<size_t>(v)];
            for (size_t which : {0, 1}) p[which] = fma(x[which], y[which], p[which]);
          }
        }
        for (size_t v = 0; v < c.size(); ++v) c[v] = e.b.CreateFAdd(c[v], e.b.CreateFAdd(parts[v][0], parts[v][1]));
      });
  for (int64_t v = 0; v < vectors; ++v)
    e.b.CreateAlignedStore(sums[static_cast<size_t>(v)], at(e, t.acc, v * kRowBytes), llvm::Align(4));
}

[[noreturn]] void refuse(const Call& n, std::string_view what, std::string_view needs) {
  fail({.what = text(n.op.substr(n.op.find('.') + 1), " ", what),
        .needs = std::string(needs),
        .hint = "write the product as loops: the default schedule makes tiles of them"});
}

bool is_bytes(DType d) { return d.is_integer() && d.bits == 8; }

/// Of bytes, or words of unsigned ones.
ID product_of_bytes(DType a, DType b) {
  static constexpr ID products[2][2] = {{llvm::Intrinsic::x86_tdpbuud, llvm::Intrinsic::x86_tdpbusd},
                                        {llvm::Intrinsic::x86_tdpbsud, llvm::Intrinsic::x86_tdpbssd}};
  return products[a == i8][b == i8];
}

DType operand_dtype(const Call& n, size_t i) {
  const Call* address = n.args[i].as<Call>();
  const BufferLoad* place = address && address->op == "tir.address_of" ? address->args[0].as<BufferLoad>() : nullptr;
  if (!place) refuse(n, "of something else than T.address_of", "places in buffers");
  return place->buffer->dtype;
}

int64_t constant_of(const Call& n, size_t i) {
  const auto v = as_int(n.args[i]);
  if (!v || *v < 0 || *v >= kMostNumber)
    refuse(n, text("with ", n.args[i]), text("strides, columns and depth that are constants, less than ", kMostNumber));
  return *v;
}

}  // namespace

llvm::Value* emit_tile_product(Emit& e, const Call& n) {
  if (!e.level.tiles) refuse(n, text("at the level ", e.level.name), "a level with matrix tiles: amx");
  const DType acc = operand_dtype(n, 0), a = operand_dtype(n, 2), b = operand_dtype(n, 4);
  const bool is_float = acc == f32 && a == bf16 && b == bf16;
  if (!is_float && !(acc == i32 && is_bytes(a) && (is_bytes(b) || b == u32)))
    refuse(n, text("of ", acc, ", ", a, " and ", b), "float32 sums of bfloat16, or int32 sums of bytes");
  const TileProduct t{.acc = value_of(e, n.args[0]),
                      .a = value_of(e, n.args[2]),
                      .b = value_of(e, n.args[4]),
                      .acc_stride = constant_of(n, 1) * 4,
                      .a_stride = constant_of(n, 3) * a.bytes(),
                      .b_stride = constant_of(n, 5) * (is_float ? 2 : 1),
                      .columns = constant_of(n, 7),
                      .depth_bytes = constant_of(n, 8) * a.bytes(),
                      .ahead = convert(e, value_of(e, n.args[9]), n.args[9]->dtype, i64),
                      .from_zero = constant_of(n, 10) != 0,
                      .count = constant_of(n, 11),
                      .acc_step = constant_of(n, 12) * 4,
                      .a_step = constant_of(n, 13) * a.bytes(),
                      .b_step = constant_of(n, 14) * (is_float ? 2 : 1),
                      .lines = constant_of(n, 15),
                      .product = is_float ? llvm::Intrinsic::x86_tdpbf16ps : product_of_bytes(a, b)};
  if (!n.args[6]->dtype.is_integer()) refuse(n, text("of ", n.args[6]->dtype, " rows"), "an integer");
  const auto rows = as_int(n.args[6]);
  if (rows && *rows > 2 * kRows) refuse(n, text("of ", *rows, " rows"), "at most 32 at once");
  if (!n.args[9]->dtype.is_integer() || t.lines > kMostLines)
    refuse(n,
           text("that asks for ", t.lines, " lines ", n.args[9], " bytes ahead"),
           text("at most ", kMostLines, " lines, and an integer"));
  if (t.columns == 0 || t.columns > kMostColumns || (t.columns != kRows && t.columns % kPanel != 0) ||
      t.depth_bytes == 0 || t.count == 0 || t.depth_bytes % (is_float ? kRowBytes : 4) != 0)
    refuse(n,
           text("of ", t.columns, " columns over ", n.args[8]),
           text("16 columns, or panels of 32, at most ",
                kMostColumns,
                " columns, a multiple of 32 bfloat16 or of 4 bytes, and a product"));
  if (is_float && is_one(n.args[6])) {
    each_product(e, t, [&](const TileProduct& one) { emit_one_row(e, one); });
  } else {
    llvm::Value* rows = convert(e, value_of(e, n.args[6]), n.args[6]->dtype, i64);
    fail_if(e, e.b.CreateICmpSGT(rows, i64_of(e, 2 * kRows)), "tile_product of more than 32 rows");
    emit_on_tiles(e, t, rows);
  }
  return integer(e, 0, i32);
}

namespace {

/// A level that has tiles, and a number of one that holds sums.
size_t tile_of_sums(Emit& e, const Call& n) {
  if (!e.level.tiles) refuse(n, text("at the level ", e.level.name), "a level with matrix tiles: amx");
  const int64_t tile = constant_of(n, 0);
  if (tile >= static_cast<int64_t>(kLeft)) refuse(n, text("of tile ", tile), text("a tile below ", kLeft));
  return static_cast<size_t>(tile);
}

}  // namespace

llvm::Value* emit_tile_dot(Emit& e, const Call& n) {
  const size_t sums = tile_of_sums(e, n), by_turns = sums % 2;
  const DType a = operand_dtype(n, 1), b = operand_dtype(n, 3);
  const int64_t depth = constant_of(n, 4);
  if (!is_bytes(a) || !(is_bytes(b) || b == u32)) refuse(n, text("of ", a, " and ", b), "bytes");
  if (depth == 0 || depth > kRowBytes || depth % 4 != 0) refuse(n, text("over ", depth), "a multiple of 4, at most 64");
  configure_function(e, depth);
  if (e.tile_step_bytes != depth)
    refuse(n, text("over ", depth, " bytes beside products over ", e.tile_step_bytes), "one depth in a function");
  if (constant_of(n, 5) != 0) e.b.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {tile(e, sums)});
  load_tile(e, kLeft + by_turns, value_of(e, n.args[1]), constant_of(n, 2));
  load_tile(e, kRight + by_turns, value_of(e, n.args[3]), kTileColumns * kRowBytes);
  e.b.CreateIntrinsic(
      product_of_bytes(a, b), {}, {tile(e, sums), tile(e, kLeft + by_turns), tile(e, kRight + by_turns)});
  return integer(e, 0, i32);
}

llvm::Value* emit_tile_store(Emit& e, const Call& n) {
  const size_t sums = tile_of_sums(e, n);
  if (const DType acc = operand_dtype(n, 1); acc != i32) refuse(n, text("in ", acc), "int32");
  e.b.CreateIntrinsic(
      llvm::Intrinsic::x86_tilestored64, {}, {tile(e, sums), value_of(e, n.args[1]), i64_of(e, constant_of(n, 2) * 4)});
  return integer(e, 0, i32);
}

void release_tiles(Emit& e) {
  if (e.tile_step_bytes == 0) return;
  for (llvm::BasicBlock& block : *e.function) {
    if (!llvm::isa_and_nonnull<llvm::ReturnInst>(block.getTerminator())) continue;
    llvm::IRBuilder<> b(block.getTerminator());
    b.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
  }
}

}  // namespace sator::codegen
