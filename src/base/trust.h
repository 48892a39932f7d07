#pragma once

#include <optional>

#include "base/error.h"
#include "base/file.h"

namespace sator {

/// Why another user than this one and root could change the open file, or put another in its place; nothing if none can.
/// Links are resolved: what counts is the file that is open, and every folder on the way to it. Each must belong to this
/// user or to root, and be writable by nobody else. Two exceptions:
///   a folder on the way may be writable by all where it is sticky, as /tmp: there nobody removes what others made
///   group-writable is fine where the group is its owner's own (of the owner's name, the owner's first group, without other
///   members, no access list): Debian gives each user one
///   fd      a file or a folder, open for reading
///   what    what the words call it: "model library m.so"
std::optional<Reason> exposed_to_others(int fd, const std::string& what);

/// Makes a folder, and those on the way to it, for this user alone. Errors: it cannot be made; it is exposed to others.
void make_private_folder(const fs::path& folder, const std::string& what);

}  // namespace sator
