// The rewrite rules, one table per kind of expression and class of operands. Most of them are the algebra of Halide's
// simplifier, in the selection and the order that gives TVM's normal forms; the order of rows is part of their meaning.
#pragma once

#include "arith/rule.h"

namespace sator::arith::rules {

const RuleTable& add_vector();
const RuleTable& add_index();
const RuleTable& sub_vector();
const RuleTable& sub_index();
const RuleTable& mul_vector();
const RuleTable& mul_index();
const RuleTable& div_vector();
const RuleTable& div_index();
const RuleTable& mod_vector();
const RuleTable& mod_index();
const RuleTable& floordiv_vector();
const RuleTable& floordiv_index();
const RuleTable& floormod_vector();
const RuleTable& floormod_index();
const RuleTable& min_vector();
const RuleTable& min_index();
const RuleTable& max_vector();
const RuleTable& max_index();
/// op(select(c, ..), select(c, ..)), for every dtype.
const RuleTable& of_selects();
const RuleTable& select_any();
const RuleTable& compare_vector();
const RuleTable& eq_index();
const RuleTable& lt_index();
const RuleTable& logical_not();
const RuleTable& logical_and();
const RuleTable& logical_or();

/// Every table there is, for tests and listings.
const std::vector<const RuleTable*>& all();

}  // namespace sator::arith::rules
