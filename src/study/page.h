// The study as one HTML page that needs nothing else: no script, no other file, no network.
#pragma once

#include "study/result.h"

namespace sator::study {

/// The page: who wins and why, quality and size of each scheme, which are worth choosing among; per chip the table, quality
/// against cost, where the time goes, roofline, sensitivity, energy, layers; then how to read it and what was costed. All text of the study is escaped.
std::string html_page(const Study& study);

}  // namespace sator::study
