// The weights of a model as its compiled program reads them, kept between starts: laid out once, read as they lie.
#pragma once

#include <functional>

#include "base/file_cache.h"
#include "runtime/value.h"

namespace sator::llm {

/// The folder of $SATOR_HOME for them, with files NAME.KEY.weights. Errors: there is no home for them.
inline FileCache weights_cache() { return {sator_home() / "weights", ".weights"}; }
/// Bytes that it may hold: $SATOR_WEIGHTS_LIMIT, else 20 GB. Errors: the variable is no size.
int64_t weights_limit_bytes();

/// What decides how weights lie: the program that reads them, the files that they are made from, and a calibration text. Contents
/// count, not names; the digest of a large file is remembered by its place, size and times.
std::string packed_weights_key(const fs::path& library, const std::vector<fs::path>& files,
                               const std::optional<fs::path>& calibration);

/// The tuple of tensors under that name, in huge pages, read by so many threads; nothing if there is none. One that is damaged is
/// removed, after `damaged` was told of it.
std::optional<runtime::Value> read_packed_weights(const fs::path& path, int threads,
                                                  const std::function<void(const std::string& remark)>& damaged);

/// Keeps a tuple of tensors, whole or not at all. The least recently used make room, but none of the last ten minutes; nothing is
/// kept beyond the limit, or where the disk has not twice the room. What cannot be written is told to `remark` and is no error:
/// it is made again.
void keep_packed_weights(const fs::path& path, const runtime::Tuple& weights,
                         const std::function<void(const std::string& remark)>& remark);

}  // namespace sator::llm
