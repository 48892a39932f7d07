// Expressions as closures: arithmetic, conversions, loads, vectors.
#include <algorithm>
#include <limits>

#include "ir/float_to_int.h"
#include "tir/interp_machine.h"
#include "tir/print.h"

namespace sator::tir::interp {

/// Rounding to float and then to fewer bits would round twice: odd rounding keeps the sticky bit.
static float to_odd_float(double v) {
  float f = static_cast<float>(v);
  if (static_cast<double>(f) != v && std::isfinite(f)) {
    uint32_t bits = std::bit_cast<uint32_t>(f);
    if ((bits & 1) == 0)
      f = std::bit_cast<float>(std::fabs(static_cast<double>(f)) < std::fabs(v) ? bits + 1 : bits - 1);
  }
  return f;
}
double Round::to_f16(double v) { return f16_to_f32(f32_to_f16(to_odd_float(v))); }
double Round::to_bf16(double v) { return bf16_to_f32(f32_to_bf16(to_odd_float(v))); }
double Round::to_f8(double v, DType::Code format) { return f8_to_f32(f32_to_f8(to_odd_float(v), format), format); }

namespace {

template <class T>
T read(const uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

Value int_value(DType d, Int i) { return {d, std::move(i), nullptr, nullptr}; }
Value float_value(DType d, Float f) { return {d, nullptr, std::move(f), nullptr}; }
Value pointer_value(Ptr p) { return {DType::Handle(), nullptr, nullptr, std::move(p)}; }

/// Operands are exact values of the dtype; float32 is computed in float32.
template <class Op>
Value float_binary(DType d, Float a, Float b, Op op) {
  if (d.is_ieee_float() && d.bits == 32)
    return float_value(d, float_code([a = std::move(a), b = std::move(b), op](Machine& m, int l) -> double {
                         return op(static_cast<float>(a->eval(m, l)), static_cast<float>(b->eval(m, l)));
                       }));
  return float_value(d, float_code([a = std::move(a), b = std::move(b), op, round = Round(d)](Machine& m, int l) {
                       return round(op(a->eval(m, l), b->eval(m, l)));
                     }));
}

template <class Op>
Value int_binary(DType d, Int a, Int b, Op op) {
  return int_value(d, int_code([a = std::move(a), b = std::move(b), op, wrap = Wrap(d.element())](Machine& m, int l) {
                     return wrap(static_cast<uint64_t>(op(a->eval(m, l), b->eval(m, l))));
                   }));
}

bool is_wide_unsigned(DType d) { return d.is_uint() && d.bits == 64; }

/// Quotient and remainder of the four divisions; a zero divisor is an error.
template <class Op>
Value int_division(DType d, Int a, Int b, Op op, const Expr& where) {
  auto what = std::make_shared<std::string>(text(where));
  bool wide = is_wide_unsigned(d);
  return int_value(
      d, int_code([a = std::move(a), b = std::move(b), op, wrap = Wrap(d.element()), what, wide](Machine& m, int l) {
        int64_t x = a->eval(m, l), y = b->eval(m, l);
        if (y == 0)
          m.fail({.what = "a division by zero: " + *what,
                  .needs = "a divisor that is not zero",
                  .hint = "guard the division"});
        if (y == -1 && !wide) return wrap(op(0, 0, wide, true, x));
        return wrap(op(x, y, wide, false, 0));
      }));
}
/// The minimum or maximum of two floats: a NaN where one is; of equal values, which may be zeros of two signs, the one that is
/// no literal, else the second, as the compare instructions of x86 have it.
template <class T>
T better_of(T a, T b, bool a_is_better, bool b_is_literal) {
  if (std::isnan(a)) return a;
  if (a == b) return b_is_literal ? a : b;
  return a_is_better ? a : b;
}
bool is_literal(const Expr& e) {
  const Broadcast* b = e.as<Broadcast>();
  return e.as<FloatImm>() || (b && b->value.as<FloatImm>());
}

struct TruncDiv {
  uint64_t operator()(int64_t x, int64_t y, bool wide, bool minus_one, int64_t v) const {
    return minus_one ? 0 - u(v) : wide ? u(x) / u(y) : u(x / y);
  }
};
struct TruncMod {
  uint64_t operator()(int64_t x, int64_t y, bool wide, bool minus_one, int64_t) const {
    return minus_one ? 0 : wide ? u(x) % u(y) : u(x % y);
  }
};
struct FloorQuotient {
  uint64_t operator()(int64_t x, int64_t y, bool wide, bool minus_one, int64_t v) const {
    return minus_one ? 0 - u(v) : wide ? u(x) / u(y) : u(floor_div(x, y));
  }
};
struct FloorRemainder {
  uint64_t operator()(int64_t x, int64_t y, bool wide, bool minus_one, int64_t) const {
    return minus_one ? 0 : wide ? u(x) % u(y) : u(floor_mod(x, y));
  }
};

template <class Test>
Int comparison(Value a, Value b, Test test) {
  if (a.f)
    return int_code([a = std::move(a.f), b = std::move(b.f), test](Machine& m, int l) -> int64_t {
      return test(a->eval(m, l), b->eval(m, l));
    });
  if (a.p)
    return int_code([a = std::move(a.p), b = std::move(b.p), test](Machine& m, int l) -> int64_t {
      Pointer x = a->eval(m, l), y = b->eval(m, l);
      return test(reinterpret_cast<uintptr_t>(x.memory) + u(x.offset_bytes),
                  reinterpret_cast<uintptr_t>(y.memory) + u(y.offset_bytes));
    });
  if (is_wide_unsigned(a.dtype))
    return int_code([a = std::move(a.i), b = std::move(b.i), test](Machine& m, int l) -> int64_t {
      return test(u(a->eval(m, l)), u(b->eval(m, l)));
    });
  return int_code([a = std::move(a.i), b = std::move(b.i), test](Machine& m, int l) -> int64_t {
    return test(a->eval(m, l), b->eval(m, l));
  });
}

}  // namespace

int64_t read_int(const uint8_t* p, DType d) {
  switch (d.element_bytes()) {
    case 1:
      return d.is_int() ? Wrap(d.element())(read<uint8_t>(p)) : d.is_bool() ? read<uint8_t>(p) != 0 : read<uint8_t>(p);
    case 2: return d.is_int() ? read<int16_t>(p) : read<uint16_t>(p);
    case 4: return d.is_int() ? read<int32_t>(p) : static_cast<int64_t>(read<uint32_t>(p));
    default: return read<int64_t>(p);
  }
}
double read_float(const uint8_t* p, DType d) {
  if (d.bits == 32) return read<float>(p);
  if (d.bits == 64) return read<double>(p);
  if (d.is_float8()) return f8_to_f32(*p, d.code);
  return d.is_bfloat() ? bf16_to_f32(read<uint16_t>(p)) : f16_to_f32(read<uint16_t>(p));
}

int Compiler::slot(const Var& v) {
  auto [at, is_new] = slots_.emplace(&v, slots);
  if (is_new) ++slots;
  return at->second;
}

Value Compiler::variable(const Var& v) {
  if (v.dtype.lanes > 1) {
    auto [at, is_new] = vectors_.emplace(&v, vectors);
    if (is_new) ++vectors;
    auto index = static_cast<size_t>(at->second);
    if (v.dtype.is_float())
      return float_value(v.dtype,
                         float_code([index](Machine& m, int l) { return m.vectors[index][static_cast<size_t>(l)].f; }));
    return int_value(v.dtype,
                     int_code([index](Machine& m, int l) { return m.vectors[index][static_cast<size_t>(l)].i; }));
  }
  auto index = static_cast<size_t>(slot(v));
  if (v.dtype.is_handle()) return pointer_value(pointer_code([index](Machine& m, int) { return m.slots[index].p; }));
  if (v.dtype.is_float())
    return float_value(v.dtype, float_code([index](Machine& m, int) { return m.slots[index].f; }));
  return int_value(v.dtype, int_code([index](Machine& m, int) { return m.slots[index].i; }));
}

Address Compiler::address(const Buffer& b, const std::vector<Expr>& indices) {
  if (indices.size() != b.shape.size())
    unsupported(text("an access with ", indices.size(), " indices to the buffer ", b.name, " of rank ", b.rank()));
  Address out;
  out.buffer = buffer(b);
  out.element_bytes = b.dtype.bytes();
  out.name = b.name;
  if (!declared_.count(&b)) out.redeclare = declare(b);
  for (const Expr& i : indices) {
    Address::Dim dim;
    if (const Var* v = i.as<Var>(); v && v->dtype.lanes == 1)
      dim.slot = slot(*v);
    else
      dim.code = integer(i);
    out.dims.push_back(std::move(dim));
  }
  return out;
}

Value Compiler::load(const BufferLoad& n) {
  DType d = n.buffer->dtype.element();
  auto address = std::make_shared<Address>(this->address(*n.buffer, n.indices));
  int per_element = n.buffer->dtype.lanes;
  int64_t bytes = d.element_bytes();
  auto place = [address, per_element, bytes](Machine& m, int l) -> const uint8_t* {
    const uint8_t* p =
        per_element == 1 ? address->at(m, l) : address->at(m, l / per_element) + (l % per_element) * bytes;
    address->check_read(m, p);
    return p;
  };
  auto ints = [&](auto read_one) {
    return int_value(n.dtype,
                     int_code([place, read_one](Machine& m, int l) -> int64_t { return read_one(place(m, l)); }));
  };
  auto floats = [&](auto read_one) {
    return float_value(n.dtype,
                       float_code([place, read_one](Machine& m, int l) -> double { return read_one(place(m, l)); }));
  };
  if (d == f32) return floats(read<float>);
  if (d == f64) return floats(read<double>);
  if (d.is_float()) return floats([d](const uint8_t* p) { return read_float(p, d); });
  if (d == i32) return ints(read<int32_t>);
  if (d == i64 || d == u64) return ints(read<int64_t>);
  if (d.is_handle()) unsupported("a load of a pointer");
  return ints([d](const uint8_t* p) { return read_int(p, d); });
}

Exec Compiler::assign(const Var& v, Value value) {
  if (v.dtype.lanes > 1) {
    variable(v);
    auto index = static_cast<size_t>(vectors_.at(&v));
    auto lanes = static_cast<size_t>(v.dtype.lanes);
    return exec_code([index, lanes, value = std::move(value)](Machine& m) {
      std::vector<Slot> out(lanes);
      for (size_t l = 0; l < lanes; ++l) {
        if (!m.runs(static_cast<int>(l), static_cast<int>(lanes))) continue;
        if (value.f)
          out[l].f = value.f->eval(m, static_cast<int>(l));
        else
          out[l].i = value.i->eval(m, static_cast<int>(l));
      }
      m.vectors[index] = std::move(out);
    });
  }
  auto index = static_cast<size_t>(slot(v));
  if (value.p) return exec_code([index, p = std::move(value.p)](Machine& m) { m.slots[index].p = p->eval(m, 0); });
  if (value.f) return exec_code([index, f = std::move(value.f)](Machine& m) { m.slots[index].f = f->eval(m, 0); });
  return exec_code([index, i = std::move(value.i)](Machine& m) { m.slots[index].i = i->eval(m, 0); });
}

Value Compiler::let(const Let& n) {
  Exec bind = assign(*n.var, value(n.value));
  Value body = value(n.body);
  // A vector's lanes are evaluated one by one: the binding is made for each.
  if (body.f)
    return float_value(n.dtype, float_code([bind = std::move(bind), f = std::move(body.f)](Machine& m, int l) {
                         return bind->run(m), f->eval(m, l);
                       }));
  if (body.i)
    return int_value(n.dtype, int_code([bind = std::move(bind), i = std::move(body.i)](Machine& m, int l) {
                       return bind->run(m), i->eval(m, l);
                     }));
  return pointer_value(pointer_code(
      [bind = std::move(bind), p = std::move(body.p)](Machine& m, int l) { return bind->run(m), p->eval(m, l); }));
}

Value Compiler::cast(const Cast& n) {
  Value v = value(n.value);
  DType from = n.value->dtype.element(), to = n.dtype.element();
  if (v.p) {
    if (!to.is_handle()) unsupported("a cast of a pointer to a number");
    return v;
  }
  if (to.is_handle()) unsupported("a cast of a number to a pointer");
  if (v.f) {
    if (to.is_float())
      return float_value(n.dtype, float_code([f = std::move(v.f), round = Round(to)](Machine& m, int l) {
                           return round(f->eval(m, l));
                         }));
    if (to.is_bool())
      return int_value(n.dtype,
                       int_code([f = std::move(v.f)](Machine& m, int l) -> int64_t { return f->eval(m, l) != 0; }));
    return int_value(n.dtype,
                     int_code([f = std::move(v.f), to](Machine& m, int l) { return float_to_int(f->eval(m, l), to); }));
  }
  if (to.is_float()) {
    bool wide = is_wide_unsigned(from);
    return float_value(n.dtype, float_code([i = std::move(v.i), round = Round(to), wide](Machine& m, int l) {
                         int64_t x = i->eval(m, l);
                         if (round.to == Round::To::f32)
                           return static_cast<double>(wide ? static_cast<float>(u(x)) : static_cast<float>(x));
                         return round(wide ? static_cast<double>(u(x)) : static_cast<double>(x));
                       }));
  }
  if (to.is_bool())
    return int_value(n.dtype,
                     int_code([i = std::move(v.i)](Machine& m, int l) -> int64_t { return i->eval(m, l) != 0; }));
  return int_value(
      n.dtype, int_code([i = std::move(v.i), wrap = Wrap(to)](Machine& m, int l) { return wrap(u(i->eval(m, l))); }));
}

Value Compiler::shuffle(const Shuffle& n) {
  struct Source {
    Value value;
    int lanes;
  };
  auto sources = std::make_shared<std::vector<Source>>();
  for (const Expr& v : n.vectors) sources->push_back({value(v), v->dtype.lanes});
  std::vector<std::pair<size_t, int>> picks;
  for (const Expr& i : n.indices) {
    int64_t lane = as_int(i).value_or(-1);
    size_t s = 0;
    while (lane >= 0 && s < sources->size() && lane >= (*sources)[s].lanes) lane -= (*sources)[s++].lanes;
    if (lane < 0 || s == sources->size()) unsupported("a shuffle with a lane that does not exist");
    picks.emplace_back(s, static_cast<int>(lane));
  }
  if (n.dtype.is_float())
    return float_value(n.dtype, float_code([sources, picks](Machine& m, int l) {
                         auto [s, lane] = picks[static_cast<size_t>(l)];
                         return (*sources)[s].value.f->eval(m, lane);
                       }));
  return int_value(n.dtype, int_code([sources, picks](Machine& m, int l) {
                     auto [s, lane] = picks[static_cast<size_t>(l)];
                     return (*sources)[s].value.i->eval(m, lane);
                   }));
}

Value Compiler::value(const Expr& e) {
  if (e->dtype.is_scalable) unsupported(text("a vector of ", e->dtype, ", whose number of lanes a machine decides,"));
  DType d = e->dtype;
  auto binary = [&](const auto& n, auto int_op, auto float_op) {
    Value a = value(n.a), b = value(n.b);
    return a.f ? float_binary(d, std::move(a.f), std::move(b.f), float_op)
               : int_binary(d, std::move(a.i), std::move(b.i), int_op);
  };
  auto divide = [&](const auto& n, auto int_op, auto float_op) {
    Value a = value(n.a), b = value(n.b);
    return a.f ? float_binary(d, std::move(a.f), std::move(b.f), float_op)
               : int_division(d, std::move(a.i), std::move(b.i), int_op, e);
  };
  auto compare = [&](const auto& n, auto test) { return int_value(d, comparison(value(n.a), value(n.b), test)); };
  bool wide = is_wide_unsigned(d);
  return match(
      e,
      [&](const Var& n) { return variable(n); },
      [&](const IntImm& n) { return int_value(d, int_code([v = n.value](Machine&, int) { return v; })); },
      [&](const FloatImm& n) {
        double v = Round(d)(n.value);
        return float_value(d, float_code([v](Machine&, int) { return v; }));
      },
      [&](const StringImm&) -> Value { unsupported("a string as a value"); },
      [&](const Add& n) {
        return binary(n, [](int64_t a, int64_t b) { return u(a) + u(b); }, [](auto a, auto b) { return a + b; });
      },
      [&](const Sub& n) {
        return binary(n, [](int64_t a, int64_t b) { return u(a) - u(b); }, [](auto a, auto b) { return a - b; });
      },
      [&](const Mul& n) {
        return binary(n, [](int64_t a, int64_t b) { return u(a) * u(b); }, [](auto a, auto b) { return a * b; });
      },
      [&](const Div& n) { return divide(n, TruncDiv(), [](auto a, auto b) { return a / b; }); },
      [&](const Mod& n) { return divide(n, TruncMod(), [](auto a, auto b) { return std::fmod(a, b); }); },
      [&](const FloorDiv& n) { return divide(n, FloorQuotient(), [](auto a, auto b) { return std::floor(a / b); }); },
      [&](const FloorMod& n) {
        return divide(n, FloorRemainder(), [](auto a, auto b) { return a - std::floor(a / b) * b; });
      },
      [&](const Min& n) {
        return binary(
            n,
            [wide](int64_t a, int64_t b) { return wide ? std::min(u(a), u(b)) : u(std::min(a, b)); },
            [first = is_literal(n.b)](auto a, auto b) { return better_of(a, b, a < b, first); });
      },
      [&](const Max& n) {
        return binary(
            n,
            [wide](int64_t a, int64_t b) { return wide ? std::max(u(a), u(b)) : u(std::max(a, b)); },
            [first = is_literal(n.b)](auto a, auto b) { return better_of(a, b, a > b, first); });
      },
      [&](const EQ& n) { return compare(n, [](auto a, auto b) { return a == b; }); },
      [&](const NE& n) { return compare(n, [](auto a, auto b) { return a != b; }); },
      [&](const LT& n) { return compare(n, [](auto a, auto b) { return a < b; }); },
      [&](const LE& n) { return compare(n, [](auto a, auto b) { return a <= b; }); },
      [&](const GT& n) { return compare(n, [](auto a, auto b) { return a > b; }); },
      [&](const GE& n) { return compare(n, [](auto a, auto b) { return a >= b; }); },
      [&](const And& n) {
        return int_value(d, int_code([a = integer(n.a), b = integer(n.b)](Machine& m, int l) -> int64_t {
                           return a->eval(m, l) && b->eval(m, l);
                         }));
      },
      [&](const Or& n) {
        return int_value(d, int_code([a = integer(n.a), b = integer(n.b)](Machine& m, int l) -> int64_t {
                           return a->eval(m, l) || b->eval(m, l);
                         }));
      },
      [&](const Not& n) {
        return int_value(d, int_code([a = integer(n.a)](Machine& m, int l) -> int64_t { return !a->eval(m, l); }));
      },
      [&](const Select& n) {
        Int c = integer(n.condition);
        Value t = value(n.true_value), f = value(n.false_value);
        if (t.f)
          return float_value(d,
                             float_code([c = std::move(c), t = std::move(t.f), f = std::move(f.f)](Machine& m, int l) {
                               return c->eval(m, l) ? t->eval(m, l) : f->eval(m, l);
                             }));
        return int_value(d, int_code([c = std::move(c), t = std::move(t.i), f = std::move(f.i)](Machine& m, int l) {
                           return c->eval(m, l) ? t->eval(m, l) : f->eval(m, l);
                         }));
      },
      [&](const Cast& n) { return cast(n); },
      [&](const BufferLoad& n) { return load(n); },
      [&](const Call& n) { return call(n); },
      [&](const Let& n) { return let(n); },
      [&](const Ramp& n) {
        int inner = n.base->dtype.lanes;
        return int_value(d,
                         int_code([base = integer(n.base), stride = integer(n.stride), inner, wrap = Wrap(d.element())](
                                      Machine& m, int l) {
                           return wrap(u(base->eval(m, l % inner)) + u(stride->eval(m, l % inner)) * u(l / inner));
                         }));
      },
      [&](const Broadcast& n) {
        int inner = n.value->dtype.lanes;
        Value v = value(n.value);
        if (v.f)
          return float_value(
              d, float_code([f = std::move(v.f), inner](Machine& m, int l) { return f->eval(m, l % inner); }));
        return int_value(d, int_code([i = std::move(v.i), inner](Machine& m, int l) { return i->eval(m, l % inner); }));
      },
      [&](const Shuffle& n) { return shuffle(n); });
}

}  // namespace sator::tir::interp
