#pragma once

#include <filesystem>
#include <string>

namespace sator {

/// What tells one build of a program or shared library from another: the id that its linker noted (--build-id), or, where there
/// is none, the path, size and time of its file.
///   address   of any function in it
std::string build_id_of(const void* address);

/// The file of the program or shared library that holds a function, also where the program was found through PATH.
std::filesystem::path file_of(const void* address);

/// Of this program. Another build may make other code of the same model, and other results.
const std::string& program_id();

}  // namespace sator
