#include "fuzz/schedule/traces.h"

#include <algorithm>

#include "schedule/primitives.h"

namespace sator::fuzz {

namespace {

using schedule::AnyPrimitive;
using schedule::Schedule;

/// One line: a primitive and values for its parameters, with handles by the names of blocks.
class Line {
 public:
  Line(Draw& draw, const Schedule& s) : draw_(draw), s_(s) {
    const schedule::Sites& sites = s.sites();
    for (int i = 1; i < sites.count(); ++i) {
      if (sites[i].realize()) blocks_.push_back(i);
      if (const tir::For* loop = sites[i].loop()) is_large_ |= as_int(loop->extent).value_or(0) > 1000;
    }
  }

  std::string text() {
    if (blocks_.empty()) return "";
    const AnyPrimitive& p = primitive();
    if (p.effect == schedule::Effect::reads || p.parameters.empty()) return "";
    block_ = draw_.of(blocks_);
    std::vector<std::string> args;
    for (const schedule::Parameter& parameter : p.parameters) {
      if (!parameter.required && !draw_.one_in(4)) continue;
      args.push_back(parameter.name + "=" + argument(p, parameter.name));
    }
    if (p.parameters.front().name == "loops") args[0] = args[0].substr(sizeof "loops");  // given one by one
    return p.name + "(" + join(args, ", ") + ")";
  }

 private:
  /// Half of the time one of those that machine code shows most of, or that build on each other.
  const AnyPrimitive& primitive() {
    static const std::vector<std::string> usual = {"split",
                                                   "vectorize",
                                                   "vectorize",
                                                   "fuse",
                                                   "reorder",
                                                   "compute_at",
                                                   "parallel",
                                                   "unroll",
                                                   "cache_read",
                                                   "cache_write",
                                                   "read_at",
                                                   "write_at",
                                                   "loop_partition",
                                                   "decompose_padding",
                                                   "decompose_reduction",
                                                   "reindex",
                                                   "rfactor"};
    static const std::vector<const AnyPrimitive*> all = [] {
      std::vector<const AnyPrimitive*> out = schedule::primitives();
      // Steps that do not keep the meaning by themselves.
      std::erase_if(out, [](const AnyPrimitive* p) { return p->name.starts_with("unsafe_"); });
      return out;
    }();
    if (draw_.below(2) == 1) return *draw_.of(all);
    const std::string& name = draw_.of(usual);
    return **std::find_if(all.begin(), all.end(), [&](const AnyPrimitive* p) { return p->name == name; });
  }

  using Drawn = std::string (Line::*)(const AnyPrimitive&);

  /// How a value for a parameter of this name is drawn. A primitive with a new name needs a row.
  std::string argument(const AnyPrimitive& p, const std::string& name) {
    static const std::map<std::string, Drawn> rows = {
        {"block", &Line::block},
        {"loop", &Line::loop},
        {"target", &Line::loop},
        {"loops", &Line::loops},
        {"block_or_loop", &Line::block_or_loop},
        {"factors", &Line::factors},
        {"buffer", &Line::buffer},
        {"buffer_index", &Line::index},
        {"read_buffer_index", &Line::index},
        {"write_buffer_index", &Line::index},
        {"storage_scope", &Line::scope},
        {"index_map", &Line::index_map},
        {"padding", &Line::padding},
        {"new_order", &Line::order},
        {"factor_axis", &Line::axis},
        {"axis", &Line::axis},
        {"factor", &Line::size},
        {"offset", &Line::size},
        {"axis_separators", &Line::separators},
        {"thread_axis", &Line::thread},
        {"ann_key", &Line::key},
        {"ann_val", &Line::size},
        {"index", &Line::axis},
        {"cse_thresh", &Line::axis},
        {"preserve_unit_iters", &Line::flag},
        {"preserve_unit_loops", &Line::flag},
        {"disable_predication", &Line::never},
        {"fits_dtype", &Line::never},
        {"init_follows", &Line::never},
        {"assume_injective_transform", &Line::never},
        {"consumer_blocks", &Line::consumers},
        {"pad_value", &Line::pad_value},
        {"tensor_intrin", &Line::intrin},
    };
    auto row = rows.find(name);
    if (row == rows.end()) internal_error(sator::text("the fuzzer has no draw for ", p.name, "(", name, ")"));
    return (this->*row->second)(p);
  }

