#include "llm/program.h"

#include <algorithm>
#include <set>

#include "base/figures.h"
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
  ProgramBuilder(const ModelConfig& config, const Scheme& scheme, const ModelLimits& limits, DType cache_dtype,
                 Repeats repeats)
      : config_(config), scheme_(scheme), limits_(limits), cache_dtype_(cache_dtype), repeats_(std::move(repeats)) {}

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
                             .rotary_dim = a.rope ? a.rope->dims : 0,
                             .cache_dtype = cache_dtype_,
                             .narrow = multiplies_narrow(),
                             .soft_cap = a.soft_cap,
                             .biased = a.alibi.has_value(),
                             .sinks = !config_.names.sinks.empty(),
                             .interleaved = a.rope && a.rope->interleaved};
    const std::vector<LayerKind> kinds = layer_kinds();
    std::set<std::string_view> added;
    std::vector<AttentionShape> of_block(repeats_.kept().size());
    std::vector<Program::CacheKernels> kernels_of_block(of_block.size());
    for (const LayerKind& kind : kinds) {
      AttentionShape own = attention;
      if (!kind.rope) own.rotary_dim = 0, own.interleaved = false;
      own.window = kind.windowed ? a.window : 0;
      for (int64_t index : kind.blocks) {
        of_block[static_cast<size_t>(index)] = own;
        kernels_of_block[static_cast<size_t>(index)] = {kind.kv_append, kind.attention};
      }
      if (added.insert(kind.kv_append).second)
        out_.add_function(tir::without_symbol(kv_append_kernel(own)), kind.kv_append);
      if (added.insert(kind.attention).second)
        out_.add_function(tir::without_symbol(attention_kernel(own)), kind.attention);
    }
    emit(out_, "prefill", LogitRows::last, false, params);
    emit(out_, "decode", LogitRows::last, true, params);
    emit(out_, "verify", LogitRows::all, false, params);
    if (observed) emit_observe(params, *observed);
    emit_create_cache(kinds, attention.in_pairs());
    return {out_.module(),
            std::move(specs_),
            limits_,
            std::move(of_block),
            std::move(kernels_of_block),
            std::move(layers_),
            summed_layers(config_),
            std::move(repeats_)};
  }

 private:
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
    RExpr hidden = hidden_states(layers, config_, repeats_.kept(), ids, cache, n);
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
    const RExpr scores = logits(layers, config_, hidden);
    // What only renames the head's result goes with fusion: the name and the layer that stay are the output's.
    const RVarRef of_head = cast<RVar>(scores);
    RVarRef result =
        of_head ? out.emit_output(scores, of_head->name, of_head->layer) : out.emit_output(scores, "logits");
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
    RExpr hidden = hidden_states(layers, config_, repeats_.kept(), ids, cache, n);
    logits(layers, config_, hidden);
    RVarRef ranges = out_.emit_output(relax::tuple(observed.ranges), "ranges");
    BindingBlockRef block = out_.end_block();
    Attrs attrs = {{"global_symbol", string_imm("observe")}, {"num_input", int_imm(2)}};
    out_.update_function("observe", out_.end_function({ids, cache, params}, {block}, ranges, attrs, false));
    names = observed.layers;
  }

  /// Blocks that write into the cache and attend alike, by their indices in it, and the kernels with which they do.
  struct LayerKind {
    const Rope* rope;  ///< null: they are not rotated
    bool windowed;
    const char *kv_append, *attention;
    std::vector<int64_t> blocks;
  };
  /// In the order of their first blocks.
  std::vector<LayerKind> layer_kinds() const {
    const AttentionConfig& a = config_.attention;
    auto has = [](const std::vector<int64_t>& layers, int64_t layer) {
      return std::ranges::find(layers, layer) != layers.end();
    };
    std::vector<LayerKind> kinds;
    for (int64_t index = 0; index < std::ssize(repeats_.kept()); ++index) {
      const int64_t layer = repeats_.kept()[static_cast<size_t>(index)];
      const bool slides = a.window > 0 && (a.window_layers.empty() || has(a.window_layers, layer));
      const Rope* rope = slides && a.window_rope ? &*a.window_rope : a.rope ? &*a.rope : nullptr;
      if (has(a.unrotated_layers, layer)) rope = nullptr;
      const bool windowed = slides && has_window();
      auto same = [&](const LayerKind& k) { return k.rope == rope && k.windowed == windowed; };
      auto at = std::ranges::find_if(kinds, same);
      if (at == kinds.end())
        at = kinds.insert(at,
                          {.rope = rope,
                           .windowed = windowed,
                           .kv_append = a.rope && !rope ? "kv_append_unrotated" : "kv_append",
                           .attention = windowed && !windowed_everywhere() ? "attention_window" : "attention"});
      at->blocks.push_back(index);
    }
    return kinds;
  }

  /// A window that some context is longer than.
  bool has_window() const { return config_.attention.window > 0 && config_.attention.window < limits_.context_window; }
  bool windowed_everywhere() const { return has_window() && config_.attention.window_layers.empty(); }

  /// A vector in the program, or nothing where it is empty.
  RExpr vector_or_nothing(const std::vector<float>& values) {
    RExpr value = with_sinfo(relax::call(op_ref("null_value"), {}), object_info());
    if (!values.empty())
      value = relax::constant(runtime::Tensor::of(values, {static_cast<int64_t>(values.size())}, f32));
    return out_.emit(value);
  }
  RExpr frequencies(const LayerKind& kind) {
    return vector_or_nothing(kind.rope ? rope_frequencies(*kind.rope, limits_.context_window) : std::vector<float>());
  }
  static RExpr rope_scale(const LayerKind& kind) {
    return prim_value(float_imm(kind.rope ? kind.rope->scaling.attention_factor : 1, f32));
  }

  /// Queries and weights of values are rounded as the cache is: where all factors are of 16 bits, and beside inputs that are integers where
  /// pairs of bfloat16 make attention faster.
  bool multiplies_narrow() const {
    return cache_dtype_ != f32 && (scheme_.factors || (scheme_.activation && cache_dtype_ == bf16));
  }

  void emit_create_cache(const std::vector<LayerKind>& kinds, bool in_pairs) {
    const AttentionConfig& a = config_.attention;
    out_.begin_scope({});
    out_.begin_block(false);
    constexpr int64_t kPageSize = runtime::PagedSequences::kPageSize;
    const int64_t positions = runtime::PagedSequences::pages_for(limits_.context_window) * kPageSize;
    std::vector<RExpr> args = {
        shape_expr(
            {int_imm(1, i64), int_imm(positions, i64), int_imm(limits_.prefill_chunk, i64), int_imm(kPageSize, i64)}),
        prim_value(std::ssize(repeats_.kept())),
        prim_value(a.heads),
        prim_value(a.kv_heads),
        prim_value(a.head_dim),
        frequencies(kinds.front()),
        rope_scale(kinds.front()),
        dtype_value(cache_dtype_),
        out_.function(kinds.front().kv_append),
        out_.function(kinds.front().attention),
        vector_or_nothing(a.alibi ? alibi_slopes(a.heads) : std::vector<float>()),
        prim_value(float_imm(a.alibi && a.alibi->scaled ? a.scale : 1, f32)),
        dtype_value(a.alibi && a.alibi->in_bfloat16 ? bf16 : f32),
        prim_value(kinds.front().windowed ? a.window : 0),
        prim_value(int64_t{in_pairs})};
    for (size_t i = 1; i < kinds.size(); ++i) {
      std::vector<Expr> blocks;
      for (int64_t index : kinds[i].blocks) blocks.push_back(int_imm(index, i64));
      for (const RExpr& arg : {frequencies(kinds[i]),
                               rope_scale(kinds[i]),
                               RExpr(out_.function(kinds[i].kv_append)),
                               RExpr(out_.function(kinds[i].attention)),
                               RExpr(prim_value(kinds[i].windowed ? a.window : 0)),
                               RExpr(shape_expr(std::move(blocks)))})
        args.push_back(arg);
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
  Repeats repeats_;
  BlockBuilder out_;
  std::vector<ParamSpec> specs_;
  std::vector<std::string> layers_;
};

}  // namespace

