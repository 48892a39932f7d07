// Buffers of scripts: what declares them, and where they are visible.
#include <algorithm>

#include "ir/script/parser.h"
#include "tir/parse_impl.h"

namespace sator::tir {

using script::Expression;
using script::Place;

BufferRef FunctionParser::make_buffer_value(const Arguments& a, const BufferRegion* part) {
  std::vector<Expr> shape;
  if (part && !a.find("shape")) {
    for (const RangeRef& r : part->region) shape.push_back(r->extent);
  } else if (const Values* list = a.need("shape").as<Values>()) {
    for (const Value& v : list->items) {
      const std::string* s = v.as<std::string>();
      shape.push_back(s ? eval_expr(script::parse_expression(source, a.place_of("shape"), *s))
                        : to_expr(v, a.place_of("shape")));
    }
  } else {
    shape.push_back(a.expr("shape"));
  }
  for (const Expr& e : shape) {
    if (!e->dtype.is_integer() || e->dtype.lanes != 1)
      a.fail({.what = text("an extent of dtype ", e->dtype), .needs = "integers", .hint = "check the shape"});
  }
  DType dtype = a.dtype("dtype", part ? part->buffer->dtype : f32), index_dtype = shape.empty() ? i32 : shape[0]->dtype;
  VarRef data;
  if (const Value* v = a.find("data")) {
    const Expr* e = v->as<Expr>();
    const Var* pointer = e ? e->as<Var>() : nullptr;
    if (!pointer || !pointer->dtype.is_handle())
      a.fail({.what = text(v->kind(), " as the data of a buffer"),
              .needs = "a pointer variable",
              .hint = "use A.data or T.allocate"});
    data = ref(*pointer);
  } else {
    std::string scope = a.str("scope", part ? part->buffer->scope() : "global");
    data = make_pointer("", dtype, scope.empty() ? "global" : scope);
  }
  std::vector<Expr> strides;
  if (const Value* v = a.find("strides")) {
    Values single;
    if (!v->as<Values>()) single.items.push_back(*v);
    for (const Value& item : v->as<Values>() ? v->as<Values>()->items : single.items) {
      const std::string* s = item.as<std::string>();
      strides.push_back(s ? Expr(make_var(*s, index_dtype)) : to_expr(item, a.place_of("strides")));
    }
    if (!strides.empty() && strides.size() != shape.size())
      a.fail({.what = text(strides.size(), " strides for ", shape.size(), " dimensions"),
              .needs = "one stride per dimension",
              .hint = "count them"});
  }
  int64_t factor = a.integer("offset_factor", 0), align = a.integer("align", 0);
  const std::string type = a.str("buffer_type", "");
  if (factor < 0 || factor > INT32_MAX || align > INT32_MAX || !(type.empty() || type == "default" || type == "auto"))
    a.fail({.what = "a buffer with an offset factor, alignment or type that is not understood",
            .needs = "a positive offset factor and alignment, buffer_type=\"default\" or \"auto\"",
            .hint = "leave the argument out"});
  // Where nothing tells the strides they come with the argument.
  if (type == "auto" && strides.empty())
    for (size_t i = 0; i < shape.size(); ++i) strides.push_back(make_var("", index_dtype));
  Expr offset = a.expr_or("elem_offset", nullptr);
  if (!offset && factor) offset = make_var("", index_dtype);
  if (offset && is_zero(offset)) offset = nullptr;
  std::vector<int> separators;
  if (const Value* v = a.find("axis_separators")) {
    for (const Expr& e : to_exprs(*v, a.place_of("axis_separators")))
      separators.push_back(static_cast<int>(as_int(e).value_or(-1)));
  }
  return make<Buffer>(data,
                      dtype,
                      std::move(shape),
                      std::move(strides),
                      std::move(offset),
                      std::string(),
                      align > 0 ? static_cast<int>(align) : 64,
                      factor > 0 ? static_cast<int>(factor) : 1,
                      std::move(separators));
}

bool FunctionParser::alloc_buffer(const BufferRef& buffer) {
  FrameKind here = frames_.back().kind;
  if (here != FrameKind::block && here != FrameKind::function) return false;
  (here == FrameKind::block ? blocks_.back().alloc_buffers : root_allocs_).push_back(buffer);
  visible_.insert_or_assign(buffer->data, buffer);
  return true;
}

Value FunctionParser::match_buffer(const Expression& call) {
  Arguments a(*this,
              call,
              {"param",
               "shape",
               "dtype",
               "data",
               "strides",
               "elem_offset",
               "scope",
               "align",
               "offset_factor",
               "buffer_type",
               "axis_separators"});
  const Value& param = a.need("param");
  const Subscript* part = param.as<Subscript>();
  if (!part) {
    const Expr* e = param.as<Expr>();
    const Var* v = e ? e->as<Var>() : nullptr;
    bool is_param = v && std::find(params_.begin(), params_.end(), ref(*v)) != params_.end();
    bool is_matched =
        std::any_of(buffer_map_.begin(), buffer_map_.end(), [&](const auto& m) { return m.first.get() == v; });
    if (!is_param || is_matched || !v->dtype.is_handle())
      a.fail({.what = text("T.match_buffer of ", v && is_matched ? "a parameter that has a buffer" : param.kind()),
              .needs = "a T.handle parameter, once, or part of a buffer",
              .hint = "check the first argument"});
    BufferRef buffer = make_buffer_value(a);
    buffer_map_.emplace_back(ref(*v), buffer);
    visible_.insert_or_assign(buffer->data, buffer);
    return a.find("buffer_type") && a.str("buffer_type") == "auto" ? broadcast_view(buffer) : Value(buffer);
  }
  auto& block = block_here(call, "T.match_buffer of a part of a buffer");
  BufferRegionRef region = to_region(*part, call.place);
  // What is not said is as the region has it.
  BufferRef buffer = make_buffer_value(a, a.find("shape") ? nullptr : region.get());
  // The shape is that of the region, which may have leading dimensions of extent 1 more.
  size_t rank = buffer->shape.size(), all = region->region.size();
  for (size_t i = 0; i < all && rank <= all; ++i) {
    auto have = as_int(region->region[i]->extent);
    auto want = i < all - rank ? std::optional<int64_t>(1) : as_int(buffer->shape[i - (all - rank)]);
    if (have && want && have != want)
      a.fail({.what = text("a buffer of extent ", *want, " for a region of extent ", *have),
              .needs = "the shape of the region",
              .hint = "correct the shape"});
  }
  if (rank > all)
    a.fail({.what = text("a buffer of rank ", rank, " for a region of rank ", all),
            .needs = "at most the rank of the region",
            .hint = "correct the shape"});
  block.match_buffers.push_back(make<MatchBuffer>(buffer, region));
  visible_.insert_or_assign(buffer->data, buffer);
  return buffer;
}

/// buffer_type="auto": along an axis of extent 1 every index means the one element that is there. The parameter keeps
/// the strides of its argument, and the program sees a buffer over the same memory whose stride there is 0.
Value FunctionParser::broadcast_view(const BufferRef& buffer) {
  std::vector<Expr> strides;
  for (size_t i = 0; i < buffer->shape.size(); ++i) {
    const Expr& stride = buffer->strides[i];
    const Expr is_one = eq(buffer->shape[i], int_imm(1, buffer->shape[i]->dtype));
    strides.push_back(select(is_one, int_imm(0, stride->dtype), stride));
  }
  auto out = std::make_shared<ScopeOpener>();
  BufferRef view = sator::with(*buffer, &Buffer::strides, std::move(strides));
  out->wrap = [=](Stmt body) -> Stmt { return make<DeclBuffer>(view, std::move(body)); };
  out->bound = view;
  out->declares = view;
  // The names of the argument's strides follow from that of the view.
  out->names_also = buffer;
  return out;
}

VarRef FunctionParser::declare_thread(std::string tag, DType dtype) {
  VarRef v = make_var("", dtype);
  threads_.emplace(v.get(), make<ThreadAxis>(v, std::move(tag)));
  return v;
}

Ref<const ThreadAxis> FunctionParser::thread_axis(const Value& thread, DType dtype, Place place) {
  if (const std::string* tag = thread.as<std::string>()) return threads_.at(declare_thread(*tag, dtype).get());
  const Expr* e = thread.as<Expr>();
  auto at = e && e->as<Var>() ? threads_.find(e->as<Var>()) : threads_.end();
  if (at == threads_.end())
    fail(place,
         {.what = text("a launch over ", thread.kind()),
          .needs = "a name like \"threadIdx.x\" or a variable made by T.env_thread",
          .hint = "tx = T.env_thread(\"threadIdx.x\")"});
  return at->second;
}

void FunctionParser::add_attrs(Attrs attrs, const Expression& call) {
  if (frames_.back().kind != FrameKind::function)
    fail(call.place,
         {.what = "T.func_attr inside a scope",
          .needs = "the statements of the function itself",
          .hint = "move it to the top"});
  for (auto& [key, value] : attrs) {
    if (is_private_ && key == "global_symbol")
      fail(call.place,
           {.what = "a private function with the attribute global_symbol",
            .needs = "one or the other",
            .hint = "remove private=True"});
    if (!attrs_.emplace(key, value).second)
      fail(call.place,
           {.what = text("the function attribute ", string_literal(key), " is set twice"),
            .needs = "each attribute once",
            .hint = "remove one"});
  }
}

}  // namespace sator::tir