  const tir::Block& chosen() const { return *s_.sites()[block_].realize()->block; }
  std::string block(const AnyPrimitive&) { return string_literal(chosen().name->text); }
  std::string loop(const AnyPrimitive& p) {
    int block = draw_.one_in(2) ? draw_.of(blocks_) : block_;
    const std::vector<int> around = s_.sites().loops_above(block);
    int64_t k = draw_.below(static_cast<int64_t>(around.size()));
    // The lowering refuses these for symbolic extents.
    const bool needs_number = p.name == "vectorize" || p.name == "unroll";
    for (int64_t tried = 0; needs_number && tried < static_cast<int64_t>(around.size()); ++tried) {
      if (as_int(s_.sites()[around[static_cast<size_t>(k)]].loop()->extent)) break;
      k = (k + 1) % static_cast<int64_t>(around.size());
    }
    return loop_of(block, k);
  }
  std::string loop_of(int block, int64_t k) const {
    return sator::text("get_loops(", string_literal(s_.sites()[block].realize()->block->name->text), ")[", k, "]");
  }
  std::string loops(const AnyPrimitive& p) {
    auto n = static_cast<int64_t>(s_.sites().loops_above(block_).size());
    std::vector<std::string> out;
    if (p.name == "fuse") {
      int64_t first = draw_.below(n);
      for (int64_t k = first; k <= std::min(n - 1, first + draw_.from(0, 2)); ++k) out.push_back(loop_of(block_, k));
    } else {
      std::vector<int64_t> order;
      for (int64_t k = 0; k < n; ++k) order.push_back(k);
      for (int64_t k = n; k > 1; --k)
        std::swap(order[static_cast<size_t>(k - 1)], order[static_cast<size_t>(draw_.below(k))]);
      order.resize(static_cast<size_t>(std::min(n, draw_.from(1, 4))));
      for (int64_t k : order) out.push_back(loop_of(block_, k));
    }
    return out.empty() ? "[]" : join(out, ", ");
  }
  std::string block_or_loop(const AnyPrimitive& p) { return draw_.one_in(2) ? block(p) : loop(p); }
  std::string factors(const AnyPrimitive&) {
    std::vector<std::string> out;
    int64_t n = draw_.from(1, 3), open = draw_.one_in(4) ? -1 : draw_.below(n);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t factor = is_large_ && draw_.one_in(3) ? draw_.of<int64_t>({64, 1000, 65536}) : draw_.from(1, 5);
      out.push_back(i == open ? "None" : sator::text(factor));
    }
    return "[" + join(out, ", ") + "]";
  }
  std::string index(const AnyPrimitive&) { return sator::text(draw_.one_in(8) ? draw_.from(1, 2) : 0); }
  std::string buffer(const AnyPrimitive&) {
    is_write_ = draw_.one_in(2);
    const auto& regions = is_write_ ? chosen().writes : chosen().reads;
    at_ = draw_.below(static_cast<int64_t>(regions.size()));
    return sator::text("(", is_write_ ? "\"write\"" : "\"read\"", ", ", at_, ")");
  }
  std::string scope(const AnyPrimitive&) {
    return string_literal(draw_.of(std::vector<std::string>{"shared", "local", "shared.dyn"}));
  }
  std::string index_map(const AnyPrimitive& p) {
    int64_t rank = static_cast<int64_t>(chosen().iter_vars.size());
    if (p.name == "transform_layout") {
      const auto& regions = is_write_ ? chosen().writes : chosen().reads;
      if (at_ < static_cast<int64_t>(regions.size())) rank = regions[static_cast<size_t>(at_)]->buffer->rank();
    }
    std::vector<std::string> in, out;
    for (int64_t i = 0; i < rank; ++i) in.push_back(sator::text("x", i));
    out = in;
    if (rank > 0 && draw_.one_in(6)) {  // backwards
      size_t k = static_cast<size_t>(draw_.below(rank));
      out[k] = sator::text(draw_.from(0, 8), " - ", in[k]);
    } else if (rank > 0 && draw_.one_in(2)) {
      size_t k = static_cast<size_t>(draw_.below(rank));
      int64_t f = draw_.from(1, 4);
      out[k] = sator::text(in[k], " // ", f);
      out.push_back(sator::text(in[k], " % ", f));
    } else if (rank > 1 && draw_.one_in(2)) {
      out[0] = sator::text(in[0], " * ", draw_.from(1, 9), " + ", in[1]);
      out.erase(out.begin() + 1);
    }
    if (out.size() > 1 && draw_.one_in(2))
      std::swap(out[0], out[static_cast<size_t>(draw_.below(static_cast<int64_t>(out.size())))]);
    return "lambda " + join(in, ", ") + ": (" + join(out, ", ") + ",)";
  }
  std::string padding(const AnyPrimitive&) {
    std::vector<std::string> out;
    for (size_t i = 0; i < chosen().iter_vars.size(); ++i) out.push_back(sator::text(draw_.from(1, 4)));
    return "[" + join(out, ", ") + "]";
  }
  /// Mostly an order of the iterators, now and then some place twice.
  std::string order(const AnyPrimitive&) {
    std::vector<size_t> places(chosen().iter_vars.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = i;
    for (size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[draw_.below(i)]);
    if (!places.empty() && draw_.below(8) == 0) places[0] = places.back();
    std::vector<std::string> out;
    for (size_t p : places) out.push_back(sator::text(p));
    return "[" + join(out, ", ") + "]";
  }
  std::string axis(const AnyPrimitive&) { return sator::text(draw_.from(-3, 3)); }
  std::string separators(const AnyPrimitive&) { return sator::text("[", draw_.from(-1, 3), "]"); }
  std::string size(const AnyPrimitive&) { return sator::text(draw_.from(0, 8)); }
  /// Axes whose threads share no cache: the interpreter runs threads one after the other, without barriers.
  std::string thread(const AnyPrimitive&) {
    return string_literal(draw_.of(std::vector<std::string>{"blockIdx.x", "blockIdx.y"}));
  }
  std::string key(const AnyPrimitive&) { return "\"key\""; }
  std::string flag(const AnyPrimitive&) { return draw_.one_in(2) ? "True" : "False"; }
  std::string never(const AnyPrimitive&) { return "False"; }  // the caller answers for these
  std::string consumers(const AnyPrimitive& p) { return "[" + block(p) + "]"; }
  std::string pad_value(const AnyPrimitive&) { return draw_.one_in(2) ? "None" : "0"; }
  std::string intrin(const AnyPrimitive&) { return "\"none\""; }

  Draw& draw_;
  const Schedule& s_;
  std::vector<int> blocks_;
  int block_ = -1;
  bool is_large_ = false;  ///< the program has loops that are too long to run
  bool is_write_ = false;
  int64_t at_ = 0;
};

}  // namespace

std::string draw_line(Draw& draw, const Schedule& s) { return Line(draw, s).text(); }

}  // namespace sator::fuzz
