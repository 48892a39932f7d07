// Matrices that the threads of a warp hold together ("fragments"), as closures. A fragment is 16 x 16 elements, row-major, in the
// memory that is theirs: where the hardware keeps them says nothing of what is computed. And products of a CPU's matrix tiles.
#include "tir/interp_machine.h"

namespace sator::tir::interp {

namespace {

constexpr int64_t kRows = 16;  ///< and columns

/// `count` elements from a place on.
struct Elements {
  Memory* memory;
  int64_t begin_bytes;
  DType dtype;

  uint8_t* at(Machine& m, int64_t element) const {
    const int64_t offset = begin_bytes + element * dtype.bytes();
    if (!memory || offset < 0 || offset + dtype.bytes() > memory->size_bytes)
      m.fail({.what = text("a matrix lies outside of its memory at element ", element),
              .needs = "whole matrices in memory",
              .hint = "pad the buffer to multiples of 16"});
    return memory->data + offset;
  }
  double read(Machine& m, int64_t element) const {
    const uint8_t* p = at(m, element);
    if (!memory->written.empty() && !memory->written[static_cast<size_t>(p - memory->data)])
      m.fail({.what = text("a matrix is read of which element ", element, " was never written"),
              .needs = "all of a matrix written before",
              .hint = "fill it first"});
    if (m.strands && !memory->accesses.empty() &&
        !m.strands->read(memory->accesses[static_cast<size_t>(p - memory->data)]))
      race(m);
    return dtype.is_float() ? read_float(p, dtype) : static_cast<double>(read_int(p, dtype));
  }
  void write(Machine& m, int64_t element, double value) const {
    uint8_t* p = at(m, element);
    if (dtype.is_float())
      write_float(p, Round(dtype)(value), dtype);
    else
      write_int(p, static_cast<int64_t>(value), dtype);
    const auto offset = static_cast<size_t>(p - memory->data);
    if (!memory->written.empty())
      std::fill_n(memory->written.begin() + static_cast<ptrdiff_t>(offset), dtype.bytes(), uint8_t{1});
    if (m.strands && !memory->accesses.empty() && !m.strands->write(memory->accesses[offset], true)) race(m);
  }
  [[noreturn]] static void race(Machine& m) {
    m.fail({.what = "iterations that may run at the same time touch the same element of a matrix",
            .needs = "a matrix of its own for each",
            .hint = "keep it inside of the loop"});
  }
};

/// A fragment: the memory's matrix of that number.
struct Fragment {
  Ptr memory;
  Int number;
  DType dtype;
  Elements of(Machine& m) const {
    const Pointer p = memory->eval(m, 0);
    return {p.memory, p.offset_bytes + number->eval(m, 0) * kRows * kRows * dtype.bytes(), dtype};
  }
};

/// A matrix behind T.address_of, whose elements have a dtype.
struct Place {
  Ptr memory;
  DType dtype;
  Elements of(Machine& m) const {
    const Pointer p = memory->eval(m, 0);
    return {p.memory, p.offset_bytes, dtype};
  }
};

constexpr int64_t kPanel = 32;  ///< columns

/// Where k of a column lies in a panel, or in columns of which `row` elements lie from one group of k to the next.
int64_t in_panel(int64_t column, int64_t k, int64_t group, int64_t row) {
  return k / group * row + column * group + k % group;
}

/// Sums of 16 rows and columns over bytes.
void add_products(Machine& m, std::vector<int32_t>& sums, const Elements& a, int64_t a_stride, const Elements& b,
                  int64_t depth) {
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kRows; ++j) {
      int32_t& element = sums[static_cast<size_t>(i * kRows + j)];
      auto sum = static_cast<uint32_t>(element);
      for (int64_t k = 0; k < depth; ++k)
        sum += static_cast<uint32_t>(
            static_cast<int64_t>(a.read(m, i * a_stride + k) * b.read(m, in_panel(j, k, 4, kPanel * 4))));
      element = static_cast<int32_t>(sum);
    }
}

}  // namespace

