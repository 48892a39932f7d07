#include "llm/packed_weights.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"
#include "base/staged_file.h"
#include "base/threads.h"
#include "base/trust.h"
#include "runtime/memory.h"
#include "runtime/tensor.h"

namespace sator::llm {

using runtime::kAlignment;
using runtime::Storage;
using runtime::Tensor;
using runtime::Value;

namespace {

constexpr std::string_view kMagic =
    "SATORWT1";  // then the length of the header, its JSON, and tensors on whole cache lines
constexpr int64_t kDefaultLimit = 20'000'000'000, kPart = int64_t{64} << 20;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// A digest of a file's content, remembered by what tells that the file is the same. A file that has just been written may
/// change once more within the clock's grain, and is not remembered.
std::string content_digest(const fs::path& file) {
  struct stat s{};
  if (::stat(file.c_str(), &s) != 0) fail_file(file, "read", errno);
  const FileCache memory(weights_cache().folder(), ".digest");
  const std::string key = digest_of(text(fs::canonical(file).string(),
                                         "\n",
                                         s.st_dev,
                                         " ",
                                         s.st_ino,
                                         " ",
                                         s.st_size,
                                         " ",
                                         s.st_mtim.tv_sec,
                                         " ",
                                         s.st_mtim.tv_nsec,
                                         " ",
                                         s.st_ctim.tv_sec,
                                         " ",
                                         s.st_ctim.tv_nsec));
  const fs::path entry = memory.path_of(file.filename().string(), key);
  if (auto known = memory.read(entry, [](const std::string&) {})) return *known;
  const std::string digest = digest_of_file(file);
  if (::time(nullptr) - s.st_ctim.tv_sec > 2) memory.write(entry, digest);
  return digest;
}

/// The whole of a file in memory of huge pages; null where it cannot be had.
Ref<Storage> read_whole(const fs::path& path, int threads) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return nullptr;
  struct stat s{};
  Ref<Storage> storage;
  if (::fstat(file, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 0) {
    storage = Storage::allocate(s.st_size);
    std::atomic<int64_t> next = 0;
    std::atomic<bool> whole = true;
    auto work = [&](int) {
      for (int64_t at; whole && (at = next.fetch_add(kPart)) < s.st_size;) {
        const int64_t end = std::min<int64_t>(at + kPart, s.st_size);
        while (at < end) {
          const ssize_t got =
              ::pread(file, static_cast<char*>(storage->data()) + at, static_cast<size_t>(end - at), at);
          if (got <= 0) whole = false;
          if (got <= 0) break;
          at += got;
        }
      }
    };
    run_on_threads(static_cast<int>(std::min<int64_t>(threads, 1 + (s.st_size - 1) / kPart)), work);
    if (!whole) storage = nullptr;
  }
  ::close(file);
  return storage;
}

/// The tensors of a file's bytes. Errors: they are no such file.
Value tensors_of(const Ref<Storage>& storage, std::string_view bytes, const std::string& source) {
  uint64_t header = 0;
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + 8)
    fail({.what = source + " is no file of weights", .needs = "one"});
  std::memcpy(&header, bytes.data() + kMagic.size(), 8);
  const size_t begin = kMagic.size() + 8;
  if (header > bytes.size() - begin) fail({.what = source + " is cut off", .needs = "a whole file"});
  const Json tree = parse_json(bytes.substr(begin, header), source);
  const int64_t data = aligned(static_cast<int64_t>(begin + header));
  std::vector<Value> out;
  JsonAt(tree, source).each([&](const JsonAt& t) {
    std::vector<int64_t> dims;
    t.at("shape").each([&](const JsonAt& d) { dims.push_back(d.integer(0)); });
    const runtime::Dims shape{std::span<const int64_t>(dims)};
    const std::optional<DType> dtype = DType::parse(t.at("dtype").string());
    if (!dtype) t.at("dtype").fail("is none", "a dtype");
    out.push_back(Tensor::view(storage, data + t.at("offset").integer(0), shape, *dtype));
  });
  return runtime::Tuple::of(std::move(out));
}

}  // namespace

