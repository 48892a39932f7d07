#include "dataflow/programs/from_tir.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/programs/bound_statements.h"
#include "dataflow/programs/lets.h"
#include "dataflow/programs/packed_codes.h"
#include "dataflow/programs/row_groups.h"
#include "dataflow/programs/stated_mapping.h"
#include "dataflow/programs/tir_arithmetic.h"
#include "dataflow/programs/tir_places.h"
#include "dataflow/programs/tir_views.h"
#include "ir/builtins.h"
#include "ir/visit.h"

namespace sator::dataflow {

namespace {

/// Width of the numbers that are made from codes of weights: a code of less than 16 bits has an error of half its last one;
/// rounding it to the 11 bits of a float16 changes nothing that matters, and is how such kernels are built (MLC's q4f16,
/// AWQ). So weights have the width of f16 where they are stored so and where they are made. Of wider codes they have their dtype's.
constexpr int kMadeBits = 16;

/// Calls of what the program does not contain.
constexpr std::string_view kForeignCalls[] = {
    "tir.call_extern",
    "tir.call_pure_extern",
    "tir.call_llvm_intrin",
    "tir.call_llvm_pure_intrin",
    "tir.tvm_call_packed",
    "tir.tvm_call_cpacked",
    "tir.tvm_call_packed_lowered",
    "tir.tvm_call_cpacked_lowered",
};
/// Calls whose effects are no work on data.
constexpr std::string_view kControlCalls[] = {
    "tir.assume",
    "tir.ret",
    "tir.prefetch",
    "tir.tvm_storage_sync",
    "tir.tvm_stack_alloca",
    "tir.TVMBackendAllocWorkspace",
    "tir.TVMBackendFreeWorkspace",
    "tir.start_profile_intrinsic",
    "tir.end_profile_intrinsic",
};

class ProgramReader {
 public:
  ProgramReader(const tir::PrimFunc& stated, const FunctionFacts& facts, const Chip* chip)
      : facts_(facts), chip_(chip) {
    const tir::PrimFuncRef viewed = with_one_view_per_memory(stated, facts.name, out_.notes);
    const tir::PrimFunc& func = *viewed;
    out_.kernel.name = facts.name;
    out_.kernel.one_pass = int_attr(func.attrs, kOnePass).value_or(0) != 0;
    Scope scope;
    size_t number_of = 0;
    for (const auto& [param, buffer] : func.buffer_map) {
      params_[buffer] = number_of < facts.params.size() ? facts.params[number_of] : ParamFacts{};
      ++number_of;
    }
    auto give_sizes = [&](const NodeRef& in) {
      for (const VarRef& v : vars_in(in))
        if (auto at = facts.sizes.find(v->name); at != facts.sizes.end()) scope.values[v] = number(at->second);
    };
    for (const VarRef& param : func.params) give_sizes(param);
    for (const auto& [param, buffer] : stated.buffer_map) give_sizes(buffer);
    take_constants(func);
    sizes_ = scope.values;
    visit(func.body, scope);
    name_outputs();
    if (places_.has_looked_up()) note("rows that a loaded index picks are taken as distinct");
    for (size_t s = 0; s < out_.kernel.work.size(); ++s)
      if (product_of(out_.kernel.work[s])) out_.placements.push_back(placement_of(s));
    if (facts.sequences > 1) take_sequences_together();
  }

  TirWork take() { return std::move(out_); }

  /// The statements with loops that run side by side: their axes in one order, whatever the nest's.
  std::vector<BoundStatement> take_bound() {
    std::vector<BoundStatement> bound;
    for (size_t s = 0; s < around_.size(); ++s)
      if (auto b = stated_space(facts_.name, around_[s], std::move(out_.kernel.work[s].statement)))
        bound.push_back(std::move(*b));
    return bound;
  }

 private:
  void take_sequences_together() {
    for (const auto& placement : out_.placements)
      if (placement)
        refuse("its loops are bound for one sequence",
               "a function without bound loops, for several sequences",
               "cost one sequence, or leave the loops free");
    for (Work& work : out_.kernel.work) work = of_sequences(std::move(work), facts_.sequences);
  }

