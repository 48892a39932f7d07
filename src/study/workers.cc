#include "study/workers.h"

#include <memory>

#include "study/cost_program.h"
#include "study/measure.h"

namespace sator::study {

Workers model_workers() {
  auto coster = std::make_shared<ProgramCoster>();
  return {.measure = measure_schemes,
          .cost =
              [coster](const SchemeJob& job, std::span<const Chip> chips, const Progress& progress) {
                return coster->cost(job, chips, progress);
              },
          .parameters = count_parameters};
}

}  // namespace sator::study