static ModelLimits limits_of(const ModelConfig& config, const ProgramOptions& options) {
  ModelLimits limits{.context_window = options.context_window.value_or(config.max_positions),
                     .vocab_size = config.vocab_size};
  if (limits.context_window < 1 || limits.context_window > config.longest_context())
    fail({.what = text("a context window of ", limits.context_window, " tokens is asked for"),
          .needs =
              text("1 to ", counted(config.longest_context(), "token"), ", the positions that the model was made for"),
          .hint = "leave context_window_size out"});
  limits.prefill_chunk = options.prefill_chunk.value_or(std::min(kPrefillChunk, limits.context_window));
  if (limits.prefill_chunk < 1 || limits.prefill_chunk > limits.context_window)
    fail({.what = text("a prefill chunk of ", limits.prefill_chunk, " tokens is asked for"),
          .needs = "at least one token, at most the context window",
          .hint = "leave prefill_chunk_size out"});
  return limits;
}

int64_t cache_bytes(const Program& program, int64_t positions) {
  using Pages = runtime::PagedSequences;
  int64_t bytes = 0;
  for (size_t b = 0; b < program.attention.size(); ++b) {
    const AttentionShape& a = program.attention[b];
    const int64_t pages = Pages::most_pages(positions, a.window, std::min(program.limits.prefill_chunk, positions));
    bytes += program.repeats.times(program.repeats.kept()[b]) * 2 * a.num_kv_heads * a.head_dim *
             std::min(positions, pages * Pages::kPageSize) * a.cache_dtype.bits / 8;
  }
  return bytes;
}