Value Compiler::tile_call(const Call& n) {
  constexpr int64_t kChunk = 32, kMostRows = 32;
  auto place = [&](size_t i, DType word = {}) {
    const Call* address = n.args[i].as<Call>();
    const BufferLoad* element =
        address && address->op == "tir.address_of" ? address->args[0].as<BufferLoad>() : nullptr;
    if (!element) unsupported(text(n.op, " of something else than T.address_of"));
    const DType dtype = element->buffer->dtype;
    return std::make_shared<Place>(Place{std::move(value(n.args[i]).p), dtype == u32 ? word : dtype});
  };
  auto number = [&](size_t i) {
    const auto v = as_int(n.args[i]);
    if (!v) unsupported(text(n.op, " with a stride or a size that is not constant"));
    return *v;
  };
  auto done = [&](auto run) {
    return Value{n.dtype, int_code([run](Machine& m, int) -> int64_t { return run(m), 0; }), nullptr, nullptr};
  };
  if (n.op != "tir.tile_product") {
    const auto tile = static_cast<size_t>(number(0));
    if (tile >= std::tuple_size_v<decltype(Machine::tiles)>) unsupported(text(n.op, " of matrix tile ", tile));
    auto need_sums = [=](Machine& m) {
      if (!m.tiles[tile].empty()) return;
      m.fail({.what = text("matrix tile ", tile, " is used before anything is in it"),
              .needs = "a T.tile_dot that begins from zero",
              .hint = "pass 1 for its from_zero"});
    };
    if (n.op == "tir.tile_store") {
      auto acc = place(1);
      const int64_t acc_stride = number(2);
      return done([=](Machine& m) {
        need_sums(m);
        const Elements to = acc->of(m);
        for (int64_t e = 0; e < kRows * kRows; ++e)
          to.write(m, e / kRows * acc_stride + e % kRows, m.tiles[tile][static_cast<size_t>(e)]);
      });
    }
    auto a = place(1), b = place(3, u8);
    const int64_t a_stride = number(2), depth = number(4);
    const bool from_zero = number(5) != 0;
    return done([=](Machine& m) {
      if (from_zero) m.tiles[tile].assign(kRows * kRows, 0);
      need_sums(m);
      add_products(m, m.tiles[tile], a->of(m), a_stride, b->of(m), depth);
    });
  }
  auto acc = place(0), a = place(2), b = place(4, u8);
  const int64_t acc_stride = number(1), a_stride = number(3), b_stride = number(5), columns = number(7),
                depth = number(8), products = number(11), acc_step = number(12), a_step = number(13),
                b_step = number(14);
  const bool is_float = acc->dtype.is_float(), from_zero = number(10) != 0;
  const int64_t group = is_float ? 2 : 4;
  auto rows = std::make_shared<Int>(integer(n.args[6]));
  return done([=](Machine& m) {
    const Elements to = acc->of(m), x = a->of(m), y = b->of(m);
    const int64_t count = (*rows)->eval(m, 0);
    if (count > kMostRows)
      m.fail({.what = text("tile_product of ", count, " rows"),
              .needs = text("at most ", kMostRows, " at once"),
              .hint = "call it for parts of the rows"});
    auto sum_up = [&](int64_t p) {
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          auto left = [&](int64_t k) { return x.read(m, p * a_step + i * a_stride + k); };
          auto right = [&](int64_t k) {
            const int64_t row = columns < kPanel ? b_stride : kPanel * group;
            return y.read(m, p * b_step + j / kPanel * b_stride + in_panel(j % kPanel, k, group, row));
          };
          const int64_t at = p * acc_step + i * acc_stride + j;
          if (!is_float) {
            uint32_t sum = from_zero ? 0 : static_cast<uint32_t>(static_cast<int64_t>(to.read(m, at)));
            for (int64_t k = 0; k < depth; ++k) sum += static_cast<uint32_t>(static_cast<int64_t>(left(k) * right(k)));
            to.write(m, at, static_cast<int32_t>(sum));
            continue;
          }
          auto sum = from_zero ? 0.0F : static_cast<float>(to.read(m, at));
          for (int64_t chunk = 0; chunk < depth; chunk += kChunk) {
            float parts[2] = {0, 0};
            for (int64_t k = chunk; k < std::min(depth, chunk + kChunk); ++k)
              parts[k % 2] = std::fma(static_cast<float>(left(k)), static_cast<float>(right(k)), parts[k % 2]);
            sum += parts[0] + parts[1];
          }
          to.write(m, at, sum);
        }
      }
    };
    for (int64_t p = 0; p < products; ++p) sum_up(p);
  });
}

