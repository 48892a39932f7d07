#include "fuzz/graphs/calls.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "relax/ops/table.h"
#include "relax/parse.h"

namespace sator::fuzz {

namespace {

bool is_symbol(const std::string& extent) { return extent == "n" || extent == "m"; }

std::string list_of(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& i : items) out += i + ", ";
  return out;
}
/// Whether the text has the variable.
bool names(const std::string& text, const std::string& variable) {
  for (size_t at = text.find(variable); at != text.npos; at = text.find(variable, at + 1)) {
    size_t end = at + variable.size();
    if (end >= text.size() || !std::isdigit(static_cast<unsigned char>(text[end]))) return true;
  }
  return false;
}

/// Ops whose result jumps where their argument changes a little.
const std::set<std::string_view> kJumps = {
    "floor",        "ceil",       "round",       "sign",        "equal",
    "not_equal",    "less",       "less_equal",  "greater",     "greater_equal",
    "argmax",       "argmin",     "sort",        "argsort",     "topk",
    "floor_divide", "astype",     "wrap_param",  "quantize",    "multinomial_from_uniform",
    "logical_and",  "logical_or", "logical_xor", "logical_not", "isnan",
    "isinf",        "isfinite",   "full_like",   "mod",         "floor_mod",
    "atan2",        "median",     "masked_fill", "bucketize"};
/// Ops that move, pick or add elements: what they make of exact tensors is exact.
const std::set<std::string_view> kExact = {"add",
                                           "subtract",
                                           "minimum",
                                           "maximum",
                                           "negative",
                                           "abs",
                                           "nn.relu",
                                           "reshape",
                                           "flatten",
                                           "expand_dims",
                                           "squeeze",
                                           "permute_dims",
                                           "broadcast_to",
                                           "concat",
                                           "split",
                                           "repeat",
                                           "tile",
                                           "flip",
                                           "take",
                                           "strided_slice",
                                           "dynamic_strided_slice",
                                           "where",
                                           "max",
                                           "min",
                                           "sum",
                                           "cumsum",
                                           "clip",
                                           "tril",
                                           "triu",
                                           "nn.pad",
                                           "full",
                                           "ones",
                                           "zeros",
                                           "ones_like",
                                           "zeros_like",
                                           "arange",
                                           "eye",
                                           "eye_like",
                                           "meshgrid",
                                           "size",
                                           "index_tensor",
                                           "slice_scatter",
                                           "nn.batch_flatten",
                                           "nn.pixel_shuffle",
                                           "collapse_sum_like",
                                           "collapse_sum_to"};

}  // namespace

bool is_number(const std::string& extent) { return extent.find_first_not_of("0123456789") == extent.npos; }
bool can_be_param(const std::vector<std::string>& shape) {
  return std::ranges::all_of(shape, [](const std::string& e) { return is_number(e) || is_symbol(e); });
}

GraphText::GraphText(Draw& d) : draw(d) {
  first_is_dataflow_ = draw.one_in(4) ? 0 : 1;
  param(random_shape(),
        draw.of<std::string>({"float32", "float32", "float32", "int32", "float16", "int64", "float64"}));
  int64_t wanted = draw.from(1, 10);
  for (int64_t attempts = 0; attempts < 6 * wanted && static_cast<int64_t>(lines_.size()) < wanted; ++attempts) {
    grow();
    if (draw.one_in(8)) ++block_;
  }
  // What nobody uses is a result, so that nothing is dead; now and then only some of it.
  for (const TensorVar& v : values_) {
    bool is_used =
        std::ranges::any_of(lines_, [&](const Line& l) { return l.name != v.name && names(l.value, v.name); });
    if (!is_used && !draw.one_in(16)) results_.push_back(v.name);
  }
  if (draw.one_in(3)) results_.push_back(draw.of(values_).name);
  if (results_.empty()) results_ = {values_.back().name};
}

std::vector<std::string> GraphText::random_shape() {
  std::vector<std::string> shape;
  int64_t rank = draw.one_in(8) ? 0 : draw.from(1, 3);
  for (int64_t d = 0; d < rank; ++d) {
    static const std::vector<std::string> kExtents = {"3", "4", "5", "2", "1", "n", "m", "n", "8", "0"};
    shape.push_back(draw.one_in(12) ? "0" : kExtents[static_cast<size_t>(draw.below(9))]);
  }
  return shape;
}

std::string GraphText::param(const std::vector<std::string>& shape, const std::string& dtype) {
  params_.push_back({sator::text("x", params_.size()), *DType::parse(dtype), shape, true});
  values_.push_back(params_.back());
  return params_.back().name;
}
std::string GraphText::param(const std::vector<int64_t>& shape, const std::string& dtype) {
  std::vector<std::string> extents;
  for (int64_t e : shape) extents.push_back(sator::text(e));
  return param(extents, dtype);
}

const TensorVar& GraphText::value(FunctionRef<bool(const TensorVar&)> fits, const char* dtype) {
  std::vector<size_t> fitting;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (fits(values_[i])) fitting.push_back(i);
  }
  if (fitting.empty()) {
    param(random_shape(), dtype);
    return values_.back();
  }
  // Late values more often: chains are what passes work on.
  size_t at = fitting[static_cast<size_t>(draw.one_in(2) ? draw.below(static_cast<int64_t>(fitting.size()))
                                                         : static_cast<int64_t>(fitting.size()) - 1)];
  return values_[at];
}

