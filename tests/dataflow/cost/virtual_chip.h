// A described chip that runs a scheduled program: the interpreter executes it, and every access of every instance goes
// through registers, wires and scratchpads that hold values and count what passes. Nothing here knows a relation: where and
// when an instance runs, and what it touches, is what the running program says.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/text.h"
#include "dataflow/cost/cost.h"
#include "tir/interp.h"
#include "tir/nodes.h"

namespace sator::dataflow {

using Pe = std::pair<int64_t, int64_t>;
/// Element of a tensor, by its place in row-major order.
using Element = int64_t;

/// One load or store with the value that passed.
struct Touch {
  std::string tensor;
  Element element = 0;
  double value = 0;
};

/// One store of the program as it ran: in which PE, when (the values of the loops in time, outermost first), what it read.
struct Event {
  std::vector<int64_t> time;
  Pe pe;
  std::vector<Touch> reads;  // without the stored element itself
  std::string written;
  Element element = 0;
};

/// The stores of one block, in the order in which they ran.
struct BlockEvents {
  std::string block;
  std::vector<Event> events;
};

/// Puts, in front of each block that stores, a call that tells what it is about to do; then runs the program.
class Recorder {
 public:
  /// Runs the function on the arguments. Buffers have constant shapes.
  static std::vector<BlockEvents> run(const tir::PrimFuncRef& func, const std::vector<tir::Argument>& args) {
    Recorder recorder;
    tir::PrimFuncRef told =
        cast<tir::PrimFunc>(with(func, &tir::PrimFunc::body, recorder.instrument(func->body, Loops{})));
    tir::RunOptions options;
    options.externs["tell"] = [&](std::span<const tir::ExternValue> values) {
      recorder.hear(values);
      return tir::ExternValue{.dtype = i32};
    };
    tir::Interpreter(told).run(args, options);
    return std::move(recorder.events_);
  }

 private:
  struct Loop {
    Expr var;
    std::string thread;
    bool at_once;
  };
  using Loops = std::vector<Loop>;
  struct Told {
    std::vector<int> axis;  // per loop told: -1 time, 0 pe.x, 1 pe.y
    std::vector<std::string> reads;
    std::string written;
  };

  static Expr flat(const BufferRef& buffer, const std::vector<Expr>& indices) {
    Expr at = int_imm(0, i64);
    for (size_t d = 0; d < indices.size(); ++d)
      at = at * int_imm(*as_int(buffer->shape[d]), i64) + make<Cast>(i64, indices[d]);
    return at;
  }

  tir::Stmt instrument(const tir::Stmt& stmt, const Loops& loops) {
    if (const tir::For* l = stmt.as<tir::For>()) {
      Loops inner = loops;
      inner.push_back({l->var, l->thread, l->kind == tir::LoopKind::unrolled || l->kind == tir::LoopKind::vectorized});
      return with(ref(*l), &tir::For::body, instrument(l->body, inner));
    }
    if (const tir::Seq* s = stmt.as<tir::Seq>()) {
      std::vector<tir::Stmt> parts;
      for (const tir::Stmt& part : s->stmts) parts.push_back(instrument(part, loops));
      return tir::seq(std::move(parts));
    }
    const tir::BlockRealize* realize = stmt.as<tir::BlockRealize>();
    if (!realize) return stmt;
    const tir::BufferStore* store = realize->block->body.as<tir::BufferStore>();
    if (!store) {
      tir::BlockRef block = with(realize->block, &tir::Block::body, instrument(realize->block->body, loops));
      return with(ref(*realize), &tir::BlockRealize::block, block);
    }
    return tir::seq({tell(*realize, *store, loops), stmt});
  }

  tir::Stmt tell(const tir::BlockRealize& realize, const tir::BufferStore& store, const Loops& loops) {
    Told told;
    told.written = store.buffer->name;
    std::vector<Expr> args = {string_imm("tell"), int_imm(static_cast<int64_t>(told_.size()), i64)};
    for (const Loop& l : loops) {
      if (l.at_once && l.thread.empty()) continue;
      told.axis.push_back(l.thread == "pe.x" ? 0 : l.thread == "pe.y" ? 1 : -1);
      args.push_back(l.var);
    }
    NodeMap values;
    for (size_t i = 0; i < realize.values.size(); ++i) values[realize.block->iter_vars[i]->var] = realize.values[i];
    args.push_back(replaced(flat(store.buffer, store.indices), values));
    walk(store.value, [&](const BufferLoad& load) {
      if (load.buffer == store.buffer) return;  // the sum so far
      told.reads.push_back(load.buffer->name);
      args.push_back(replaced(flat(load.buffer, load.indices), values));
      args.push_back(replaced(Expr(ref(load)), values));
    });
    told_.push_back(std::move(told));
    events_.push_back({realize.block->name->text, {}});
    tir::Stmt call = make<tir::Evaluate>(make<Call>(i32, "tir.call_extern", std::move(args)));
    return make<tir::IfThenElse>(realize.predicate, call, nullptr);
  }

