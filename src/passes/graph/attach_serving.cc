// Functions that an engine which serves a model calls beside it, under the names and arguments of MLC-LLM: written in TVMScript,
// added to the module, and then lowered like everything else.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "passes/attach.h"
#include "passes/graph/graph.h"
#include "relax/parse.h"

namespace sator::passes {

using namespace relax;

namespace {

/// Adds the functions of a program. Errors: the module has another function of such a name.
ModuleRef with_functions(const ModuleRef& module, const std::string& pass, const std::string& program) {
  ModuleRef out = module;
  const ModuleRef added = parse_module(program, pass);
  for (const auto& [name, func] : added->functions) {
    const auto at = module->functions.find(name);
    if (at != module->functions.end() && !equal(at->second, func))
      fail({.what = text(pass, ": the module has another function ", name, " already"),
            .needs = text("the name ", name, " for the function that the pass adds"),
            .hint = "rename the module's own, or leave the pass out"});
    out = with_function(std::move(out), name, func);
  }
  return out;
}

/// The upper bound of a symbolic size, in the context or in the function's own attribute.
std::optional<int64_t> bound_of(const std::string& size, const Function& f, const PassContext& ctx) {
  for (const auto& bounds : {ctx.bounds, noted_bounds(f)})
    if (const auto at = bounds.find(size); at != bounds.end()) return at->second;
  return {};
}

constexpr const char* kLogitPrograms = R"(
@I.ir_module
class Module:
    @T.prim_func
    def apply_logit_bias_inplace(var_logits: T.handle, var_pos2seq_id: T.handle, var_token_ids: T.handle, var_logit_bias: T.handle):
        batch_size = T.int64()
        vocab_size = T.int64()
        num_token = T.int64()
        logits = T.match_buffer(var_logits, (batch_size, vocab_size), "float32")
        pos2seq_id = T.match_buffer(var_pos2seq_id, (num_token,), "int32")
        token_ids = T.match_buffer(var_token_ids, (num_token,), "int32")
        logit_bias = T.match_buffer(var_logit_bias, (num_token,), "float32")
        for p in range(num_token):
            logits[pos2seq_id[p], token_ids[p]] = logits[pos2seq_id[p], token_ids[p]] + logit_bias[p]

    @T.prim_func
    def apply_penalty_inplace(var_logits: T.handle, var_seq_ids: T.handle, var_pos2seq_id: T.handle, var_token_ids: T.handle, var_token_cnt: T.handle, var_penalties: T.handle):
        batch_size = T.int64()
        vocab_size = T.int64()
        num_seq = T.int64()
        num_token = T.int64()
        logits = T.match_buffer(var_logits, (batch_size, vocab_size), "float32")
        seq_ids = T.match_buffer(var_seq_ids, (num_seq,), "int32")
        pos2seq_id = T.match_buffer(var_pos2seq_id, (num_token,), "int32")
        token_ids = T.match_buffer(var_token_ids, (num_token,), "int32")
        token_cnt = T.match_buffer(var_token_cnt, (num_token,), "int32")
        penalties = T.match_buffer(var_penalties, (num_seq, 3), "float32")
        for p in range(num_token):
            row: T.int32 = seq_ids[pos2seq_id[p]]
            logits[row, token_ids[p]] = logits[row, token_ids[p]] - (penalties[pos2seq_id[p], 0] + T.Cast("float32", token_cnt[p]) * penalties[pos2seq_id[p], 1])
            logits[row, token_ids[p]] = T.if_then_else(logits[row, token_ids[p]] < T.float32(0), logits[row, token_ids[p]] * penalties[pos2seq_id[p], 2], logits[row, token_ids[p]] / penalties[pos2seq_id[p], 2])