  /// A copy into a memory, and what of.
  struct Copy {
    std::string memory;
    BufferRef buffer;
    std::vector<VarRef> loops;
  };

  [[noreturn]] void refuse(std::string what, std::string needs, std::string hint) const {
    refuse_work(facts_.name, std::move(what), std::move(needs), std::move(hint));
  }

  /// Constants of the program lie outside, as weights do.
  void take_constants(const tir::PrimFunc& func) {
    std::set<VarRef> constants;
    walk(func.body, [&](const tir::AllocateConst& n) { constants.insert(n.data); });
    if (constants.empty()) return;
    walk(func.body, [&](const BufferLoad& load) {
      if (constants.contains(load.buffer->data)) params_[load.buffer] = {.kind = OperandKind::weight};
    });
  }

  void note(const std::string& words) {
    if (std::find(out_.notes.begin(), out_.notes.end(), words) == out_.notes.end()) out_.notes.push_back(words);
  }

  /// A statement in its scope, which is as before when it returns.
  void visit(const tir::Stmt& stmt, Scope& scope) {
    match(
        stmt,
        [&](const tir::Seq& n) {
          for (const tir::Stmt& s : n.stmts) visit(s, scope);
        },
        [&](const tir::For& n) { visit_loop(n, scope); },
        [&](const tir::BlockRealize& n) { visit_block(n, scope); },
        [&](const tir::Block& n) { visit(n.body, scope); },
        [&](const tir::BufferStore& n) { add_statement(n, scope); },
        [&](const tir::IfThenElse& n) {
          if (out_.kernel.one_pass && !n.else_case && masks(n, scope)) return;
          where(n.condition, true, scope, [&] { visit(n.then_case, scope); });
          if (n.else_case) where(n.condition, false, scope, [&] { visit(n.else_case, scope); });
        },
        [&](const tir::LetStmt& n) {
          note_calls(n.value, true);
          const size_t named = lets_.size();
          scope.bind(n.var, lets_.add(with_lets(n.value, scope), scope), scope.values);
          visit(n.body, scope);
          scope.unbind(n.var);
          lets_.leave(named);
        },
        [&](const tir::AttrStmt& n) {
          const auto* axis = n.node ? n.node.as<tir::ThreadAxis>() : nullptr;
          if (!axis) return visit(n.body, scope);
          tir::For loop;
          loop.var = axis->var;
          loop.min = int_imm(0, axis->var->dtype);
          loop.extent = n.value;
          loop.kind = tir::LoopKind::thread_binding;
          loop.thread = axis->tag;
          loop.body = n.body;
          visit_loop(loop, scope);
        },
        [&](const tir::AssertStmt& n) { visit(n.body, scope); },
        [&](const tir::Allocate& n) { visit(n.body, scope); },
        [&](const tir::AllocateConst& n) { visit(n.body, scope); },
        [&](const tir::DeclBuffer& n) {
          internal_.insert(n.buffer);
          visit(n.body, scope);
        },
        [&](const tir::Evaluate& n) { note_calls(n.value, false); },
        [&](const tir::While&) {
          refuse("the function has a while loop",
                 "loops with known extents",
                 "name a function without it that states the work");
        });
  }

  static bool asks_data(const NodeRef& n) {
    bool found = false;
    walk(n, [&](const BufferLoad&) { found = true; });
    return found;
  }

  /// The expression with the values of what let and blocks name, but for functions of the loops.
  Expr with_lets(const Expr& e, const Scope& scope) {
    return transform(substitute(e, scope.looked_up),
                     [&](const Let& n) -> Expr { return substitute(n.body, {{n.var, lets_.add(n.value, scope)}}); });
  }

  /// Says which calls do what nobody knows.
  ///   counted   whether the call and its arguments are counted otherwise
  void note_calls(const Expr& e, bool counted) {
    walk(e, [&](const Call& c) {
      const Builtin* builtin = find_builtin(c.op);
      const bool is_foreign = !builtin || std::ranges::count(kForeignCalls, c.op) > 0;
      if (!is_foreign && (builtin->effect != Effect::updates || std::ranges::count(kControlCalls, c.op) > 0)) return;
      const StringImm* symbol = is_foreign && !c.args.empty() ? c.args[0].as<StringImm>() : nullptr;
      const std::string name = symbol ? symbol->value : builtin ? std::string(builtin->script) : c.op;
      note(counted
               ? text("what ", name, " does is not known: a call counts as one operation on its arguments")
               : text("what ", name, " does is not known: neither its work nor what it reads and writes is counted"));
    });
  }

