#include "study/host_machine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>

#include "base/error.h"
#include "base/figures.h"
#include "base/text.h"
#include "codegen/jit.h"
#include "passes/lower/lower.h"
#include "rules/cpu.h"
#include "runtime/thread_pool.h"
#include "schedule/schedule.h"
#include "study/parts.h"
#include "tir/te.h"

namespace sator::study {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kProbeRounds = 64;
constexpr int kLongRounds = 8;  // of pieces that take longer than kLong_s
constexpr double kLong_s = 5e-3;
constexpr double kLeast_s = 3e-4;  // that one timed piece of work takes, so that the clock's own time does not count

double seconds(const std::function<void()>& work) {
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The best time of several runs, and how much longer the median took.
struct Timing {
  std::vector<double> runs;
  double best() const { return *std::min_element(runs.begin(), runs.end()); }
  double noise() const {
    std::vector<double> sorted = runs;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2] / sorted.front();
  }
};

/// Something that is timed in every round: `work` is repeated until it takes long enough.
struct Piece {
  std::function<void(int64_t times)> work;
  int64_t times = 1;
  Timing timing{};

  void find_times() {
    work(1);
    for (double took = 0; took < kLeast_s && times < (int64_t{1} << 30); times *= 2)
      took = seconds([&] { work(times); });
  }
  /// Long pieces are left out of most rounds.
  void run(int round) {
    if (timing.runs.size() > 2 && timing.best() * static_cast<double>(times) > kLong_s &&
        round % (kProbeRounds / kLongRounds) != 0)
      return;
    timing.runs.push_back(seconds([&] { work(times); }) / static_cast<double>(times));
  }
};

/// Numbers in memory that huge pages may back, as weights are.
class Numbers {
 public:
  explicit Numbers(size_t bytes)
      : bytes_((bytes + kPage - 1) / kPage * kPage), data_(static_cast<char*>(std::aligned_alloc(kPage, bytes_))) {
    if (!data_)
      fail({.what = text("no memory for ", bytes_ >> 20, " MB to measure with"),
            .needs = "free memory of four times the outermost cache",
            .hint = "end other programs first"});
    // Of size 0.02 as floats: neither 0 nor denormal.
    auto* floats = reinterpret_cast<float*>(data_);
    for (size_t i = 0; i < bytes_ / 4; ++i)
      floats[i] = (static_cast<float>((static_cast<uint32_t>(i) * 2654435761u) >> 24) - 127.5f) / 6000;
  }
  ~Numbers() { std::free(data_); }
  Numbers(const Numbers&) = delete;
  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kPage = size_t{1} << 21;
  size_t bytes_;
  char* data_;
};

/// Reads every byte, four streams at a time.
#if defined(__x86_64__)
__attribute__((target("avx2")))
#endif
void read_all(const char* p, size_t bytes) {
  using Lanes = uint64_t __attribute__((vector_size(32), aligned(32)));
  Lanes sums[4] = {};
  const size_t quarter = bytes / 4 / 256 * 256;
  for (size_t i = 0; i < quarter; i += 64)
    for (size_t s = 0; s < 4; ++s) {
      const char* at = p + s * quarter + i;
      __builtin_prefetch(at + 2048);
      sums[s] |= *reinterpret_cast<const Lanes*>(at) ^ *reinterpret_cast<const Lanes*>(at + 32);
    }
  const Lanes all = sums[0] | sums[1] | sums[2] | sums[3];
  volatile uint64_t sink = all[0] + all[1] + all[2] + all[3];
  (void)sink;
}

/// Additions that wait for each other: one cycle each.
void chain(int64_t times) {
  uint64_t v = static_cast<uint64_t>(times);
  for (int64_t i = 0; i < times; ++i)
    for (int j = 0; j < 64; ++j) {
#if defined(__x86_64__)
      asm volatile("add $1, %0" : "+r"(v));
#elif defined(__aarch64__)
      asm volatile("add %0, %0, #1" : "+r"(v));
#else
      volatile uint64_t kept = v + 1;
      v = kept;
#endif
    }
}

/// A chunk without work. The caller does those for which no thread has come in time, as it does in kernels.
int32_t nothing(void*, int64_t, int64_t, SatorContext*) { return 0; }

// ---- Products as models have them: weights in panels of 32 columns.

constexpr int64_t kM = 96, kN = 512, kK = 512;

Expr size_of(int64_t v) { return int_imm(v, i64); }

/// y = x W^T; in f32, or of 8-bit activations with codes of 8 bits in words, summed as int32.
tir::PrimFuncRef product(bool ints) {
  const te::Tensor x = te::placeholder({size_of(kM), size_of(kK)}, ints ? i8 : f32, "x"),
                   w = te::placeholder(
                       {size_of(kN / 32), size_of(ints ? kK / 4 : kK), size_of(32)}, ints ? u32 : f32, "w");
  const tir::IterVarRef k = te::reduce_axis(size_of(kK), "k");
  auto weight = [&](const Expr& j, const Expr& at) {
    if (!ints) return w({floordiv(j, 32), at, floormod(j, 32)});
    Expr word = w({floordiv(j, 32), floordiv(at, 4), floormod(j, 32)});
    Expr shifted = call(u32, "tir.shift_right", {word, cast_to(u32, floormod(at, 4) * 8)});
    return cast_to(u8, call(u32, "tir.bitwise_and", {shifted, int_imm(255, u32)}));
  };
  const te::Tensor codes = te::compute({.name = "codes", .axis = "i"},
                                       {size_of(kN), size_of(kK)},
                                       [&](const te::Indices& i) { return weight(i[0], i[1]); });
  const te::Tensor y = te::reduce({.name = "y", .axis = "i"}, {size_of(kM), size_of(kN)}, [&](const te::Indices& i) {
    if (!ints) return te::reduce_sum(x({i[0], k->var}) * weight(i[1], k->var), {k});
    return te::reduce_sum(cast_to(i32, x({i[0], k->var})) * cast_to(i32, codes({i[1], k->var})), {k});
  });
  return te::create_prim_func({x, w, y});
}

SatorKernel kernel_of(const tir::PrimFuncRef& func, const target::CpuLevel& level, codegen::Jit& jit) {
  const ModuleRef module = rules::schedule_for_cpu(schedule::Schedule(func, "main").module(), level);
  return jit.add(*passes::lower(cast<tir::PrimFunc>(module->functions.at("main"))));
}

// ---- Caches

std::string line_of(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return std::string(trim(line));
}

/// "2048K" in bytes; 0 if it is no size.
int64_t bytes_of(const std::string& size) {
  char* end = nullptr;
  const int64_t number = std::strtoll(size.c_str(), &end, 10);
  const char unit = end ? *end : '\0';
  return unit == 'K' ? number << 10 : unit == 'M' ? number << 20 : number;
}

/// Data caches of the first processor, outermost first; what the system does not tell is taken from the level that kernels are written for.
std::vector<MemoryLevel> caches(const target::CpuLevel& level, int64_t threads) {
  std::vector<MemoryLevel> found;
  for (int i = 0; i < 16; ++i) {
    const std::string folder = text("/sys/devices/system/cpu/cpu0/cache/index", i, "/");
    const std::string kind = line_of(folder + "type"), number = line_of(folder + "level");
    const int64_t bytes = bytes_of(line_of(folder + "size"));
    if (kind.empty()) break;
    if (kind == "Instruction" || bytes < 1 || number.empty()) continue;
    // Shared where its list of processors holds another one than the first core's.
    const std::string shared = line_of(folder + "shared_cpu_list"),
                      core = line_of("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    found.push_back(
        {.name = "l" + number, .capacity_bytes = bytes, .per_core = threads > 1 && (shared == core || shared == "0")});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name > b.name; });
  found.erase(std::unique(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name == b.name; }),
              found.end());
  if (found.empty())
    found = {{.name = "l2", .capacity_bytes = level.l2_bytes, .per_core = threads > 1},
             {.name = "l1", .capacity_bytes = level.l1_bytes, .per_core = threads > 1}};
  // A chip's file has shared memories outside of those of one core.
  bool inside = false;
  for (MemoryLevel& m : found) inside |= m.per_core, m.per_core = inside;
  return found;
}

