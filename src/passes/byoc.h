// Bring your own code: parts of a graph that a backend takes whole, found by pattern.
#pragma once

#include <span>

#include "passes/dataflow_pattern.h"
#include "passes/pass.h"

namespace sator {
struct Chip;
}

namespace sator::passes {

/// A match, as a pattern's check sees it.
struct PatternMatch {
  const ModuleRef& module;
  const relax::BindingBlockRef& block;
  const std::set<size_t>& members;  ///< bindings of the block
  const Matched& parts;             ///< what the pattern's parts stand for
  /// Parameters of the graph's functions that hold the model (behind `num_input`), not its inputs.
  const std::set<relax::RVarRef>& constants;
  const PassContext& ctx;
};

/// A row of the table of patterns.
///   name      "BACKEND.WHAT": what becomes the attribute Composite; BACKEND becomes Codegen
///   results   of the values that leave the group; one_value() of one is that of the others
///   check     why a match is not taken; empty where it is, or where there is no check
struct FusionPattern {
  std::string name;
  std::string does;
  std::vector<DFPattern> results;
  std::function<std::string(const PatternMatch&)> check{};
};

/// The patterns of backend `chip`, a described chip that multiplies matrices: largest first. Names of the parts:
/// dequantize (the weight is made from codes), matmul, rescale (by a scale for all, per column, or of integer sums), bias.
const std::vector<FusionPattern>& fusion_patterns();

/// The patterns that a chip's file states ([[pattern]], target/chip_pattern.h), each as its chains, the longest first; those of
/// fusion_patterns() where it states none. A link of a chain is one of these words, or the name of an op of the graph
/// language, in full ("nn.relu") or its last part ("relu"):
///   matmul       a product with a matrix as it is or transposed, of floats or of integer codes
///   dequantize   a matrix of values made from codes, or widened
///   quantize     values made codes
///   rescale      a factor for all or per column, or floats made of integer sums
///   bias         a sum with a vector
///   gelu         nn.gelu or nn.gelu_tanh
/// In a graph an op with one operand reads it as any of its arguments, one with several takes them in order, sums and
/// products of two also the other way round; `matmul(x, w)` also x times w as it lies, transposed; `bias(h, b)` adds a vector b.
/// Where a graph's result may be absent, the graph without it is tried after it.
/// The backend is the chip's name, "_" for what no name may hold.
/// Errors: a word that is none of these, or with another number of operands, at its line.
std::vector<FusionPattern> patterns_of(const Chip& chip);

/// The patterns of backend `dnnl`, oneDNN: products (also with a transposed matrix) and convolutions (NCHW, OIHW) of float32, with a
/// bias along the channels and relu, gelu or gelu_tanh where these follow; the largest first.
const std::vector<FusionPattern>& dnnl_patterns();
/// What a function that such a pattern made computes, as runtime/dnnl.h writes it; nothing where it is something else.
std::optional<std::string> dnnl_operation(const relax::Function& group);

/// The number of elements of a shape, symbolic sizes at their bounds; nothing where one has none.
std::optional<int64_t> elements_at_most(std::span<const Expr> shape, const PassContext& ctx);

/// The form of what FuseOpsByPattern makes.
struct FusionForm {
  /// Functions of a backend at once (attributes Composite, Codegen and Primitive), or composite ones alone (Composite and
  /// Primitive), which MergeCompositeFunctions or annotate_codegen puts into a backend's functions.
  bool backend_functions = true;
  bool keeps_constants = false;  ///< inside of the group
};

/// Each match of a pattern becomes a private function with the attributes Composite, Codegen and Primitive, called where the
/// match's last binding stood. Patterns are tried in the order of the table, of one pattern the largest match first, and a binding
/// belongs to one match. A match is left alone where something outside of it uses a value inside, for the group would hide it,
/// or reads one of several results before the last is there.
ModuleRef fuse_ops_by_pattern(const ModuleRef& module, const PassContext& ctx,
                              const std::vector<FusionPattern>& patterns, FusionForm form = {});
/// Each composite function that has no backend's function around it gets one, with the attribute Codegen: it is local there.
ModuleRef annotate_codegen(const ModuleRef& module);
/// Composite functions of one backend that feed each other, joined: local functions of one function with the attribute Codegen.
/// Groups are not joined where a value would leave the function and come back.
ModuleRef merge_plain_composites(const ModuleRef& module);
/// Whether the module has composite functions without a backend's function around them.
bool has_plain_composites(const ModuleRef& module);
/// By the patterns of the backend that the option `FuseOpsByPattern.backend` names: "dnnl", or "chip", those of the chip that is
/// compiled for, where PassContext::target is the file of one. Errors: another backend.
ModuleRef fuse_ops_by_pattern(const ModuleRef& module, const PassContext& ctx);

/// Joins neighbouring groups of one backend, of which one reads what the other makes, to one function with the attribute
/// Codegen, which calls them: what lies between them stays inside. Groups are not joined where a value would leave the function
/// and come back, for the call would wait for itself.
///   most_bytes_between   that may lie between the groups of one function; symbolic sizes count at their bounds, and one
///                        without a bound is too much. Absent: any
ModuleRef merge_composite_functions(const ModuleRef& module, const PassContext& ctx,
                                    std::optional<int64_t> most_bytes_between);
/// Bytes between the groups of one function that a chip has room for: half of the memory that it keeps results in
/// (Chip::keeps_between), for what its groups work on needs room too. Nothing where its size is not known.
std::optional<int64_t> room_between(const Chip& chip);
/// Within the memory that the target keeps results in (Chip::keeps_between), where PassContext::target is the file of a chip.
ModuleRef merge_composite_functions(const ModuleRef& module, const PassContext& ctx);

/// Lowers the functions with the attribute Codegen, and the groups that they call, to one tensor function each, which keeps Codegen and Composite and is
/// fused with nothing else: the backend's kernel. A described chip needs no machine code; on the host its meaning runs.
/// A function with Codegen "dnnl" is called through oneDNN (vm.builtin.dnnl), which is handed that kernel too: the profiler runs
/// both and prints both times. What the library does not take stays a kernel, and `ctx` is told why.
ModuleRef run_codegen(const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
