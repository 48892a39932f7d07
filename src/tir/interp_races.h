// Whether iterations of a loop that may run at the same time touch the same elements, although they run in order here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sator::tir::interp {

/// The strands that last touched an element; -1: none.
struct Accesses {
  int writer = -1, changer = -1;  ///< of any store; of one that changed the value
  int reader = -1, other_reader = -1;
};

/// A strand is what runs in order: the whole program (0), or one iteration of a loop whose iterations may run at the same
/// time. Strands of one run of a loop are concurrent, and so are all those inside of them.
class Strands {
 public:
  /// Notes the access of the current strand. False where a concurrent strand and this one touch the element, and one of
  /// them changes it.
  bool read(Accesses& element) const;
  bool write(Accesses& element, bool changes) const;

  /// A run of a loop, from its construction on; its iterations are strands. Does nothing for null.
  class Run {
   public:
    explicit Run(Strands* strands);
    ~Run();
    Run(const Run&) = delete;
    void begin_iteration();

   private:
    Strands* strands_;
    int outer_ = 0, run_ = 0;
  };

 private:
  struct Strand {
    int parent, depth, run;
  };
  bool are_concurrent(int a, int b) const;
  std::vector<Strand> strands_{{-1, 0, 0}};
  int current_ = 0, runs_ = 0;
};

}  // namespace sator::tir::interp
