#include "schedule/intrinsics/wmma.h"

#include <map>

#include "base/text.h"

namespace sator::schedule {

namespace {

/// One of an intrinsic's matrices, in text.
struct Matrix {
  std::string name, dtype, scope;

  /// `s0`, `s1`: names of the strides; none: as a description, which does not ask for them.
  std::string declaration(bool strided) const {
    return text(strided ? text("    ", name, "s0 = T.int32()\n    ", name, "s1 = T.int32()\n") : std::string(),
                "    ",
                name,
                " = T.match_buffer(",
                name,
                "_handle, (16, 16), \"",
                dtype,
                "\", ",
                strided ? text("strides=[", name, "s0, ", name, "s1], ") : std::string(),
                "align=64, offset_factor=16, scope=\"",
                scope,
                "\")\n");
  }
  std::string whole() const { return name + "[0:16, 0:16]"; }
  /// Which matrix of the fragment's memory it is: the memory is rows of matrices.
  std::string fragment() const {
    return text(name,
                ".elem_offset // ",
                name,
                "s0 // 16 * (",
                name,
                "s0 // 16) + ",
                name,
                ".elem_offset % ",
                name,
                "s0 // 16");
  }
};

/// A function of these matrices, one block.
std::string function_of(const std::vector<Matrix>& matrices, const std::vector<Matrix>& reads, const Matrix& write,
                        const std::string& body, bool strided) {
  std::string params, declarations, read;
  for (const Matrix& m : matrices) {
    params += text(params.empty() ? "" : ", ", m.name, "_handle: T.handle");
    declarations += m.declaration(strided);
  }
  for (const Matrix& m : reads) read += text(read.empty() ? "" : ", ", m.whole());
  return text("@T.prim_func\ndef wmma(",
              params,
              "):\n",
              declarations,
              "    with T.block(\"root\"):\n        T.reads(",
              read,
              ")\n        T.writes(",
              write.whole(),
              ")\n",
              body);
}

/// to[i, j] = from[i, j] by the call.
IntrinTexts copy_texts(const Matrix& from, const Matrix& to, const std::string& call) {
  const std::string loops = text("        for i, j in T.grid(16, 16):\n            with T.block(\"copy\"):\n",
                                 "                vi, vj = T.axis.remap(\"SS\", [i, j])\n                ",
                                 to.name,
                                 "[vi, vj] = ",
                                 from.name,
                                 "[vi, vj]\n");
  return {function_of({from, to}, {from}, to, loops, false),
          function_of({from, to}, {from}, to, text("        T.evaluate(", call, ")\n"), true)};
}

IntrinTexts load_texts(const std::string& dtype, const std::string& scope, bool is_b, bool transposed) {
  const Matrix from{"A", dtype, scope}, to{"C", dtype, is_b ? "wmma.matrix_b" : "wmma.matrix_a"};
  return copy_texts(from,
                    to,
                    text("T.tvm_load_matrix_sync(C.data, 16, 16, 16, ",
                         to.fragment(),
                         ", A.access_ptr(\"r\"), As0, \"",
                         transposed ? "col_major" : "row_major",
                         "\", dtype=\"handle\")"));
}

IntrinTexts store_texts(const std::string& dtype, const std::string& scope) {
  const Matrix from{"A", dtype, "wmma.accumulator"}, to{"C", dtype, scope};
  return copy_texts(from,
                    to,
                    text("T.tvm_store_matrix_sync(A.data, 16, 16, 16, ",
                         from.fragment(),
                         ", C.access_ptr(\"w\"), Cs0, \"row_major\", dtype=\"handle\")"));
}

IntrinTexts fill_texts(const std::string& dtype) {
  const Matrix to{"C", dtype, "wmma.accumulator"};
  const std::string loops =
      text("        for i, j in T.grid(16, 16):\n            with T.block(\"init\"):\n",
           "                vi, vj = T.axis.remap(\"SS\", [i, j])\n                C[vi, vj] = T.",
           dtype,
           "(0)\n");
  return {function_of({to}, {}, to, loops, false),
          function_of({to},
                      {},
                      to,
                      text("        T.evaluate(T.tvm_fill_fragment(C.data, 16, 16, 16, ",
                           to.fragment(),
                           ", T.float32(0), dtype=\"handle\"))\n"),
                      true)};
}

IntrinTexts multiply_texts(const std::string& in, const std::string& out, bool b_transposed) {
  const Matrix a{"A", in, "wmma.matrix_a"}, b{"B", in, "wmma.matrix_b"}, c{"C", out, "wmma.accumulator"};
  auto widened = [&](const std::string& value) {
    return in == out ? value : text("T.Cast(\"", out, "\", ", value, ")");
  };
  const std::string loops =
      text("        for i, j, k in T.grid(16, 16, 16):\n            with T.block(\"multiply\"):\n",
           "                vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n                C[vi, vj] = C[vi, vj] + ",
           widened("A[vi, vk]"),
           " * ",
           widened(b_transposed ? "B[vj, vk]" : "B[vk, vj]"),
           "\n");
  const std::string call = text("        T.evaluate(T.tvm_mma_sync(C.data, ",
                                c.fragment(),
                                ", A.data, ",
                                a.fragment(),
                                ", B.data, ",
                                b.fragment(),
                                ", C.data, ",
                                c.fragment(),
                                ", dtype=\"handle\"))\n");
  return {function_of({a, b, c}, {c, a, b}, c, loops, false), function_of({a, b, c}, {c, a, b}, c, call, true)};
}

std::map<std::string, IntrinTexts> all_texts() {
  std::map<std::string, IntrinTexts> out;
  const std::string size = "16x16x16_";
  const std::pair<std::string, std::string> operands[] = {{"f16", "float16"}, {"s8", "int8"}},
                                            sums[] = {{"f16", "float16"}, {"f32", "float32"}, {"s32", "int32"}},
                                            scopes[] = {{"shared", "shared"},
                                                        {"shared_dyn", "shared.dyn"},
                                                        {"global", "global"}};
  for (const auto& [name, dtype] : operands) {
    for (bool is_b : {false, true}) {
      for (bool transposed : {false, true}) {
        for (size_t i = 0; i < 2; ++i)
          out[text("wmma_load_", size, name, is_b ? "_b" : "_a", transposed ? "_trans_" : "_", scopes[i].first)] =
              load_texts(dtype, scopes[i].second, is_b, transposed);
      }
    }
  }
  for (const auto& [name, dtype] : sums) {
    out[text("wmma_fill_", size, name)] = fill_texts(dtype);
    for (const auto& [scope_name, scope] : scopes)
      out[text("wmma_store_", size, name, "_", scope_name)] = store_texts(dtype, scope);
  }
  for (bool transposed : {false, true}) {
    const std::string end = transposed ? "_trans" : "";
    out["wmma_sync_" + size + "f16f16f16" + end] = multiply_texts("float16", "float16", transposed);
    out["wmma_sync_" + size + "f16f16f32" + end] = multiply_texts("float16", "float32", transposed);
    out["wmma_sync_" + size + "s8s8s32" + end] = multiply_texts("int8", "int32", transposed);
  }
  return out;
}

}  // namespace

const TextIntrins& wmma_intrins() {
  static const TextIntrins all(all_texts());
  return all;
}

}  // namespace sator::schedule
