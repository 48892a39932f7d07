#include <unordered_map>

#include "tir/print_impl.h"

namespace sator::tir {

using namespace script;

Doc ScriptPrinter::define_buffer(const Buffer& buffer, Frame& frame) {
  return printer.define(buffer, buffer.name.empty() ? "buffer" : buffer.name, frame);
}
Doc ScriptPrinter::define_var(const Var& v, Frame& frame) { return printer.define(v, v.name, frame); }

Doc ScriptPrinter::undefined(const Var& v) {
  Frame& frame = *printer.lowest_frame_around_uses(v);
  Doc name = define_var(v, frame);
  frame.stmts.push_back(assign_doc(name, creation(v)));
  return name;
}

Doc ScriptPrinter::undefined(const Buffer& buffer) {
  Frame& frame = *printer.lowest_frame_around_uses(buffer);
  Doc name = define_buffer(buffer, frame);
  Doc value = buffer_decl(buffer, "Buffer", {}, frame, Defines::pointer);
  frame.stmts.push_back(assign_doc(name, value));
  return name;
}

ScriptPrinter::BufferArgs ScriptPrinter::buffer_args(const Buffer& buffer, Frame& frame, Defines defines) {
  BufferArgs out;
  std::unordered_map<const Var*, int> uses;
  auto count = [&](const Expr& e) {
    if (!e) return;
    // Each occurrence counts, so this is not `walk`, which enters a variable once.
    auto visit = [&](auto& self, const NodeRef& n) -> void {
      if (const Var* v = n.as<Var>()) ++uses[v];
      n->info().each_child(*n, [&](const NodeRef& child) { self(self, child); });
    };
    visit(visit, e);
  };
  count(buffer.data);
  count(buffer.elem_offset);
  for (const Expr& e : buffer.strides) count(e);
  for (const Expr& e : buffer.shape) count(e);
  auto new_var = [&](const Expr& e) -> const Var* {
    const Var* v = e ? e.as<Var>() : nullptr;
    return v && !printer.is_defined(*v) ? v : nullptr;
  };
  std::vector<Doc> new_names, new_values;
  auto define_before = [&](const Var& v) {
    Doc value = creation(v);
    new_names.push_back(define_var(v, frame));
    new_values.push_back(std::move(value));
  };
  const Buffer* b = &buffer;
  auto part_of_buffer = [this, b](std::string_view attr) { return attribute_doc(*printer.find(*b), attr); };

  std::vector<Doc> shape;
  for (const Expr& e : buffer.shape) {
    if (const Var* v = new_var(e)) define_before(*v);
    shape.push_back(print(e));
  }
  out.shape = tuple_doc(shape);
  if (buffer.dtype != f32) out.dtype = dtype_doc(buffer.dtype);

  bool is_own_pointer = false;
  if (const Var* data = new_var(buffer.data)) {
    if (defines == Defines::none || uses[data] > 1) {
      define_before(*data);
    } else {
      printer.define_as(*data, frame, [part_of_buffer] { return part_of_buffer("data"); });
      is_own_pointer = true;
    }
  }
  if (!is_own_pointer) out.keywords.push_back({"data", print(buffer.data)});

  if (!buffer.strides.empty()) {
    std::vector<Doc> strides;
    for (size_t i = 0; i < buffer.strides.size(); ++i) {
      const Var* v = new_var(buffer.strides[i]);
      if (v && uses[v] == 1) {
        printer.define_as(*v, frame, [part_of_buffer, i] {
          return index_doc(part_of_buffer("strides"), {integer_doc(static_cast<int64_t>(i))});
        });
        // The name that a reader gives it, whatever its name has been.
        strides.push_back(string_doc(text(printer.find(buffer)->text, "_s", i)));
      } else {
        if (v) define_before(*v);
        strides.push_back(print(buffer.strides[i]));
      }
    }
    out.keywords.push_back({"strides", tuple_doc(strides)});
  }

  bool offset_is_own = false;
  if (buffer.elem_offset && !is_zero(buffer.elem_offset)) {
    const Var* v = new_var(buffer.elem_offset);
    if (v && uses[v] == 1) {
      printer.define_as(*v, frame, [part_of_buffer] { return part_of_buffer("elem_offset"); });
      offset_is_own = true;
    } else {
      if (v) define_before(*v);
      out.keywords.push_back({"elem_offset", print(buffer.elem_offset)});
    }
  }
  if (buffer.scope() != "global") out.keywords.push_back({"scope", string_doc(buffer.scope())});
  if (buffer.data_alignment != 64) out.keywords.push_back({"align", integer_doc(buffer.data_alignment)});
  if (offset_is_own || buffer.offset_factor != 1)
    out.keywords.push_back({"offset_factor", integer_doc(buffer.offset_factor)});
  if (!buffer.axis_separators.empty()) {
    std::vector<Doc> items;
    for (int i : buffer.axis_separators) items.push_back(integer_doc(i));
    out.keywords.push_back({"axis_separators", list_doc(items)});
  }
  if (!new_names.empty()) frame.stmts.push_back(assign_doc(bare_tuple_doc(new_names), bare_tuple_doc(new_values)));
  return out;
}

Doc ScriptPrinter::buffer_decl(const Buffer& buffer, std::string_view how, std::vector<Doc> args, Frame& frame,
                               Defines defines) {
  BufferArgs parts = buffer_args(buffer, frame, defines);
  args.push_back(std::move(parts.shape));
  if (parts.dtype) args.push_back(std::move(*parts.dtype));
  return call_doc(printer.tir(how), args, parts.keywords);
}

}  // namespace sator::tir