    @T.prim_func
    def apply_bitmask_inplace(var_logits: T.handle, var_seq_ids: T.handle, var_bitmask: T.handle):
        batch_size = T.int64()
        vocab_size = T.int64()
        num_seq = T.int64()
        logits = T.match_buffer(var_logits, (batch_size, vocab_size), "float32")
        seq_ids = T.match_buffer(var_seq_ids, (num_seq,), "int32")
        bitmask = T.match_buffer(var_bitmask, (batch_size, (vocab_size + 31) // 32), "int32")
        for s, v in T.grid(num_seq, vocab_size):
            with T.block("mask"):
                vs, vv = T.axis.remap("SS", [s, v])
                logits[seq_ids[vs], vv] = T.if_then_else(T.bitwise_and(T.shift_right(bitmask[seq_ids[vs], vv // 32], T.Cast("int32", vv % 32)), 1) == 1, logits[seq_ids[vs], vv], T.min_value("float32"))
)";

/// `to[indices[i]] = from[i]`, or the other way round.
std::string row_program(const std::string& name, const std::string& dtype, bool scatters) {
  return text("    @T.prim_func\n    def ",
              name,
              "(var_src: T.handle, var_indices: T.handle, var_dst: T.handle):\n",
              "        batch_size = T.int64()\n        m = T.int64()\n        n = T.int64()\n",
              "        src = T.match_buffer(var_src, (",
              scatters ? "batch_size" : "m",
              ", n), \"",
              dtype,
              "\")\n",
              "        indices = T.match_buffer(var_indices, (batch_size,), \"int32\")\n",
              "        dst = T.match_buffer(var_dst, (",
              scatters ? "m" : "batch_size",
              ", n), \"",
              dtype,
              "\")\n",
              "        for b, j in T.grid(batch_size, n):\n            with T.block(\"",
              scatters ? "scatter" : "gather",
              "_2d\"):\n",
              "                vb, vj = T.axis.remap(\"SS\", [b, j])\n                ",
              scatters ? "dst[indices[vb], vj] = src[vb, vj]\n" : "dst[vb, vj] = src[indices[vb], vj]\n");
}

}  // namespace

ModuleRef attach_softmax_with_temperature(const ModuleRef& module, const PassContext& ctx) {
  const int64_t active = number_option(ctx, "AttachSoftmaxWithTemperature.active_vocab_size", 0, 0);
  const std::string masked =
      active == 0 ? "            masked = logits\n"
                  : text("            ids = R.arange(0, vocab_size, 1, dtype=\"int64\")\n",
                         "            used = R.less(ids, R.const(",
                         active,
                         ", \"int64\"))\n",
                         "            least = R.full_like(logits, R.const(-3.4028234663852886e+38, \"float32\"))\n",
                         "            masked = R.where(used, logits, least)\n");
  return with_functions(module,
                        "AttachSoftmaxWithTemperature",
                        text(R"(
@I.ir_module
class Module:
    @R.function
    def softmax_with_temperature(logits: R.Tensor(("batch_size", 1, "vocab_size"), "float32"), temperature: R.Tensor(("batch_size",), "float32")):
        batch_size = T.int64()
        vocab_size = T.int64()
        with R.dataflow():
)",
                             masked,
                             R"(            t = R.reshape(temperature, R.shape([batch_size, 1, 1]))
            is_greedy = R.equal(t, R.const(0, "float32"))
            divisor = R.where(is_greedy, R.full_like(t, R.const(1, "float32")), t)
            probs = R.nn.softmax(R.divide(masked, divisor), axis=-1)
            is_most = R.astype(R.equal(masked, R.max(masked, axis=[-1], keepdims=True)), "float32")
            share = R.divide(is_most, R.sum(is_most, axis=[-1], keepdims=True))
            out = R.where(is_greedy, share, probs)
            R.output(out)
        return out
)"));
}

ModuleRef attach_logit_process_func(const ModuleRef& module, const PassContext&) {
  return with_functions(module, "AttachLogitProcessFunc", kLogitPrograms);
}

ModuleRef attach_spec_decode_aux_funcs(const ModuleRef& module, const PassContext& ctx) {
  const std::string dtype = text_option(ctx, "AttachSpecDecodeAuxFuncs.dtype").value_or("float32");
  return with_functions(module,
                        "AttachSpecDecodeAuxFuncs",
                        text("@I.ir_module\nclass Module:\n",
                             row_program("scatter_probs", "float32", true),
                             "\n",
                             row_program("gather_probs", "float32", false),
                             "\n",
                             row_program("scatter_hidden_states", dtype, true),
                             "\n",
                             row_program("gather_hidden_states", dtype, false)));
}

ModuleRef attach_alloc_embedding_tensor_func(const ModuleRef& module, const PassContext& ctx) {
  const auto at = module->functions.find("embed");
  const Function* embed = at == module->functions.end() ? nullptr : at->second.as<Function>();
  const TensorInfo* info = embed ? embed->ret.as<TensorInfo>() : nullptr;
  const auto shape = info ? shape_of(*info) : std::nullopt;
  if (!shape || info->dtype.is_void())
    fail({.what = text(
              "AttachAllocEmbeddingTensorFunc: the module has no graph `embed` that returns a tensor of known shape"),
          .needs = "embed(input_ids, params) -> R.Tensor((seq_len, hidden_size), dtype)",
          .hint = "add the function, or leave the pass out"});
  std::vector<std::string> extents;
  for (const Expr& e : *shape) {
    const Var* size = e.as<Var>();
    const auto extent = size ? bound_of(size->name, *embed, ctx) : as_int(e);
    if (!extent)
      fail({.what = text(
                "AttachAllocEmbeddingTensorFunc: the result of embed has an extent ", e, ", which has no upper bound"),
            .needs = "a bound of each symbolic extent",
            .hint = size ? text("--bounds ", size->name, "=2048, or AttachVariableBounds before") : "name the size"});
    extents.push_back(text(*extent));
  }
  return with_functions(module,
                        "AttachAllocEmbeddingTensorFunc",
                        text("@R.function\ndef alloc_embedding_tensor():\n    gv = R.builtin.alloc_tensor(R.shape([",
                             join(extents, ", "),
                             "]), R.dtype(\"",
                             info->dtype,
                             "\"), R.prim_value(0))\n    return gv\n"));
}

ModuleRef attach_metadata_with_memory_usage(const ModuleRef& module, const PassContext& ctx) {
  nlohmann::json metadata = nlohmann::json::object();
  if (const auto given = text_option(ctx, "AttachMetadataWithMemoryUsage.metadata"))
    metadata = parse_json(*given, "AttachMetadataWithMemoryUsage.metadata");
  if (!metadata.is_object())
    fail({.what = "AttachMetadataWithMemoryUsage: the metadata is no JSON object",
          .needs = R"({"model_type": "llama", ...})",
          .hint = "give an object as a text"});
  nlohmann::json& usage = metadata["memory_usage"] = nlohmann::json::object();
  for (const auto& [name, func] : module->functions) {
    const Function* f = func.as<Function>();
    if (!f) continue;
    int64_t bytes = 0;
    walk(f->body, [&](const RCall& call) {
      const bool is_storage = is_op(ref(call), "memory.alloc_storage");
      if (!is_storage && !is_op(ref(call), "builtin.alloc_tensor")) return;
      int64_t size = 1;
      for (const Expr& e : shape_values(call.args[0]).value_or(std::vector<Expr>{int_imm(0)}))
        if (__builtin_mul_overflow(size, as_int(e).value_or(0), &size)) size = 0;
      const DTypeImm* dtype = is_storage ? nullptr : call.args[1].as<DTypeImm>();
      bytes += size * (dtype ? dtype->value.bytes() : 1);
    });
    usage[name] = bytes;
  }
  BlockBuilder builder(module);
  builder.begin_scope();
  builder.begin_block(false);
  const FuncRef f = builder.end_function(
      {}, {builder.end_block()}, string_value(metadata.dump()), {{"global_symbol", string_imm("_metadata")}});
  return with_function(module, "_metadata", f);
}

}  // namespace sator::passes