const TensorVar& GraphText::float_value() {
  return value([](const TensorVar& v) { return v.dtype.is_float(); });
}

std::string GraphText::partner(const TensorVar& with) {
  const TensorVar copy = with;
  int64_t kind = draw.below(4);
  if (kind == 0) return sator::text("R.const(", copy.dtype.is_bool() ? "True" : "2", ", \"", copy.dtype, "\")");
  if (kind == 1 && can_be_param(copy.shape)) {
    std::vector<std::string> shape = copy.shape;
    for (std::string& e : shape) {
      if (draw.one_in(4)) e = "1";
    }
    if (!shape.empty() && draw.one_in(4)) shape.erase(shape.begin());
    return param(shape, sator::text(copy.dtype));
  }
  const TensorVar& other = value([&](const TensorVar& v) { return v.dtype == copy.dtype && v.shape == copy.shape; });
  if (!other.is_exact) is_exact_ = false;
  return other.name;
}

void GraphText::grow() {
  static const std::vector<const relax::OpDef*> ops = [] {
    std::vector<const relax::OpDef*> out;
    for (const relax::OpDef& op : relax::op_table()) {
      if (op.has_formula() || op.name == "linear") out.push_back(&op);
    }
    return out;
  }();
  const relax::OpDef& op = *draw.of(ops);
  is_exact_ = true;
  const std::string call = drawn_call(*this, op);
  if (call.empty()) return;
  bool jumps = kJumps.count(op.name) > 0;
  // Arguments that are not exact are seen by their names.
  for (const TensorVar& v : values_) {
    if (!v.is_exact && names(call, v.name)) is_exact_ = false;
  }
  if (jumps && !is_exact_) return;
  if (!bind(call, is_exact_ && (jumps || kExact.count(op.name)))) ++refused;
}

bool GraphText::bind(const std::string& call, bool is_exact) {
  const std::string name = sator::text("v", lines_.size());
  lines_.push_back({name, call, block_});
  try {
    ModuleRef module = relax::parse_module(function({name}));
    const auto& f = *module->functions.at("main").as<relax::Function>();
    const auto* body = f.body.as<relax::SeqExpr>();
    relax::StructInfo info = body->body->sinfo;
    if (const auto* tuple = info.as<relax::TupleInfo>()) {
      for (size_t i = 0; i < tuple->items.size(); ++i) {
        std::string item = sator::text("v", lines_.size());
        lines_.push_back({item, sator::text(name, "[", i, "]"), block_});
        note(item, tuple->items[i], is_exact);
      }
    } else {
      note(name, info, is_exact);
    }
    return true;
  } catch (const Error&) {
    lines_.pop_back();
    return false;
  }
}

void GraphText::note(const std::string& name, const relax::StructInfo& info, bool is_exact) {
  const auto* t = info.as<relax::TensorInfo>();
  auto shape = t ? relax::explicit_shape(*t) : std::nullopt;
  if (!shape || t->dtype.is_void()) return;  // a result of which too little is known to go on with
  TensorVar v{name, t->dtype, {}, is_exact};
  for (const Expr& e : *shape) v.shape.push_back(sator::text(e));
  values_.push_back(std::move(v));
}

std::string GraphText::text() const { return function(results_); }

std::string GraphText::function(const std::vector<std::string>& results) const {
  std::string params, body;
  bool has_symbols[2] = {false, false};
  for (const TensorVar& p : params_) {
    std::vector<std::string> extents;
    for (const std::string& e : p.shape) {
      if (is_symbol(e)) has_symbols[e == "m"] = true;
      extents.push_back(is_symbol(e) ? "\"" + e + "\"" : e);
    }
    params +=
        sator::text(params.empty() ? "" : ", ", p.name, ": R.Tensor((", list_of(extents), "), \"", p.dtype, "\")");
  }
  for (int s : {0, 1}) {
    if (has_symbols[s]) body += sator::text("    ", s ? "m" : "n", " = T.int64()\n");
  }
  const std::string result = results.size() == 1 ? results[0] : "(" + list_of(results) + ")";
  auto is_used_after = [&](const Line& line) {
    if (names(result, line.name)) return true;
    return std::ranges::any_of(lines_,
                               [&](const Line& l) { return l.block != line.block && names(l.value, line.name); });
  };
  for (size_t i = 0; i < lines_.size();) {
    const int block = lines_[i].block;
    const bool is_dataflow = (block + first_is_dataflow_) % 2 == 1;
    std::string outputs;
    if (is_dataflow) body += "    with R.dataflow():\n";
    std::string last;
    for (; i < lines_.size() && lines_[i].block == block; ++i) {
      body += sator::text(is_dataflow ? "        " : "    ", lines_[i].name, " = ", lines_[i].value, "\n");
      if (is_used_after(lines_[i])) outputs += (outputs.empty() ? "" : ", ") + lines_[i].name;
      last = lines_[i].name;
    }
    if (is_dataflow) body += "        R.output(" + (outputs.empty() ? last : outputs) + ")\n";
  }
  return "@R.function\ndef main(" + params + "):\n" + body + "    return " + result + "\n";
}

}  // namespace sator::fuzz
