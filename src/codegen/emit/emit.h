// The state of one function that is being translated to LLVM IR, and the parts of the translation.
//
// Values: intN -> iN, bool -> i1 (one byte in memory), float16 -> half, bfloat16 -> i16 holding its bits, lanes ->
// vectors of exactly that many lanes. Arithmetic on half and bfloat16 happens in f32 and is rounded after each operation.
//
// What a program computes is the same at every instruction-set level, to the bit: nothing is reassociated, a sum with a
// product as its operand is one fused multiply-add (see arithmetic.cc), and elementary functions are polynomials of ours.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/builtins.h"
#include "target/cpu.h"
#include "tir/nodes.h"

namespace sator::codegen {

/// The memory behind a data pointer.
struct Memory {
  llvm::Value* base = nullptr;
  llvm::Align align{1};           ///< of `base`
  bool is_stack = false;          ///< ours alone: lanes that a mask switches off may be loaded and stored back
  llvm::MDNode* scope = nullptr;  ///< alias scope; null where LLVM sees by itself
};

/// Which memories of a kernel cannot overlap, as LLVM's alias scopes.
class AliasScopes {
 public:
  AliasScopes(llvm::LLVMContext& llvm, const std::string& kernel);
  llvm::MDNode* add(const std::string& name);
  /// Marks a load or store of `memory`: in its own scope, in none of the others.
  void mark(llvm::Instruction* access, const Memory& memory);

 private:
  llvm::LLVMContext& llvm_;
  llvm::MDBuilder builder_;
  llvm::MDNode* domain_;
  std::vector<llvm::MDNode*> scopes_;
  std::unordered_map<llvm::MDNode*, std::pair<llvm::MDNode*, llvm::MDNode*>> lists_;  // scope -> (own, others)
};

struct Emit {
  llvm::Module& module;
  llvm::LLVMContext& llvm;
  const target::CpuLevel& level;
  AliasScopes& aliases;
  llvm::IRBuilder<> b;
  llvm::Function* function = nullptr;
  llvm::Value* ctx = nullptr;  ///< SatorContext*
  bool in_chunk = false;       ///< inside a parallel loop: further ones run serially
  std::unordered_map<const Var*, llvm::Value*> values;
  std::unordered_map<const Var*, llvm::Value*> wide_values;  ///< 32-bit loop variables as 64-bit ones
  std::unordered_map<const Var*, Memory> memory;
  std::unordered_map<const Var*, llvm::MDNode*> scope_of;  ///< alias scopes given before the walk
  std::vector<llvm::Value*> pushed;                        ///< workspace to pop when the function fails
  std::vector<const Var*> streaming;                       ///< buffers whose stores bypass the caches
  llvm::Value* mask = nullptr;                             ///< the lanes that run; null: all
  bool in_index = false;                                   ///< index arithmetic does not wrap
  std::unordered_set<const Var*> data;                     ///< variables that name what memory holds
  bool trusts_indices = false;    ///< indices from memory are the runtime's own: their arithmetic does not wrap
  bool casts_are_finite = false;  ///< what is cast to float16 is finite there
  int64_t tile_step_bytes = 0;    ///< bytes of k that the function's matrix tiles are configured for; 0: it uses none
  std::vector<Expr> loaded;       ///< elements that were loaded by conditions around the present place

