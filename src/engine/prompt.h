// Texts that come from files and pipes: prompts, schemas, tasks.
#pragma once

#include <iosfwd>
#include <string>

#include "base/file.h"

namespace sator {

/// More than any context takes: a prompt is no place to unpack an archive.
inline constexpr size_t kMostTextBytes = size_t{64} << 20;

/// A file as text.
///   what  it is, in errors: "a JSON schema"
/// Errors: no such file, or a folder; no text in it; no UTF-8; more than kMostTextBytes, of which no more are read.
std::string read_text_file(const fs::path& file, const std::string& what);

/// The same of a stream.
///   where, hint  what names it in errors, "standard input"; how to give it one, where it is empty
std::string read_text(std::istream& in, const std::string& where, const std::string& what, const char* hint);

/// A prompt as it stands in a file, without the line end that editors put behind the last line: every other space counts, because
/// tokens have their spaces with them. Errors: as of read_text_file.
std::string read_prompt_file(const fs::path& file);

/// The same of a stream. `where` names it in errors: "standard input".
std::string read_prompt(std::istream& in, const std::string& where);

}  // namespace sator
