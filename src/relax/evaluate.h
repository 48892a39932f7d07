// Expressions of scripts by themselves.
#pragma once

#include <string>

#include "tir/parse.h"
#include "tir/parse_value.h"

namespace sator::relax {

/// The value of one expression of T or R over the names of `options.around`: a number, a part of a program, ...
/// Errors: SourceError with the place in the text.
tir::Value evaluate(std::string text, tir::ParseOptions options);

}  // namespace sator::relax
