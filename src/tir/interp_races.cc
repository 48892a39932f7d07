#include "tir/interp_races.h"

namespace sator::tir::interp {

Strands::Run::Run(Strands* strands) : strands_(strands) {
  if (!strands_) return;
  outer_ = strands_->current_;
  run_ = ++strands_->runs_;
}

Strands::Run::~Run() {
  if (strands_) strands_->current_ = outer_;
}

void Strands::Run::begin_iteration() {
  if (!strands_) return;
  std::vector<Strand>& all = strands_->strands_;
  all.push_back({outer_, all[static_cast<std::size_t>(outer_)].depth + 1, run_});
  strands_->current_ = static_cast<int>(all.size()) - 1;
}

bool Strands::are_concurrent(int a, int b) const {
  if (a < 0 || b < 0) return false;
  auto at = [&](int i) -> const Strand& { return strands_[static_cast<std::size_t>(i)]; };
  while (at(a).depth > at(b).depth) a = at(a).parent;
  while (at(b).depth > at(a).depth) b = at(b).parent;
  if (a == b) return false;
  while (at(a).parent != at(b).parent) {
    a = at(a).parent;
    b = at(b).parent;
  }
  return at(a).run == at(b).run;
}

bool Strands::read(Accesses& element) const {
  // What this strand wrote itself is its own, even if another one wrote the same value before.
  if (are_concurrent(element.changer, current_) && are_concurrent(element.writer, current_)) return false;
  if (are_concurrent(element.reader, current_))
    element.other_reader = current_;
  else
    element.reader = current_;
  return true;
}

bool Strands::write(Accesses& element, bool changes) const {
  if (changes) {
    for (int other : {element.writer, element.changer, element.reader, element.other_reader}) {
      if (are_concurrent(other, current_)) return false;
    }
    element.changer = current_;
  }
  element.writer = current_;
  return true;
}

}  // namespace sator::tir::interp
