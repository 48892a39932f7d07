// Calls as closures: mathematics, bits, products, pointers, functions from outside.
#include <algorithm>
#include <array>
#include <cstring>

#include "ir/builtins.h"
#include "tir/interp_machine.h"

namespace sator::tir::interp {

namespace {

struct MathRow {
  std::string_view op;
  double (*fn)(double);
};
// Evaluated in float64 and rounded to the dtype: the reference that kernels are compared with.
constexpr MathRow kMath[] = {
    {"tir.exp", [](double x) { return std::exp(x); }},
    {"tir.exp2", [](double x) { return std::exp2(x); }},
    {"tir.exp10", [](double x) { return std::pow(10.0, x); }},
    {"tir.erf", [](double x) { return std::erf(x); }},
    {"tir.tanh", [](double x) { return std::tanh(x); }},
    {"tir.sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"tir.log", [](double x) { return std::log(x); }},
    {"tir.log2", [](double x) { return std::log2(x); }},
    {"tir.log10", [](double x) { return std::log10(x); }},
    {"tir.log1p", [](double x) { return std::log1p(x); }},
    {"tir.tan", [](double x) { return std::tan(x); }},
    {"tir.cos", [](double x) { return std::cos(x); }},
    {"tir.cosh", [](double x) { return std::cosh(x); }},
    {"tir.sin", [](double x) { return std::sin(x); }},
    {"tir.sinh", [](double x) { return std::sinh(x); }},
    {"tir.acos", [](double x) { return std::acos(x); }},
    {"tir.acosh", [](double x) { return std::acosh(x); }},
    {"tir.asin", [](double x) { return std::asin(x); }},
    {"tir.asinh", [](double x) { return std::asinh(x); }},
    {"tir.atan", [](double x) { return std::atan(x); }},
    {"tir.atanh", [](double x) { return std::atanh(x); }},
    {"tir.sqrt", [](double x) { return std::sqrt(x); }},
    {"tir.rsqrt", [](double x) { return 1 / std::sqrt(x); }},
    {"tir.floor", [](double x) { return std::floor(x); }},
    {"tir.ceil", [](double x) { return std::ceil(x); }},
    {"tir.trunc", [](double x) { return std::trunc(x); }},
    {"tir.round", [](double x) { return std::round(x); }},
    {"tir.nearbyint", [](double x) { return std::nearbyint(x); }},
    {"tir.fabs", [](double x) { return std::fabs(x); }},
};

struct Math2Row {
  std::string_view op;
  double (*fn)(double, double);
};
constexpr Math2Row kMath2[] = {
    {"tir.pow", [](double x, double y) { return std::pow(x, y); }},
    {"tir.atan2", [](double x, double y) { return std::atan2(x, y); }},
    {"tir.fmod", [](double x, double y) { return std::fmod(x, y); }},
    {"tir.hypot", [](double x, double y) { return std::hypot(x, y); }},
    {"tir.copysign", [](double x, double y) { return std::copysign(x, y); }},
};

/// The bits of an element, and back.
uint64_t bits_of(double x, DType d) {
  if (d.bits == 64) return std::bit_cast<uint64_t>(x);
  if (d.bits == 32) return std::bit_cast<uint32_t>(static_cast<float>(x));
  if (d.is_float8()) return f32_to_f8(static_cast<float>(x), d.code);
  return d.is_bfloat() ? f32_to_bf16(static_cast<float>(x)) : f32_to_f16(static_cast<float>(x));
}
uint64_t bits_of(const Value& v, Machine& m, int l) {
  DType d = v.dtype.element();
  if (v.i) return u(v.i->eval(m, l)) & (d.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << d.bits) - 1);
  return bits_of(v.f->eval(m, l), d);
}

/// The bits of lane `l` of a vector that holds the same bytes as `v` under other lanes.
uint64_t reinterpreted_bits(const Value& v, int to_bits, Machine& m, int l) {
  int from_bits = v.dtype.is_bool() ? 8 : v.dtype.bits;
  if (from_bits == to_bits) return bits_of(v, m, l);
  if (from_bits > to_bits) {
    int per = from_bits / to_bits;
    return (bits_of(v, m, l / per) >> (to_bits * (l % per))) &
           (to_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << to_bits) - 1);
  }
  int per = to_bits / from_bits;
  uint64_t out = 0;
  for (int k = 0; k < per; ++k) out |= bits_of(v, m, l * per + k) << (from_bits * k);
  return out;
}

double float_from_bits(uint64_t bits, DType d) {
  if (d.bits == 64) return std::bit_cast<double>(bits);
  if (d.bits == 32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (d.is_float8()) return f8_to_f32(static_cast<uint8_t>(bits), d.code);
  return d.is_bfloat() ? bf16_to_f32(static_cast<uint16_t>(bits)) : f16_to_f32(static_cast<uint16_t>(bits));
}

/// x^y modulo 2^64, by squares; for a negative y, 1 / x^-y rounded towards 0, and 0 for x = 0.
uint64_t whole_power(int64_t x, int64_t y, bool is_signed) {
  if (is_signed && y < 0) return x == 1 || (x == -1 && y % 2 == 0) ? 1 : x == -1 ? ~uint64_t{0} : 0;
  uint64_t out = 1, square = u(x);
  for (uint64_t rest = u(y); rest != 0; rest >>= 1, square *= square)
    if (rest & 1) out *= square;
  return out;
}

/// The number of the dtype next to x on the way to y.
double next_after(double x, double y, DType d) {
  if (d.bits == 64) return std::nextafter(x, y);
  if (std::isnan(x) || std::isnan(y)) return x + y;
  if (x == y) return y;
  const uint64_t sign = uint64_t{1} << (d.bits - 1);
  uint64_t bits = bits_of(x, d);
  if (x == 0)
    bits = (y < 0 ? sign : 0) + 1;
  else
    bits += (x < y) == (x > 0) ? 1 : -1;
  return float_from_bits(bits, d);
}

}  // namespace

double (*math_function(std::string_view op))(double) {
  for (const MathRow& row : kMath) {
    if (row.op == op) return row.fn;
  }
  return nullptr;
}

Value Compiler::math(const Call& n) {
  DType d = n.dtype;
  auto real = [&](Float f) { return Value{d, nullptr, std::move(f), nullptr}; };
  auto whole = [&](Int i) { return Value{d, std::move(i), nullptr, nullptr}; };
  if (auto fn = math_function(n.op)) {
    Value x = value(n.args[0]);
    if (!x.f) unsupported(text(n.op, " of ", n.args[0]->dtype));
    return real(
        float_code([f = std::move(x.f), fn, round = Round(d)](Machine& m, int l) { return round(fn(f->eval(m, l))); }));
  }
  if (n.op == "tir.pow" && d.is_integer() && n.args[1]->dtype.element() == d.element()) {
    Int x = integer(n.args[0]), y = integer(n.args[1]);
    return whole(
        int_code([x = std::move(x), y = std::move(y), wrap = Wrap(d.element()), is_signed = d.is_int()](
                     Machine& m, int l) { return wrap(whole_power(x->eval(m, l), y->eval(m, l), is_signed)); }));
  }
  for (const Math2Row& row : kMath2) {
    if (row.op != n.op) continue;
    Value x = value(n.args[0]), y = value(n.args[1]);
    if (!x.f || !y.f) unsupported(text(n.op, " of ", d));
    return real(float_code([a = std::move(x.f), b = std::move(y.f), fn = row.fn, round = Round(d)](Machine& m, int l) {
      return round(fn(a->eval(m, l), b->eval(m, l)));
    }));
  }
  if (n.op == "tir.ldexp") {
    Value x = value(n.args[0]), y = value(n.args[1]);
    if (!x.f || !y.i) unsupported(text("tir.ldexp of ", n.args[0]->dtype, " and ", n.args[1]->dtype));
    return real(float_code([a = std::move(x.f), b = std::move(y.i), round = Round(d)](Machine& m, int l) {
      // Beyond these, every number is 0 or infinite.
      const int64_t exponent = std::clamp<int64_t>(b->eval(m, l), -5000, 5000);
      return round(std::ldexp(a->eval(m, l), static_cast<int>(exponent)));
    }));
  }
  if (n.op == "tir.nextafter") {
    Value x = value(n.args[0]), y = value(n.args[1]);
    if (!x.f || !y.f || n.args[1]->dtype != d) unsupported(text("tir.nextafter of ", d, " and ", n.args[1]->dtype));
    return real(float_code([a = std::move(x.f), b = std::move(y.f), d = d.element()](Machine& m, int l) {
      return next_after(a->eval(m, l), b->eval(m, l), d);
    }));
  }
  if (n.op == "tir.fma") {
    Value x = value(n.args[0]), y = value(n.args[1]), z = value(n.args[2]);
    if (!x.f) unsupported("tir.fma of integers");
    return real(
        float_code([a = std::move(x.f), b = std::move(y.f), c = std::move(z.f), round = Round(d)](Machine& m, int l) {
          // One rounding for float32; narrower products are exact in float64.
          double p = a->eval(m, l), q = b->eval(m, l), r = c->eval(m, l);
          if (round.to == Round::To::f32)
            return static_cast<double>(std::fma(static_cast<float>(p), static_cast<float>(q), static_cast<float>(r)));
          return round(std::fma(p, q, r));
        }));
  }
  if (n.op == "tir.isnan") {
    Value x = value(n.args[0]);
    if (!x.f) unsupported("tir.isnan of integers");
    return whole(int_code([f = std::move(x.f)](Machine& m, int l) -> int64_t { return std::isnan(f->eval(m, l)); }));
  }
  if (n.op == "tir.popcount" || n.op == "tir.clz" || n.op == "tir.bitwise_not") {
    DType from = n.args[0]->dtype.element();
    int bits = from.bits;
    uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    Int x = integer(n.args[0]);
    if (!x) unsupported(text(n.op, " of ", from));
    if (n.op == "tir.popcount")
      return whole(int_code(
          [x = std::move(x), mask](Machine& m, int l) -> int64_t { return std::popcount(u(x->eval(m, l)) & mask); }));
    if (n.op == "tir.clz")
      return whole(int_code([x = std::move(x), mask, bits](Machine& m, int l) -> int64_t {
        return std::countl_zero(u(x->eval(m, l)) & mask) - (64 - bits);
      }));
    return whole(
        int_code([x = std::move(x), wrap = Wrap(from)](Machine& m, int l) { return wrap(~u(x->eval(m, l))); }));
  }
  Int a = integer(n.args[0]), b = integer(n.args[1]);
  if (!a || !b) unsupported(text(n.op, " of ", d));
  auto bitwise = [&](auto op) {
    return whole(int_code([a = std::move(a), b = std::move(b), op, wrap = Wrap(d.element())](Machine& m, int l) {
      return wrap(op(u(a->eval(m, l)), u(b->eval(m, l))));
    }));
  };
  if (n.op == "tir.bitwise_and") return bitwise([](uint64_t x, uint64_t y) { return x & y; });
  if (n.op == "tir.bitwise_or") return bitwise([](uint64_t x, uint64_t y) { return x | y; });
  if (n.op == "tir.bitwise_xor") return bitwise([](uint64_t x, uint64_t y) { return x ^ y; });
  int bits = d.bits;
  bool is_left = n.op == "tir.shift_left", is_signed = d.is_int();
  return whole(int_code(
      [a = std::move(a), b = std::move(b), bits, is_left, is_signed, wrap = Wrap(d.element())](Machine& m, int l) {
        int64_t x = a->eval(m, l), by = b->eval(m, l);
        if (by < 0 || by >= bits) return int64_t{!is_left && is_signed && x < 0 ? -1 : 0};  // as NumPy
        return wrap(is_left ? u(x) << by : is_signed ? u(x >> by) : u(x) >> by);
      }));
}

Value Compiler::call(const Call& n) {
  DType d = n.dtype;
  auto whole = [&](Int i) { return Value{d, std::move(i), nullptr, nullptr}; };
  auto real = [&](Float f) { return Value{d, nullptr, std::move(f), nullptr}; };
  auto pointer = [&](Ptr p) { return Value{d, nullptr, nullptr, std::move(p)}; };
  const std::string& op = n.op;
  if (const Expr ours = builtin_of_llvm(n)) return value(ours);
  if (op == "tir.likely" || op == "tir.tvm_thread_invariant") return value(n.args[0]);
  if (op == "tir.has_matrix_tiles") return whole(int_code([](Machine&, int) { return int64_t{0}; }));
  if (op == "tir.if_then_else") {
    Int c = integer(n.args[0]);
    Value t = value(n.args[1]), f = value(n.args[2]);
    bool per_lane = n.args[0]->dtype.lanes > 1;
    if (t.f)
      return real(float_code([c = std::move(c), t = std::move(t.f), f = std::move(f.f), per_lane](Machine& m, int l) {
        return c->eval(m, per_lane ? l : 0) ? t->eval(m, l) : f->eval(m, l);
      }));
    if (t.i)
      return whole(int_code([c = std::move(c), t = std::move(t.i), f = std::move(f.i), per_lane](Machine& m, int l) {
        return c->eval(m, per_lane ? l : 0) ? t->eval(m, l) : f->eval(m, l);
      }));
    return pointer(pointer_code([c = std::move(c), t = std::move(t.p), f = std::move(f.p)](Machine& m, int l) {
      return c->eval(m, 0) ? t->eval(m, l) : f->eval(m, l);
    }));
  }
  if (op == "tir.dot4" || op == "tir.dp4a") {
    bool is_dot = op == "tir.dot4";
    Int sum = integer(n.args[is_dot ? 0 : 2]), a = integer(n.args[is_dot ? 1 : 0]), b = integer(n.args[is_dot ? 2 : 1]);
    if (n.args[is_dot ? 1 : 0]->dtype.lanes != 4 * d.lanes || n.args[is_dot ? 2 : 1]->dtype.lanes != 4 * d.lanes)
      unsupported(text(op, " of vectors that are not four times as wide as its result"));
    return whole(int_code(
        [sum = std::move(sum), a = std::move(a), b = std::move(b), wrap = Wrap(d.element())](Machine& m, int l) {
          uint64_t s = u(sum->eval(m, l));
          for (int k = 4 * l; k < 4 * l + 4; ++k) s += u(a->eval(m, k)) * u(b->eval(m, k));
          return wrap(s);
        }));
  }
  if (op == "tir.lookup16") {
    std::array<Int, 4> words;
    for (size_t w = 0; w < words.size(); ++w) words[w] = integer(n.args[w + 1]);
    return whole(int_code([index = integer(n.args[0]), words = std::move(words)](Machine& m, int l) {
      const uint64_t i = u(index->eval(m, l)) & 15;
      return static_cast<int64_t>(u(words[i / 4]->eval(m, l)) >> (i % 4 * 8) & 255);
    }));
  }
  if (op == "tir.dot2") {
    Value sum = value(n.args[0]), a = value(n.args[1]), b = value(n.args[2]);
    if (!a.f || n.args[1]->dtype.lanes != 2 * d.lanes || n.args[2]->dtype.lanes != 2 * d.lanes)
      unsupported("tir.dot2 of vectors that are not twice as wide as its result");
    return real(
        float_code([sum = std::move(sum.f), a = std::move(a.f), b = std::move(b.f)](Machine& m, int l) -> double {
          auto s = static_cast<float>(sum->eval(m, l));
          for (int k : {2 * l + 1, 2 * l})
            s = std::fma(static_cast<float>(a->eval(m, k)), static_cast<float>(b->eval(m, k)), s);
          return s;
        }));
  }
  if (op == "tir.reinterpret") {
    if (d.is_handle()) return pointer(pointer_code([](Machine&, int) { return Pointer{}; }));
    auto v = std::make_shared<Value>(value(n.args[0]));
    if (v->p) unsupported("the bits of a pointer");
    DType to = d.element();
    int bits = to.is_bool() ? 8 : to.bits;
    if (to.is_float())
      return real(float_code(
          [v, to, bits](Machine& m, int l) { return float_from_bits(reinterpreted_bits(*v, bits, m, l), to); }));
    return whole(
        int_code([v, bits, wrap = Wrap(to)](Machine& m, int l) { return wrap(reinterpreted_bits(*v, bits, m, l)); }));
  }
  if (op == "tir.vectorlow" || op == "tir.vectorhigh" || op == "tir.vectorcombine") {
    int half = op == "tir.vectorcombine" ? n.args[0]->dtype.lanes : d.lanes, shift = op == "tir.vectorhigh" ? half : 0;
    bool combines = op == "tir.vectorcombine";
    auto a = std::make_shared<Value>(value(n.args[0]));
    auto b = combines ? std::make_shared<Value>(value(n.args[1])) : a;
    if (d.is_float())
      return real(float_code([a, b, half, shift, combines](Machine& m, int l) {
        return combines && l >= half ? b->f->eval(m, l - half) : a->f->eval(m, l + shift);
      }));
    return whole(int_code([a, b, half, shift, combines](Machine& m, int l) {
      return combines && l >= half ? b->i->eval(m, l - half) : a->i->eval(m, l + shift);
    }));
  }
  if (op == "tir.get_active_lane_mask")
    return whole(int_code([base = integer(n.args[0]), limit = integer(n.args[1])](Machine& m, int l) -> int64_t {
      return base->eval(m, 0) + l < limit->eval(m, 0);
    }));
  if (op == "tir.undef") return whole(int_code([](Machine&, int) -> int64_t { return 0; }));
  if (op == "tir.assume" || op == "tir.tvm_storage_sync" || op == "tir.prefetch")
    return whole(int_code([](Machine&, int) -> int64_t { return 1; }));  // promises and hints change nothing here
  if (op == "tir.isnullptr") {
    Value p = value(n.args[0]);
    if (!p.p) unsupported("tir.isnullptr of a number");
    return whole(
        int_code([p = std::move(p.p)](Machine& m, int) -> int64_t { return p->eval(m, 0).memory == nullptr; }));
  }
  if (op == "tir.address_of") {
    const BufferLoad* element = n.args[0].as<BufferLoad>();
    if (!element) unsupported("the address of something else than an element");
    auto place = std::make_shared<Address>(address(*element->buffer, element->indices));
    auto data = static_cast<size_t>(slot(*element->buffer->data));
    return pointer(pointer_code([place, data](Machine& m, int) {
      Memory* memory = m.slots[data].p.memory;
      return Pointer{memory, place->at(m, 0) - memory->data};
    }));
  }
  if (op == "tir.tvm_access_ptr") {
    Value base = value(n.args[1]);
    if (!base.p) unsupported("tir.tvm_access_ptr of a number");
    int64_t bytes = n.args[0]->dtype.bytes();
    return pointer(pointer_code([base = std::move(base.p), offset = integer(n.args[2]), bytes](Machine& m, int) {
      Pointer p = base->eval(m, 0);
      p.offset_bytes += offset->eval(m, 0) * bytes;
      return p;
    }));
  }
  if (op == "tir.ret") {
    auto v = std::make_shared<Value>(value(n.args[0]));
    return whole(int_code([v](Machine& m, int) -> int64_t {
      if (v->i) throw Returned{v->i->eval(m, 0)};
      if (v->f) throw Returned{v->f->eval(m, 0)};
      throw Returned{};
    }));
  }
  if (op == "tir.call_extern" || op == "tir.call_pure_extern" || op == "tir.tvm_call_packed" ||
      op == "tir.tvm_call_cpacked")
    return extern_call(n);
  if (op == "tir.tvm_load_matrix_sync" || op == "tir.tvm_store_matrix_sync" || op == "tir.tvm_fill_fragment" ||
      op == "tir.tvm_mma_sync")
    return fragment_call(n);
  if (op == "tir.tile_product" || op == "tir.tile_dot" || op == "tir.tile_store") return tile_call(n);
  const Builtin* row = find_builtin(op);
  if (row && row->is_lanewise && row->effect == Effect::pure && op != "tir.q_multiply_shift" &&
      op != "tir.q_multiply_shift_per_axis")
    return math(n);
  unsupported(text("the operation ", op));
}

Value Compiler::extern_call(const Call& n) {
  const StringImm* name = n.args.empty() ? nullptr : n.args[0].as<StringImm>();
  if (!name) unsupported("a call of a function whose name is not constant");
  struct Arg {
    Value value;
    std::string text;
    bool is_text = false;
  };
  auto args = std::make_shared<std::vector<Arg>>();
  for (size_t k = 1; k < n.args.size(); ++k) {
    Arg a;
    if (const StringImm* s = n.args[k].as<StringImm>())
      a = {{}, s->value, true};
    else
      a.value = value(n.args[k]);
    args->push_back(std::move(a));
  }
  auto run = [args, name = name->value](Machine& m) {
    auto at = m.options->externs.find(name);
    if (at == m.options->externs.end())
      m.fail({.what = text("a call of the function ", name, " outside of the program"),
              .needs = "a meaning for it among the options' externs",
              .hint = "register one"});
    std::vector<ExternValue> values;
    for (const Arg& a : *args) {
      ExternValue v;
      v.dtype = a.value.dtype;
      if (a.is_text)
        v.text = a.text;
      else if (a.value.i)
        v.integer = a.value.i->eval(m, 0);
      else if (a.value.f)
        v.real = a.value.f->eval(m, 0);
      else if (Pointer p = a.value.p->eval(m, 0); p.memory)
        v.pointer = p.memory->data + p.offset_bytes;
      values.push_back(std::move(v));
    }
    return at->second(values);
  };
  if (n.dtype.is_float())
    return {n.dtype,
            nullptr,
            float_code([run, round = Round(n.dtype)](Machine& m, int) { return round(run(m).real); }),
            nullptr};
  if (n.dtype.is_handle())
    return {n.dtype, nullptr, nullptr, pointer_code([run](Machine& m, int) { return run(m), Pointer{}; })};
  return {n.dtype, int_code([run](Machine& m, int) { return run(m).integer; }), nullptr, nullptr};
}

}  // namespace sator::tir::interp