  /// A choice on indices in a program that runs in one pass: what it leaves out is masked. Whether it is one.
  bool masks(const tir::IfThenElse& n, Scope& scope) {
    const auto cases = cases_of(n.condition, true, scope.values);
    if (!cases || cases->size() != 1) return false;
    const size_t before = scope.only_where.size();
    for (const QuasiAffine& e : cases->front())
      if (largest(e * -1, scope.domain) > 0) scope.only_where.push_back(e);
    visit(n.then_case, scope);
    scope.only_where.resize(before);
    return true;
  }

  void visit_loop(const tir::For& n, Scope& scope) {
    auto lower = to_quasi_affine(n.min, scope.values), extent = to_quasi_affine(n.extent, scope.values);
    if (!lower || !extent)
      refuse(text("the extent of loop ", n.var->name, " does not follow from the sizes that are known"),
             "a value for every symbolic size of the loops",
             text("give the sizes in ", text(n.extent)));
    // A triangular loop runs to its largest extent, under a guard.
    const int64_t most = largest(*extent, scope.domain);
    if (most < 0 || most > kLargestExtent)
      refuse(text("loop ", n.var->name, " has extent ", most), "extents from 0 to 2^50", "check the sizes");
    Domain& domain = scope.domain;
    const int iterator = domain.rank();
    const size_t guards = domain.guards.size();
    scope.loops.push_back(
        {n.var, n.kind == tir::LoopKind::thread_binding ? n.thread : "", n.kind == tir::LoopKind::unrolled});
    domain.names.push_back(unique_name(n.var->name, domain.names));
    domain.lower.push_back(0);
    domain.extent.push_back(most);
    scope.values[n.var] = variable(iterator) + *lower;
    if (!extent->is_constant()) domain.guards.push_back(*extent - variable(iterator) - 1);
    visit(n.body, scope);
    scope.loops.pop_back();
    domain.names.pop_back();
    domain.lower.pop_back();
    domain.extent.pop_back();
    domain.guards.resize(guards);
    scope.unbind(n.var);
  }

  static std::string unique_name(std::string name, const std::vector<std::string>& taken) {
    std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
    std::string unique = name;
    for (int n = 1; std::find(taken.begin(), taken.end(), unique) != taken.end(); ++n) unique = text(name, "_", n);
    return unique;
  }

  void visit_block(const tir::BlockRealize& n, Scope& scope) {
    Attrs annotations = std::exchange(scope.annotations, n.block->annotations);
    for (size_t i = 0; i < n.values.size(); ++i)
      scope.bind(n.block->iter_vars[i]->var, with_lets(n.values[i], scope), scope.values);
    for (const BufferRef& b : n.block->alloc_buffers) internal_.insert(b);
    for (const tir::MatchBufferRef& m : n.block->match_buffers) places_.alias(m->buffer, m->source);
    std::string around = std::exchange(block_, n.block->name ? n.block->name->text : "");
    where(n.predicate, true, scope, [&] {
      if (n.block->init) visit_init(*n.block, scope);
      visit(n.block->body, scope);
    });
    block_ = std::move(around);
    for (size_t i = 0; i < n.values.size(); ++i) scope.unbind(n.block->iter_vars[i]->var);
    scope.annotations = std::move(annotations);
  }

  /// What running values begin with is a statement of the first iterations where it reads something; constants come with
  /// the writes that the body has.
  void visit_init(const tir::Block& block, Scope& scope) {
    if (!asks_data(block.init)) return;
    Expr first = bool_imm(true);
    for (const tir::IterVarRef& v : block.iter_vars)
      if (v->kind == tir::IterKind::reduce) first = logical_and(first, eq(v->var, v->dom->min));
    where(first, true, scope, [&] { visit(block.init, scope); });
  }

