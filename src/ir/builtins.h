// What a Call may call: one row per builtin. The name of a row is the Call's op.
#pragma once

#include <span>
#include <string_view>

#include "ir/expr.h"

namespace sator {

/// What a call does beside giving a value: a pure one may be moved, merged and dropped; one that reads must stay between
/// the writes around it; one that updates stays where it is.
enum class Effect : uint8_t { pure, reads, updates };

/// How the dtype of a call follows. `written_first` and `written_last`: it does not; TVMScript writes it as the first or
/// last argument.
enum class ResultRule : uint8_t { like_first, like_second, fixed, written_first, written_last };

struct Builtin {
  std::string_view op;      ///< "tir.exp"
  std::string_view script;  ///< its name after `T.`
  int min_args = 0;
  int max_args = 0;  ///< -1: any number
  Effect effect = Effect::pure;
  ResultRule rule = ResultRule::like_first;
  DType dtype = DType::Void();  ///< of a `fixed` rule; bool takes the lanes of the first argument
  bool is_lanewise = false;     ///< on vectors it computes each lane alone
};

std::span<const Builtin> builtins();
/// The row of an op ("tir.exp"), or null.
const Builtin* find_builtin(std::string_view op);
/// The row with this name in scripts ("exp", also older ones), or null.
const Builtin* find_builtin_by_script(std::string_view name);

/// Whether evaluating the expression has no effect and depends on nothing but its variables: no loads, no impure calls.
bool is_pure(const Expr& e);
/// Whether evaluating the expression may change memory, synchronise or call something unknown. Loads do not.
bool has_side_effect(const Expr& e);

/// What call_llvm_pure_intrin or call_llvm_intrin of an intrinsic of LLVM's is as a builtin of ours: "llvm.fabs" and "llvm.fabs.v8f32"
/// tir.fabs, the dot products of AVX-512's VNNI tir.dot4; null for another intrinsic. Older scripts say behind the name of how many
/// arguments the signature is made.
Expr builtin_of_llvm(const Call& call);
/// The arguments of such a call without its name and that number.
std::vector<Expr> arguments_of_llvm(const Call& call, size_t count);

// Calls as their rows describe them: exp(x) is call("tir.exp", {x}) with x's dtype.
/// Errors: no such builtin; a wrong number of arguments; a rule that does not give the dtype.
Expr call_builtin(std::string_view op, std::vector<Expr> args);
/// The lanes of a vector load where `predicate`, a bool of as many lanes, holds; the others are 0 and not read.
Expr predicated_load(const Expr& load, const Expr& predicate);
/// The load and the predicate of such an expression; null ones for another.
std::pair<const BufferLoad*, Expr> as_predicated_load(const Call& call);
/// Only the arguments whose condition holds are evaluated; constants are folded.
Expr if_then_else(Expr condition, Expr true_value, Expr false_value);

}  // namespace sator
