//===- SafeTensorsTest.cpp - Files of tensors -----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include "runtime/checkpoint/SafeTensors.h"
#include "runtime/checkpoint/SafeTensorsWriter.h"

#include <cmath>
#include <random>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {

/// A file with this header, whatever it says.
std::string fileOf(const std::string &header, size_t dataBytes) {
  return bytesAs<int64_t>({int64_t(header.size())}) + header +
         std::string(dataBytes, '\x01');
}

class SafeTensors : public testing::Test {
protected:
  std::string refusalOf(const std::string &path) {
    TensorSet set;
    Error error;
    bool good = set.open(path.c_str(), error);
    EXPECT_EQ(good, error.text[0] == '\0');
    // Without the folder, whose name is another one each time.
    std::string text = error.text;
    for (size_t at; (at = text.find(folder.path)) != text.npos;)
      text.erase(at, folder.path.size());
    return text;
  }
  /// Why a file with these bytes is refused; empty if it is not.
  std::string refusal(const std::string &bytes) {
    return refusalOf(folder.write("f.safetensors", bytes));
  }
  std::string refusal(const std::string &header, size_t dataBytes) {
    return refusal(fileOf(header, dataBytes));
  }

  Folder folder;
};

const char kGood[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"
    "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
    "\"empty\":{\"dtype\":\"F32\",\"shape\":[281474976710656,0,9],"
    "\"data_offsets\":[8,8]},"
    "\"scalar\":{\"data_offsets\":[32,33],\"dtype\":\"U8\",\"shape\":[]}}  ";

} // namespace

TEST_F(SafeTensors, EntriesByName) {
  TensorSet set;
  Error error;
  std::string path = folder.write("f.safetensors", fileOf(kGood, 33));
  ASSERT_TRUE(set.open(path.c_str(), error)) << error.text;
  std::string names;
  for (const TensorEntry &tensor : set)
    names +=
        std::string(tensor.name) + ShapeText(tensor.shape, tensor.rank).chars;
  EXPECT_EQ(names, "a[2]b[2, 3]empty[281474976710656, 0, 9]scalar[]");
  const TensorEntry *b = set.find("b");
  ASSERT_TRUE(b);
  EXPECT_EQ(set.bytesOf(*b), set.file(0).data + 8 + sizeof(kGood) - 1 + 8);
  EXPECT_EQ(b->bytes, 24);
  EXPECT_EQ(set.pathOf(*b), path);
  EXPECT_FALSE(set.find("c"));
  EXPECT_FALSE(set.find(""));
  EXPECT_EQ(refusal("{}", 0), "");
}

TEST_F(SafeTensors, HeadersThatAreNone) {
  EXPECT_EQ(refusal(""), "'f.safetensors' is no safetensors file: it needs at "
                         "least 9 bytes, but got 0");
  EXPECT_EQ(refusal(bytesAs<int64_t>({100'000'001}) + "{}"),
            "'f.safetensors' is no safetensors file: its header needs at most "
            "100000000 bytes, but its length is 100000001");
  EXPECT_EQ(refusal(bytesAs<int64_t>({-1}) + "{}"),
            "'f.safetensors' is no safetensors file: its header needs at most "
            "100000000 bytes, but its length is 18446744073709551615");
  // The length of one that is cut off may begin as another kind of file does.
  for (int length : {5336, 0x0280, 0x088b1f})
    EXPECT_EQ(refusal(bytesAs<int64_t>({length}) + "{\"a\""),
              "'f.safetensors' is no safetensors file, or cut off: it has 12 "
              "bytes of at least " +
                  std::to_string(8 + length) + ", 8 for a length and " +
                  std::to_string(length) + " for its header");
  EXPECT_EQ(refusal(" {}", 0),
            "'f.safetensors' is no safetensors file: its header needs to begin "
            "with '{', but got the byte 0x20");
  EXPECT_EQ(refusal("{\"a\":1,\"a\":2}", 0),
            "'f.safetensors': byte 15: needs keys that differ, but got 'a' "
            "twice");
  EXPECT_EQ(refusal("{\"__metadata__\":{\"format\":1}}", 0),
            "'f.safetensors': byte 24: __metadata__ needs strings and nothing "
            "else");
  EXPECT_EQ(refusal("{\"__metadata__\":{\"format\":\"np\"}}", 0),
            "'f.safetensors': byte 34: __metadata__ needs the format pt, tf, "
            "flax or mlx, but got 'np'");
  for (const char *format : {"pt", "tf", "flax", "mlx"})
    EXPECT_EQ(refusal("{\"__metadata__\":{\"format\":\"" + std::string(format) +
                          "\"}}",
                      0),
              "");
  EXPECT_EQ(refusal("{\"__metadata__\":{\"by\":\"np\"}}", 0), "");
  EXPECT_EQ(
      refusal("{\"a\":[]}", 0),
      "'f.safetensors': byte 9: tensor 'a' needs a string dtype, an array "
      "shape and two data_offsets, but got nothing, nothing and nothing "
      "of 0");
  EXPECT_EQ(refusalOf(folder.path + "none"),
            "cannot read 'none': No such file or directory");
}

