#include "llm/program.h"

#include "llm/attention.h"
#include "llm/blocks.h"
#include "llm/layers.h"
#include "runtime/paged_sequences.h"

namespace sator::llm {

using namespace relax;

namespace {

enum class LogitRows { last, all };

class ProgramBuilder {
 public:
  ProgramBuilder(const ModelConfig& config, const Scheme& scheme, const ModelLimits& limits, DType cache_dtype)
      : config_(config),
        scheme_(scheme),
        limits_(limits),
        cache_dtype_(cache_dtype),
        inv_freq_(rope_frequencies(config, limits.context_window)) {}

  Program build(std::vector<std::string>* observed = nullptr) {
    // A first round tells which parameters there are; then the tuple's struct info is known.
    {
      BlockBuilder scratch;
      emit(scratch, "prefill", LogitRows::last, false, nullptr);
    }
    std::vector<StructInfo> items;
    for (const ParamSpec& p : specs_) {
      std::vector<Expr> shape;
      for (int64_t d : p.shape) shape.push_back(int_imm(d, i64));
      items.push_back(tensor_info(shape, p.dtype));
    }
    StructInfo params = tuple_info(items);
    const AttentionConfig& a = config_.attention;
    AttentionShape attention{.num_qo_heads = a.heads,
                             .num_kv_heads = a.kv_heads,
                             .head_dim = a.head_dim,
                             .rotary_dim = static_cast<int64_t>(2 * inv_freq_.size()),
                             .cache_dtype = cache_dtype_,
                             .narrow = scheme_.factors && cache_dtype_ != f32,
                             .window = windowed_everywhere() ? a.window : 0,
                             .soft_cap = a.soft_cap};
    out_.add_function(private_function(kv_append_kernel(attention)), "kv_append");
    out_.add_function(private_function(attention_kernel(attention)), "attention");
    if (has_window() && !windowed_everywhere()) {
      AttentionShape in_window = attention;
      in_window.window = a.window;
      out_.add_function(private_function(attention_kernel(in_window)), kWindowAttention);
    }
    emit(out_, "prefill", LogitRows::last, false, params);
    emit(out_, "decode", LogitRows::last, true, params);
    emit(out_, "verify", LogitRows::all, false, params);
    if (observed) emit_observe(params, *observed);
    emit_create_cache();
    return {out_.module(), std::move(specs_), limits_, attention, std::move(layers_), summed_layers(config_)};
  }

 private:
  static Func private_function(const tir::PrimFuncRef& f) {
    Attrs attrs = f->attrs;
    attrs.erase("global_symbol");
    return sator::with(f, &tir::PrimFunc::attrs, std::move(attrs));
  }

  void emit(BlockBuilder& out, const std::string& name, LogitRows rows, bool one_token, const StructInfo& params_info) {
    VarRef size = make_size_var("seq_len");
    Expr n = one_token ? int_imm(1, i64) : Expr(size);
    RVarRef ids = make_rvar("input_ids", tensor_info(std::vector<Expr>{n}, i32));
    RVarRef cache = make_rvar("kv_cache", object_info());
    RVarRef params = make_rvar("params", params_info ? params_info : object_info());
    Layers layers(out, scheme_, specs_);
    layers.set_params(params);
    out.begin_scope({ids, cache, params});
    out.begin_block(true);
    RExpr hidden = hidden_states(layers, config_, ids, cache, n);
    if (rows == LogitRows::last && !one_token) {
      // Only the last token's logits are wanted: the head sees one row.
      Expr end = size;
      hidden = layers.op("strided_slice",
                         {hidden,
                          relax::Value(relax::Value::List{relax::Value(int64_t{0})}, true),
                          relax::Value(relax::Value::List{relax::Value(Expr(end - 1))}, true),
                          relax::Value(relax::Value::List{relax::Value(Expr(end))}, true)},
                         {{"assume_inbound", true}});
    }
    RVarRef result = out.emit_output(logits(layers, config_, hidden), "logits");
    BindingBlockRef block = out.end_block();
    Attrs attrs = {{"global_symbol", string_imm(name)}, {"num_input", int_imm(2)}};
    FuncRef f = out.end_function({ids, cache, params}, {block}, result, attrs, false);
    out.update_function(name, f);
    layers_ = layers.names();
  }

  void emit_observe(const StructInfo& params_info, std::vector<std::string>& names) {
    VarRef n = make_size_var("seq_len");
    RVarRef ids = make_rvar("input_ids", tensor_info(std::vector<Expr>{n}, i32));
    RVarRef cache = make_rvar("kv_cache", object_info()), params = make_rvar("params", params_info);
    Layers layers(out_, scheme_, specs_);
    Layers::Observed observed;
    layers.set_params(params);
    layers.observe(&observed);
    out_.begin_scope({ids, cache, params});
    out_.begin_block(true);
    RExpr hidden = hidden_states(layers, config_, ids, cache, n);
    logits(layers, config_, hidden);
    RVarRef ranges = out_.emit_output(relax::tuple(observed.ranges), "ranges");
    BindingBlockRef block = out_.end_block();
    Attrs attrs = {{"global_symbol", string_imm("observe")}, {"num_input", int_imm(2)}};
    out_.update_function("observe", out_.end_function({ids, cache, params}, {block}, ranges, attrs, false));
    names = observed.layers;
  }

