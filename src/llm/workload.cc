#include "llm/workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "arith/eval.h"
#include "dataflow/programs/row_groups.h"
#include "ir/visit.h"
#include "passes/pass.h"
#include "relax/outline.h"
#include "relax/struct_info.h"
#include "rules/rule.h"
#include "runtime/paged_sequences.h"

namespace sator::llm {

using dataflow::OperandKind;
using dataflow::ParamFacts;
using namespace relax;

namespace {

ParamFacts facts_of(const ParamSpec& spec) {
  switch (spec.part) {
    case ParamPart::codes: return {.kind = OperandKind::weight, .bits = spec.format ? spec.format->bits : 0};
    case ParamPart::scale:
    case ParamPart::super_scale:
    case ParamPart::minimum:
    case ParamPart::super_minimum:
    case ParamPart::zero:
    case ParamPart::order:
    case ParamPart::activation_scale:
    case ParamPart::rescale: return {.kind = OperandKind::scale, .bits = static_cast<int>(spec.dtype.bytes() * 8)};
    case ParamPart::plain: return {.kind = OperandKind::weight, .bits = static_cast<int>(spec.dtype.bytes() * 8)};
  }
  return {};
}

bool is_extern_call(const RCall& call, std::string_view name) {
  const ExternFunc* callee = call.args.empty() ? nullptr : call.args[0].as<ExternFunc>();
  return callee && callee->name == name;
}

}  // namespace

/// One pass over the bindings of a function at given sizes.
class Workload::Walk {
 public:
  Walk(const Workload& all, const Function& f, const StepSize& size) : all_(all), size_(size) {
    const auto inputs =
        static_cast<size_t>(int_attr(f.attrs, "num_input").value_or(static_cast<int64_t>(f.params.size())));
    for (size_t i = 0; i < f.params.size(); ++i) {
      if (i >= inputs) tuples_.insert(f.params[i]);
      for (const VarRef& v : vars_of(f.params[i]->sinfo)) sizes_.emplace(v, size.tokens);
    }
    for (const BindingBlockRef& block : f.body.as<SeqExpr>()->blocks)
      for (const Binding& b : block->bindings) bindings_.push_back(b);
    name_layers();
  }

  std::vector<KernelCall> run() {
    std::vector<KernelCall> calls;
    for (const Binding& b : bindings_) {
      const RVarRef var = relax::bound_var(b);
      const RExpr value = relax::bound_value(b);
      if (const RVar* same = value.as<RVar>()) {
        if (auto at = facts_.find(ref(*same)); at != facts_.end()) facts_[var] = at->second;
        if (auto at = weight_of_.find(ref(*same)); at != weight_of_.end()) weight_of_[var] = at->second;
      } else if (const TupleGetItem* item = value.as<TupleGetItem>()) {
        if (const RVar* tuple = item->tuple.as<RVar>(); tuple && tuples_.contains(ref(*tuple))) {
          facts_[var] = all_.params_.at(static_cast<size_t>(item->index));
          weight_of_[var] = all_.param_layer_.at(static_cast<size_t>(item->index));
        }
      } else if (const RCall* call = value.as<RCall>()) {
        add(*call, layer_of_[var], calls);
      }
    }
    return calls;
  }

 private:
  /// Variables that no layer is told of belong to the layer that uses them first.
  void name_layers() {
    for (auto b = bindings_.rbegin(); b != bindings_.rend(); ++b) {
      const RVarRef var = relax::bound_var(*b);
      std::string& layer = layer_of_[var];
      if (!var->layer.empty()) layer = var->layer;
      for (const RVarRef& used : relax::rvars_in(relax::bound_value(*b)))
        if (!layer.empty()) layer_of_[used] = layer;
    }
  }

  int64_t value_of(const Expr& e, const std::string& function) const {
    if (auto v = arith::evaluate(e, sizes_)) return *v;
    fail({.what = text("the size ", e, " of a call of ", function, " is not known"),
          .needs = "sizes that follow from the number of tokens",
          .hint = "state it as a function of seq_len"});
  }

  ParamFacts facts_of_argument(const RExpr& arg) const {
    const RVar* var = arg.as<RVar>();
    auto at = var ? facts_.find(ref(*var)) : facts_.end();
    return at == facts_.end() ? ParamFacts{} : at->second;
  }