TEST_F(SafeTensors, EntriesThatAreWrong) {
  auto entry = [&](const std::string &dtype, const std::string &shape,
                   const std::string &offsets, size_t dataBytes,
                   const std::string &more = "") {
    std::string text =
        refusal("{\"a\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
                    ",\"data_offsets\":" + offsets + more + "}}",
                dataBytes);
    return text.substr(std::min(text.size(), text.find("tensor '")));
  };
  EXPECT_EQ(entry("F32", "[2]", "[0,8]", 8), "");
  EXPECT_EQ(entry("F32", "[2]", "[0,8]", 8, ",\"x\":1"),
            "tensor 'a' needs dtype, shape and data_offsets, but got 'x'");
  EXPECT_EQ(entry("F33", "[2]", "[0,8]", 8),
            "tensor 'a' has the unknown dtype 'F33'");
  EXPECT_EQ(entry("F32", "[2]", "[0,4]", 4),
            "tensor 'a', [2] of F32, needs 8 bytes, but got 4: 0 to 4");
  EXPECT_EQ(entry("F16", "[2,2]", "[0,8]", 8), "");
  EXPECT_EQ(entry("F4", "[2,2]", "[0,2]", 2), "");
  EXPECT_EQ(entry("F4", "[3]", "[0,2]", 2),
            "tensor 'a' needs a whole number of bytes below 2^60, but got the "
            "shape [3] of F4");
  EXPECT_EQ(entry("F32", "[2]", "[8,0]", 8),
            "tensor 'a', [2] of F32, needs 8 bytes, but got -8: 8 to 0");
  EXPECT_EQ(
      entry("F32", "[-2]", "[0,8]", 8),
      "tensor 'a' needs dimensions from 0 to 281474976710656, but got -2");
  EXPECT_EQ(
      entry("F32", "[2.0]", "[0,8]", 8),
      "tensor 'a' needs dimensions from 0 to 281474976710656, but got 2.0");
  EXPECT_EQ(
      entry("F32", "[2]", "[0,null]", 8),
      "tensor 'a' needs an offset from 0 to 281474976710656, but got null");
  EXPECT_EQ(entry("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]", 8),
            "tensor 'a' needs at most 8 dimensions, but got 9");
  // 2^32 * 2^32 elements are as many as none in 64 bits.
  EXPECT_EQ(entry("F32", "[4294967296,4294967296]", "[0,0]", 0),
            "tensor 'a' needs a whole number of bytes below 2^60, but got the "
            "shape [4294967296, 4294967296] of F32");
}

TEST_F(SafeTensors, TensorsTileTheData) {
  auto two = [&](int begin, int end, size_t dataBytes) {
    return refusal("{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,"
                   "8]},\"b\":{\"dtype\":\"U8\",\"shape\":[" +
                       std::to_string(end - begin) + "],\"data_offsets\":[" +
                       std::to_string(begin) + "," + std::to_string(end) +
                       "]}}",
                   dataBytes);
  };
  EXPECT_EQ(two(8, 12, 12), "");
  EXPECT_EQ(two(8, 8, 8), "");
  EXPECT_EQ(two(9, 12, 12),
            "'f.safetensors': tensor 'b' needs to begin at byte 8 of the data, "
            "where 'a' ends, but begins at 9 and leaves out 1 bytes");
  EXPECT_EQ(two(5, 12, 12),
            "'f.safetensors': tensor 'b' needs to begin at byte 8 of the data, "
            "where 'a' ends, but begins at 5 and shares 3 bytes");
  std::string cut = two(8, 12, 11), more = two(8, 12, 13);
  EXPECT_NE(cut.find(" bytes, 1"), cut.npos);
  EXPECT_NE(cut.find("of header and 12 of tensors, but got 1"), cut.npos)
      << cut;
  EXPECT_NE(more.find("of header and 12 of tensors, but got 1"), more.npos);
}