  /// Calls `then` with the scope cut to the points where the condition comes out so: part by part where it is one of indices;
  /// where it asks data, with all points that the rest of it leaves, an upper bound. What it asks is read for each store.
  template <class Then>
  void where(const Expr& stated, bool outcome, Scope& scope, Then then) {
    const size_t named = lets_.size();
    const Expr condition = with_lets(stated, scope);
    note_calls(condition, true);
    in_cases(condition, outcome, scope, then);
    lets_.leave(named);
  }
  template <class Then>
  void in_cases(const Expr& condition, bool outcome, Scope& scope, Then then) {
    if (auto cases = cases_of(condition, outcome, scope.values)) {
      for (const Guards& guards : *cases)
        under(guards, scope, [&] {
          if (!certainly_empty(scope.domain.guards, scope.domain)) then();
        });
      return;
    }
    note("where a condition asks data, both sides are counted in full: an upper bound");
    Guards known;
    if (outcome) to_guards(condition, scope.values, known);
    const size_t before = scope.conditions.size();
    if (asks_data(condition)) scope.conditions.push_back(condition);
    under(known, scope, then);
    scope.conditions.resize(before);
  }

  template <class Then>
  static void under(const Guards& guards, Scope& scope, Then then) {
    Guards& all = scope.domain.guards;
    const size_t before = all.size();
    all.insert(all.end(), guards.begin(), guards.end());
    then();
    all.resize(before);
  }

  /// A store, as one statement per arm of its choices on indices; an arm that leaves the element as it is does nothing.
  /// A padded tensor is the tensor, with zeros that do not lie outside of the chip (rules/chip.h).
  void add_statement(const tir::BufferStore& stated, Scope& scope) {
    if (const int lanes = lanes_of_ramps(stated); lanes > 1) return add_vector(stated, lanes, scope);
    const size_t named = lets_.size();
    add_element(stated, scope);
    lets_.leave(named);
  }

  /// Elements that the store of a vector writes, side by side or strided; 1 where it writes one.
  static int lanes_of_ramps(const tir::BufferStore& store) {
    int lanes = 1;
    for (const Expr& index : store.indices)
      walk(index, [&](const Ramp& r) { lanes = r.base->dtype.lanes == 1 ? r.dtype.lanes : 1; });
    return lanes;
  }

  /// A vector's elements are a loop's.
  void add_vector(const tir::BufferStore& store, int lanes, Scope& scope) {
    tir::For loop;
    loop.var = make_var("lane", i32);
    loop.min = int_imm(0, i32);
    loop.extent = int_imm(lanes, i32);
    loop.kind = tir::LoopKind::vectorized;
    loop.body = transform(ref(store),
                          [&](const Ramp& r) -> Expr { return r.base + r.stride * cast_to(r.base->dtype, loop.var); });
    visit_loop(loop, scope);
  }

  void add_element(const tir::BufferStore& stated, Scope& scope) {
    Ref<const tir::BufferStore> read = ref(stated);
    if (Expr value = with_lets(stated.value, scope); value != stated.value || !scope.looked_up.empty()) {
      std::vector<Expr> indices;
      for (const Expr& i : stated.indices) indices.push_back(with_lets(i, scope));
      read = make<tir::BufferStore>(stated.buffer, value, std::move(indices));
    }
    const tir::BufferStore& n = *read;
    note_calls(n.value, true);
    if (scope.annotations.contains(rules::kPadding)) {
      const bool in = string_attr(scope.annotations, rules::kPadding) == "in";
      walk(n.value, [&](const BufferLoad& load) {
        const BufferRef &padded = in ? n.buffer : load.buffer, &own = in ? load.buffer : n.buffer;
        same_[padded] = padded_[padded] = own;
        return false;
      });
      return;
    }
    bool undecided = false;
    const std::vector<Arm> arms = arms_of(n.value, scope.values, scope.domain, undecided);
    if (undecided) note("where a choice asks data, both sides are counted in full: an upper bound");
    for (const Arm& arm : arms) {
      const bool chosen = arm.value != n.value;
      Ref<const tir::BufferStore> store = chosen ? with(n, &tir::BufferStore::value, arm.value) : ref(n);
      if (chosen ? changes_nothing(*store) : scope.conditions.empty() && is_copy(n, scope)) continue;
      under(arm.guards, scope, [&] { add_arm(*store, scope); });
    }
  }

