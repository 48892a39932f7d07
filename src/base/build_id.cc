#include "base/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <string_view>

#include "base/digest.h"
#include "base/file.h"
#include "base/text.h"

namespace sator {

namespace {

struct Image {
  uintptr_t address;
  std::string id;  ///< empty until found
  std::filesystem::path file;
};

bool contains(const dl_phdr_info& object, uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address - begin < segment.p_memsz) return true;
  }
  return false;
}

/// The note that the linker left, as hexadecimal digits; empty if none.
std::string noted_id(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const size_t align = segment.p_align == 8 ? 8 : 4;
    const auto padded = [&](size_t n) { return (n + align - 1) / align * align; };
    const auto* at = reinterpret_cast<const char*>(object.dlpi_addr + segment.p_vaddr);
    const char* const end = at + segment.p_memsz;
    while (static_cast<size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* name = at + sizeof note;
      const size_t rest = static_cast<size_t>(end - name);
      if (note.n_namesz > rest || padded(note.n_namesz) > rest || note.n_descsz > rest - padded(note.n_namesz)) break;
      const char* bytes = name + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, note.n_namesz) == std::string_view("GNU\0", 4)) {
        std::string id;
        for (size_t b = 0; b < note.n_descsz; ++b) {
          const auto byte = static_cast<unsigned char>(bytes[b]);
          id += "0123456789abcdef"[byte >> 4];
          id += "0123456789abcdef"[byte & 15];
        }
        return id;
      }
      if (padded(note.n_descsz) > static_cast<size_t>(end - bytes)) break;
      at = bytes + padded(note.n_descsz);
    }
  }
  return "";
}

int look_at(dl_phdr_info* object, size_t, void* data) {
  auto& image = *static_cast<Image*>(data);
  if (!contains(*object, image.address)) return 0;
  std::error_code ignored;
  const fs::path& file = image.file =
      *object->dlpi_name ? fs::path(object->dlpi_name) : fs::read_symlink("/proc/self/exe", ignored);
  image.id = noted_id(*object);
  if (!image.id.empty()) return 1;
  const auto size = static_cast<int64_t>(fs::file_size(file, ignored));
  const auto time = static_cast<int64_t>(fs::last_write_time(file, ignored).time_since_epoch().count());
  image.id = digest_of(text(file.string(), ":", size, ":", time));
  return 1;
}

Image image_of(const void* address) {
  Image image{reinterpret_cast<uintptr_t>(address), "", {}};
  ::dl_iterate_phdr(look_at, &image);
  return image;
}

}  // namespace

std::string build_id_of(const void* address) { return image_of(address).id; }

fs::path file_of(const void* address) { return image_of(address).file; }

const std::string& program_id() {
  static const std::string id = build_id_of(reinterpret_cast<const void*>(&program_id));
  return id;
}

}  // namespace sator