/// Half of each cache, so that other data do not push it out; of the memory behind them four times the outermost cache, as far as
/// a quarter of the machine's memory allows.
size_t bytes_to_read(const MemoryLevel& m, int64_t outermost_bytes) {
  if (m.capacity_bytes > 0) return static_cast<size_t>(m.capacity_bytes) / 2;
  std::ifstream info("/proc/meminfo");
  int64_t available = int64_t{1} << 30;
  for (std::string key, unit; info >> key;) {
    int64_t value = 0;
    info >> value;
    std::getline(info, unit);
    if (key == "MemAvailable:") available = value << 10;
  }
  return static_cast<size_t>(std::min(std::max(4 * outermost_bytes, int64_t{64} << 20), available / 4));
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char words[16];
  std::strftime(words, sizeof words, "%Y-%m-%d", &utc);
  return words;
}

}  // namespace

HostMachine measure_machine(std::optional<int64_t> threads) {
  if (threads && *threads < 1)
    fail({.what = text("--threads ", *threads), .needs = "at least 1", .hint = "leave it out for all cores"});
  const target::CpuLevel& level = *target::levels_for("native").front();
  HostMachine host{.cpu = host_name(),
                   .isa = std::string(level.name),
                   .date = today(),
                   .threads = threads.value_or(runtime::default_num_threads()),
                   .vector_bits = level.vector_bits,
                   .vector_registers = level.vector_registers};
  const Ref<runtime::ThreadPool> pool = runtime::ThreadPool::create(static_cast<int>(host.threads));
  const Ref<codegen::Jit> jit = codegen::Jit::create(level);

  const Numbers x(kM * kK * 4), w(kN * kK * 4), y(kM * kN * 4);
  auto product_piece = [&](bool ints) {
    const SatorKernel kernel = kernel_of(product(ints), level, *jit);
    return Piece{[&, kernel](int64_t times) {
      void* buffers[] = {x.data(), w.data(), y.data()};
      for (int64_t i = 0; i < times; ++i)
        if (kernel(buffers, nullptr, pool->context()) != 0) internal_error("a product to measure with failed");
    }};
  };
  host.levels = caches(level, host.threads);
  const int64_t outermost = host.levels.front().capacity_bytes;
  host.levels.insert(host.levels.begin(), {.name = "dram"});
  const Numbers data(std::max(bytes_to_read(host.levels[0], outermost),
                              static_cast<size_t>(outermost) * static_cast<size_t>(host.threads)));
  /// All threads read, each its own part of `bytes` as often as it is asked to.
  auto read_piece = [&](size_t bytes) {
    return Piece{[&, bytes](int64_t times) {
      const size_t part = bytes / static_cast<size_t>(host.threads) / 64 * 64;
      pool->for_each_chunk(host.threads, [&](int64_t begin, int64_t end, SatorContext*) {
        for (int64_t c = begin; c < end; ++c)
          for (int64_t i = 0; i < times; ++i) read_all(data.data() + static_cast<size_t>(c) * part, part);
      });
    }};
  };
  std::vector<Piece> pieces = {Piece{chain}, product_piece(false), product_piece(true), Piece{[&](int64_t times) {
                                 for (int64_t i = 0; i < times; ++i)
                                   pool->parallel_for(pool->num_workers(), nothing, nullptr);
                               }}};
  std::vector<size_t> read_bytes;
  for (const MemoryLevel& m : host.levels) {
    read_bytes.push_back(bytes_to_read(m, outermost) * (m.per_core ? static_cast<size_t>(host.threads) : 1));
    pieces.push_back(read_piece(read_bytes.back()));
  }
  for (Piece& p : pieces) p.find_times();
  for (int round = 0; round < kProbeRounds; ++round)
    for (Piece& p : pieces) p.run(round);

  host.core_hz = 64 / pieces[0].timing.best();
  constexpr double kMacs = static_cast<double>(kM * kN * kK);
  auto rate = [&](const Piece& p, const char* dtype) {
    return ProductRate{text(kM, " x ", kN, " x ", kK, ", ", dtype), kMacs / p.timing.best(), p.timing.noise()};
  };
  host.f32 = rate(pieces[1], "float32");
  host.int8 = rate(pieces[2], "int8");
  host.fork_join_s = pieces[3].timing.best();
  host.fork_join_noise = pieces[3].timing.noise();
  for (size_t m = 0; m < host.levels.size(); ++m) {
    host.levels[m].bytes_per_s = static_cast<double>(read_bytes[m]) / pieces[4 + m].timing.best();
    host.levels[m].noise = pieces[4 + m].timing.noise();
  }
  return host;
}

