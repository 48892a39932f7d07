#pragma once

#include <string_view>

namespace sator::study {

/// The page's style sheet, for light and dark, for wide screens and phones.
std::string_view page_style();

}  // namespace sator::study
