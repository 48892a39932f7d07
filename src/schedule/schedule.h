// A schedule: a module, rewritten step by step by primitives that keep its meaning, and the trace of these steps.
#pragma once

#include <random>

#include "arith/analyzer.h"
#include "arith/iter_map.h"
#include "schedule/findings.h"
#include "schedule/sites.h"
#include "schedule/trace.h"

namespace sator::schedule {

class Schedule {
 public:
  /// Works on `main`, else on the only PrimFunc; else on nothing until `work_on`. A step whose loops and blocks are of another
  /// function is about that one.
  explicit Schedule(ModuleRef module);
  /// What sampling steps choose from now on follows from this number; without it, from one of the system's.
  void seed(uint64_t seed) { random_.emplace(seed); }
  /// A module of this one function.
  explicit Schedule(tir::PrimFuncRef func, const std::string& name = "main");

  const ModuleRef& module() const { return module_; }
  /// Where blocks are looked up from now on, unless a step says which function it means. Errors: the module has no such PrimFunc.
  void work_on(const std::string& name);
  const std::string& worked_on() const { return worked_on_; }
  /// The function of the step at hand, or of the last one.
  const std::string& func_name() const { return func_name_; }
  tir::PrimFuncRef func() const;
  /// The next reading is about that function. Errors: as of work_on; an empty name is no error before it is read.
  void turn_to(const std::string& name);
  /// ... about the function that has a loop or a block of these.
  void turn_to_function_of(const List& handles);
  const Trace& trace() const { return trace_; }
  Trace& trace() { return trace_; }

  // ---- Reading ----
  const Sites& sites() const;
  /// The site of a handle. Errors: the program has no such loop or block (any more): says which step consumed it.
  int site(const Loop& loop) const;
  int site(const BlockHandle& block) const;
  const tir::For& get(const Loop& loop) const;
  const tir::Block& get(const BlockHandle& block) const;
  const tir::BlockRealize& realize(const BlockHandle& block) const;
  /// Block by its unique name. Errors: no or several blocks have it; lists the nearest names.
  BlockHandle block_named(const std::string& name) const;
  /// Tells the analyzer the ranges of all loops and iterators at and above `site`.
  void bind_ranges(arith::Analyzer& analyzer, int site) const;
  /// Adds the nodes that bind_ranges reads.
  void add_ranges(Findings<arith::IterMap>::Nodes& read, int site) const;
  /// The maps of blocks' bindings, kept for analyses.
  Findings<arith::IterMap>& binding_maps() const { return binding_maps_; }

  // ---- Choosing (for primitives that sample) ----
  /// Uniform over 0 .. n - 1, and over [0, 1).
  int64_t random_below(int64_t n) { return static_cast<int64_t>(random_bits() % static_cast<uint64_t>(n)); }
  double random_unit() { return static_cast<double>(random_bits() >> 11) * 0x1p-53; }
  /// A variable that stands for a chosen number in the arguments of later steps.
  Expr sampled(int64_t value);
  /// Puts chosen numbers in the place of their variables.
  void evaluate(Expr& e) const;
  void evaluate(Value& value) const;
  template <class T>
  void evaluate(T&) const {}
  template <class T>
  void evaluate(std::optional<T>& v) const {
    if (v) evaluate(*v);
  }
  template <class T>
  void evaluate(std::vector<T>& list) const {
    for (T& item : list) evaluate(item);
  }

  // ---- Rewriting (for primitives) ----
  /// Puts `replacement` in the place of the statement `old` (by identity).
  void replace(const tir::Stmt& old, tir::Stmt replacement);
  void replace(const tir::For& old, tir::Stmt replacement) { replace(tir::Stmt(&old), std::move(replacement)); }
  void replace_body(tir::Stmt body);
  void replace_func(tir::PrimFuncRef func);
  /// A block that goes on under another name: its old handles lead to the new name object.
  void forward(const BlockHandle& old, BlockHandle renamed);
  /// Follows renamed blocks; other arguments stay as they are.
  void resolve(BlockHandle& block) const;
  void resolve(Value& value) const;
  template <class T>
  void resolve(T&) const {}
  template <class T>
  void resolve(std::vector<T>& list) const {
    for (T& item : list) resolve(item);
  }
  /// Fails with the reason, the program and the place in the work, if there is a reason.
  void require(std::optional<Reason> reason) const;
  [[noreturn]] void fail(Reason reason) const;

  // ---- Steps (called by Primitive) ----
  /// A primitive begins; nested ones are not recorded.
  void begin_step(std::string name, List inputs);
  /// What an argument that was left out stands for in the step that runs, for the trace.
  void state_input(size_t index, Value value);
  /// Errors: iterations that run at the same time would now overwrite each other's results.
  void end_step(Value output);
  /// The program is again what it was before the step.
  void abandon_step();
  /// Throws the error, with the step's name if nothing says yet where it came from.
  [[noreturn]] void abandon_step(const Error& error);

 private:
  void need_function(const std::string& name) const;
  /// Errors: loops whose iterations run at the same time had memory of their own each, and share it since the open step.
  void require_concurrent_loops() const;
  uint64_t random_bits() { return (random_ ? *random_ : random_.emplace(std::random_device{}()))(); }

  ModuleRef module_;
  std::string func_name_, worked_on_;
  mutable std::shared_ptr<const Sites> sites_;
  mutable tir::PrimFuncRef sites_of_;
  mutable Findings<arith::IterMap> binding_maps_;
  Trace trace_;
  std::vector<Step> open_steps_;
  /// What the outermost open step found.
  struct Before {
    ModuleRef module;
    std::string func_name;
    std::shared_ptr<const Sites> sites;  ///< what the step may consume
    std::unordered_map<BlockHandle, BlockHandle> forwarded;
  };
  Before before_;
  std::unordered_map<BlockHandle, BlockHandle> forwarded_;
  VarMap sampled_;                         ///< variables of chosen numbers
  std::optional<std::mt19937_64> random_;  ///< seeded when it is first asked: most schedules choose nothing
  PooledMap<const NodeBase*, std::shared_ptr<const Step>> consumed_by_;  ///< handle -> the step that consumed it
};

/// Why a handle's program cannot be ...; queries return it, `Schedule::require` turns it into an error.
using MaybeReason = std::optional<Reason>;

}  // namespace sator::schedule