  Emit(llvm::Module& module, const target::CpuLevel& level, AliasScopes& aliases)
      : module(module), llvm(module.getContext()), level(level), aliases(aliases), b(module.getContext()) {}
};

/// The register type of a dtype.
llvm::Type* type_of(Emit& e, DType dtype);
/// The type of one element in memory.
llvm::Type* memory_type(Emit& e, DType element);
/// `value` in every lane (or itself for one lane).
llvm::Value* splat(Emit& e, llvm::Value* value, int lanes);
/// A number in every lane of a dtype.
llvm::Value* number(Emit& e, double value, DType dtype);
llvm::Value* integer(Emit& e, int64_t value, DType dtype);

// expr.cc: an expression's value.
llvm::Value* value_of(Emit& e, const Expr& expr);
/// One of two values, of which only the chosen one is evaluated (in each lane).
llvm::Value* emit_choice(Emit& e, const Expr& by, const Expr& true_value, const Expr& false_value);
/// Whether the arithmetic of indices of a dtype is taken not to overflow; narrower and unsigned numbers wrap around.
inline bool does_not_wrap(DType dtype) { return dtype.is_int() && dtype.bits >= 32; }

/// Whether an expression depends on what memory holds, and may wrap around therefore.
bool has_data(const Emit& e, const Expr& expr);
/// An index: its arithmetic does not overflow, but where it has data (has_data), which wraps as the check of the index has seen it wrap.
/// `index_of` keeps its dtype, `wide_index_of` gives a scalar one in 64 bits.
llvm::Value* index_of(Emit& e, const Expr& expr);
llvm::Value* wide_index_of(Emit& e, const Expr& expr);

// arithmetic.cc
llvm::Value* emit_add(Emit& e, const Add& n);
llvm::Value* emit_sub(Emit& e, const Sub& n);
llvm::Value* emit_cast(Emit& e, const Cast& n);
llvm::Value* emit_mul(Emit& e, const Mul& n);
llvm::Value* emit_division(Emit& e, const Expr& a, const Expr& b, bool floor, bool remainder);
llvm::Value* emit_compare(Emit& e, const Expr& a, const Expr& b, llvm::CmpInst::Predicate for_signed,
                          llvm::CmpInst::Predicate for_unsigned, llvm::CmpInst::Predicate for_float);
llvm::Value* emit_min_max(Emit& e, const Expr& a, const Expr& b, bool is_max);

// convert.cc: one dtype to another, same lanes.
llvm::Value* convert(Emit& e, llvm::Value* value, DType from, DType to);
/// f16 and bf16 as f32; everything else as it is.
llvm::Value* widened(Emit& e, llvm::Value* value, DType dtype);
DType widened(DType dtype);

// memory.cc
// Which lanes run, under conditions that differ between lanes. Lanes are those of nested vectorized loops, the outermost first:
// a mask, a condition or a value with fewer lanes than another belongs to the loops further out, and one of its lanes to
// several of the other's in a row. Below a Broadcast or a Shuffle it is another order, told by mask_of_operand.
/// The mask for `lanes` lanes; null: none. A lane runs where one of those that it stands for does.
llvm::Value* mask_for(Emit& e, int lanes);
/// The mask for an operand of `lanes` lanes, of which the result's lane i is lane picked[i] - first; null: none. A lane
/// runs where one of those that it gives does.
llvm::Value* mask_of_operand(Emit& e, const std::vector<int>& picked, int lanes, int first = 0);
/// The mask under a condition of `lanes` lanes, at least as wide as the present one.
llvm::Value* mask_where(Emit& e, llvm::Value* condition, int lanes);
llvm::Value* emit_load(Emit& e, const BufferLoad& n);
void emit_store(Emit& e, const tir::BufferStore& n);
/// Where buffer[indices] begins; it may lie outside of the buffer.
llvm::Value* address_of(Emit& e, const BufferLoad& n);
/// Asks for the cache line of a place. `locality` 0 (stream) to 3 (keep).
void emit_prefetch(Emit& e, const BufferLoad& n, int write, int locality);

// builtins.cc
llvm::Value* emit_call(Emit& e, const Call& n);
// tiles.cc: gives matrix tiles back wherever the function, which is written, returns, if it uses any.
void release_tiles(Emit& e);

// stmt.cc, parallel.cc, allocate.cc
void run(Emit& e, const tir::Stmt& stmt);
/// for i in [begin, end): body(i), in 64 bits.
void emit_loop(Emit& e, llvm::Value* begin, llvm::Value* end, FunctionRef<void(llvm::Value*)> body,
               llvm::MDNode* hints = nullptr);
/// The loop's variable, whose value is at hand in 64 bits.
void set_loop_value(Emit& e, const Var& var, llvm::Value* wide);
void emit_parallel(Emit& e, const tir::For& loop);
void emit_allocate(Emit& e, const tir::Allocate& n);
void emit_allocate_const(Emit& e, const tir::AllocateConst& n);
/// Ends the function with `status` where `failed` holds; scratch memory is given back.
void return_if(Emit& e, llvm::Value* failed, llvm::Value* status);
/// Records the message, then ends the function with status 1, where `failed` holds.
void fail_if(Emit& e, llvm::Value* failed, const std::string& message);
/// Calls a function pointer of the context; `field` is its place in SatorContext.
llvm::Value* call_context(Emit& e, unsigned field, llvm::FunctionType* type, std::vector<llvm::Value*> args);
llvm::StructType* context_type(llvm::LLVMContext& llvm);

/// Refuses what a user can write and the translation does not cover.
[[noreturn]] void unsupported(const std::string& what);
/// Errors: the dtype is that of scalable vectors.
void need_fixed_lanes(DType d);

/// The attributes that make LLVM write code of the level.
void set_level(llvm::Function* function, const target::CpuLevel& level);

}  // namespace sator::codegen
