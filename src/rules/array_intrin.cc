#include "rules/array_intrin.h"

#include "base/text.h"
#include "schedule/tensor_intrin.h"
#include "tir/parse.h"

namespace sator::rules {

namespace {

std::string iter_name(size_t i) { return text("v", i); }

int64_t extent(const ArrayStamp::Iter& iter) { return iter.on_axis * iter.at_once; }

/// One of the tensors in the text of an intrinsic.
struct Operand {
  std::string name;
  const ArrayStamp& stamp;
  const ArrayStamp::Tile& tile;

  int64_t size(size_t d) const {
    const int iter = tile.dims[d];
    return iter < 0 ? 1 : extent(stamp.iters[static_cast<size_t>(iter)]);
  }
  std::string declaration() const {
    std::string shape, strides;
    for (size_t d = 0; d < tile.dims.size(); ++d) {
      shape += text(size(d), ", ");
      strides += text(name, "_s", d, ", ");
    }
    std::string out;
    for (size_t d = 0; d < tile.dims.size(); ++d) out += text("    ", name, "_s", d, " = T.int64()\n");
    return text(out,
                "    ",
                name,
                " = T.match_buffer(",
                name,
                "_handle, (",
                shape,
                "), \"",
                tile.dtype,
                "\", strides=(",
                strides,
                "), offset_factor=1)\n");
  }
  std::string region() const {
    std::vector<std::string> ranges;
    for (size_t d = 0; d < tile.dims.size(); ++d) ranges.push_back(text("0:", size(d)));
    return text(name, "[", join(ranges, ", "), "]");
  }
  std::string at(const std::vector<std::string>& index_of) const {
    std::vector<std::string> indices;
    for (int iter : tile.dims) indices.push_back(iter < 0 ? "0" : index_of[static_cast<size_t>(iter)]);
    return text(name, "[", join(indices, ", "), "]");
  }
};

/// A loop over `n` values of iterator i along an axis, or over what one PE takes.
struct LoopOf {
  std::string name, thread;
  int64_t extent;
};

std::vector<LoopOf> loops_of(const ArrayStamp& stamp) {
  std::vector<LoopOf> loops;
  for (auto [axis, thread] : {std::pair{'r', "pe.x"}, std::pair{'c', "pe.y"}})
    for (size_t i = 0; i < stamp.iters.size(); ++i)
      if (stamp.iters[i].axis == axis) loops.push_back({text("p", i), thread, stamp.iters[i].on_axis});
  for (size_t i = 0; i < stamp.iters.size(); ++i)
    if (stamp.iters[i].at_once > 1) loops.push_back({text("t", i), "", stamp.iters[i].at_once});
  return loops;
}

/// The value of iterator i in the loops.
std::string value_of(const ArrayStamp& stamp, size_t i) {
  const ArrayStamp::Iter& iter = stamp.iters[i];
  if (iter.axis == 0) return text("t", i);
  return iter.at_once > 1 ? text("p", i, " * ", iter.at_once, " + t", i) : text("p", i);
}

std::string widened(const std::string& value, DType from, DType to) {
  return from == to ? value : text("T.Cast(\"", to, "\", ", value, ")");
}

struct Texts {
  std::string desc, impl;
};

Texts texts_of(const ArrayStamp& stamp) {
  const Operand a{"a", stamp, stamp.first}, b{"b", stamp, stamp.second}, c{"c", stamp, stamp.output};
  const std::string head =
      text("@T.prim_func\ndef stamp(a_handle: T.handle, b_handle: T.handle, c_handle: T.handle):\n",
           a.declaration(),
           b.declaration(),
           c.declaration(),
           "    with T.block(\"root\"):\n        T.reads(",
           c.region(),
           ", ",
           a.region(),
           ", ",
           b.region(),
           ")\n        T.writes(",
           c.region(),
           ")\n");
  auto update = [&](const std::vector<std::string>& index_of) {
    const DType out = stamp.output.dtype;
    return text(c.at(index_of),
                " = ",
                c.at(index_of),
                " + ",
                widened(a.at(index_of), stamp.first.dtype, out),
                " * ",
                widened(b.at(index_of), stamp.second.dtype, out),
                "\n");
  };
  Texts out{head, head};
  std::string indent(8, ' ');
  std::vector<std::string> names, values;
  for (const LoopOf& loop : loops_of(stamp)) {
    out.desc += text(indent, "for ", loop.name, " in range(", loop.extent, "):\n");
    out.impl += loop.thread.empty() ? text(indent, "for ", loop.name, " in T.unroll(", loop.extent, "):\n")
                                    : text(indent,
                                           "for ",
                                           loop.name,
                                           " in T.thread_binding(",
                                           loop.extent,
                                           ", thread=\"",
                                           loop.thread,
                                           "\"):\n");
    indent += "    ";
  }
  out.desc += text(indent, "with T.block(\"mac\"):\n");
  for (size_t i = 0; i < stamp.iters.size(); ++i) {
    names.push_back(iter_name(i));
    values.push_back(value_of(stamp, i));
    out.desc += text(indent,
                     "    ",
                     names[i],
                     stamp.iters[i].reduces ? " = T.axis.reduce(" : " = T.axis.spatial(",
                     extent(stamp.iters[i]),
                     ", ",
                     values[i],
                     ")\n");
  }
  out.desc += text(indent, "    ", update(names));
  out.impl += text(indent, update(values));
  return out;
}

/// "float32[k,j]" with letters for iterators, "." for a dimension one element thick.
std::string words_of(const ArrayStamp::Tile& tile) {
  std::string dims;
  for (int d : tile.dims) dims += d < 0 ? std::string(".") : text(d);
  return text(tile.dtype, "[", dims, "]");
}

}  // namespace

std::string register_array_intrin(const std::string& chip, const ArrayStamp& stamp) {
  std::vector<std::string> sizes;
  for (const ArrayStamp::Iter& iter : stamp.iters)
    sizes.push_back(
        text(iter.on_axis, iter.axis ? text(iter.axis) : "", iter.at_once > 1 ? text("*", iter.at_once) : ""));
  const std::string name = text(chip,
                                ".",
                                join(sizes, "x"),
                                ".",
                                words_of(stamp.first),
                                "*",
                                words_of(stamp.second),
                                "+",
                                words_of(stamp.output));
  const Texts texts = texts_of(stamp);
  schedule::register_tensor_intrin(name,
                                   tir::parse_function(texts.desc, text("the description of ", name)),
                                   tir::parse_function(texts.impl, text("the implementation of ", name)));
  return name;
}

}  // namespace sator::rules