int64_t weight_bytes(const Program& program) {
  int64_t bytes = 0;
  for (const ParamSpec& p : program.params) bytes += program.repeats.times(p.name) * p.bytes();
  return bytes;
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
  if (!part.attention.latent) share("heads of keys and values", part.attention.kv_heads);
  if (config.experts.count == 0 || !config.experts.dense_layers.empty()) share("units of the MLP", part.mlp.units);
  share("units of an expert", part.experts.units);
  share("units of the shared expert", part.experts.shared_units);
  return part;
}

DType cache_dtype_of(const ModelConfig& config, const Scheme& scheme, const ProgramOptions& options) {
  const bool exact = scheme.is_exact || (scheme.storage == f32 && !scheme.stored);
  if (options.cache_dtype) return *options.cache_dtype;
  if (scheme.factors) return *scheme.factors;
  if (exact) return f32;
  if (scheme.activation && (config.dtype != f32 || config.dtype_unknown)) return bf16;
  return config.dtype;
}

Program build_program(const ModelConfig& whole, const Scheme& scheme, const ProgramOptions& options) {
  const ModelConfig config = options.chips == 1 ? whole : part_of(whole, options.chips);
  // A file may hold the tensors of like blocks in different formats.
  Repeats repeats = options.alike_once && !scheme.stored ? Repeats::alike(config) : Repeats(config);
  return ProgramBuilder(
             config, scheme, limits_of(config, options), cache_dtype_of(config, scheme, options), std::move(repeats))
      .build();
}

Program build_observer(const ModelConfig& config, const ProgramOptions& options, std::vector<std::string>& layers) {
  const Scheme exact = parse_scheme("f32");
  return ProgramBuilder(
             config, exact, limits_of(config, options), cache_dtype_of(config, exact, options), Repeats(config))
      .build(&layers);
}

}  // namespace sator::llm