Value Compiler::fragment_call(const Call& n) {
  auto fragment = [&](size_t data, size_t number) {
    const Var* pointer = n.args[data].as<Var>();
    if (!pointer || pointer->pointee.is_void()) unsupported("a matrix behind a pointer without a dtype");
    return std::make_shared<Fragment>(
        Fragment{std::move(value(n.args[data]).p), integer(n.args[number]), pointer->pointee});
  };
  auto done = [&](auto run) {
    return Value{n.dtype, nullptr, nullptr, pointer_code([run](Machine& m, int) { return run(m), Pointer{}; })};
  };
  if (n.op == "tir.tvm_mma_sync") {
    auto out = fragment(0, 1), a = fragment(2, 3), b = fragment(4, 5), sum = fragment(6, 7);
    return done([=](Machine& m) {
      const Elements to = out->of(m), x = a->of(m), y = b->of(m), old = sum->of(m);
      for (int64_t i = 0; i < kRows; ++i) {
        for (int64_t j = 0; j < kRows; ++j) {
          double s = old.read(m, i * kRows + j);
          for (int64_t k = 0; k < kRows; ++k) s += x.read(m, i * kRows + k) * y.read(m, k * kRows + j);
          to.write(m, i * kRows + j, s);
        }
      }
    });
  }
  for (size_t i = 1; i < 4; ++i) {
    if (as_int(n.args[i]) != kRows) unsupported(text(n.op, " of matrices that are not 16 x 16 x 16"));
  }
  auto held = fragment(0, 4);
  if (n.op == "tir.tvm_fill_fragment") {
    auto v = std::make_shared<Value>(value(n.args[5]));
    return done([=](Machine& m) {
      const double x = v->f ? v->f->eval(m, 0) : static_cast<double>(v->i->eval(m, 0));
      const Elements to = held->of(m);
      for (int64_t i = 0; i < kRows * kRows; ++i) to.write(m, i, x);
    });
  }
  const bool is_load = n.op == "tir.tvm_load_matrix_sync";
  const StringImm* layout = n.args[7].as<StringImm>();
  if (!layout) unsupported("a matrix in memory whose layout is not constant");
  const bool by_columns = layout->value == "col_major";
  auto place = std::make_shared<Value>(value(n.args[5]));
  if (!place->p) unsupported("a matrix in memory without a pointer");
  auto stride = std::make_shared<Int>(integer(n.args[6]));
  return done([=](Machine& m) {
    const Pointer p = place->p->eval(m, 0);
    const Elements matrix = held->of(m), memory{p.memory, p.offset_bytes, held->dtype};
    const int64_t step = (*stride)->eval(m, 0);
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kRows; ++j) {
        const int64_t outside = by_columns ? j * step + i : i * step + j;
        if (is_load)
          matrix.write(m, i * kRows + j, memory.read(m, outside));
        else
          memory.write(m, outside, matrix.read(m, i * kRows + j));
      }
    }
  });
}

}  // namespace sator::tir::interp