  void add_arm(const tir::BufferStore& n, const Scope& scope) {
    // Reads of data; looked-up indices are read too, but are no operands.
    std::vector<Place> reads, asked, lookups;
    Place target = places_.of(n.buffer, n.indices, scope, &lookups);
    bool reduces = false;
    auto collect = [&](const Expr& e, std::vector<Place>& places) {
      walk(e, [&](const BufferLoad& load) {
        Place p = places_.of(load.buffer, load.indices, scope, &lookups);
        if (p.buffer == target.buffer && p.at == target.at)
          reduces = true;  // the running value
        else
          places.push_back(std::move(p));
        return false;
      });
    };
    collect(n.value, reads);
    for (const Expr& c : scope.conditions) collect(c, asked);
    Work work;
    work.statement.name = statement_name(n);
    work.statement.domain = scope.domain;
    work.only_where = scope.only_where;
    for (const std::vector<Place>* places : {&reads, &asked, &lookups})
      for (const Place& p : *places) add_access(work, Role::read, p);
    add_access(work, Role::write, target);
    NamedValues named = lets_.in(scope);
    const Arithmetic arithmetic = arithmetic_of(n, scope.values, named);
    work.multiply_accumulate = arithmetic.multiply_accumulate;
    work.vector_ops = arithmetic.operations;
    work.vector_work = role_of(n, reads, reduces);
    if (converts_stored(n, reads, reduces, arithmetic.operations)) {
      // How numbers are stored, and no arithmetic: what is made keeps their width, and is made on the way to its product.
      work.vector_ops = 0;
      work.vector_work = VectorWork::dequantize;
      converted_.emplace(n.buffer, root_of(reads[0].buffer));
    } else if (work.vector_work == VectorWork::dequantize && internal_.contains(n.buffer)) {
      const bool is_wide = std::ranges::any_of(reads, [&](const Place& p) {
        const auto code = params_.find(root_of(p.buffer));
        return code != params_.end() && code->second.kind == OperandKind::weight && code->second.bits >= kMadeBits;
      });
      made_.emplace(n.buffer, is_wide ? n.buffer->dtype.bits : kMadeBits);
    }
    if (work.multiply_accumulate && (is_scale(arithmetic.first) || is_scale(arithmetic.second))) {
      // Sums of groups times their scales: no product of tensors, but what turns the array's sums into results.
      work.multiply_accumulate = false;
      work.vector_ops += 2;
      work.vector_work = VectorWork::rescale;
    }
    for (const Expr& c : scope.conditions) work.vector_ops += operations_of(c, scope.values, named);
    lets_.note_counted(named, scope);
    out_.kernel.work.push_back(std::move(work));
    around_.push_back({scope.loops, scope.annotations});
  }

  bool is_scale(const Expr& factor) const {
    const BufferLoad* load = factor.as<BufferLoad>();
    auto facts = load ? params_.find(root_of(load->buffer)) : params_.end();
    return facts != params_.end() && facts->second.kind == OperandKind::scale;
  }

  std::string statement_name(const tir::BufferStore& n) {
    std::string name = block_.empty() ? n.buffer->name : block_;
    std::vector<std::string> taken;
    for (const Work& w : out_.kernel.work) taken.push_back(w.statement.name);
    return unique_name(name.empty() ? "S" : name, taken);
  }

  /// A store of one element of a buffer into the same place of an internal one, or back: tensors move, nothing is computed.
  bool is_copy(const tir::BufferStore& n, const Scope& scope) {
    const BufferLoad* load = n.value.as<BufferLoad>();
    if (!load) return false;
    Place target = places_.of(n.buffer, n.indices, scope, nullptr);
    Place source = places_.of(load->buffer, load->indices, scope, nullptr);
    if (!(source.at == target.at) || source.buffer == target.buffer) return false;
    const bool in = internal_.contains(target.buffer) && target.buffer->scope() != source.buffer->scope();
    const bool back = internal_.contains(source.buffer) && target.buffer->scope() != source.buffer->scope();
    if (!in && !back) return false;
    std::vector<VarRef> around;
    for (const Scope::Loop& l : scope.loops) around.push_back(l.var);
    const BufferRef cached = in ? target.buffer : source.buffer;
    const BufferRef of = root_of(in ? source.buffer : target.buffer);
    // A buffer that holds parts of two tensors in turn is a tensor of its own, and moving it is a statement.
    if (auto known = same_.find(cached); known != same_.end() && root_of(cached) != of) return false;
    copies_.push_back({cached->scope(), of, around});
    if (of != cached) same_[cached] = of;  // a copy of a copy of itself is itself
    return true;
  }

