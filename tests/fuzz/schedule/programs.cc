#include "fuzz/schedule/programs.h"

#include <algorithm>

#include "base/dtype.h"
#include "fuzz/schedule/nest.h"

namespace sator::fuzz {

namespace {

struct Array {
  std::string name;
  std::vector<Size> shape;
  DType dtype;
  double error = 0;   ///< the relative error that roundings may add up to; 0 of inputs and of integers
  double most = 1.5;  ///< no element is larger (floats; they are positive)
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
};

/// The distance of neighbouring numbers around 1.
double ulp(DType d) { return d.is_bfloat() ? 0x1p-7 : d.bits == 16 ? 0x1p-10 : d.bits == 32 ? 0x1p-23 : 0x1p-52; }

std::string joined(const std::vector<Size>& shape) {
  std::string out;
  for (const Size& n : shape) out += n.text + ", ";
  return "(" + out + ")";
}

class Writer {
 public:
  explicit Writer(Draw& draw) : draw_(draw) {
    dtype_ = *DType::parse(draw.of<std::string>(
        {"float32", "int32", "int8", "float16", "int64", "uint8", "float64", "bfloat16", "bool", "int16", "uint32"}));
    symbolic_ = draw.below(3);  // 1: int64, 2: int32
    is_large_ = draw.one_in(5);
    std::vector<Size> shape;
    for (int64_t d = draw.from(1, 3); d > 0; --d) shape.push_back(size());
    made_.push_back(input(shape, dtype_));
    const int64_t steps = draw.from(1, 4);
    for (int64_t i = 0; i < steps; ++i) step(i + 1 == steps);
  }

  Program program() const {
    std::vector<Array> all = inputs_;
    all.insert(all.end(), outputs_.begin(), outputs_.end());
    std::string params, head;
    for (const Array& a : all) {
      std::string comma = params.empty() ? "" : ", ";
      if (symbols_.empty()) {
        params += comma + a.name + ": T.Buffer(" + joined(a.shape) + ", \"" + a.dtype.name() + "\")";
      } else {
        params += comma + a.name + "_: T.handle";
        head += "    " + a.name + " = T.match_buffer(" + a.name + "_, " + joined(a.shape) + ", \"" + a.dtype.name() +
                "\")\n";
      }
    }
    std::string sizes;
    for (const std::string& s : symbols_) sizes += "    " + s + " = T." + (symbolic_ == 1 ? "int64" : "int32") + "()\n";
    for (const Array& a : buffers_)
      head += "    " + a.name + " = T.alloc_buffer(" + joined(a.shape) + ", \"" + a.dtype.name() + "\")\n";
    Program out{"@T.prim_func\ndef f(" + params + "):\n" + sizes + head + body_, {}};
    for (const Array& a : outputs_) out.errors[a.name] = a.error;
    return out;
  }

 private:
  using Step = void (Writer::*)();

  // ---- Sizes, arrays, numbers ----

  Size size() {
    if (symbolic_ == 0 || draw_.below(3) == 0) {
      if (is_large_ && draw_.below(2) == 0) return draw_.of<int64_t>({1 << 20, 400'000, 999'983});  // too long to run
      return draw_.from(1, 9);
    }
    std::string name = draw_.one_in(3) ? "m" : "n";
    if (std::find(symbols_.begin(), symbols_.end(), name) == symbols_.end()) symbols_.push_back(name);
    return Size(name);
  }
  Array input(std::vector<Size> shape, DType dtype) {
    inputs_.push_back({text("A", static_cast<int64_t>(inputs_.size())), std::move(shape), dtype});
    return inputs_.back();
  }
  /// What an earlier step made, mostly the last.
  Array any() { return draw_.below(4) < 3 ? made_.back() : draw_.of(made_); }
  /// An array of the same shape: one made before, so that paths join again, or a new input.
  Array like(const Array& a) {
    std::vector<Array> fitting;
    for (const Array& b : made_)
      if (b.name != a.name && b.dtype == a.dtype && joined(b.shape) == joined(a.shape)) fitting.push_back(b);
    return fitting.empty() || draw_.one_in(3) ? input(a.shape, a.dtype) : draw_.of(fitting);
  }
  /// The result of a step that rounds `length` times, of operands with errors of their own.
  Array result(std::vector<Size> shape, DType dtype, std::vector<Array> parts, int64_t length = 1) {
    Array out{text("B", number_), std::move(shape), dtype};
    if (dtype.is_float()) out.error = static_cast<double>(length) * ulp(dtype);
    for (const Array& p : parts) {
      if (dtype.is_float()) out.error += p.error;
      out.most = std::max(out.most, p.most);
    }
    return out;
  }
  void done(const Array& a) {
    results_.push_back(a);
    const bool is_output = is_last_ || draw_.one_in(4);
    (is_output ? outputs_ : buffers_).push_back(a);
  }