TEST_F(SafeTensors, TruncatedAndDamagedFiles) {
  const std::string good = fileOf(kGood, 33);
  EXPECT_EQ(refusal(good), "");
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(refusal(good.substr(0, size)), "") << size;
  EXPECT_NE(refusal(good + "x"), "");
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = good;
    for (unsigned n = 1 + random() % 3; n; --n)
      damaged[random() % (8 + sizeof(kGood))] = char(random());
    refusal(damaged); // Any answer, but nothing read outside.
  }
}

TEST_F(SafeTensors, Folders) {
  auto one = [](const char *name) {
    return fileOf(std::string("{\"") + name +
                      "\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,"
                      "8]}}",
                  8);
  };
  auto refusalWith = [&](const std::string &map) {
    folder.write("model.safetensors.index.json",
                 "{\"metadata\":{\"total_size\":16},\n \"weight_map\":" + map +
                     "}");
    return refusalOf(folder.path.substr(0, folder.path.size() - 1));
  };
  EXPECT_EQ(refusalOf(folder.path),
            "'' needs a file model.safetensors or "
            "model.safetensors.index.json, but has neither");
  folder.write("x.safetensors", one("x"));
  folder.write("y.safetensors", one("y"));
  EXPECT_EQ(refusalWith("{\"x\":\"x.safetensors\",\"y\":\"y.safetensors\"}"),
            "");
  EXPECT_EQ(refusalWith("{\"x\":\"x.safetensors\",\"y\":\"x.safetensors\"}"),
            "model.safetensors.index.json:2:36: error: "
            "'x.safetensors' has no tensor 'y'");
  EXPECT_EQ(refusalWith("{\"x\":\"y.safetensors\",\"y\":\"y.safetensors\"}"),
            "model.safetensors.index.json:2:16: error: "
            "'y.safetensors' has no tensor 'x'");
  EXPECT_EQ(refusalWith("{\"x\":\"y.safetensors\",\"y\":\"x.safetensors\"}"),
            "model.safetensors.index.json:2:16: error: "
            "'y.safetensors' has no tensor 'x'");
  EXPECT_EQ(refusalWith("{\"x\":\"x.safetensors\",\"y\":\"z.safetensors\"}"),
            "model.safetensors.index.json:2:40: error: cannot read "
            "'z.safetensors': No such file or directory");
  for (const char *name : {"../x.safetensors", "/etc/passwd", "a/b", "..", ".",
                           "", "x\\u0000.safetensors"})
    EXPECT_NE(refusalWith("{\"x\":\"" + std::string(name) + "\"}")
                  .find("the file of a tensor needs to be a name in the folder "
                        "of the index, but got a string '"),
              std::string::npos)
        << name;
  for (auto [file, kind] :
       {std::pair("3", "a number"), std::pair("null", "null")})
    EXPECT_EQ(refusalWith("{\"x\":" + std::string(file) + "}"),
              "model.safetensors.index.json:2:20: error: the file of a tensor "
              "needs to be a string, but got " +
                  std::string(kind));
  EXPECT_EQ(refusalWith("[]"),
            "model.safetensors.index.json:2:15: error: an index needs a "
            "weight_map, an object with the file of each tensor, but got an "
            "array of 0");
  folder.write("y.safetensors", one("x"));
  EXPECT_EQ(refusalWith("{\"x\":\"x.safetensors\",\"y\":\"y.safetensors\"}"),
            "tensor 'x' is in 'x.safetensors' and in 'y.safetensors'");
  // One file comes first, as for others who read such folders.
  folder.write("model.safetensors", one("z"));
  EXPECT_EQ(refusalWith("[]"), "");
}