  BufferRef root_of(BufferRef buffer) const {
    for (auto at = same_.find(buffer); at != same_.end(); at = same_.find(buffer)) buffer = at->second;
    return buffer;
  }

  void add_access(Work& work, Role role, const Place& p) {
    const std::string tensor = tensor_name(p.buffer);
    for (Access& known : work.statement.accesses) {
      if (known.tensor != tensor || known.role != role || known.references[0].size() != p.at.size()) continue;
      bool shifted = true;
      for (size_t d = 0; d < p.at.size(); ++d) shifted &= (p.at[d] - known.references[0][d]).is_constant();
      if (!shifted) continue;
      if (std::find(known.references.begin(), known.references.end(), p.at) == known.references.end())
        known.references.push_back(p.at);
      return;
    }
    work.statement.accesses.push_back({tensor, role, {p.at}});
    work.operands.push_back({});
    buffers_.emplace(tensor, p.buffer);
  }

  std::string tensor_name(const BufferRef& buffer) {
    auto [at, fresh] = names_.try_emplace(buffer, "");
    if (fresh) {
      std::vector<std::string> taken;
      for (const auto& [b, n] : names_) taken.push_back(n);
      at->second = unique_name(buffer->name.empty() ? "T" : buffer->name, taken);
    }
    return at->second;
  }

  /// What a statement does, told by what goes in and out.
  VectorWork role_of(const tir::BufferStore& n, const std::vector<Place>& reads, bool reduces) const {
    if (reduces) return VectorWork::reduce;
    bool codes = false, constants = !reads.empty(), sums = false;
    for (const Place& p : reads) {
      auto facts = params_.find(root_of(p.buffer));
      const bool constant = facts != params_.end() &&
                            (facts->second.kind == OperandKind::weight || facts->second.kind == OperandKind::scale);
      constants &= constant;
      codes |= p.buffer->dtype.is_integer();
      sums |= p.buffer->dtype.is_int() && p.buffer->dtype.bits == 32 && internal_.contains(p.buffer);
    }
    const DType out = n.buffer->dtype;
    if (codes && constants && out.is_float()) return VectorWork::dequantize;
    if (sums && out.is_float()) return VectorWork::rescale;
    if (!codes && out.is_integer() && out.bits <= 8) return VectorWork::quantize;
    return VectorWork::elementwise;
  }

  /// Whether the store only takes codes out of their packed words, or widens stored floats, into an internal tensor.
  bool converts_stored(const tir::BufferStore& n, const std::vector<Place>& reads, bool reduces,
                       double operations) const {
    if (reduces || reads.empty() || !internal_.contains(n.buffer)) return false;
    const BufferRef source = root_of(reads[0].buffer);
    for (const Place& p : reads)
      if (root_of(p.buffer) != source) return false;
    auto facts = params_.find(source);
    if (facts == params_.end()) return false;
    const DType in = source->dtype, out = n.buffer->dtype;
    if (in.is_float()) return out.is_float() && in.bits < out.bits && operations == 0;
    return facts->second.kind == OperandKind::weight && out.is_integer() && out.bits <= 8 && is_packed(source);
  }

  /// Whether an element of the parameter holds several codes.
  bool is_packed(const BufferRef& buffer) const {
    auto facts = params_.find(buffer);
    return facts != params_.end() && facts->second.bits > 0 && buffer->dtype.is_integer() &&
           facts->second.bits < buffer->dtype.bits;
  }