  static std::string number(int64_t n, DType d) {
    if (d.is_bool()) return n ? "T.bool(True)" : "T.bool(False)";
    return text("T.", d.name(), "(", n, ")");
  }
  /// v0, v1, ... with some replaced.
  static std::string at(const Array& a, std::vector<std::string> indices = {}) {
    for (int64_t d = static_cast<int64_t>(indices.size()); d < a.rank(); ++d) indices.push_back(text("v", d));
    return a.name + "[" + join(indices, ", ") + "]";
  }
  Nest nest(const Array& out) {
    Nest n(draw_, number_);
    n.name = out.name;
    for (const Size& s : out.shape) n.axes.push_back({s});
    return n;
  }
  void write(Nest& n) { body_ += n.text(); }

  /// Larger values would leave the dtype's range, or make it infinite.
  bool may_grow(const Array& a, double factor) const {
    return !a.dtype.is_float() || a.most * factor < (a.dtype.bits == 16 ? 1e4 : 1e30);
  }

  // ---- Values ----

  std::string unary(Array& out, const Array& in, const std::string& x) {
    DType d = in.dtype;
    if (d.is_bool()) return "not " + x;
    switch (draw_.below(d.is_float() ? 4 : 6)) {
      case 0:
        if (!may_grow(in, 2)) return x;
        out.most *= 2;
        return x + " * " + number(2, d);
      case 1: out.most += 1; return x + " + " + number(1, d);
      case 2: return text("T.max(", x, ", ", number(1, d), ")");
      case 3: out.most = std::max(out.most, 3.0); return text("T.Select(v0 % 2 == 0, ", x, ", ", number(3, d), ")");
      case 4: return x + " // " + number(3, d);
      default: return x + " % " + number(3, d);
    }
  }
  std::string binary(Array& out, const Array& a, const std::string& x, const Array& b, const std::string& y) {
    DType d = a.dtype;
    if (d.is_bool()) return draw_.below(2) == 0 ? x + " and " + y : x + " == " + y;
    switch (draw_.below(4)) {
      case 0: out.most = a.most + b.most; return x + " + " + y;
      case 1:
        if (!may_grow(a, b.most)) return text("T.max(", x, ", ", y, ")");
        out.most = a.most * b.most;
        return x + " * " + y;
      case 2: return text("T.min(", x, ", ", y, ")");
      default: return text("T.max(", x, ", ", y, ")");
    }
  }
  /// Combines in the reduction: a sum, a maximum; of bools whether one holds.
  void reduce(Nest& n, Array& out, const std::string& place, const std::string& value, int64_t length, double most) {
    DType d = out.dtype;
    if (d.is_bool()) {
      n.init = {place + " = T.bool(False)"};
      n.body = {place + " = " + place + " or " + value};
      return;
    }
    const double sum = most * static_cast<double>(length);
    if (draw_.one_in(4) || (d.is_float() && sum > (d.bits == 16 ? 1e4 : 1e30))) {
      n.init = {place + " = T.min_value(\"" + d.name() + "\")"};
      n.body = {place + " = T.max(" + place + ", " + value + ")"};
      return;
    }
    out.most = sum;
    n.init = {place + " = " + number(0, d)};
    n.body = {place + " = " + place + " + " + value};
  }