  static constexpr const char* kWindowAttention = "attention_window";
  /// A window that some context is longer than.
  bool has_window() const { return config_.attention.window > 0 && config_.attention.window < limits_.context_window; }
  bool windowed_everywhere() const { return has_window() && config_.attention.window_layers.empty(); }

  void emit_create_cache() {
    const AttentionConfig& a = config_.attention;
    out_.begin_scope({});
    out_.begin_block(false);
    RExpr inv_freq = with_sinfo(relax::call(op_ref("null_value"), {}), object_info());
    if (!inv_freq_.empty()) {
      Ref<runtime::Tensor> t = runtime::Tensor::of(inv_freq_, {static_cast<int64_t>(inv_freq_.size())}, f32);
      inv_freq = relax::constant(t);
    }
    constexpr int64_t kPageSize = runtime::PagedSequences::kPageSize;
    const int64_t positions = runtime::PagedSequences::pages_for(limits_.context_window) * kPageSize;
    std::vector<RExpr> args = {
        shape_expr(
            {int_imm(1, i64), int_imm(positions, i64), int_imm(limits_.prefill_chunk, i64), int_imm(kPageSize, i64)}),
        prim_value(config_.layers),
        prim_value(a.heads),
        prim_value(a.kv_heads),
        prim_value(a.head_dim),
        out_.emit(inv_freq),
        prim_value(float_imm(a.rope ? a.rope->scaling.attention_factor : 1, f32)),
        dtype_value(cache_dtype_),
        out_.function("kv_append"),
        out_.function("attention")};
    if (has_window() && !windowed_everywhere()) {
      std::vector<Expr> layers;
      for (int64_t layer : a.window_layers)
        if (layer < config_.layers) layers.push_back(int_imm(layer, i64));
      args.push_back(out_.function(kWindowAttention));
      args.push_back(shape_expr(std::move(layers)));
    }
    RExpr call =
        with_sinfo(relax::call(extern_func("vm.builtin.paged_attention_kv_cache_create"), args, {}, {object_info()}),
                   object_info());
    RVarRef cache = out_.emit(call, "cache");
    BindingBlockRef block = out_.end_block();
    FuncRef f = out_.end_function({}, {block}, cache, {{"global_symbol", string_imm("create_kv_cache")}}, false);
    out_.update_function("create_kv_cache", f);
  }

  const ModelConfig& config_;
  const Scheme& scheme_;
  ModelLimits limits_;
  DType cache_dtype_;
  std::vector<float> inv_freq_;
  BlockBuilder out_;
  std::vector<ParamSpec> specs_;
  std::vector<std::string> layers_;
};

}  // namespace

static ModelLimits limits_of(const ModelConfig& config, const ProgramOptions& options) {
  ModelLimits limits{.context_window = options.context_window.value_or(config.max_positions),
                     .vocab_size = config.vocab_size};
  if (limits.context_window < 1 || limits.context_window > config.max_positions)
    fail({.what = text("a context window of ", limits.context_window, " tokens is asked for"),
          .needs = text("1 to ", config.max_positions, " tokens, the positions that the model was trained on"),
          .hint = "leave context_window_size out"});
  limits.prefill_chunk = options.prefill_chunk.value_or(std::min(kPrefillChunk, limits.context_window));
  if (limits.prefill_chunk < 1 || limits.prefill_chunk > limits.context_window)
    fail({.what = text("a prefill chunk of ", limits.prefill_chunk, " tokens is asked for"),
          .needs = "at least one token, at most the context window",
          .hint = "leave prefill_chunk_size out"});
  return limits;
}

ModelConfig part_of(const ModelConfig& config, int64_t chips) {
  ModelConfig part = config;
  auto share = [&](const char* what, int64_t& size) {
    if (chips < 1 || size % chips != 0)
      fail({.what = text(size, " ", what, " cannot be shared by ", chips, " chips"),
            .needs = text("a number of chips that divides them"),
            .hint = "use another --parallel"});
    size /= chips;
  };
  share("heads", part.attention.heads);
  share("heads of keys and values", part.attention.kv_heads);
  if (config.experts.count == 0 || !config.experts.dense_layers.empty()) share("units of the MLP", part.mlp.units);
  share("units of an expert", part.experts.units);
  share("units of the shared expert", part.experts.shared_units);
  return part;
}

DType cache_dtype_of(const Scheme& scheme, const ProgramOptions& options) {
  return options.cache_dtype.value_or(scheme.factors.value_or(f32));
}

Program build_program(const ModelConfig& whole, const Scheme& scheme, const ProgramOptions& options) {
  ModelConfig config = options.chips == 1 ? whole : part_of(whole, options.chips);
  if (options.one_layer) config.layers = 1;
  return ProgramBuilder(config, scheme, limits_of(config, options), cache_dtype_of(scheme, options)).build();
}

Program build_observer(const ModelConfig& config, const ProgramOptions& options, std::vector<std::string>& layers) {
  const Scheme exact = parse_scheme("f32");
  return ProgramBuilder(config, exact, limits_of(config, options), cache_dtype_of(exact, options)).build(&layers);
}

}  // namespace sator::llm
