#pragma once

#include <string_view>

namespace sator::formats::timeloop {

/// A convolution along one axis on 4 x 2 PEs, in the form of v0.4.
inline constexpr std::string_view kArchitecture = R"(architecture:
  version: 0.4
  nodes:
  - !Container
    name: system
    attributes: {technology: 45nm}
  - !Component
    name: DRAM
    class: DRAM
    attributes: {width: 64, datawidth: 8, read_bandwidth: 4}
  - !Component
    name: buffer
    class: SRAM
    attributes: {depth: 1024, width: 32, datawidth: 8, read_bandwidth: 16, write_bandwidth: 16}
  - !Container
    name: PE
    spatial: {meshX: 4, meshY: 2}
  - !Component
    name: registers
    class: regfile
    attributes: {depth: 64, width: 8, datawidth: 8}
  - !Component
    name: mac
    class: intmac
    attributes: {datawidth: 8}
)";

/// The same chip as v0.3 writes it, with the level that v0.4's container becomes.
inline constexpr std::string_view kTree = R"(architecture:
  version: 0.3
  subtree:
  - name: system
    local:
    - name: DRAM
      class: DRAM
      attributes: {width: 64, word-bits: 8, read_bandwidth: 4}
    subtree:
    - name: chip
      local:
      - name: buffer
        class: SRAM
        attributes: {depth: 1024, width: 32, word-bits: 8, read_bandwidth: 16, write_bandwidth: 16}
      - name: inter_PE_spatial
        class: dummy_storage
        attributes: {depth: 1, width: 1, datawidth: 1}
      subtree:
      - name: PE[0..7]
        local:
        - name: registers
          class: regfile
          attributes: {entries: 64, datawidth: 8, meshX: 4}
        - name: mac
          class: intmac
          attributes: {datawidth: 8, meshX: 4}
)";

inline constexpr std::string_view kProblem = R"(problem:
  version: 0.4
  shape:
    name: conv1d
    dimensions: [K, C, R, P]
    coefficients:
    - {name: stride, default: 1}
    data_spaces:
    - name: Weights
      projection: [[[K]], [[C]], [[R]]]
    - name: Inputs
      projection: [[[C]], [[P, stride], [R]]]
    - name: Outputs
      projection: [[[K]], [[P]]]
      read_write: true
  instance: {K: 16, C: 4, R: 3, P: 32, stride: 2}
)";

inline constexpr std::string_view kMapping = R"(mapping:
- target: DRAM
  type: temporal
  factors: K=4 P=2
  permutation: KPRC
- target: buffer
  type: temporal
  factors: C=2 P=4
  permutation: PCKR
- target: PE
  type: spatial
  factors: K=4 C=2
  permutation: KCRP
  split: 1
- target: registers
  type: temporal
  factors: R=3 P=4
  permutation: RPKC
- target: buffer
  type: bypass
  keep: [Inputs, Outputs]
  bypass: [Weights]
)";

/// What Timeloop prints for the same mapping.
inline constexpr std::string_view kPrinted = R"(DRAM [ Weights:192 (192) Inputs:260 (260) Outputs:512 (512) ]
---------------------------------------------------------------
| for P in [0:2)
|   for K in [0:4)

buffer [ Inputs:132 (132) Outputs:64 (64) ]
-------------------------------------------
|     for C in [0:2)
|       for P in [0:4)

inter_PE_spatial [ ]
--------------------
|         for C in [0:2) (Spatial-Y)
|           for K in [0:4) (Spatial-X)

registers [ Weights:3 (3) Inputs:9 (9) Outputs:4 (4) ]
------------------------------------------------------
|             for P in [0:4)
|               for R in [0:3)
|                 << Compute >>
)";

inline constexpr std::string_view kErt = R"(ERT:
  version: 0.4
  tables:
  - name: system.DRAM[1..1]
    actions:
    - {name: read, arguments: {}, energy: 512}
    - {name: write, arguments: {}, energy: 512}
  - name: system.buffer[1..1]
    actions:
    - {name: read, energy: 20}
    - {name: write, energy: 16}
    - {name: leak, energy: 0.5}
  - name: system.registers[1..8]
    actions:
    - {name: read, energy: 0.2}
    - {name: write, energy: 0.25}
  - name: system.mac[1..8]
    actions:
    - {name: compute, energy: 0.3}
)";

}  // namespace sator::formats::timeloop