  // ---- Steps ----

  void elementwise() {
    Array in = any();
    Array out = result(in.shape, in.dtype, {in});
    Nest n = nest(out);
    n.body = {at(out) + " = " + unary(out, in, at(in))};
    write(n), done(out);
  }
  void two_operands() {
    Array in = any(), other = like(in);
    Array out = result(in.shape, in.dtype, {in, other});
    Nest n = nest(out);
    n.body = {at(out) + " = " + binary(out, in, at(in), other, at(other))};
    write(n), done(out);
  }
  void permuted() {
    Array in = any();
    std::vector<Size> shape(in.shape.rbegin(), in.shape.rend());
    std::vector<std::string> indices;
    for (int64_t d = in.rank(); d-- > 0;) indices.push_back(text("v", d));
    Array out = result(shape, in.dtype, {in});
    Nest n = nest(out);
    n.body = {at(out) + " = " + unary(out, in, at(in, indices))};
    write(n), done(out);
  }
  void product() {
    Array in = any();
    if (in.rank() < 2) return elementwise();
    const Size k = in.shape.back(), wide = draw_.from(1, 6);
    Array w = input({k, wide}, in.dtype);
    std::vector<Size> shape = in.shape;
    shape.back() = wide;
    const bool grows = may_grow(in, 1.5 * static_cast<double>(k.most()));
    Array out = result(shape, in.dtype, {in, w}, 2 * k.most());
    Nest n = nest(out);
    n.axes.push_back({k, 'R'});
    const int64_t r = in.rank();
    std::vector<std::string> indices;
    for (int64_t d = 0; d + 1 < r; ++d) indices.push_back(text("v", d));
    indices.push_back(text("v", r));
    const std::string x = at(in, indices), y = at(w, {text("v", r), text("v", r - 1)});
    const std::string value = in.dtype.is_bool() ? "(" + x + " and " + y + ")" : grows ? x + " * " + y : x;
    reduce(n, out, at(out), value, k.most(), grows ? in.most * 1.5 : in.most);
    write(n), done(out);
  }
  /// Over the last axis, or the last two; over all that is before it where the loop is ragged.
  void reduction() {
    Array in = any();
    const int64_t reduced = in.rank() >= 2 ? draw_.from(1, 2) : 1, kept = in.rank() - reduced;
    std::vector<Size> shape(in.shape.begin(), in.shape.begin() + kept);
    int64_t length = 1;
    for (int64_t d = kept; d < in.rank(); ++d) length *= in.shape[static_cast<size_t>(d)].most();
    if (kept == 0) shape.push_back(1);
    Array out = result(shape, in.dtype, {in}, length);
    Nest n(draw_, number_);
    n.name = out.name;
    for (int64_t d = 0; d < in.rank(); ++d) n.axes.push_back({in.shape[static_cast<size_t>(d)], d < kept ? 'S' : 'R'});
    const std::string place = kept == 0 ? at(out, {"0"}) : at(out);
    // for k in range(i + 1), as far as the axis goes
    if (kept == 1 && reduced == 1 && draw_.one_in(3))
      n.axes[1].extent = text("T.min(i", number_, "_0 + 1, ", in.shape[1].text, ")");
    reduce(n, out, place, at(in), length, in.most);
    if (draw_.one_in(8) && !in.dtype.is_bool()) {  // begins with an element instead of a constant
      n.init = {place + " = " + at(in)};
      out.most += in.most;
    }
    write(n), done(out);
  }
  void window() {
    Array in = any();
    const Size last = in.shape.back();
    const int64_t width = draw_.from(1, std::min<int64_t>(3, last.value.value_or(3))), d = in.rank() - 1;
    std::vector<Size> shape = in.shape;
    shape.back() = last.plus(1 - width);
    Array out = result(shape, in.dtype, {in}, width);
    Nest n = nest(out);
    n.axes.push_back({width, 'R'});
    std::vector<std::string> indices;
    for (int64_t i = 0; i < d; ++i) indices.push_back(text("v", i));
    indices.push_back(text("v", d, " + v", d + 1));
    reduce(n, out, at(out), at(in, indices), width, in.most);
    write(n), done(out);
  }
  void padded() {
    Array in = any();
    std::vector<Size> shape = in.shape;
    shape[0] = in.shape[0].plus(2);
    std::vector<std::string> indices = {"v0 - 1"};
    Array out = result(shape, in.dtype, {in});
    Nest n = nest(out);
    const char* choice = draw_.below(2) == 0 ? "T.if_then_else" : "T.Select";
    n.body = {text(at(out),
                   " = ",
                   choice,
                   "(1 <= v0 and v0 < ",
                   in.shape[0].plus(1).text,
                   ", ",
                   at(in, indices),
                   ", ",
                   number(0, in.dtype),
                   ")")};
    write(n), done(out);
  }
  void flattened() {
    Array in = any();
    if (in.rank() < 2) return elementwise();
    std::vector<Size> shape = {in.shape[0].times(in.shape[1])};
    for (int64_t d = 2; d < in.rank(); ++d) shape.push_back(in.shape[static_cast<size_t>(d)]);
    std::vector<std::string> indices = {text("v0 // ", in.shape[1].text), text("v0 % ", in.shape[1].text)};
    if (!in.shape[1].value) indices = {text("v0 // (", in.shape[1].text, ")"), text("v0 % (", in.shape[1].text, ")")};
    for (int64_t d = 2; d < in.rank(); ++d) indices.push_back(text("v", d - 1));
    Array out = result(shape, in.dtype, {in});
    Nest n = nest(out);
    n.body = {at(out) + " = " + unary(out, in, at(in, indices))};
    write(n), done(out);
  }
  /// A part of an output: below the diagonal, or from some index on. The rest keeps what the caller passed.
  void partial() {
    Array in = any();
    Array out = result(in.shape, in.dtype, {in});
    Nest n = nest(out);
    if (in.rank() >= 2 && draw_.below(2) == 0)
      n.axes[1].extent = text("T.min(i", number_, "_0 + 1, ", in.shape[1].text, ")");
    else if (const int64_t most = std::min<int64_t>(2, in.shape[0].value.value_or(3) - 1); most > 0)
      n.axes[0].begin = draw_.from(1, most);
    n.body = {at(out) + " = " + unary(out, in, at(in))};
    write(n);
    outputs_.push_back(out);  // nobody reads it
    results_.push_back(in);
  }
  void two_results() {
    Array in = any();
    Array out = result(in.shape, in.dtype, {in}), second = result(in.shape, in.dtype, {in});
    second.name += "b";
    Nest n = nest(out);
    n.body = {at(out) + " = " + unary(out, in, at(in)), at(second) + " = " + unary(second, in, at(in))};
    write(n), done(out), done(second);
  }
  void converted_step() {
    Array in = any();
    DType to = draw_.of<DType>({f32, i32, i8, f16, i64, u8, f64, bf16, boolean, u32});
    // A rounding would decide to which integer a number becomes; floats stay positive.
    if (in.dtype.is_float() && !to.is_float() && in.error > 0) return elementwise();
    if (!in.dtype.is_float() && to.is_float() && in.dtype != u8 && !in.dtype.is_bool()) return elementwise();
    Array out = result(in.shape, to, {in});
    if (!in.dtype.is_float()) out.most = 255;
    if (!may_grow(out, 1)) return elementwise();
    Nest n = nest(out);
    n.body = {at(out) + " = T.Cast(\"" + to.name() + "\", " + at(in) + ")"};
    write(n), done(out);
  }
  void gathered() {
    Array in = any();
    Array rows = input({draw_.from(1, 6)}, i32);
    std::vector<Size> shape = in.shape;
    shape[0] = rows.shape[0];
    Array out = result(shape, in.dtype, {in});
    Nest n = nest(out);
    n.body = {
        text(at(out), " = ", at(in, {text("T.max(T.min(", rows.name, "[v0], ", in.shape[0].plus(-1).text, "), 0)")}))};
    write(n), done(out);
  }
  void with_let() {
    Array in = any();
    Array out = result(in.shape, in.dtype, {in, in}, 2);
    Nest n = nest(out);
    const std::string y = text("y", number_), z = text("z", number_);
    Array half = out;
    std::string first = unary(half, in, at(in));
    out.most = half.most;
    std::string both = binary(out, half, y, half, y);
    n.body = {text(y, ": T.", in.dtype.name(), " = ", first), at(out) + " = " + both};
    write(n), done(out);
  }
  /// A block for each row, with a loop of its own.
  void rows() {
    Array in = any();
    if (in.rank() < 2) return elementwise();
    Array out = result(in.shape, in.dtype, {in});
    Nest n = nest(out);
    n.axes.pop_back();
    const std::string x = text("x", number_);
    std::vector<std::string> indices;
    for (int64_t d = 0; d + 1 < in.rank(); ++d) indices.push_back(text("v", d));
    indices.push_back(x);
    n.body = {text("for ", x, " in range(", in.shape.back().text, "):"),
              "    " + at(out, indices) + " = " + unary(out, in, at(in, indices))};
    write(n), done(out);
  }
  /// The index of the largest element of each row, the smallest of equal ones in any order, and that element.
  void argmax() {
    Array in = any();
    if (in.rank() < 2 || in.dtype.is_bool() || in.error > 0) return reduction();
    std::vector<Size> shape = {in.shape[0]};
    for (int64_t d = 2; d < in.rank(); ++d) shape.push_back(in.shape[static_cast<size_t>(d)]);
    Array index = result(shape, i32, {in}), value = result(shape, in.dtype, {in});
    index.name += "i";
    Nest n(draw_, number_);
    n.name = value.name;
    n.axes = {{in.shape[0]}, {in.shape[1], 'R'}};
    std::vector<std::string> kept = {"v0"};
    for (int64_t d = 2; d < in.rank(); ++d) {
      n.axes.push_back({in.shape[static_cast<size_t>(d)]});
      kept.push_back(text("v", d));
    }
    const std::string i = at(index, kept), v = at(value, kept), x = at(in);
    n.init = {i + " = -1", v + " = T.min_value(\"" + in.dtype.name() + "\")"};
    const std::string k = symbols_.empty() ? "v1" : "T.Cast(\"int32\", v1)";
    const std::string keeps = text("(", v, " > ", x, " or (", v, " == ", x, " and ", i, " < ", k, "))");
    n.body = {text("k", number_, ": T.int32 = T.Select(", keeps, ", ", i, ", ", k, ")"),
              text("w", number_, ": T.", in.dtype.name(), " = T.Select(", v, " > ", x, ", ", v, ", ", x, ")"),
              text(i, " = k", number_),
              text(v, " = w", number_)};
    write(n);
    value.error = 0;
    done(index), done(value);
  }

  void step(bool is_last) {
    is_last_ = is_last;
    static const std::vector<Step> steps = {&Writer::elementwise,
                                            &Writer::two_operands,
                                            &Writer::product,
                                            &Writer::reduction,
                                            &Writer::window,
                                            &Writer::padded,
                                            &Writer::permuted,
                                            &Writer::flattened,
                                            &Writer::partial,
                                            &Writer::two_results,
                                            &Writer::converted_step,
                                            &Writer::gathered,
                                            &Writer::with_let,
                                            &Writer::argmax,
                                            &Writer::rows};
    results_.clear();
    (this->*draw_.of(steps))();
    made_.insert(made_.end(), results_.begin(), results_.end());
    ++number_;
  }

  Draw& draw_;
  DType dtype_;
  int64_t symbolic_ = 0, number_ = 0;
  bool is_last_ = false, is_large_ = false;
  std::string body_;
  std::vector<std::string> symbols_;
  std::vector<Array> inputs_, outputs_, buffers_, made_, results_;
};

}  // namespace

Program draw_program(Draw& draw) { return Writer(draw).program(); }

}  // namespace sator::fuzz
