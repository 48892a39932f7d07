// The C interface between a compiled model library and the runtime that loads it. Plain C, no other include:
// generated code follows this layout, and any language can load a model with it.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Changes whenever a struct below or the meaning of a field changes; a library of another version is
/// refused.
#define SATOR_ABI_VERSION 1u

typedef struct SatorContext SatorContext;

/// One chunk [begin, end) of a parallel loop. `ctx` belongs to the worker that runs it, which may run further chunks.
/// Returns 0, or a status to stop.
typedef int32_t (*SatorChunk)(void* closure, int64_t begin, int64_t end, SatorContext* ctx);

/// What a kernel may use of the world. There are no globals: one context per worker thread.
struct SatorContext {
  uint32_t abi_version;
  int32_t worker;  ///< index of this worker, 0 .. num_workers-1; 0 is the calling thread
  int32_t num_workers;
  int32_t rank;  ///< of this process among the hosts or devices that share the model
  int32_t num_ranks;
  int32_t reserved;
  void* stream;  ///< device stream, null on the CPU
  /// Runs body on [0, n), cut into contiguous chunks, as many as workers, the same cut for the same n and worker
  /// count; who runs which is open. Returns the first status that is not 0. A call from inside a chunk runs serially.
  int32_t (*parallel_for)(SatorContext* ctx, int64_t n, SatorChunk body, void* closure);
  /// Scratch memory of this worker, 64-byte aligned; released in reverse order. Null when memory is out.
  void* (*workspace_push)(SatorContext* ctx, int64_t bytes);
  void (*workspace_pop)(SatorContext* ctx, void* memory);
  /// Records why the kernel fails; the kernel then returns 1. The text is copied.
  void (*set_error)(SatorContext* ctx, const char* message);
};

/// A kernel.
///   buffers  data pointers of the function's buffer parameters, in their order. Each is aligned to its
///   element (memory
///            of the runtime to 64 bytes) and may be null when the buffer has no elements. Distinct buffers
///            do not overlap unless the function was called so.
///   values   what the kernel's signature (bytecode.h) lists as `values`, in that order: symbolic sizes and
///   scalar
///            parameters. A floating scalar is passed as the 64 bits of a double, an integer or bool as
///            itself.
/// Returns 0, or 1 after set_error. Shapes and dtypes were checked before the call.
typedef int32_t (*SatorKernel)(void* const* buffers, const int64_t* values, SatorContext* ctx);

typedef struct SatorKernelEntry {
  const char* name;
  SatorKernel run;
} SatorKernelEntry;

/// All kernels compiled for one instruction-set level.
typedef struct SatorKernelTable {
  const char* isa;  ///< "avx2", "avx512", "amx", "aarch64": the runtime knows what each needs of the CPU
  int32_t num_kernels;
  const SatorKernelEntry* kernels;
} SatorKernelTable;

typedef struct SatorModel {
  uint32_t abi_version;
  uint32_t num_levels;
  const SatorKernelTable* const* levels;  ///< best first
  const char* source_hash;                ///< of everything that shaped this library
  const char* metadata_json;              ///< MLC's `_metadata`, plus ours
  const uint8_t* executable;              ///< bytecode, see bytecode.h
  uint64_t executable_bytes;
} SatorModel;

/// The one symbol a model library exports: `const SatorModel* sator_model(void)`.
typedef const SatorModel* (*SatorModelEntry)(void);

#ifdef __cplusplus
}
#endif