  void add(const RCall& call, const std::string& layer, std::vector<KernelCall>& calls) {
    if (is_op(ref(call), "call_tir")) {
      calls.push_back(kernel(call, layer));
    } else if (is_extern_call(call, "vm.builtin.attention_kv_cache_attention_with_fused_qkv")) {
      add_attention(layer, index_of(call), calls);
    }
  }

  KernelCall kernel(const RCall& call, const std::string& layer) {
    const std::string& name = call.args.at(0).as<GlobalVar>()->name;
    tir::PrimFuncRef func = cast<tir::PrimFunc>(all_.module_->functions.at(name));
    if (!func) internal_error(text("call_tir of ", name, ", which is no tensor program"));
    KernelCall out{.function = name, .layer = layer, .work = func};
    std::vector<StructInfo> infos;
    std::vector<RExpr> inputs = relax::call_tir_inputs(call);
    bool named_by_weight = false;
    for (const RExpr& arg : inputs) {
      infos.push_back(arg->sinfo);
      out.params.push_back(facts_of_argument(arg));
      // What a layer's product takes in behind it, such as the next layer's codes, does not make it that layer's.
      const RVar* var = arg.as<RVar>();
      const auto weight = var ? weight_of_.find(ref(*var)) : weight_of_.end();
      if (weight == weight_of_.end() || weight->second.empty() || named_by_weight) continue;
      if (out.params.back().kind != OperandKind::weight) continue;
      out.layer = weight->second;
      named_by_weight = true;
    }
    const TupleInfo* several = call.sinfo_args.front().as<TupleInfo>();
    for (const StructInfo& s : several ? several->items : std::vector<StructInfo>{call.sinfo_args.front()}) {
      infos.push_back(s);
      out.params.push_back({});
    }
    size_t next = 0;
    for (const VarRef& param : func->params) {
      BufferRef buffer = func->buffer_of(param);
      if (!buffer) continue;
      if (next >= infos.size()) internal_error(text("call_tir of ", name, " with too few arguments"));
      std::optional<std::vector<Expr>> shape = shape_of(*infos[next].as<TensorInfo>());
      for (size_t d = 0; shape && d < buffer->shape.size() && d < shape->size(); ++d)
        if (const Var* v = buffer->shape[d].as<Var>()) out.sizes.emplace(v->name, value_of((*shape)[d], name));
      ++next;
    }
    if (auto at = all_.grouped_.find(name); at != all_.grouped_.end()) take_groups(at->second, infos, out);
    if (call.args.size() > 2) {
      std::vector<Expr> extents = *shape_values(call.args[2]);
      for (size_t i = 0; i < extents.size(); ++i) {
        const VarRef& v = func->params[func->params.size() - extents.size() + i];
        out.sizes.emplace(v->name, value_of(extents[i], name));
      }
    }
    return out;
  }

  /// Rows of the experts that the step's tokens are expected to take.
  void take_groups(const rules::GroupedFunction& grouped, const std::vector<StructInfo>& infos, KernelCall& out) const {
    int64_t rows = 0, experts = 0;
    size_t next = 0, of_groups = 0;
    for (rules::GroupedParam param : grouped.params) {
      if (param == rules::GroupedParam::scalar) continue;
      const Expr first = shape_of(*infos.at(next).as<TensorInfo>())->front();
      if (param == rules::GroupedParam::groups) rows = value_of(first, out.function), of_groups = next;
      if (param == rules::GroupedParam::stack) experts = value_of(first, out.function);
      ++next;
    }
    out.work = grouped.one;
    out.params.erase(out.params.begin() + static_cast<ptrdiff_t>(of_groups));
    out.sizes["rows"] = rows;
    out.sizes["groups"] = expected_experts(experts, rows / size_.tokens, size_.tokens);
  }

  /// The number of the layer whose attention is called.
  static int64_t index_of(const RCall& call) {
    const relax::Tuple* args = call.args.at(1).as<relax::Tuple>();
    const PrimValue* index = args ? args->items.at(1).as<PrimValue>() : nullptr;
    const IntImm* value = index ? index->value.as<IntImm>() : nullptr;
    if (!value) internal_error("a call of attention without the number of its layer");
    return value->value;
  }