  /// Once all copies are known: tensors by the names of what they are copies of, with their widths and kinds.
  void name_outputs() {
    for (Work& work : out_.kernel.work)
      for (size_t a = 0; a < work.operands.size(); ++a) {
        Access& access = work.statement.accesses[a];
        const BufferRef accessed = buffers_.at(access.tensor), buffer = root_of(accessed);
        access.tensor = tensor_name(buffer);
        Operand& operand = work.operands[a];
        if (const auto own = padded_.find(accessed); own != padded_.end())
          operand.lies_outside_where = within(access, *own->second);
        operand.bits = static_cast<int>(buffer->dtype.bytes() * 8);
        operand.is_float = buffer->dtype.is_float();
        auto facts = params_.find(buffer);
        operand.internal = facts == params_.end();
        if (auto from = converted_.find(buffer); from != converted_.end()) {
          const ParamFacts& stored = params_.at(from->second);
          operand.kind = stored.kind;
          operand.bits = stored.bits > 0 ? stored.bits : static_cast<int>(from->second->dtype.bits);
        } else if (const auto made = made_.find(buffer); made != made_.end()) {
          operand.kind = OperandKind::weight;
          operand.bits = std::min(operand.bits, made->second);
        }
        if (facts == params_.end()) continue;
        operand.kind = facts->second.kind;
        if (facts->second.bits == 0) continue;
        if (!is_packed(buffer)) {
          operand.bits = facts->second.bits;
        } else if (unpack(access, facts->second.bits, operand.bits)) {
          operand.bits = facts->second.bits;
        }
      }
    for (Work& work : out_.kernel.work) leave_out_repeated(work);
  }

  /// Where the only reference of an access is within the shape of a buffer; empty where it is always, or has no known shape.
  std::vector<QuasiAffine> within(const Access& access, const Buffer& own) const {
    std::vector<QuasiAffine> guards;
    if (access.references.size() != 1 || access.references[0].size() != own.shape.size()) return {};
    for (size_t d = 0; d < own.shape.size(); ++d) {
      const std::optional<QuasiAffine> extent = to_quasi_affine(own.shape[d], sizes_);
      if (!extent || !extent->is_constant()) return {};
      guards.push_back(*extent - access.references[0][d] - 1);
    }
    return guards;
  }

  /// The two words of a code that crosses them are one access to the code.
  static void leave_out_repeated(Work& work) {
    std::vector<Access>& all = work.statement.accesses;
    for (size_t a = all.size(); a-- > 1;) {
      const bool repeated =
          std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(a), [&](const Access& b) {
            return b.tensor == all[a].tensor && b.role == all[a].role && b.references == all[a].references;
          });
      if (!repeated) continue;
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(a));
      work.operands.erase(work.operands.begin() + static_cast<std::ptrdiff_t>(a));
    }
  }

  std::optional<Placement> placement_of(size_t statement) {
    if (!chip_) return {};
    std::vector<CopyIn> copies;
    for (const Copy& c : copies_) copies.push_back({c.memory, tensor_name(root_of(c.buffer)), c.loops});
    return stated_placement(facts_.name, around_[statement], out_.kernel.work[statement], copies, *chip_);
  }

  const FunctionFacts& facts_;
  const Chip* chip_;
  TirWork out_;
  std::vector<Around> around_;  // per statement
  std::map<BufferRef, ParamFacts> params_;
  std::set<BufferRef> internal_;
  Places places_{facts_.name};
  VarValues sizes_;
  std::map<BufferRef, BufferRef> same_;       // copies: what each is a copy of
  std::map<BufferRef, BufferRef> padded_;     // those that are filled up to whole tiles: the tensors themselves
  std::map<BufferRef, BufferRef> converted_;  // internal tensors: the parameters whose numbers they hold
  std::map<BufferRef, int> made_;             // internal tensors: weights made from codes and scales, and their width
  std::map<BufferRef, std::string> names_;
  std::map<std::string, BufferRef> buffers_;
  std::vector<Copy> copies_;
  Lets lets_;  // around what is visited
  std::string block_;
};

}  // namespace

std::vector<BoundStatement> bound_statements(const tir::PrimFunc& func, const FunctionFacts& facts) {
  return ProgramReader(func, facts, nullptr).take_bound();
}

TirWork work_of(const tir::PrimFunc& func, const FunctionFacts& facts, const Chip* chip) {
  if (func.attrs.contains(kRowGroups)) return work_of_groups(func, facts, chip);
  return ProgramReader(func, facts, chip).take();
}

}  // namespace sator::dataflow