std::string chip_text(const HostMachine& h, const std::string& name, const std::string& calibration) {
  auto number = [](double v) {  // four digits, as TOML writes a float
    char words[40];
    std::snprintf(words, sizeof words, "%.3e", v);
    return std::string(words);
  };
  // A register tile of sums: 6 rows of 4 vectors where there are 32 registers, 6 of 2 where there are 16.
  const int64_t lanes = h.vector_bits / 32, rows = 6, columns = lanes * (h.vector_registers >= 32 ? 4 : 2);
  const auto threads = static_cast<double>(h.threads);
  const double per_cycle = h.f32.macs_per_s / h.core_hz / threads / static_cast<double>(lanes);
  const int64_t ports = std::max<int64_t>(1, std::llround(per_cycle));
  const double tile = static_cast<double>(rows * columns), macs = static_cast<double>(ports * lanes);
  const double clock = h.f32.macs_per_s / threads / macs;
  /// MACs per PE and cycle, or cycles per MAC, are whole numbers.
  auto per_pe = [&](double macs_per_cycle) {
    const double share = macs_per_cycle / tile;
    return share >= 1 ? std::round(share) : 1 / std::max(1.0, std::round(1 / share));
  };
  const double int8_macs = h.int8.macs_per_s / threads / clock;
  auto precision = [&](int weight, int activation, bool is_float, double macs_per_cycle, const ProductRate& r) {
    const double rate = per_pe(macs_per_cycle);
    return text("\n[[precision]]\nweight_bits = ",
                weight,
                "\nactivation_bits = ",
                activation,
                "\naccumulator_bits = 32\n",
                is_float ? "number = \"float\"\n" : "",
                "macs_per_pe_per_cycle = ",
                text(rate).find_first_of(".e") == std::string::npos ? text(rate, ".0") : text(rate),
                "  # measured: ",
                number(r.macs_per_s),
                " multiply-adds per s in ",
                r.words,
                "; median ",
                times(r.noise),
                " the best time\n");
  };
  std::string out =
      text("# Written by `sator calibrate --host` on ",
           h.date,
           ". Sizes in bytes, rates per second or per cycle as the key says; energies are not measured.\n\nname = ",
           string_literal(name),
           "\ndescription = ",
           string_literal(
               text(h.threads, h.threads == 1 ? " thread of " : " threads of ", h.cpu, ", kernels of level ", h.isa)),
           "\nsource = ",
           string_literal(text("measured by sator calibrate on ", h.date, " on this machine")),
           "\nnode_nm = 10                    # not known; no figure here depends on it\nclock_hz = ",
           number(clock),
           "             # at which each thread does ",
           ports * lanes,
           " float32 multiply-adds per cycle; a core's own clock was ",
           number(h.core_hz),
           "\nlaunch_cycles = ",
           std::llround(h.fork_join_s * clock),
           "              # a parallel loop: ",
           number(h.fork_join_s),
           " s; median ",
           times(h.fork_join_noise),
           " the best time\n");
  if (!calibration.empty()) out += text("calibration = ", string_literal(calibration), "\n");
  out += text("\n[host]                          # estimates stand beside what is measured on this processor\ncpu = ",
              string_literal(h.cpu),
              "\nthreads = ",
              h.threads,
              "\n\n[array]                         # PEs are the sums that a thread keeps in registers\ncores = ",
              h.threads,
              "\nrows = ",
              rows,
              "\ncolumns = ",
              columns,
              "\ndataflow = \"os\"\ninterconnect = \"multicast\"\ntiles_overlap = true\n");
  out += precision(32, 32, true, macs, h.f32);
  out += precision(8, 8, false, int8_macs, h.int8);
  for (const MemoryLevel& m : h.levels) {
    out += text("\n[[memory]]\nname = ", string_literal(m.name), "\n");
    if (m.capacity_bytes > 0) out += text("capacity_bytes = ", m.capacity_bytes, "\n");
    if (m.per_core) out += "per_core = true\n";
    const double of_one = m.per_core ? m.bytes_per_s / threads : m.bytes_per_s;
    const std::string seen = text("read; median ", times(m.noise), " the best time\n");
    if (m.capacity_bytes == 0)
      out += text("bytes_per_second = ", number(of_one), "  # ", seen, "burst_bytes = 64\n");
    else  // what is read of a cache and what fills it go at the same time
      out += text("read_bytes_per_cycle = ",
                  number(of_one / clock),
                  "  # ",
                  number(of_one),
                  " bytes per s, ",
                  seen,
                  "write_bytes_per_cycle = ",
                  number(of_one / clock),
                  "\ndouble_buffered = true\n");
  }
  out += text("\n[pe]\ncapacity_bytes = 64\n\n[vector]\nlanes = ",
              h.threads * lanes,
              "\nops_per_lane_per_cycle = 1\n"
              "does = [\"elementwise\", \"reduce\", \"dequantize\", \"rescale\", \"quantize\"]\n"
              "overlaps_array = false          # the same units\n");
  return out;
}

}  // namespace sator::study
