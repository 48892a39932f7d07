// The table of ops: every op is one row of a family (ops/families.h).
#pragma once

#include "relax/ops/op.h"

namespace sator::relax {

/// All rows, by family.
const std::vector<OpDef>& op_table();
/// Adds an op of a user's to those that find_op knows, or replaces it. Errors: the table has one of that name.
void add_op(OpDef row);
/// Takes it away again; calls that a program still has of it are of no op then.
void remove_op(const std::string& name);
/// The row of that name (without "relax."), or null.
const OpDef* find_op(std::string_view name);
/// The row of that name. Errors: there is none; the nearest names are listed.
const OpDef& op_named(std::string_view name);

/// The sizes that the op needs to be equal and of which its arguments' struct info says nothing; none of calls that no formula describes,
/// or without symbols.
///   result  where it is given and there are such sizes: the call's struct info if they are equal
std::vector<SizePair> assumed_sizes(const RCall& call, arith::Analyzer& arith, StructInfo* result = nullptr);

/// "nn.softmax(x, axis=...)": the arguments in Python's order; `=` after those that may be left out.
std::string signature(const OpDef& op);

/// Puts Python's arguments in their places. Errors: too many, unknown or twice given ones, a missing one, a value that
/// is of no use there.
BoundArgs bind_args(const OpDef& op, const std::vector<Value>& positional,
                    const std::vector<std::pair<std::string, Value>>& keywords);
/// A call of the op as Python writes it: make_call("nn.softmax", {x}, {{"axis", -1}}).
RExpr make_call(std::string_view op, const std::vector<Value>& positional,
                const std::vector<std::pair<std::string, Value>>& keywords = {});

}  // namespace sator::relax
