#include <algorithm>

#include "schedule/concurrent.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

static const std::vector<std::string>& thread_axes() {
  static const std::vector<std::string> axes = {"blockIdx.x",
                                                "blockIdx.y",
                                                "blockIdx.z",
                                                "threadIdx.x",
                                                "threadIdx.y",
                                                "threadIdx.z",
                                                "vthread",
                                                "vthread.x",
                                                "vthread.y",
                                                "vthread.z",
                                                "core.x",
                                                "core.y",
                                                "core.z",
                                                "pe.x",
                                                "pe.y"};
  return axes;
}

static void set_kind(Schedule& s, const Loop& loop, LoopKind kind, std::string thread = "") {
  const For& old = s.get(loop);
  s.replace(old, with(with(old, &For::kind, kind), &For::thread, std::move(thread)));
}

/// The iterations are shared out among threads.
static void do_parallel(Schedule& s, Loop loop) {
  s.require(cannot_run_at_once(s, loop, "parallel"));
  set_kind(s, loop, LoopKind::parallel);
}

/// The iterations become the lanes of vectors.
static void do_vectorize(Schedule& s, Loop loop) {
  s.require(cannot_run_at_once(s, loop, "vectorized"));
  set_kind(s, loop, LoopKind::vectorized);
}

/// The loop becomes one copy of its body per iteration, when it is lowered.
static void do_unroll(Schedule& s, Loop loop) { set_kind(s, loop, LoopKind::unrolled); }

/// The iterations run on the units of an axis: blockIdx.*, threadIdx.*, vthread.*; core.*, pe.x, pe.y of a described chip.
static void do_bind(Schedule& s, Loop loop, std::string thread_axis) {
  const std::vector<std::string>& axes = thread_axes();
  if (std::find(axes.begin(), axes.end(), thread_axis) == axes.end())
    s.fail({.what = text(string_literal(thread_axis), " is not an axis to bind to"),
            .needs = text("one of ", join(axes, ", ")),
            .hint = text("the nearest is ", join(nearest_names(thread_axis, axes), ", "))});
  s.require(cannot_run_at_once(s, loop, "bound", thread_axis));
  set_kind(s, loop, LoopKind::thread_binding, std::move(thread_axis));
}

const Primitive<void(Loop)> parallel{"parallel", do_parallel, {"loop"}, "shares the iterations among threads"};
const Primitive<void(Loop)> vectorize{"vectorize", do_vectorize, {"loop"}, "makes the iterations the lanes of vectors"};
const Primitive<void(Loop)> unroll{"unroll", do_unroll, {"loop"}, "repeats the body once per iteration"};
const Primitive<void(Loop, std::string)> bind{
    "bind", do_bind, {"loop", "thread_axis"}, "runs the iterations on the units of an axis"};

}  // namespace sator::schedule
