// The expected bytes are what NumPy 2.4 writes.
#include "runtime/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "temp_folder.h"

namespace sator::runtime {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

/// A file with this dictionary: `version` 1 has two bytes for its length, later ones have four.
std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  const size_t before = version == 1 ? 10 : 12;
  std::string header = dictionary;
  header += std::string(127 - before - header.size(), ' ') + "\n";
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  out += static_cast<char>(header.size());
  out += std::string(version == 1 ? 1 : 3, '\0');
  return out + header + data;
}

std::string header_of(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
}

template <class T>
std::vector<T> elements(const Tensor& tensor) {
  return {tensor.data_as<T>(), tensor.data_as<T>() + tensor.num_elements()};
}

class Npy : public testing::Test {
 protected:
  Ref<Tensor> read(const std::string& bytes) { return read_npy(folder_.write("x.npy", bytes)); }
  std::string refusal(const std::string& bytes) {
    return error_of([&] { read(bytes); });
  }
  TempFolder folder_;
};

TEST_F(Npy, WritesWhatNumpyWrites) {
  struct Row {
    Ref<Tensor> tensor;
    std::string file;
  };
  const std::vector<float> six = {0, 1, 2, 3, 4, 5};
  for (const Row& row : {Row{Tensor::of(six, {2, 3}, f32), npy(header_of("<f4", "(2, 3)"), bytes_of(six))},
                         Row{Tensor::of(std::vector<uint8_t>{1}, {}, boolean), npy(header_of("|b1", "()"), "\x01")},
                         Row{Tensor::of(std::vector<int64_t>{-7}, {1}, i64),
                             npy(header_of("<i8", "(1,)"), bytes_of(std::vector<int64_t>{-7}))},
                         Row{Tensor::of(std::vector<uint16_t>{}, {0, 4}, f16), npy(header_of("<f2", "(0, 4)"), "")},
                         Row{Tensor::of(std::vector<uint16_t>{0x3f80}, {1}, bf16),
                             npy(header_of("|V2", "(1,)"), bytes_of(std::vector<uint16_t>{0x3f80}))}}) {
    write_npy(folder_.path() / "y.npy", *row.tensor);
    EXPECT_EQ(read_file(folder_.path() / "y.npy"), row.file);
    EXPECT_EQ(text(*read(row.file)), text(*row.tensor));
  }
}

TEST_F(Npy, ReadsBothOrders) {
  // numpy.asfortranarray([[0, 1, 2], [3, 4, 5]]) lies column by column.
  const std::string columns = bytes_of(std::vector<int16_t>{0, 3, 1, 4, 2, 5});
  EXPECT_EQ(elements<int16_t>(*read(npy(header_of("<i2", "(2, 3)", true), columns))),
            (std::vector<int16_t>{0, 1, 2, 3, 4, 5}));
  const std::string three_axes = bytes_of(std::vector<uint8_t>{0, 4, 2, 6, 1, 5, 3, 7});
  EXPECT_EQ(elements<uint8_t>(*read(npy(header_of("|u1", "(2, 2, 2)", true), three_axes))),
            (std::vector<uint8_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(Npy, ReadsBothByteOrdersAndAllVersions) {
  const std::string big("\x3f\xf8\0\0\0\0\0\0", 8);  // 1.5
  for (int version : {1, 2, 3})
    EXPECT_EQ(elements<double>(*read(npy(header_of(">f8", "(1,)"), big, version))), std::vector<double>{1.5});
  EXPECT_EQ(elements<uint8_t>(*read(npy(header_of("|b1", "(2,)"), std::string("\x02\0", 2)))),
            (std::vector<uint8_t>{1, 0}));
  // Python 2 wrote so.
  EXPECT_EQ(elements<float>(*read(
                npy("{'descr': '<f4', 'shape': (1L,), 'fortran_order': False}", bytes_of(std::vector<float>{2})))),
            std::vector<float>{2});
}

TEST_F(Npy, RefusesInWords) {
  struct Row {
    std::string bytes, says;
  };
  const std::string four(16, '\0');
  for (const Row& row : {
           Row{"hello, this is text", "is no .npy file"},
           Row{"PK\x03\x04" + four, "is an archive of arrays"},
           Row{npy(header_of("<c8", "(2,)"), four), "holds complex numbers"},
           Row{npy(header_of("|O", "(2,)"), four), "holds Python objects"},
           Row{npy(header_of("<U4", "(1,)"), four), "holds texts"},
           Row{npy(header_of("<f16", "(1,)"), four), "holds floats of another size"},
           Row{npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,)}", four), "records"},
           Row{npy(header_of("<f4", "(5,)"), four), "is cut off: it holds 16 bytes of float32[5]"},
           Row{npy(header_of("<f4", "(3,)"), four), "has 4 bytes behind its array"},
           Row{npy(header_of("<f4", "(4611686018427387904, 8)"), four), "fits into memory"},
           Row{npy(header_of("<f4", "(-1,)"), four), "lacks an extent"},
           Row{npy("{'descr': '<f4', 'shape': (4,)}", four), "lacks fortran_order"},
           Row{npy("{'descr': '<f4'", four), "lacks a }"},
           Row{npy(header_of("<f4", "(4,)"), four, 4), "is of version 4.0"},
           Row{npy(header_of("<f4", "(4,)"), "").substr(0, 40), "is cut off in its header"},
       })
    EXPECT_NE(refusal(row.bytes).find(row.says), std::string::npos) << row.says << "\n" << refusal(row.bytes);
}

}  // namespace
}  // namespace sator::runtime
