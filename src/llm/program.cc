#include "llm/program.h"

#include <cmath>
#include <cstring>

#include "llm/attention.h"
#include "llm/layers.h"
#include "runtime/paged_sequences.h"

namespace sator::llm {

using namespace relax;

namespace {

/// What the cache must know of a family.
struct CacheShape {
  int64_t layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::vector<float> rope_inv_freq;  ///< empty for no rotary embedding
};

/// A family of models: how its tokens become logits.
struct Family {
  CacheShape cache;
  /// ids int32 [n] -> hidden states [n, width], the final norm applied.
  std::function<RExpr(Layers&, const RExpr& ids, const RExpr& cache, const Expr& n)> hidden;
  /// hidden states [m, width] -> logits [m, vocab].
  std::function<RExpr(Layers&, const RExpr& hidden)> logits;
};

const char* activation_op(Activation a) {
  switch (a) {
    case Activation::gelu_tanh: return "nn.gelu_tanh";
    case Activation::gelu_erf: return "nn.gelu";
    case Activation::relu: return "nn.relu";
    case Activation::silu: return "nn.silu";
  }
  internal_error("an activation without an op");
}

Family gpt2(const ModelConfig& config, const Gpt2Config& c) {
  const std::string root = "transformer.";
  const int64_t width = c.hidden_size, dim = c.head_dim();
  auto norm = [=](Layers& l, const RExpr& x, const std::string& name) {
    return l.op("nn.layer_norm",
                {x, l.vector(name + ".weight", width), l.vector(name + ".bias", width)},
                {{"axes", relax::Value(int64_t{-1})}, {"epsilon", c.layer_norm_eps}},
                name);
  };
  Family f;
  f.cache = {c.layers, c.heads, c.heads, dim, {}};
  f.hidden = [=](Layers& l, const RExpr& ids, const RExpr& cache, const Expr& n) {
    RExpr x = l.embedding(ids, root + "wte.weight", config.vocab_size, width);
    RExpr p = l.plain_embedding(l.positions(cache, n), root + "wpe.weight", config.max_positions, width);
    x = l.op("add", {x, p}, {}, root + "embedding");
    for (int64_t i = 0; i < c.layers; ++i) {
      const std::string h = text(root, "h.", i, ".");
      auto conv1d = [&](const RExpr& in, const std::string& name, int64_t outs, int64_t ins) {
        return l.linear(in,
                        {.tensors = {h + name + ".weight"},
                         .outs = {outs},
                         .in = ins,
                         .transposed = true,
                         .bias = h + name + ".bias"},
                        h + name);
      };
      double scale = c.scale_attn_weights ? 1 / std::sqrt(static_cast<double>(dim)) : 1;
      if (c.scale_attn_by_inverse_layer_idx) scale /= static_cast<double>(i + 1);
      RExpr qkv = conv1d(norm(l, x, h + "ln_1"), "attn.c_attn", 3 * c.heads * dim, width);
      RExpr a = l.attention(qkv, cache, i, c.heads, c.heads, dim, scale, h + "attn");
      x = l.op("add", {conv1d(a, "attn.c_proj", width, c.heads * dim), x}, {}, h + "attn.c_proj");
      RExpr m = conv1d(norm(l, x, h + "ln_2"), "mlp.c_fc", c.intermediate_size, width);
      m = l.op(activation_op(c.activation), {m}, {}, h + "mlp.c_fc");
      x = l.op("add", {conv1d(m, "mlp.c_proj", width, c.intermediate_size), x}, {}, h + "mlp.c_proj");
    }
    return norm(l, x, root + "ln_f");
  };
  f.logits = [=](Layers& l, const RExpr& hidden) {
    std::string head = config.tie_word_embeddings ? root + "wte.weight" : "lm_head.weight";
    return l.head(hidden, head, config.vocab_size, width);
  };
  return f;
}

/// Frequencies of the rotary embedding, angle per position. Source: Su et al., "RoFormer", 2021; Llama 3.1's scaling as
/// in Hugging Face's modeling_rope_utils.
std::vector<float> rope_frequencies(const LlamaConfig& c) {
  std::vector<float> out;
  for (int64_t j = 0; j < c.head_dim / 2; ++j) {
    double f = std::pow(c.rope_theta, -2.0 * static_cast<double>(j) / static_cast<double>(c.head_dim));
    const RopeScaling& s = c.rope_scaling;
    if (s.kind == RopeScaling::Kind::linear) {
      f /= s.factor;
    } else if (s.kind == RopeScaling::Kind::llama3) {
      double wavelength = 2 * M_PI / f, original = static_cast<double>(s.original_positions);
      double low = original / s.low_freq_factor, high = original / s.high_freq_factor;
      if (wavelength > low) {
        f /= s.factor;
      } else if (wavelength > high) {
        double smooth = (original / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
        f = (1 - smooth) * f / s.factor + smooth * f;
      }
    }
    out.push_back(static_cast<float>(f));
  }
  return out;
}

Family llama(const ModelConfig& config, const LlamaConfig& c) {
  const int64_t width = c.hidden_size, dim = c.head_dim, q = c.heads * dim, kv = c.kv_heads * dim;
  auto norm = [=](Layers& l, const RExpr& x, const std::string& name) {
    return l.op("nn.rms_norm",
                {x, l.vector(name + ".weight", width)},
                {{"axes", relax::Value(int64_t{-1})}, {"epsilon", c.rms_norm_eps}},
                name);
  };
  Family f;
  f.cache = {c.layers, c.heads, c.kv_heads, dim, rope_frequencies(c)};
  f.hidden = [=](Layers& l, const RExpr& ids, const RExpr& cache, const Expr&) {
    RExpr x = l.embedding(ids, "model.embed_tokens.weight", config.vocab_size, width);
    for (int64_t i = 0; i < c.layers; ++i) {
      const std::string h = text("model.layers.", i, ".");
      auto linear = [&](const RExpr& in,
                        std::vector<std::string>
                            names,
                        std::vector<int64_t>
                            outs,
                        int64_t ins,
                        bool bias,
                        const std::string& layer) {
        Layers::Weight w{.outs = std::move(outs), .in = ins};
        for (const std::string& name : names) {
          w.tensors.push_back(h + name + ".weight");
          if (bias) w.biases.push_back(h + name + ".bias");
        }
        return l.linear(in, w, h + layer);
      };
      RExpr qkv = linear(norm(l, x, h + "input_layernorm"),
                         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
                         {q, kv, kv},
                         width,
                         c.attention_bias,
                         "self_attn.qkv_proj");
      RExpr a = l.attention(
          qkv, cache, i, c.heads, c.kv_heads, dim, 1 / std::sqrt(static_cast<double>(dim)), h + "self_attn");
      x = l.op("add",
               {linear(a, {"self_attn.o_proj"}, {width}, q, c.attention_bias, "self_attn.o_proj"), x},
               {},
               h + "self_attn.o_proj");
      RExpr both = linear(norm(l, x, h + "post_attention_layernorm"),
                          {"mlp.gate_proj", "mlp.up_proj"},
                          {c.intermediate_size, c.intermediate_size},
                          width,
                          c.mlp_bias,
                          "mlp.gate_up_proj");
      RExpr halves = l.op("split", {both}, {{"indices_or_sections", int64_t{2}}, {"axis", int64_t{1}}});
      RExpr gate = l.out().emit(tuple_get(halves, 0)), up = l.out().emit(tuple_get(halves, 1));
      RExpr m = l.op("multiply", {l.op(activation_op(c.activation), {gate}), up}, {}, h + "mlp.act");
      x = l.op("add",
               {linear(m, {"mlp.down_proj"}, {width}, c.intermediate_size, c.mlp_bias, "mlp.down_proj"), x},
               {},
               h + "mlp.down_proj");
    }
    return norm(l, x, "model.norm");
  };
  f.logits = [=](Layers& l, const RExpr& hidden) {
    return l.head(
        hidden, config.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", config.vocab_size, width);
  };
  return f;
}

Family family_of(const ModelConfig& config) {
  if (const auto* c = std::get_if<Gpt2Config>(&config.family)) return gpt2(config, *c);
  return llama(config, std::get<LlamaConfig>(config.family));
}

enum class LogitRows { last, all };

class ProgramBuilder {
 public:
  ProgramBuilder(const ModelConfig& config, const Scheme& scheme, const ModelLimits& limits, DType cache_dtype)
      : scheme_(scheme), limits_(limits), cache_dtype_(cache_dtype), family_(family_of(config)) {}

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
    AttentionShape attention{family_.cache.heads,
                             family_.cache.kv_heads,
                             family_.cache.head_dim,
                             static_cast<int64_t>(2 * family_.cache.rope_inv_freq.size()),
                             cache_dtype_,
                             scheme_.factors && cache_dtype_ != f32};
    out_.add_function(private_function(kv_append_kernel(attention)), "kv_append");
    out_.add_function(private_function(attention_kernel(attention)), "attention");
    emit(out_, "prefill", LogitRows::last, false, params);
    emit(out_, "decode", LogitRows::last, true, params);
    emit(out_, "verify", LogitRows::all, false, params);
    if (observed) emit_observe(params, *observed);
    emit_create_cache();
    return {out_.module(), std::move(specs_), limits_, attention, std::move(layers_)};
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
    RExpr hidden = family_.hidden(layers, ids, cache, n);
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
    RVarRef logits = out.emit_output(family_.logits(layers, hidden), "logits");
    BindingBlockRef block = out.end_block();
    Attrs attrs = {{"global_symbol", string_imm(name)}, {"num_input", int_imm(2)}};
    FuncRef f = out.end_function({ids, cache, params}, {block}, logits, attrs, false);
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
    RExpr hidden = family_.hidden(layers, ids, cache, n);
    family_.logits(layers, hidden);
    RVarRef ranges = out_.emit_output(relax::tuple(observed.ranges), "ranges");
    BindingBlockRef block = out_.end_block();
    Attrs attrs = {{"global_symbol", string_imm("observe")}, {"num_input", int_imm(2)}};
    out_.update_function("observe", out_.end_function({ids, cache, params}, {block}, ranges, attrs, false));
    names = observed.layers;
  }

  void emit_create_cache() {
    const CacheShape& c = family_.cache;
    out_.begin_scope({});
    out_.begin_block(false);
    RExpr inv_freq = with_sinfo(relax::call(op_ref("null_value"), {}), object_info());
    if (!c.rope_inv_freq.empty()) {
      Ref<runtime::Tensor> t =
          runtime::Tensor::of(c.rope_inv_freq, {static_cast<int64_t>(c.rope_inv_freq.size())}, f32);
      inv_freq = relax::constant(t);
    }
    constexpr int64_t kPageSize = runtime::PagedSequences::kPageSize;
    const int64_t positions = runtime::PagedSequences::pages_for(limits_.context_window) * kPageSize;
    std::vector<RExpr> args = {
        shape_expr(
            {int_imm(1, i64), int_imm(positions, i64), int_imm(limits_.prefill_chunk, i64), int_imm(kPageSize, i64)}),
        prim_value(c.layers),
        prim_value(c.heads),
        prim_value(c.kv_heads),
        prim_value(c.head_dim),
        out_.emit(inv_freq),
        prim_value(float_imm(1, f32)),
        dtype_value(cache_dtype_),
        out_.function("kv_append"),
        out_.function("attention")};
    RExpr call =
        with_sinfo(relax::call(extern_func("vm.builtin.paged_attention_kv_cache_create"), args, {}, {object_info()}),
                   object_info());
    RVarRef cache = out_.emit(call, "cache");
    BindingBlockRef block = out_.end_block();
    FuncRef f = out_.end_function({}, {block}, cache, {{"global_symbol", string_imm("create_kv_cache")}}, false);
    out_.update_function("create_kv_cache", f);
  }

  const Scheme& scheme_;
  ModelLimits limits_;
  DType cache_dtype_;
  Family family_;
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
  if (auto* c = std::get_if<Gpt2Config>(&part.family)) {
    c->own_head_dim = c->head_dim();
    share("heads", c->heads);
    share("units of the MLP", c->intermediate_size);
  } else {
    auto& l = std::get<LlamaConfig>(part.family);
    share("heads", l.heads);
    share("heads of keys and values", l.kv_heads);
    share("units of the MLP", l.intermediate_size);
  }
  return part;
}

DType cache_dtype_of(const Scheme& scheme, const ProgramOptions& options) {
  return options.cache_dtype.value_or(scheme.factors.value_or(f32));
}

Program build_program(const ModelConfig& whole, const Scheme& scheme, const ProgramOptions& options) {
  ModelConfig config = options.chips == 1 ? whole : part_of(whole, options.chips);
  if (options.one_layer) std::visit([](auto& family) { family.layers = 1; }, config.family);
  return ProgramBuilder(config, scheme, limits_of(config, options), cache_dtype_of(scheme, options)).build();
}

Program build_observer(const ModelConfig& config, const ProgramOptions& options, std::vector<std::string>& layers) {
  const Scheme exact = parse_scheme("f32");
  return ProgramBuilder(config, exact, limits_of(config, options), cache_dtype_of(exact, options)).build(&layers);
}

}  // namespace sator::llm
