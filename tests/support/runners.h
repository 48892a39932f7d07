#pragma once

#include "support/texttest.h"

// The functions behind the kinds of cases, each in tests/<room>/*_runner.cc; runners.cc is the table.
namespace sator::test {

/// Runs `--- command`, a command line of `sator`, in the root of the checkout; the result is its standard output.
std::string run_command(const TestCase& test);

/// The program, parsed and printed. Printing what was parsed from the print must give the same text, and an equal program.
std::string run_tir_print(const TestCase& test);
/// What the verifier says of the program: one line per mistake, or "well formed".
std::string run_tir_verify(const TestCase& test);
/// Runs the program on the given arrays and shows them afterwards. A line of the section is
///   NAME dtype[2, 3] = 1 2 3 4 5 6     an array; one number alone fills it; no number: not initialised
///   NAME = 5                           a scalar
///   count | detect_uninitialised | detect_races
///                                      options: count also lists the instances and multiply-adds of each block
std::string run_tir_run(const TestCase& test);

/// What the graph main gives for the tensors of the section, one line each:
///   NAME dtype[2, 3] = 1 2 3 nan 5 inf     one number alone fills it
/// The interpreter tells; where machine code gives something else, that follows.
std::string run_evaluate(const TestCase& test);

/// The module (graphs, tensor programs or both) after the passes of `--- passes A, B`, checked after each; the sections bounds (n=8)
/// target, patterns (tables [[pattern]] of a chip's file, for FuseOpsByPattern) and attach tell the passes more. The result must parse back to an equal module.
std::string run_passes(const TestCase& test);

/// The program after the passes that `--- lower` names (comma separated; `all`: the whole lowering), with the notes of passes
/// in front.
std::string run_lower(const TestCase& test);

/// Lowers and compiles the program, after the primitives of `--- script` if there are any, for every level of this CPU, and
/// holds what it computes of random data against the interpreter. The result is "as the interpreter".
std::string run_machine(const TestCase& test);

/// Applies `--- script`, lines of primitives, to the program; the result is the program. After each line it is verified,
/// printed and parsed, and run if it is small: its results must stay those of the program before. `--- desc NAME` and
/// `--- impl NAME` are the functions of a tensor intrinsic that the script may name.
std::string run_script(const TestCase& test);

/// The program as the first of the GPU rules that `--- gpu` names (none: those tried by default) schedules it for the target of
/// `--- target TEXT`; in front, which rule took it and why those before did not. What it computes must stay the same.
std::string run_gpu_rules(const TestCase& test);

}  // namespace sator::test
