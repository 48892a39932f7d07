#include "arith/rules/tables.h"

namespace sator::arith::rules {

const std::vector<const RuleTable*>& all() {
  static const std::vector<const RuleTable*> tables = {
      &add_vector(),      &add_index(),      &sub_vector(),     &sub_index(), &mul_vector(),      &mul_index(),
      &div_vector(),      &div_index(),      &mod_vector(),     &mod_index(), &floordiv_vector(), &floordiv_index(),
      &floormod_vector(), &floormod_index(), &min_vector(),     &min_index(), &max_vector(),      &max_index(),
      &of_selects(),      &select_any(),     &compare_vector(), &eq_index(),  &lt_index(),        &logical_not(),
      &logical_and(),     &logical_or()};
  return tables;
}

}  // namespace sator::arith::rules
