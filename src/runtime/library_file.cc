#include "runtime/library_file.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

namespace sator::runtime {

bool is_cut_off(std::span<const std::byte> bytes) {
  auto fits = [&](uint64_t offset, uint64_t size) { return offset <= bytes.size() && size <= bytes.size() - offset; };
  Elf64_Ehdr header;
  if (!fits(0, sizeof header)) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  if (!fits(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize) ||
      !fits(header.e_phoff, uint64_t{header.e_phnum} * header.e_phentsize) || header.e_phentsize < sizeof(Elf64_Phdr))
    return true;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * header.e_phentsize, sizeof segment);
    if (!fits(segment.p_offset, segment.p_filesz)) return true;
  }
  return false;
}

}  // namespace sator::runtime