// Each of the 65536 values, against the definition.
TEST(Elements, HalvesBecomeFloatsExactly) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < 65536; ++i)
    all.push_back(i);
  for (const char *name : {"BF16", "F16"}) {
    Folder folder;
    TensorSet set;
    Error error;
    std::string path = folder.write(
        "f.safetensors",
        fileOf("{\"a\":{\"dtype\":\"" + std::string(name) +
                   "\",\"shape\":[65536],\"data_offsets\":[0,131072]}}",
               0) +
            bytesAs<uint16_t>(all));
    ASSERT_TRUE(set.open(path.c_str(), error)) << error.text;
    const TensorEntry &tensor = *set.begin();
    ASSERT_EQ(tensor.type->use, ElementUse::Number);
    int exponentBits = name[0] == 'B' ? 8 : 5, fractionBits = 15 - exponentBits;
    for (int64_t i = 0; i < 65536; ++i) {
      int64_t exponent = i >> fractionBits & ((1 << exponentBits) - 1);
      double fraction =
          std::ldexp(double(i & ((1 << fractionBits) - 1)), -fractionBits);
      int bias = (1 << (exponentBits - 1)) - 1;
      double expected = exponent
                            ? std::ldexp(1 + fraction, int(exponent) - bias)
                            : std::ldexp(fraction, 1 - bias);
      bool finite = exponent != (1 << exponentBits) - 1;
      float value = 0;
      tensor.type->convert(set.bytesOf(tensor) + 2 * i, 1, &value);
      EXPECT_EQ(allFinite(&value, 1), finite) << name << i;
      if (finite)
        ASSERT_EQ(double(value), i & 0x8000 ? -expected : expected)
            << name << i;
    }
    // Eight at a time, and the rest, and where the bad one is.
    float values[19];
    tensor.type->convert(set.bytesOf(tensor) + 2 * 16250, 19, values);
    EXPECT_TRUE(allFinite(values, 19));
    float last = 0;
    tensor.type->convert(set.bytesOf(tensor) + 2 * 16268, 1, &last);
    EXPECT_EQ(values[18], last);
    int64_t infinity = int64_t((1 << exponentBits) - 1) << fractionBits;
    for (int64_t before = 0; before < 19; ++before) {
      tensor.type->convert(set.bytesOf(tensor) + 2 * (infinity - before), 19,
                           values);
      EXPECT_FALSE(allFinite(values, 19));
    }
  }
}

// Each of the 256 values of eight bits, against the definition.
TEST(Elements, EightBitsBecomeFloatsExactly) {
  struct Format {
    const char *name;
    int fractionBits, bias;
    bool hasInfinity;
  };
  for (const Format &format :
       {Format{"F8_E4M3", 3, 7, false}, Format{"F8_E5M2", 2, 15, true}}) {
    const ElementType *type = findElementType(format.name);
    ASSERT_EQ(type->use, ElementUse::Scaled);
    const int ones = (1 << (7 - format.fractionBits)) - 1;
    const int all = (1 << format.fractionBits) - 1;
    for (int i = 0; i < 256; ++i) {
      const int exponent = i >> format.fractionBits & ones;
      const double fraction = std::ldexp(i & all, -format.fractionBits);
      const double size = exponent
                              ? std::ldexp(1 + fraction, exponent - format.bias)
                              : std::ldexp(fraction, 1 - format.bias);
      const bool finite =
          exponent != ones || (!format.hasInfinity && (i & all) != all);
      const unsigned char byte = static_cast<unsigned char>(i);
      float value = 0;
      type->convert(&byte, 1, &value);
      ASSERT_EQ(allFinite(&value, 1), finite) << format.name << i;
      if (finite)
        ASSERT_EQ(double(value), i & 0x80 ? -size : size) << format.name << i;
    }
  }
  const ElementType *power = findElementType("F8_E8M0");
  ASSERT_EQ(power->use, ElementUse::Scale);
  for (int i = 0; i < 256; ++i) {
    const unsigned char byte = static_cast<unsigned char>(i);
    float value = 0;
    power->convert(&byte, 1, &value);
    ASSERT_EQ(allFinite(&value, 1), i < 255);
    if (i < 255)
      ASSERT_EQ(double(value), std::ldexp(1.0, i - 127)) << i;
  }
}

// What the one writes the other reads; an independent look at the bytes is in
// the tests of --dump.
TEST(Elements, WrittenHeadersAreRead) {
  const float data[6] = {1, 2, 3, 4, 5, 6};
  OutputTensor tensors[] = {{"", "t", true, 1, {2}, data},
                            {"x/", "b", false, 2, {2, 3}, data},
                            {"x/", "a", false, 0, {}, data},
                            {"a", "", false, 1, {0}, data}};
  size_t size = 0;
  char *header = makeSafeTensorsHeader(tensors, 4, size);
  ASSERT_TRUE(header);
  EXPECT_EQ(size % 8, 0u);
  std::string bytes(header, size);
  free(header);
  for (const OutputTensor &tensor : tensors)
    bytes.append(static_cast<const char *>(tensor.data), tensor.bytes());
  Folder folder;
  TensorSet set;
  Error error;
  std::string path = folder.write("f.safetensors", bytes);
  ASSERT_TRUE(set.open(path.c_str(), error)) << error.text;
  std::string found;
  for (const TensorEntry &t : set)
    found += std::string(t.name) + " " + t.type->name + " " +
             std::to_string(t.offset - int64_t(size)) + "\n";
  EXPECT_EQ(found, "a F32 0\nt I32 28\nx/a F32 0\nx/b F32 4\n");
}
