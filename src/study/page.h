// The study as one HTML page that needs nothing else: no script, no other file, no network.
#pragma once

#include "study/result.h"

namespace sator::study {

/// The page: who wins and why, quality and size of each scheme, per chip the table, where the time goes (per scheme and per
/// layer) and quality against cost, then how to read it and what was costed. All text of the study is escaped.
std::string html_page(const Study& study);

/// The block that a layer's name belongs to: "transformer.h.3.attn.c_attn" is of "h.3", "model.layers.12" of "layers.12",
/// "lm_head" is itself, and no name is "other".
std::string block_of(std::string_view layer);

}  // namespace sator::study