  void hear(std::span<const tir::ExternValue> values) {
    const size_t number = static_cast<size_t>(values[0].integer);
    const Told& told = told_[number];
    Event e{.written = told.written};
    size_t at = 1;
    for (int axis : told.axis) {
      const int64_t v = values[at++].integer;
      if (axis < 0)
        e.time.push_back(v);
      else
        (axis == 0 ? e.pe.first : e.pe.second) += v;
    }
    e.element = values[at++].integer;
    for (const std::string& tensor : told.reads) {
      const tir::ExternValue& v = values[at + 1];
      e.reads.push_back({tensor, values[at].integer, v.dtype.is_float() ? v.real : static_cast<double>(v.integer)});
      at += 2;
    }
    events_[number].events.push_back(std::move(e));
  }

  std::vector<Told> told_;
  std::vector<BlockEvents> events_;
};

/// What passed one place, in elements.
struct Passed {
  int64_t in = 0, out = 0;  // towards the array, away from it
  bool operator==(const Passed&) const = default;
};

/// What one tensor did at the PEs.
struct AtPes {
  int64_t assigned = 0, scratchpad = 0, own = 0, wired = 0;
  std::set<Element> footprint;
};

/// Registers of PEs, which hold what the PE used at this stamp and at the one before, and the wires between them. An element
/// that neither has comes from the scratchpad.
class PeArray {
 public:
  PeArray(const Chip& chip, const std::vector<Event>& events) : wired_(chip.wires != Wires::none) {
    // One stamp per hop: what reaches PE (r, c) has passed r + c others.
    for (const Event& e : events) {
      std::vector<int64_t> stamp = e.time;
      if (chip.wires == Wires::systolic && !stamp.empty()) stamp.back() += e.pe.first + e.pe.second;
      stamps_[stamp].push_back(&e);
    }
  }

  /// `touches_of` says what an event has to do with the tensor.
  template <class TouchesOf>
  AtPes run(TouchesOf touches_of) const {
    AtPes out;
    using Registers = std::map<Pe, std::map<Element, double>>;
    Registers before;
    for (const auto& [stamp, events] : stamps_) {
      // What each PE is to have at this stamp, and the true values.
      Registers now;
      for (const Event* e : events)
        for (const Touch& t : touches_of(*e)) now[e->pe][t.element] = t.value;
      for (const auto& [pe, wanted] : now)
        for (const auto& [element, value] : wanted) {
          ++out.assigned;
          out.footprint.insert(element);
          auto has = [&](const Registers& registers, const Pe& p) {
            auto at = registers.find(p);
            auto found = at == registers.end() ? std::map<Element, double>::const_iterator{} : at->second.find(element);
            if (at == registers.end() || found == at->second.end()) return false;
            EXPECT_EQ(found->second, value) << "another value arrives over a wire or from a register";
            return true;
          };
          const bool own = has(before, pe);
          bool wired = false;
          for (const Pe& from : {Pe{pe.first - 1, pe.second}, Pe{pe.first, pe.second - 1}})
            wired |= wired_ && (has(now, from) || has(before, from));
          out.own += own, out.wired += wired, out.scratchpad += !own && !wired;
        }
      before = std::move(now);
    }
    return out;
  }

 private:
  bool wired_;
  std::map<std::vector<int64_t>, std::vector<const Event*>> stamps_;
};

/// A memory that holds what the instances of one step touch, where a step lasts as long as the outer `since` loops stand
/// still. In: what it must be given at the beginnings of steps. Out: what goes when a step ends, that the next does not need.
template <class TouchesOf>
Passed pass_through_memory(const std::vector<Event>& events, size_t since, TouchesOf touches_of) {
  std::map<std::vector<int64_t>, std::set<Element>> steps;
  for (const Event& e : events)
    for (const Touch& t : touches_of(e))
      steps[{e.time.begin(), e.time.begin() + static_cast<long>(std::min(since, e.time.size()))}].insert(t.element);
  Passed passed;
  std::set<Element> held;
  for (const auto& [step, wanted] : steps) {
    for (Element e : wanted) passed.in += !held.count(e);
    for (Element e : held) passed.out += !wanted.count(e);
    held = wanted;
  }
  passed.out += static_cast<int64_t>(held.size());
  return passed;
}

}  // namespace sator::dataflow