  /// What the cache launches for a layer (runtime/kv_cache.h): keys and values into their pages, then attention.
  void add_attention(const std::string& layer, int64_t index, std::vector<KernelCall>& calls) {
    const ParamFacts plain, cache{.kind = OperandKind::kv};
    const int64_t pages = runtime::PagedSequences::pages_for(all_.limits_.context_window);
    const Attention& of_layer = all_.attention_.at(static_cast<size_t>(index));
    KernelCall append{
        .function = of_layer.names.kv_append,
        .layer = layer,
        .sizes = {{"n", size_.tokens}, {"pages", pages}, {"limit", pages * runtime::PagedSequences::kPageSize}},
        .work = of_layer.append};
    append.params.assign(append.work->params.size() - 2, plain);
    append.params.insert(append.params.end(), 2, cache);
    calls.push_back(std::move(append));
    calls.push_back({.function = of_layer.names.attention,
                     .layer = layer,
                     .sizes = {{"n", size_.tokens}, {"kv_len", size_.context}},
                     .params = {plain, cache, cache, plain},
                     .work = of_layer.work});
    if (all_.has_extra_) calls.back().params.push_back(plain);
  }

  const Workload& all_;
  const StepSize& size_;
  std::vector<Binding> bindings_;
  std::set<RVarRef> tuples_;
  std::map<RVarRef, ParamFacts> facts_;
  std::map<RVarRef, std::string> weight_of_;  // parameters: the layer that they belong to
  std::map<RVarRef, std::string> layer_of_;
  arith::Values sizes_;
};

namespace {

/// Of the parameters after transform_params the numbers of those before from which they were made; nothing where none was.
std::vector<std::optional<size_t>> sources_after_lifting(const ModuleRef& module, size_t params) {
  std::vector<std::optional<size_t>> given;
  for (size_t p = 0; p < params; ++p) given.emplace_back(p);
  auto at = module->functions.find("transform_params");
  if (at == module->functions.end()) return given;
  const Function& f = *at->second.as<Function>();
  const SeqExpr& body = *f.body.as<SeqExpr>();
  std::map<RVarRef, std::optional<size_t>> known;
  auto source_of = [&](const RExpr& value) -> std::optional<size_t> {
    if (const TupleGetItem* item = value.as<TupleGetItem>(); item && item->tuple == f.params.at(0))
      return given.at(static_cast<size_t>(item->index));
    // What is computed from codes is codes in another layout; otherwise the first operand tells.
    for (const RVarRef& v : relax::rvars_in(value))
      if (auto found = known.find(v); found != known.end()) return found->second;
    return {};
  };
  for (const BindingBlockRef& block : body.blocks)
    for (const Binding& b : block->bindings) known[relax::bound_var(b)] = source_of(relax::bound_value(b));
  RExpr result = body.body;
  if (const RVar* var = result.as<RVar>()) {
    for (const BindingBlockRef& block : body.blocks)
      for (const Binding& b : block->bindings)
        if (relax::bound_var(b) == ref(*var)) result = relax::bound_value(b);
  }
  const relax::Tuple* tuple = result.as<relax::Tuple>();
  if (!tuple) internal_error("transform_params does not return a tuple");
  std::vector<std::optional<size_t>> out;
  for (const RExpr& item : tuple->items) {
    const RVar* var = item.as<RVar>();
    auto found = var ? known.find(ref(*var)) : known.end();
    out.push_back(found == known.end() ? source_of(item) : found->second);
  }
  return out;
}

}  // namespace

Workload::Workload(const ModuleRef& phase3, const Program& program)
    : module_(phase3),
      has_extra_(program.attention.front().biased || program.attention.front().sinks),
      limits_(program.limits) {
  std::map<std::string, tir::PrimFuncRef> known;  // kernels of one name have one work
  for (size_t b = 0; b < program.attention.size(); ++b) {
    const AttentionShape& shape = program.attention[b];
    const Program::CacheKernels& names = program.cache_kernels[b];
    tir::PrimFuncRef &append = known[names.kv_append], &work = known[names.attention];
    if (!append) append = kv_append_work(shape);
    if (!work) work = attention_work(shape);
    attention_.push_back({names, append, work});
  }
  for (const auto& [name, func] : phase3->functions)
    if (const tir::PrimFuncRef copy = rules::reshape_in_one_copy(cast<tir::PrimFunc>(func)))
      module_ = with_function(std::move(module_), name, copy);
  for (const char* pass : {"LiftTransformParams", "DeadCodeElimination", "RewriteDataflowReshape"})
    module_ = passes::pass_named(pass).run(module_, {});
  const std::set<std::string> layers(program.layers.begin(), program.layers.end());
  for (const std::optional<size_t>& source : sources_after_lifting(module_, program.params.size())) {
    params_.push_back(source ? facts_of(program.params[*source]) : ParamFacts{});
    const std::string& name = source ? program.params[*source].name : std::string();
    const std::string layer = name.substr(0, name.rfind('.'));
    param_layer_.push_back(layers.contains(layer) ? layer : "");
  }
  for (const auto& [name, func] : module_->functions) {
    const tir::PrimFuncRef f = cast<tir::PrimFunc>(func);
    std::optional<rules::GroupedFunction> grouped = f ? rules::grouped_function(f) : std::nullopt;
    if (!grouped) continue;
    Attrs attrs = grouped->one->attrs;
    attrs[dataflow::kRowGroups] = int_imm(1);
    grouped->one = with(grouped->one, &tir::PrimFunc::attrs, std::move(attrs));
    grouped_.emplace(name, std::move(*grouped));
  }
}

std::vector<KernelCall> Workload::calls(const std::string& function, const StepSize& size) const {
  auto at = module_->functions.find(function);
  const Function* f = at == module_->functions.end() ? nullptr : at->second.as<Function>();
  if (!f) internal_error(text("the program has no function ", function));
  return Walk(*this, *f, size).run();
}

int64_t expected_experts(int64_t experts, int64_t per_token, int64_t tokens) {
  const double left_out = 1 - static_cast<double>(per_token) / static_cast<double>(experts);
  const double expected = static_cast<double>(experts) * (1 - std::pow(left_out, static_cast<double>(tokens)));
  return std::clamp(std::llround(expected), static_cast<long long>(per_token), static_cast<long long>(experts));
}

int64_t macs_of_step(const ModelConfig& config, const StepSize& size) {
  const AttentionConfig& a = config.attention;
  const ExpertsConfig& e = config.experts;
  const int64_t width = config.hidden_size, q = a.heads * a.head_dim, kv = a.kv_heads * a.head_dim;
  const int64_t matrices = config.mlp.gated ? 3 : 2;
  int64_t of_attention = width * (2 * q + 2 * kv);
  if (a.latent) {
    const LatentAttention& l = *a.latent;
    const int64_t queries = a.heads * (l.plain_dim + a.rope->dims);
    of_attention = l.query_rank > 0 ? (width + queries) * l.query_rank : width * queries;
    of_attention += width * a.head_dim + a.heads * (l.rank * (l.plain_dim + l.value_dim) + l.value_dim * width);
  }
  int64_t per_token = config.layers * of_attention;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    if (!config.has_experts(layer)) {
      per_token += matrices * width * config.mlp.units;
      continue;
    }
    per_token += matrices * width * (e.per_token * e.units + e.shared_units);
    per_token += width * (e.count + (e.shared_gate ? 1 : 0));
  }
  const int64_t attention = 2 * q;
  const int64_t earlier = size.context - size.tokens;  // positions before the step's first token
  int64_t scores = size.tokens * earlier + size.tokens * (size.tokens + 1) / 2, of_window = 0;
  for (int64_t t = 0; t < size.tokens; ++t) of_window += std::min(a.window, earlier + t + 1);
  int64_t windowed = a.window_layers.empty() ? config.layers : std::ssize(a.window_layers);
  if (a.window == 0) windowed = 0;
  scores = (config.layers - windowed) * scores + windowed * of_window;
  int64_t of_head = config.embedding_width() * config.vocab_size;
  if (config.embedding_size > 0) {
    per_token += config.embedding_size * width;
    of_head += config.embedding_size * width;
  }
  return size.tokens * per_token + attention * scores + of_head;
}

}  // namespace sator::llm
