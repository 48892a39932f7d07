#include "base/digest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <vector>

#include "base/error.h"
#include "base/staged_file.h"

namespace sator {

namespace {

constexpr std::string_view kSeal = "\nsator-seal xxh3 ";
constexpr size_t kDigits = 32, kSealBytes = kSeal.size() + kDigits + 1;

std::string hex_of(XXH128_hash_t hash) { return hex(hash.high64) + hex(hash.low64); }

}  // namespace

struct Digest::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Digest::Digest() : state_(std::make_unique<State>()) {
  if (state_->xxh == nullptr || XXH3_128bits_reset(state_->xxh) != XXH_OK) throw std::bad_alloc();
}

Digest::~Digest() = default;

Digest& Digest::add(std::string_view bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
  return *this;
}

// Read in pieces: of a mapped file all pages would count as this process's memory.
Digest& Digest::add_file(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail_file(path, "read", errno);
  struct stat st{};
  if (::fstat(file, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(file);
    fail_file(path, "read", EISDIR);
  }
  std::vector<char> piece(size_t{1} << 20);
  ssize_t got = 0;
  while ((got = ::read(file, piece.data(), piece.size())) > 0) add({piece.data(), static_cast<size_t>(got)});
  const int code = errno;
  ::close(file);
  if (got < 0) fail_file(path, "read", code);
  return *this;
}

std::string Digest::hex() const { return hex_of(XXH3_128bits_digest(state_->xxh)); }

std::string digest_of(std::string_view bytes) { return hex_of(XXH3_128bits(bytes.data(), bytes.size())); }

std::string digest_of_file(const fs::path& path) { return Digest().add_file(path).hex(); }

std::string seal_of(const Digest& digest) { return text(kSeal, digest.hex(), "\n"); }

std::string sealed(std::string bytes) {
  const std::string seal = seal_of(Digest().add(bytes));
  return std::move(bytes.append(seal));
}

bool has_seal(std::string_view bytes) {
  return bytes.size() >= kSealBytes && bytes.substr(bytes.size() - kSealBytes).starts_with(kSeal);
}

std::optional<std::string_view> unsealed(std::string_view bytes) {
  if (!has_seal(bytes)) return {};
  const std::string_view content = bytes.substr(0, bytes.size() - kSealBytes);
  if (bytes.substr(content.size() + kSeal.size()) != digest_of(content) + "\n") return {};
  return content;
}

}  // namespace sator
