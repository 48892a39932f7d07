#include "dataflow/counts/count_memo.h"

#include "base/error.h"
#include "base/text.h"

namespace sator::dataflow {

namespace {

void serialize(const QuasiAffine& e, std::string& key) {
  auto put = [&](int64_t v) { key.append(reinterpret_cast<const char*>(&v), sizeof v); };
  put(e.constant);
  put(static_cast<int64_t>(e.terms.size()));
  for (const Term& t : e.terms) {
    put(t.coefficient);
    put(t.variable);
    if (!t.division) continue;
    put(t.division->remainder ? -t.division->divisor : t.division->divisor);
    serialize(t.division->inner, key);
  }
}

void serialize(const Map& map, std::string& key) {
  key += static_cast<char>(map.size());
  for (const QuasiAffine& e : map) serialize(e, key);
}

}  // namespace

std::string structure_key(const Problem& p) {
  std::string key;
  auto put = [&](int64_t v) { key.append(reinterpret_cast<const char*>(&v), sizeof v); };
  for (const Domain* d : {&p.statement.domain, &p.array.pes}) {
    put(d->rank());
    for (int64_t v : d->lower) put(v);
    for (int64_t v : d->extent) put(v);
    serialize(d->guards, key);
  }
  serialize(p.mapping.space, key);
  serialize(p.mapping.time, key);
  for (const Link& link : p.array.interconnect) {
    put(link.free_variables);
    serialize(link.source, key);
    serialize(link.guards, key);
  }
  put(static_cast<int64_t>(p.statement.accesses.size()));
  for (const Access& access : p.statement.accesses) {
    put(access.role == Role::write ? 1 : 0);
    put(static_cast<int64_t>(access.references.size()));
    for (const Map& reference : access.references) serialize(reference, key);
  }
  return key;
}

const std::variant<Counts, Reason>& CountMemo::counted(const Problem& problem) {
  auto [at, fresh] = known_.try_emplace(structure_key(problem));
  if (fresh) at->second = count(problem);
  return at->second;
}

const Counts* CountMemo::find(const Problem& problem) { return std::get_if<Counts>(&counted(problem)); }

const Counts& CountMemo::of(const Problem& problem, const std::string& for_whom) {
  const auto& known = counted(problem);
  if (auto* reason = std::get_if<Reason>(&known)) {
    Reason named = *reason;
    named.where = text("counting ", for_whom);
    fail(std::move(named));
  }
  return std::get<Counts>(known);
}

}  // namespace sator::dataflow
