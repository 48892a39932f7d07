#pragma once

#include "base/file_cache.h"

namespace sator::llm {

/// The compiled models of $SATOR_HOME (base/file.h), named MODEL-SCHEME-PURPOSE. Errors: there is no home for them.
inline FileCache model_cache() { return {sator_home() / "models", ".so"}; }

}  // namespace sator::llm
