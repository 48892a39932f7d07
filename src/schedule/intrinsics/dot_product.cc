#include "schedule/intrinsics/dot_product.h"

#include <utility>

#include "base/text.h"

namespace sator::schedule {

namespace {

/// A function of A [4], B [rows, 4] (of one row [4]) and C [rows], one block.
struct Form {
  int rows;
  std::string a, b, c;       ///< dtypes
  std::string factors, sum;  ///< what match_buffer says of them besides

  std::string function_of(const std::string& body) const {
    const std::string shape = rows == 1 ? "(4,)" : text("(", rows, ", 4)"),
                      whole = rows == 1 ? "0:4" : text("0:", rows, ", 0:4");
    return text("@T.prim_func\ndef dot(A_handle: T.handle, B_handle: T.handle, C_handle: T.handle):\n",
                "    A = T.match_buffer(A_handle, (4,), \"",
                a,
                "\", offset_factor=1",
                factors,
                ")\n",
                "    B = T.match_buffer(B_handle, ",
                shape,
                ", \"",
                b,
                "\", offset_factor=1",
                factors,
                ")\n",
                "    C = T.match_buffer(C_handle, (",
                rows,
                ",), \"",
                c,
                "\", offset_factor=1",
                sum,
                ")\n",
                "    with T.block(\"root\"):\n",
                "        T.reads(C[0:",
                rows,
                "], A[0:4], B[",
                whole,
                "])\n",
                "        T.writes(C[0:",
                rows,
                "])\n",
                body);
  }
  std::string description() const {
    const std::string at = rows == 1 ? "vk" : "vi, vk",
                      product = text("T.Cast(\"", c, "\", A[vk]) * T.Cast(\"", c, "\", B[", at, "])");
    if (rows == 1)
      return function_of(
          text("        for k in range(4):\n            with T.block(\"dot\"):\n                vk = "
               "T.axis.remap(\"R\", [k])\n",
               "                C[0] = C[0] + ",
               product,
               "\n"));
    return function_of(text("        for i, k in T.grid(",
                            rows,
                            ", 4):\n            with T.block(\"dot\"):\n",
                            "                vi, vk = T.axis.remap(\"SR\", [i, k])\n                C[vi] = C[vi] + ",
                            product,
                            "\n"));
  }
  std::string implementation() const {
    if (rows == 1) return function_of("        C[0] = T.dp4a(A[T.Ramp(0, 1, 4)], B[T.Ramp(0, 1, 4)], C[0])\n");
    const std::string lanes = text("T.Ramp(0, 1, ", rows, ")"), all = std::to_string(4 * rows);
    return function_of(text("        rows = T.decl_buffer((",
                            all,
                            ",), \"",
                            b,
                            "\", data=B.data, elem_offset=B.elem_offset)\n",
                            "        C[",
                            lanes,
                            "] = T.dot4(C[",
                            lanes,
                            "], T.reinterpret(\"",
                            a,
                            "x",
                            all,
                            "\", T.Broadcast(T.reinterpret(\"int32\", A[T.Ramp(0, 1, 4)]), ",
                            rows,
                            ")), rows[T.Ramp(0, 1, ",
                            all,
                            ")])\n"));
  }
};

}  // namespace

const TextIntrins& dot_product_intrins() {
  static const TextIntrins all([] {
    const std::string factors = ", align=4, scope=\"shared\"", sum = ", align=4, scope=\"local\"";
    auto of_threads = [&](const char* a, const char* b, const char* c) { return Form{1, a, b, c, factors, sum}; };
    const std::pair<const char*, Form> forms[] = {{"dot_16x4_vnni", {16, "uint8", "int8", "int32", "", ""}},
                                                  {"dot_16x4_avx512", {16, "uint8", "int8", "int32", "", ""}},
                                                  {"dp4a_s8s8s32", of_threads("int8", "int8", "int32")},
                                                  {"dp4a_u8s8s32", of_threads("uint8", "int8", "int32")},
                                                  {"dp4a_s8u8s32", of_threads("int8", "uint8", "int32")},
                                                  {"dp4a_u8u8u32", of_threads("uint8", "uint8", "uint32")}};
    std::map<std::string, IntrinTexts> texts;
    for (const auto& [name, form] : forms) texts[name] = {form.description(), form.implementation()};
    return texts;
  }());
  return all;
}

}  // namespace sator::schedule
