// Options of passes: how people write them, and how passes read them. A pass's arguments stand in the context's `config` under
// its own name ("TopologicalSort.order"), the others under the names that TVM gives them ("tir.Simplify...").
#pragma once

#include "passes/pass.h"
#include "relax/bind.h"

namespace sator::passes {

/// Options from text: NAME=VALUE, and more of them after commas. A value is a number, True, False, a quoted text, a [list], a
/// {dictionary} or an expression of R or T in parentheses; another word is a text as it stands. Commas inside of brackets and quotes belong to the value.
/// Errors: an entry without a name or a value; a name that no pass has (the nearest are listed); a value that is no expression.
Attrs options_from_text(std::string_view list);

/// Every option that some pass reads, arguments of passes among them: "tir.LoopPartition.partition_const_loop".
std::vector<std::string> all_option_names();

// What a pass reads; nothing, or `otherwise`, where the option is not given.
// Errors: a value of another kind.
NodeRef option(const PassContext& ctx, const std::string& name);
std::optional<std::string> text_option(const PassContext& ctx, const std::string& name);
bool flag_option(const PassContext& ctx, const std::string& name, bool otherwise);
std::vector<std::string> names_option(const PassContext& ctx, const std::string& name);
/// A whole number. Errors: also one below `least`.
int64_t number_option(const PassContext& ctx, const std::string& name, int64_t otherwise, int64_t least);
/// A dictionary, or a list of pairs, as named values. Errors: also a key that names nothing.
relax::NamedValues named_values_option(const PassContext& ctx, const std::string& name);
/// One of several words. Errors: also another word.
std::string choice_option(const PassContext& ctx, const std::string& name, const std::vector<std::string>& choices);

/// The option's value is not what the pass takes.
[[noreturn]] void refuse_option(const PassContext& ctx, const std::string& name, const std::string& needs,
                                const std::string& hint);

}  // namespace sator::passes