int64_t weights_limit_bytes() {
  const char* given = std::getenv("SATOR_WEIGHTS_LIMIT");
  if (given == nullptr || *given == '\0') return kDefaultLimit;
  const std::optional<int64_t> bytes = parse_size(given);
  if (!bytes)
    fail({.what = text("SATOR_WEIGHTS_LIMIT is ", string_literal(given)),
          .needs = "a size in bytes, with K, M, G or T behind it where it is large",
          .hint = "as in SATOR_WEIGHTS_LIMIT=50G; 0 keeps no weights; unset it for 20G"});
  return *bytes;
}

std::string packed_weights_key(const fs::path& library, const std::vector<fs::path>& files,
                               const std::optional<fs::path>& calibration) {
  make_private_folder(weights_cache().folder(), text("weights from ", weights_cache().folder().string()));
  std::string all = text("library ", digest_of_file(library));
  for (const fs::path& file : files) all += text("\nfile ", content_digest(file));
  if (calibration) all += text("\ncalibration ", content_digest(*calibration));
  return digest_of(all);
}

std::optional<Value> read_packed_weights(const fs::path& path, int threads,
                                         const std::function<void(const std::string&)>& damaged) {
  if (std::error_code gone; !fs::is_regular_file(fs::symlink_status(path, gone))) return {};
  const Ref<Storage> storage = read_whole(path, threads);
  try {
    const std::string_view all = storage ? std::string_view(static_cast<const char*>(storage->data()),
                                                            static_cast<size_t>(storage->size_bytes()))
                                         : "";
    const std::optional<std::string_view> content = unsealed(all);
    if (!content) fail({.what = "its seal is broken", .needs = "a whole file"});
    Value out = tensors_of(storage, *content, path.string());
    FileCache::mark_used(path);
    return out;
  } catch (const Error&) {
    damaged(text(path.string(), " is damaged and made anew"));
    std::error_code error;
    fs::remove(path, error);
    return {};
  }
}

void keep_packed_weights(const fs::path& path, const runtime::Tuple& weights,
                         const std::function<void(const std::string&)>& remark) {
  Json header = Json::array();
  int64_t bytes = 0;
  for (const Value& v : weights.fields) {
    const Tensor* t = v.as<Tensor>();
    if (!t) return;
    Json shape = Json::array();
    for (size_t d = 0; d < static_cast<size_t>(t->rank()); ++d) shape.push_back(t->dim(d));
    header.push_back({{"dtype", t->dtype().name()}, {"shape", shape}, {"offset", bytes}});
    bytes += aligned(t->size_bytes());
  }
  std::error_code unknown;
  const fs::space_info space = fs::space(path.parent_path(), unknown);
  const int64_t room = weights_limit_bytes() - bytes;
  if (room < 0 || unknown || static_cast<int64_t>(space.available) < 2 * bytes) return;
  // What is in use stays, and then this one is not kept.
  const FileCache cache = weights_cache();
  cache.prune(room, kCacheKeeps);
  int64_t held = 0;
  for (const CacheEntry& e : cache.entries()) held += e.bytes;
  if (held > room) return;
  try {
    FileCache::free_place(path);
    const std::string words = header.dump();
    const uint64_t size = words.size();
    std::string front = text(kMagic, std::string(reinterpret_cast<const char*>(&size), 8), words);
    front.resize(static_cast<size_t>(aligned(static_cast<int64_t>(front.size()))), ' ');
    Digest digest;
    StagedFile file(path);
    auto put = [&](std::string_view part) {
      digest.add(part);
      file.write(part);
    };
    put(front);
    static constexpr char kZeros[kAlignment] = {};
    for (const Value& v : weights.fields) {
      const Tensor& t = *v.as<Tensor>();
      put({t.data_as<const char>(), static_cast<size_t>(t.size_bytes())});
      put({kZeros, static_cast<size_t>(aligned(t.size_bytes()) - t.size_bytes())});
    }
    file.write(seal_of(digest));
    file.finish();
  } catch (const Error& e) {
    remark(text("the weights are not kept for the next start: ", e.reason.what));
  }
}

}  // namespace sator::llm
