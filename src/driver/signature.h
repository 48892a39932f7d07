// What a function of a program takes and gives, as files and numbers can state it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "arith/eval.h"
#include "ir/module.h"
#include "runtime/value.h"

namespace sator::driver {

/// A parameter of a function; of a tuple each part by itself, called `params[0]`.
struct Parameter {
  enum class Kind : uint8_t { tensor, scalar, shape };
  std::string name;
  Kind kind = Kind::tensor;
  DType dtype;                               ///< void: any
  std::optional<std::vector<Expr>> extents;  ///< of a tensor or a shape; nothing: not stated
  int rank = -1;                             ///< where extents are not stated; -1: any
  VarRef variable;                           ///< that a scalar's value binds; null: none
  bool is_read = true;
  bool is_written = false;  ///< by a tensor program: it is a result
};

/// A function from outside.
struct Signature {
  std::string function;
  bool is_tensor_program = false;  ///< results are parameters; else they are returned
  std::vector<Parameter> params;
  std::map<std::string, int64_t> bounds;  ///< the largest values of symbolic sizes that the function was built for
};

/// Of a tensor program, a parameter is read if a load stands before the first store to it, and written if there is a store;
/// one whose pointer is passed on counts as both.
/// Errors: the module has no such function for callers outside (the message lists those that it has); a parameter that is an
/// object or a function, which no file can hold.
Signature signature_of(const Module& module, const std::string& function);

/// The functions that callers outside may name: those with the attribute "global_symbol".
std::vector<std::string> public_functions(const Module& module);

/// "x: float32[n, 64]"
std::string describe(const Parameter& param);
/// "main(x: float32[n, 64], w: float32[64, 32])"
std::string describe(const Signature& signature);

/// An argument as it was given: the name of its parameter, or none for the next one in order, and what it is.
struct GivenInput {
  std::string name;
  runtime::Value value;
  std::string origin;  ///< "x.npy", for messages
};

/// A call with all of its arguments, and the symbolic sizes that they bind, by name.
struct PreparedCall {
  std::vector<runtime::Value> leaves;  ///< one per parameter of the signature
  std::map<std::string, int64_t> sizes;
  std::vector<std::string> zeroed;  ///< parameters that are read and written, were not given, and start as zeros
};

/// Puts inputs to the parameters. Results of a tensor program that are not given start as zeros.
///   sizes   of symbolic sizes that no input binds
/// Errors: a name that no parameter has, or twice; too many inputs; a parameter without an input; another dtype, rank or
/// extent than the parameter has, with the sizes bound so far and by which input; a size that nothing binds, or above its bound.
PreparedCall prepare(const Signature& signature, std::vector<GivenInput> given,
                     const std::map<std::string, int64_t>& sizes = {});

/// The arguments that the virtual machine takes: parts of tuples joined again.
std::vector<runtime::Value> machine_arguments(const Module& module, const Signature& signature,
                                              const std::vector<runtime::Value>& leaves);

}  // namespace sator::driver
