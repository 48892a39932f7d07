#include "target/nvidia.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace sator::target {

namespace {

/// Devices by their compute capability. Source: NVIDIA, "CUDA GPUs", developer.nvidia.com/cuda-gpus; spelling: TVM's tags.
struct Generation {
  int compute_capability;
  std::string_view devices;  ///< names between spaces
};
constexpr Generation kGenerations[] = {
    {20,
     "geforce-gtx-465 geforce-gtx-470 geforce-gtx-480 geforce-gtx-480m geforce-gtx-570 geforce-gtx-580 "
     "geforce-gtx-590 quadro-plex-7000 tesla-c2050 tesla-c2070 tesla-c2075"},
    {21,
     "geforce-410m geforce-610m geforce-705m geforce-710m geforce-800m geforce-820m geforce-gt-415m "
     "geforce-gt-420m geforce-gt-430 geforce-gt-435m geforce-gt-440 geforce-gt-445m geforce-gt-520 "
     "geforce-gt-520m geforce-gt-520mx geforce-gt-525m geforce-gt-540m geforce-gt-550m geforce-gt-555m "
     "geforce-gt-610 geforce-gt-620 geforce-gt-620m geforce-gt-625m geforce-gt-630 geforce-gt-630m "
     "geforce-gt-635m geforce-gt-640-gddr3 geforce-gt-720m geforce-gt-730-ddr3,128bit geforce-gts-450 "
     "geforce-gtx-460 geforce-gtx-460m geforce-gtx-470m geforce-gtx-485m geforce-gtx-550-ti "
     "geforce-gtx-560-ti geforce-gtx-560m geforce-gtx-570m geforce-gtx-580m geforce-gtx-670m "
     "geforce-gtx-675m nvidia-nvs-310 nvidia-nvs-315 nvs-4200m nvs-5200m nvs-5400m"},
    {30,
     "geforce-gt-640m geforce-gt-640m-le geforce-gt-645m geforce-gt-650m geforce-gt-730m geforce-gt-735m "
     "geforce-gt-740 geforce-gt-740m geforce-gt-745m geforce-gt-750m geforce-gt-755m geforce-gtx-650 "
     "geforce-gtx-650-ti geforce-gtx-650-ti-boost geforce-gtx-660 geforce-gtx-660-ti geforce-gtx-660m "
     "geforce-gtx-670 geforce-gtx-670mx geforce-gtx-675mx geforce-gtx-680 geforce-gtx-680m "
     "geforce-gtx-680mx geforce-gtx-690 geforce-gtx-760 geforce-gtx-760m geforce-gtx-765m geforce-gtx-770 "
     "geforce-gtx-770m geforce-gtx-780m geforce-gtx-860m-sm-30 geforce-gtx-870m geforce-gtx-880m "
     "nvidia-nvs-510 quadro-410 quadro-k1100m quadro-k2000 quadro-k2000d quadro-k2100m quadro-k2200m "
     "quadro-k3100m quadro-k4000 quadro-k4100m quadro-k420 quadro-k4200 quadro-k4200m quadro-k5000 "
     "quadro-k500m quadro-k5100m quadro-k5200m quadro-k600 quadro-k6000m tesla-k10"},
    {35,
     "geforce-920m geforce-gt-640-gddr5 geforce-gt-705 geforce-gt-720 geforce-gt-730 geforce-gtx-780 "
     "geforce-gtx-780-ti geforce-gtx-titan geforce-gtx-titan-black geforce-gtx-titan-z quadro-k510m "
     "quadro-k5200 quadro-k6000 quadro-k610m tesla-k20 tesla-k40"},
    {37, "tesla-k80"},
    {50,
     "geforce-830m geforce-840m geforce-930m geforce-940m geforce-gtx-750 geforce-gtx-750-ti "
     "geforce-gtx-850m geforce-gtx-860m-sm-50 geforce-gtx-950m geforce-gtx-960m nvidia-nvs-810 "
     "quadro-k1200 quadro-k2200 quadro-k620 quadro-k620m quadro-m1000m quadro-m1200 quadro-m2000m "
     "quadro-m3000m quadro-m4000m quadro-m5000m quadro-m500m quadro-m520 quadro-m600m"},
    {52,
     "geforce-910m geforce-gtx-950 geforce-gtx-960 geforce-gtx-965m geforce-gtx-970 geforce-gtx-970m "
     "geforce-gtx-980 geforce-gtx-980-ti geforce-gtx-980m geforce-gtx-titan-x quadro-m2000 quadro-m2200 "
     "quadro-m4000 quadro-m5000 quadro-m5500m quadro-m6000 quadro-m6000-24gb quadro-m620 tesla-m40 "
     "tesla-m60"},
    {53, "jetson-nano jetson-tx1 tegra-x1"},
    {60, "quadro-gp100 tesla-p100"},
    {61,
     "geforce-gtx-1050 geforce-gtx-1060 geforce-gtx-1070 geforce-gtx-1070-ti geforce-gtx-1080 "
     "geforce-gtx-1080-ti nvidia-titan-x nvidia-titan-xp p520 p620 quadro-p1000 quadro-p2000 quadro-p2200 "
     "quadro-p3000 quadro-p3200 quadro-p400 quadro-p4000 quadro-p4200 quadro-p500 quadro-p5000 "
     "quadro-p5200 quadro-p600 quadro-p6000 quadro-p620 tesla-p4 tesla-p40"},
    {62, "jetson-tx2"},
    {70, "nvidia-titan-v nvidia-v100 quadro-gv100"},
    {72, "jetson-agx-xavier"},
    {75,
     "geforce-rtx-2060 geforce-rtx-2070 geforce-rtx-2080 geforce-rtx-2080-ti nvidia-t4 nvidia-titan-rtx "
     "quadro-rtx-4000 quadro-rtx-5000 quadro-rtx-6000 quadro-rtx-8000 rtx-3000 rtx-4000 rtx-5000 t1000 "
     "t2000"},
    {80, "nvidia-a100 nvidia-a30"},
    {86,
     "geforce-rtx-3050 geforce-rtx-3060 geforce-rtx-3070 geforce-rtx-3070-ti geforce-rtx-3080 "
     "geforce-rtx-3080-ti geforce-rtx-3090 geforce-rtx-3090-ti nvidia-a10 nvidia-a10g nvidia-a16 "
     "nvidia-a2 nvidia-a40 rtx-a6000"},
    {87, "jetson-agx-orin-32gb jetson-agx-orin-64gb jetson-orin-nano"},
    {89,
     "geforce-rtx-4060 geforce-rtx-4060-ti geforce-rtx-4070 geforce-rtx-4070-ti geforce-rtx-4080 "
     "geforce-rtx-4090 nvidia-l4 nvidia-l40 nvidia-l40s rtx-6000-ada"},
    {90, "nvidia-gh200 nvidia-h100 nvidia-h200"},
};

// Sources: NVIDIA's white papers of A100 (40 MB), H100 (50 MB), Ada (72 MB).
constexpr std::pair<std::string_view, int64_t> kL2Bytes[] = {
    {"nvidia-a100", 40 << 20}, {"nvidia-h100", 50 << 20}, {"geforce-rtx-4090", 72 << 20}};

/// 90 of "sm_90a"; nothing if it is not of that form.
std::optional<int> capability_of_arch(std::string_view arch) {
  if (!arch.starts_with("sm_")) return {};
  int value = 0;
  auto [end, error] = std::from_chars(arch.data() + 3, arch.data() + arch.size(), value);
  if (error != std::errc() || end - (arch.data() + arch.size()) < -1) return {};
  return value;
}

std::optional<int64_t> number(const Attrs& config, const char* key) {
  if (auto given = int_attr(config, key)) return given;
  const std::string text = string_attr(config, key).value_or("");
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string NvidiaDevice::arch() const { return text("sm_", compute_capability, compute_capability == 90 ? "a" : ""); }

std::optional<NvidiaDevice> find_nvidia_device(std::string_view tag) {
  if (!tag.starts_with("nvidia/")) return {};
  const std::string_view name = tag.substr(7);
  for (const Generation& g : kGenerations) {
    const std::vector<std::string_view> names = split(g.devices, ' ');
    if (std::ranges::find(names, name) == names.end()) continue;
    const auto l2 = std::ranges::find(kL2Bytes, name, &std::pair<std::string_view, int64_t>::first);
    return NvidiaDevice{g.compute_capability, l2 == std::end(kL2Bytes) ? 0 : l2->second};
  }
  return {};
}

std::optional<NvidiaGpu> nvidia_gpu(const TargetConfigRef& target) {
  if (!target || device_of(target).name != "cuda") return {};
  NvidiaGpu gpu;
  if (auto tag = string_attr(target->config, "tag"); tag && tag->starts_with("nvidia/")) {
    const std::optional<NvidiaDevice> device = find_nvidia_device(*tag);
    if (!device)
      fail({.what = text("there is no NVIDIA device ", string_literal(*tag), " in the table"),
            .needs = "a device of the table, or its architecture",
            .hint = "write cuda -arch=sm_80, with the device's compute capability"});
    gpu.compute_capability = device->compute_capability;
  }
  if (auto arch = string_attr(target->config, "arch")) {
    auto capability = capability_of_arch(*arch);
    if (!capability)
      fail({.what = text("arch=", *arch, " is not an architecture"),
            .needs = "sm_ and the compute capability",
            .hint = "as in -arch=sm_80"});
    gpu.compute_capability = *capability;
  }
  for (const char* key : {"max_num_threads", "max_threads_per_block"})
    gpu.max_threads_per_block = number(target->config, key).value_or(gpu.max_threads_per_block);
  gpu.max_shared_memory_bytes =
      number(target->config, "max_shared_memory_per_block").value_or(gpu.max_shared_memory_bytes);
  gpu.registers_per_block = number(target->config, "registers_per_block").value_or(gpu.registers_per_block);
  gpu.warp_size = number(target->config, "thread_warp_size").value_or(gpu.warp_size);
  return gpu;
}

}  // namespace sator::target
