// One tensor as a file of NumPy: what `numpy.save` writes and `numpy.load` reads.
#pragma once

#include <filesystem>

#include "runtime/tensor.h"

namespace sator::runtime {

/// The array of a `.npy` file as a row-major tensor in native byte order.
///   versions   1.0, 2.0, 3.0
///   order      C or Fortran
///   dtypes     bool, int8 to int64, uint8 to uint64, float16, float32, float64, of either byte order; two bytes without a
///              name ("V2") are a bfloat16, as the package ml_dtypes stores it
/// Errors: the file cannot be read, is no `.npy` file, is cut off, has bytes behind its array; a dtype that no tensor has
/// (complex numbers, texts, objects, dates, records).
/// Source: numpy.lib.format, "NPY format" (NEP 1 and its later versions).
Ref<Tensor> read_npy(const std::filesystem::path& path);

/// Writes the tensor as `numpy.save` does, version 1.0, C order; the file appears whole or not at all. Integers of less than
/// a byte are stored as bytes.
/// Errors: the file cannot be written; a dtype that NumPy has not.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace sator::runtime
