#include "dataflow/programs/matmul_program.h"

#include "base/text.h"

namespace sator::dataflow {

namespace {

bool is_integer(const Matmul& m) { return m.activation_bits > 0 && m.scale != ScalePer::none; }

}  // namespace

std::string matmul_program(const Matmul& m) {
  matmul_kernel(m);  // refuses what is none
  const bool integers = is_integer(m), groups = integers && m.scale == ScalePer::group && m.group < m.k;
  const std::string in = integers ? "int8" : text("float", m.float_bits), out = integers ? "int32" : in;
  const int64_t inside = groups ? m.group : m.k, outside = groups ? (m.k - 1) / m.group + 1 : 1;
  const std::string x = integers ? "x_codes" : "X", w = integers && !unpacks_zero(m) ? "codes" : "W",
                    of_w = unpacks_zero(m) ? "int16" : in, y = integers ? "sums" : "Y";
  std::string code = text("# ",
                          y,
                          "[i, j] = sum over k of ",
                          x,
                          "[i, k] * ",
                          w,
                          "[j, k]",
                          groups ? ", one sum per group of k" : "",
                          "\n@T.prim_func\ndef matmul(",
                          x,
                          ": T.Buffer((",
                          m.i,
                          ", ",
                          m.k,
                          "), \"",
                          in,
                          "\"), ",
                          w,
                          ": T.Buffer((",
                          m.j,
                          ", ",
                          m.k,
                          "), \"",
                          of_w,
                          "\"), ",
                          y,
                          ": T.Buffer((",
                          m.i,
                          ", ",
                          m.j,
                          groups ? text(", ", outside) : "",
                          "), \"",
                          out,
                          "\")):\n");
  const std::string at = groups ? "vi, vj, vg" : "vi, vj", k = groups ? text("vg * ", inside, " + vk") : "vk";
  auto factor = [&](const std::string& read) { return integers ? text("T.Cast(\"int32\", ", read, ")") : read; };
  code += groups ? text("    for i, j, g, k in T.grid(", m.i, ", ", m.j, ", ", outside, ", ", inside, "):\n")
                 : text("    for i, j, k in T.grid(", m.i, ", ", m.j, ", ", m.k, "):\n");
  code += "        with T.block(\"matmul\"):\n";
  code += groups ? "            vi, vj, vg, vk = T.axis.remap(\"SSSR\", [i, j, g, k])\n"
                 : "            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n";
  if (groups && m.k % inside != 0) code += text("            T.where(g * ", inside, " + k < ", m.k, ")\n");
  code += text("            with T.init():\n                ", y, "[", at, "] = T.", out, "(0)\n");
  code += text("            ",
               y,
               "[",
               at,
               "] = ",
               y,
               "[",
               at,
               "] + ",
               factor(text(x, "[vi, ", k, "]")),
               " * ",
               factor(text(w, "[vj, ", k, "]")),
               "\n");
  return code;
}

FunctionFacts facts_of(const Matmul& m) {
  const bool integers = is_integer(m);
  return {.name = "matmul",
          .sizes = {},
          .params = {{.bits = integers ? m.activation_bits : m.float_bits},
                     {.kind = OperandKind::weight,
                      .bits = unpacks_zero(m) ? 16
                              : integers      ? m.weight_bits
                                              : m.float_bits},
                     {.bits = integers ? 32 : m.float_bits}}};
}

}  // namespace sator::dataflow
