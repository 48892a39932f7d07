#include <cstring>

#include "base/error.h"
#include "fuzz/readers/readers.h"
#include "relax/parse.h"
#include "relax/print.h"
#include "runtime/bytecode.h"
#include "runtime/library_file.h"
#include "schedule/schedule.h"
#include "schedule/script.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace sator::fuzz {
namespace {

constexpr const char* kProduct = R"(@T.prim_func
def main(A: T.Buffer((16, 12), "float32"), B: T.Buffer((12, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    D = T.alloc_buffer((16, 8), "float32")
    for i, j, k in T.grid(16, 8, 12):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = T.float32(0)
            D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
    for i2, j2 in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i2, j2])
            C[vi, vj] = T.max(D[vi, vj], T.float32(0))
)";

}  // namespace

void read_tvmscript(std::string_view bytes, const fs::path&) {
  const ModuleRef module = relax::parse_module(std::string(bytes), "input");
  // What is read can be printed and read again, to the same print.
  const std::string printed = relax::to_script(*module);
  ModuleRef again;
  try {
    again = relax::parse_module(printed, "printed");
  } catch (const Error& e) {
    internal_error("what was printed cannot be read: " + std::string(e.what()) + "\n" + printed);
  }
  require(relax::to_script(*again) == printed, "print, read, print is a fixed point:\n" + printed);
}

void read_schedule(std::string_view bytes, const fs::path&) {
  static const tir::PrimFuncRef product = tir::parse_function(kProduct);
  schedule::Schedule s(product);
  schedule::Script(s).run(script::parse(std::string(bytes), "script"));
  tir::to_script(*s.func());
}

// The input is what follows the header, whose hash of it is made right: random bytes would never have it.
void read_bytecode(std::string_view bytes, const fs::path&) {
  static const std::string empty = Ref<runtime::Executable>(new runtime::Executable())->save();
  const uint64_t hash = hash_bytes(bytes);
  std::string file =
      empty.substr(0, 12) + std::string(8, '\0') + std::string(bytes);  // magic[8] | u32 version | u64 hash
  std::memcpy(file.data() + 12, &hash, sizeof hash);
  const Ref<runtime::Executable> program = runtime::Executable::load(std::as_bytes(std::span(file)));
  program->as_text();
  const std::string saved = program->save();
  require(runtime::Executable::load(std::as_bytes(std::span(saved)))->save() == saved,
          "save, load, save is a fixed point");
}

void read_library_headers(std::string_view bytes, const fs::path&) {
  runtime::is_cut_off(std::as_bytes(std::span(bytes)));
}

}  // namespace sator::fuzz
