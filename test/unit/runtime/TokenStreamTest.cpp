//===- TokenStreamTest.cpp - Files of tokens ------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include <filesystem>
#include <random>
#include <sys/stat.h>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {
constexpr int32_t kU16Magic = 20240520, kU32Magic = 20240801;

class TokenFiles : public testing::Test {
protected:
  Folder folder;
};
} // namespace

TEST_F(TokenFiles, TextIsItsBytes) {
  std::string path = folder.write("x.txt", "a\xffz");
  EXPECT_EQ(Tokens({path}).values, (Values{'a', 255, 'z'}));
  EXPECT_EQ(Tokens({folder.write("bin", "MMIDIDX")}).values.size(), 7u);
  EXPECT_EQ(Tokens({folder.write("empty", "")}).values, Values());
}

TEST_F(TokenFiles, LlmcHeadersSayWhatFollows) {
  std::string path = folder.write(
      "a.bin", llmcFile(kU16Magic, 1, 3, bytesAs<uint16_t>({7, 50256, 65535})));
  EXPECT_EQ(Tokens({path}).values, (Values{7, 50256, 65535}));
  EXPECT_EQ(Tokens({path}, TokenType::U16).values.size(), 3u);
  EXPECT_EQ(Tokens({path}, TokenType::U32).error,
            "'" + path +
                "' has tokens of type u16, but --dtype is u32; it is needed "
                "only for .bin files without a header");
  std::string wide = folder.write(
      "b.bin", llmcFile(kU32Magic, 7, 2, bytesAs<uint32_t>({128255, 0})));
  EXPECT_EQ(Tokens({wide}).values, (Values{128255, 0}));
  std::string none = folder.write("c.bin", llmcFile(kU16Magic, 1, 0, ""));
  EXPECT_EQ(Tokens({none}).values, Values());
  EXPECT_EQ(Tokens({none}).error, "");
}

TEST_F(TokenFiles, LlmcHeadersAreChecked) {
  auto refusal = [&](const std::string &bytes) {
    std::string path = folder.write("x.bin", bytes);
    std::string error = Tokens({path}).error;
    EXPECT_EQ(error.find("'" + path + "' "), 0u) << error;
    return error.substr(path.size() + 3);
  };
  std::string six = bytesAs<uint16_t>({1, 2, 3});
  EXPECT_EQ(refusal(llmcFile(kU16Magic, 1, 4, six)),
            "needs 1032 bytes for a header of 1024 and the 4 tokens of type "
            "u16 that it names, but got 1030");
  EXPECT_EQ(refusal(llmcFile(kU16Magic, 1, 2, six)),
            "needs 1028 bytes for a header of 1024 and the 2 tokens of type "
            "u16 that it names, but got 1030");
  EXPECT_EQ(refusal(llmcFile(kU32Magic, 7, -1, "")),
            "needs a number of tokens in llm.c's header, but got -1");
  EXPECT_EQ(refusal(llmcFile(kU16Magic, 7, 3, six)),
            "has llm.c's magic number 20240520, which needs version 1, but got "
            "version 7");
  EXPECT_EQ(refusal(llmcFile(kU16Magic, 1, 3, six).substr(0, 500)),
            "is truncated: llm.c's header needs 1024 bytes, but got 500");
  EXPECT_EQ(refusal(llmcFile(20240522, 1, 3, six)),
            "is a file of llm.c with multiple-choice questions, not with "
            "tokens");
  EXPECT_EQ(refusal(llmcFile(20240326, 3, 3, six)),
            "is a file of llm.c with the parameters of a model, not with "
            "tokens");
}

TEST_F(TokenFiles, TokensAloneNeedAStatedType) {
  std::string path = folder.write("x.bin", bytesAs<uint16_t>({1, 2, 3, 40000}));
  EXPECT_EQ(Tokens({path}, TokenType::U16).values, (Values{1, 2, 3, 40000}));
  EXPECT_EQ(Tokens({path}, TokenType::U32, INT64_C(1) << 32).values.size(), 2u);
  EXPECT_EQ(
      Tokens({path}).error,
      "'" + path +
          "' has no header of llm.c or NeMo Automodel, and a Megatron index '" +
          folder.path +
          "x.idx' that would say how its tokens are stored is not beside it; "
          "if it has tokens alone, as nanoGPT writes them, say --dtype u16 or "
          "--dtype u32");
  std::string odd = folder.write("odd.bin", "12345");
  EXPECT_EQ(Tokens({odd}, TokenType::U16).error,
            "'" + odd +
                "' needs a whole number of tokens of 2 bytes (--dtype u16), "
                "but got 5 bytes");
  std::string text = folder.write("x.txt", "12");
  EXPECT_EQ(Tokens({text}, TokenType::U16).error,
            "'" + text +
                "' is text, since its name does not end in .bin, but --dtype "
                "u16 is for .bin files");
  EXPECT_EQ(Tokens({folder.write("empty.bin", "")}, TokenType::U16).error, "");
}

// Text under a name of tokens is called that wherever it is refused.
TEST_F(TokenFiles, TextInTokensIsNamed) {
  std::string path = folder.write("x.bin", "The cat sat there");
  EXPECT_EQ(Tokens({path}).error,
            "'" + path +
                "' begins as text does, but a file in .bin has tokens; give it "
                "a name in .txt, or say --dtype if these are tokens all the "
                "same");
  path = folder.write("x.bin", "The cat sat here");
  EXPECT_EQ(Tokens({path}, TokenType::U16, 256).error,
            "'" + path +
                "' has the token 26708 at byte 0 (number 0, from 0), but the "
                "model's vocabulary has 256 tokens, 0 to 255; the file begins "
                "as text does: give it a name in .txt if it is text");
}

// Megatron's lists of files may have weights.
TEST_F(TokenFiles, WeightsAreRefused) {
  EXPECT_EQ(Tokens({"0.3", folder.write("x.txt", "a")}).error,
            "cannot read '0.3': No such file or directory; files have no "
            "weights here: an epoch has each sample of all of them once, so a "
            "file that is given twice counts twice");
  std::string path = folder.write("7", "a");
  EXPECT_EQ(Tokens({path, path}).values, (Values{'a', 'a'}));
  // A number may begin the name of a file.
  std::filesystem::path old = std::filesystem::current_path();
  folder.write("0001.bin", "a");
  std::filesystem::current_path(folder.path);
  EXPECT_EQ(Tokens({"0001"}).error, "cannot read '0001': No such file or "
                                    "directory; there is '0001.bin'");
  std::filesystem::current_path(old);
}

// NeMo Automodel's header says how many bytes a token has.
TEST_F(TokenFiles, AutomodelHeadersSayWhatFollows) {
  auto file = [&](int32_t version, int32_t bytes, const std::string &tokens) {
    std::string all = llmcFile(278895051, version, 3, tokens);
    all.replace(12, 4, bytesAs<int32_t>({bytes}));
    return folder.write("x.bin", all);
  };
  const std::string narrow = bytesAs<uint16_t>({7, 50256, 65535});
  const std::string wide = bytesAs<uint32_t>({7, 163583, 0});
  EXPECT_EQ(Tokens({file(1, 2, narrow)}).values, (Values{7, 50256, 65535}));
  EXPECT_EQ(Tokens({file(1, 4, wide)}).values, (Values{7, 163583, 0}));
  EXPECT_EQ(Tokens({file(1, 4, wide)}, TokenType::U32).values.size(), 3u);
  std::string path = folder.path + "x.bin";
  // What the command line says does not make the header tokens.
  EXPECT_EQ(Tokens({path}, TokenType::U16).error,
            "'" + path +
                "' has tokens of type u32, but --dtype is u16; it is needed "
                "only for .bin files without a header");
  EXPECT_EQ(Tokens({file(2, 2, narrow)}).error,
            "'" + path +
                "' has NeMo Automodel's magic number 278895051, which needs "
                "version 1, but got version 2");
  EXPECT_EQ(Tokens({file(1, 8, narrow)}).error,
            "'" + path +
                "' needs 2 or 4 bytes for a token in NeMo Automodel's header, "
                "but got 8");
  EXPECT_EQ(Tokens({file(1, 4, narrow)}).error,
            "'" + path +
                "' needs 1036 bytes for a header of 1024 and the 3 tokens of "
                "type u32 that it names, but got 1030");
}

namespace {
/// A .npy file; version 1 unless the header is said to be of another.
std::string npyFile(const std::string &descr, const std::string &shape,
                    const std::string &data, int version = 1) {
  std::string header = "{'descr': " + descr +
                       ", 'fortran_order': False, 'shape': " + shape + ", }";
  header += std::string(117 - header.size(), ' ') + "\n";
  std::string size = version == 1 ? bytesAs<uint16_t>({int64_t(header.size())})
                                  : bytesAs<uint32_t>({int64_t(header.size())});
  return "\x93NUMPY" + std::string(1, char(version)) + std::string(1, '\0') +
         size + header + data;
}
} // namespace

TEST_F(TokenFiles, NumpyArraysAreTokens) {
  const Values values = {1, 2, 100};
  const std::vector<int64_t> wide(values.begin(), values.end());
  for (int version : {1, 2, 3}) {
    auto read = [&](const char *descr, const std::string &data) {
      return Tokens(
                 {folder.write("x.npy", npyFile(descr, "(3,)", data, version))})
          .values;
    };
    EXPECT_EQ(read("'|u1'", bytesAs<uint8_t>(wide)), values);
    EXPECT_EQ(read("'<u2'", bytesAs<uint16_t>(wide)), values);
    EXPECT_EQ(read("'<i2'", bytesAs<int16_t>(wide)), values);
    EXPECT_EQ(read("'<u4'", bytesAs<uint32_t>(wide)), values);
    EXPECT_EQ(read("'<i4'", bytesAs<int32_t>(wide)), values);
    EXPECT_EQ(read("\"<i8\"", bytesAs<int64_t>(wide)), values);
    EXPECT_EQ(read("'<u8'", bytesAs<int64_t>(wide)), values);
  }
  // By whatever name, and beside other files.
  std::string two = bytesAs<uint16_t>({300, 301});
  std::string a = folder.write("a.bin", npyFile("'<u2'", "(2,)", two));
  std::string b = folder.write("shard", npyFile("'<u2'", "(2,)", two));
  std::string c = folder.write("c.txt", "xy");
  EXPECT_EQ(Tokens({a, c, b}).values, (Values{300, 301, 'x', 'y', 300, 301}));
  EXPECT_EQ(Tokens({a}, TokenType::U16).values.size(), 2u);
  EXPECT_EQ(Tokens({folder.write("e.npy", npyFile("'<u2'", "(0,)", ""))}).error,
            "");
  TokenStream stream;
  Error error;
  for (const std::string &path : {a, b, c})
    ASSERT_TRUE(stream.add(path.c_str(), {}, error)) << error.text;
  EXPECT_FALSE(stream.isText(0) || stream.isText(1));
  EXPECT_TRUE(stream.isText(2));
}

TEST_F(TokenFiles, OtherNumpyArraysAreRefused) {
  auto refusal = [&](const std::string &bytes) {
    std::string path = folder.write("x.npy", bytes);
    std::string error = Tokens({path}).error;
    EXPECT_EQ(error.find("'" + path + "' "), 0u) << error;
    return error.substr(std::min(error.size(), path.size() + 3));
  };
  const std::string six(6, 'x');
  const std::string types =
      ", but tokens need integers, little-endian, as numpy.save writes an "
      "array of type uint16";
  EXPECT_EQ(refusal(npyFile("'>u2'", "(3,)", six)),
            "is a NumPy array of type '>u2'" + types);
  EXPECT_EQ(refusal(npyFile("'<f4'", "(3,)", six)),
            "is a NumPy array of type '<f4'" + types);
  EXPECT_EQ(refusal(npyFile("'|b1'", "(3,)", six)),
            "is a NumPy array of type '|b1'" + types);
  EXPECT_EQ(refusal(npyFile("[('a', '<u2'), ('b', '<u2')]", "(3,)", six)),
            "is a NumPy array of type '[('a', '<u2'), ('b', '<u2')]'" + types);
  for (const char *shape : {"(3, 1)", "()", "(1, 3)", "(-3,)"})
    EXPECT_EQ(refusal(npyFile("'<u2'", shape, six)),
              std::string("is a NumPy array of shape ") + shape +
                  ", but tokens need one dimension, as array.reshape(-1) has");
  EXPECT_EQ(refusal(npyFile("'<u2'", "(4,)", six)),
            "needs 4 tokens of type u16 behind a header of 128 bytes, but has "
            "6 bytes there");
  EXPECT_EQ(refusal(npyFile("'<u2'", "(9223372036854775807,)", six)),
            "needs 9223372036854775807 tokens of type u16 behind a header of "
            "128 bytes, but has 6 bytes there");
  EXPECT_EQ(refusal(npyFile("'<u2'", "(3,)", six, 4)),
            "needs to be of NumPy's version 1, 2 or 3, but got version 4");
  EXPECT_EQ(refusal("[1, 2, 3]"),
            "is no NumPy array: it does not begin with \\x93NUMPY");
  const std::string good = npyFile("'<u2'", "(3,)", six);
  for (size_t size = 6; size < good.size(); ++size)
    EXPECT_NE(refusal(good.substr(0, size)), "") << size;
  EXPECT_EQ(refusal(good.substr(0, 8)),
            "is cut off: a NumPy array has a header of 10 bytes and more, but "
            "the file has 8");
  EXPECT_EQ(refusal(npyFile("'<u2'", "(3,)", six, 2).substr(0, 11)),
            "is cut off: a NumPy array has a header of 12 bytes and more, but "
            "the file has 11");
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    for (int changes = 1 + int(random() % 3); changes > 0; --changes)
      bytes[random() % bytes.size()] = char(random());
    Tokens tokens({folder.write("x.npy", bytes)});
    EXPECT_TRUE(!tokens.error.empty() || tokens.values.size() <= 6u);
  }
}

// A file that says by its first bytes that it is no text is not trained on as
// text, whatever its name is; tokens alone may begin with few such bytes.
TEST_F(TokenFiles, WhatIsNoTextIsRefusedByItsName) {
  using std::string_literals::operator""s;
  const std::string end = ", but only text, .npy and .bin files with tokens "
                          "are read";
  const std::string unpack = "; unpack it first";
  struct Case {
    std::string bytes, what;
    bool alsoAsTokens = true;
  };
  for (const Case &c : std::vector<Case>{
           {"PK\3\4rest",
            "a zip file, as PyTorch and NumPy (.npz) write" + end},
           {"\x1F\x8B\x08\0rest"s, "compressed with gzip" + unpack, false},
           {"\x28\xB5\x2F\xFDrest", "compressed with zstd" + unpack},
           {"\xFD"
            "7zXZ\0rest"s,
            "compressed with xz" + unpack},
           {"BZh91AY&SYrest", "compressed with bzip2" + unpack},
           {"PAR1rest", "a Parquet file" + end},
           {"ARROW1\0\0rest"s, "an Arrow file" + end},
           {"\xFF\xFF\xFF\xFFrest", "an Arrow stream" + end, false},
           {"\x80\x04\x95rest", "pickled Python objects" + end, false},
           {"\x89HDF\r\n\x1A\nrest", "an HDF5 file" + end},
           {"%PDF-1.7 rest", "a PDF document" + end},
           {"\x7F"
            "ELFrest",
            "a program or library (ELF)" + end},
           {"SQLite format 3\0rest"s, "an SQLite database" + end},
           {"GGUFrest", "a GGUF file" + end},
           {"LITPKDS\1rest", "a packed data set of LitGPT" + end},
           {"TNTIDX\0\0rest"s, "the index of a fairseq data set" + end},
           {"\xFF\xFEh\0i\0"s,
            "text in UTF-16; convert it to UTF-8, as iconv does"},
           {"MMIDIDX\0\0rest"s,
            "the index of a Megatron data set; its name needs to end in .idx"},
           {std::string(257, 'x') + "ustar", "a tar archive" + unpack},
           {bytesAs<int64_t>({4}) + "{\"a\"", "a safetensors file" + end},
           {"version https://git-lfs.github.com/spec/v1\n",
            "a Git LFS pointer, not the file itself; git lfs pull fetches "
            "that"}}) {
    std::string path = folder.write("x.txt", c.bytes);
    EXPECT_EQ(Tokens({path}).error, "'" + path + "' is " + c.what);
    std::string even = c.bytes + std::string(c.bytes.size() % 2, 'x');
    std::string tokens = folder.write("x.bin", even);
    EXPECT_EQ(Tokens({tokens}, TokenType::U16).error.empty(), !c.alsoAsTokens)
        << c.what;
    // Whoever says that bytes are the tokens is believed.
    EXPECT_EQ(Tokens({tokens}, TokenType::U8).values.size(), even.size());
  }
  std::string zero = folder.write("x.txt", "some\0thing"s);
  EXPECT_EQ(Tokens({zero}).error,
            "'" + zero +
                "' is no text: its byte 4 is 0x00. Tokens need a name that "
                "ends in .bin, and --dtype; so do bytes of any other kind, "
                "with --dtype u8");
}

// A few bytes that tokens may begin with count where all else confirms them.
TEST_F(TokenFiles, WhatIsNoTokensIsRefusedIfThatIsSure) {
  using std::string_literals::operator""s;
  const std::string all = "; if these are tokens all the same, numpy.save "
                          "writes them to a .npy file";
  const std::string gzip = "compressed with gzip; unpack it first" + all;
  const std::string pickle =
      "pickled Python objects, but only tokens are read from .bin files" + all;
  const std::string wide = "; convert it to UTF-8, as iconv does" + all;
  struct Case {
    std::string bytes, what; ///< Empty: tokens.
  };
  for (const Case &c : std::vector<Case>{
           {"\x1F\x8B\x08\0time\2\3rest"s, gzip},
           {"\x1F\x8B\x08\x08time\0\xFFname"s, gzip},
           {"\x1F\x8B\x08\x20time\2\3rest"s, ""},
           {"\x1F\x8B\x08\0time\3\3rest"s, ""},
           {"\x1F\x8B\x08\0time\2\x20rest"s, ""},
           {"\x80\2]q\0K\1a."s, pickle},
           {"\x80\3}q\0X\1\0\0\0a."s, pickle},
           {"\x80\4\x95\5\0\0\0\0\0\0\0]\x94K\1a."s, pickle},
           {"\x80\5\x95\5\0\0\0\0\0\0\0]\x94K\1a."s, pickle},
           {"\x80\4\x95\5\0\0\0\0\0\0\0]\x94K\1ab,"s, ""},
           {"\x80\4\1\5."s, ""},
           {"\xFF\xFEh\0i\0\n\0\x3D\xD8\0\xDE"s, "text in UTF-16" + wide},
           {"\xFE\xFF\0h\0i\0\n"s, "text in UTF-16" + wide},
           {"\xFF\xFE\0\0h\0\0\0i\0\0\0"s, "text in UTF-32" + wide},
           {"\0\0\xFE\xFF\0\0\0h"s, "text in UTF-32" + wide},
           {"\xFF\xFEh\0\x0B\0\x02\0"s, ""},
           {"\xFF\xFEh\0\0\xDEi\0"s, ""},
           {"\xFF\xFE\xE8\x03\xE9\x03"s, ""},
           {"\xCA\xFE\xBA\xBE\0\0\0\x41"s,
            "a class of Java, or a program, but only tokens are read from .bin "
            "files"}}) {
    std::string path =
        folder.write("x.bin", c.bytes + std::string(c.bytes.size() % 2, '.'));
    EXPECT_EQ(Tokens({path}, TokenType::U16).error,
              c.what.empty() ? "" : "'" + path + "' is " + c.what);
    EXPECT_EQ(Tokens({path}, TokenType::U8).error, "");
  }
}

TEST_F(TokenFiles, AByteOrderMarkIsNoPartOfAText) {
  EXPECT_EQ(Tokens({folder.write("x.txt", "\xEF\xBB\xBFhi")}).values,
            (Values{'h', 'i'}));
  EXPECT_EQ(Tokens({folder.write("x.txt", "hi\xEF\xBB\xBF")}).values.size(),
            5u);
  EXPECT_EQ(Tokens({folder.write("x.txt", "\xEF\xBB")}).values.size(), 2u);
  EXPECT_EQ(Tokens({folder.write("x.txt", "\xEF\xBB\xBF")}).values.size(), 0u);
}

// Every token is checked, by one thread or by several, and the first one that
// is not in the vocabulary is named.
TEST_F(TokenFiles, AllTokensAreCheckedOnce) {
  constexpr int64_t kCount = (INT64_C(5) << 20) + 3; // Several pieces.
  std::string zeros(size_t(2 * kCount), '\0');
  auto check = [&](std::vector<std::string> paths, TokenType type,
                   int64_t vocabulary, int threads) {
    TokenStream stream;
    Error error;
    for (const std::string &path : paths)
      EXPECT_TRUE(stream.add(path.c_str(), {type}, error)) << error.text;
    ThreadPool pool;
    EXPECT_TRUE(threads == 0 || pool.start(threads, error));
    bool good = stream.check(vocabulary, threads ? &pool : nullptr, error);
    EXPECT_EQ(good, !error.text[0]);
    std::string text = error.text;
    for (size_t at; (at = text.find(folder.path)) != text.npos;)
      text.erase(at, folder.path.size());
    return text;
  };
  std::string first = folder.write("a.bin", std::string(10, '\0'));
  for (int threads : {0, 1, 3})
    for (int64_t bad : std::initializer_list<int64_t>{0, (1 << 20) - 1, 1 << 20,
                                                      3 << 20, kCount - 1}) {
      std::string bytes = zeros;
      bytes[size_t(2 * bad) + 1] = 1;    // 256
      bytes[size_t(2 * kCount) - 1] = 2; // A later one, or this one.
      std::string path = folder.write("b.bin", bytes);
      std::string id = bad == kCount - 1 ? "512" : "256";
      EXPECT_EQ(check({first, path}, TokenType::U16, 256, threads),
                "'b.bin' has the token " + id + " at byte " +
                    std::to_string(2 * bad) + " (number " +
                    std::to_string(bad) +
                    ", from 0), but the model's vocabulary has 256 tokens, 0 "
                    "to 255");
      EXPECT_EQ(check({first, path}, TokenType::U16, 513, threads), "");
    }
  std::string path = folder.write("c.bin", bytesAs<int32_t>({3, -1, 400}));
  EXPECT_EQ(check({path}, TokenType::I32, 1000, 2),
            "'c.bin' has the token -1 at byte 4 (number 1, from 0), but the "
            "model's vocabulary has 1000 tokens, 0 to 999");
  path = folder.write("d.bin", bytesAs<int64_t>({3, INT64_C(1) << 40}));
  EXPECT_EQ(check({path}, TokenType::I64, 1000, 2),
            "'d.bin' has the token 1099511627776 at byte 8 (number 1, from 0), "
            "but the model's vocabulary has 1000 tokens, 0 to 999");
  path = folder.write("e.bin", "ab\xFF");
  EXPECT_EQ(check({path}, TokenType::U8, 256, 2), "");
  EXPECT_EQ(check({path}, TokenType::U8, 255, 2),
            "'e.bin' has the token 255 at byte 2 (number 2, from 0), but the "
            "model's vocabulary has 255 tokens, 0 to 254");
  path = folder.write("f.npy", npyFile("'|i1'", "(3,)", "ab\xFF"));
  EXPECT_NE(check({path}, TokenType::I8, 1000, 2).find("has the token -1 at"),
            std::string::npos);
}

TEST_F(TokenFiles, PatternsStandForFilesInTheOrderOfTheirNames) {
  folder.write("shard-b", "cd");
  folder.write("shard-a", "ab");
  folder.write("shard-c", "");
  folder.write("shard-d", "e");
  folder.write("other", "x");
  EXPECT_EQ(Tokens({folder.path + "shard-?"}).values,
            (Values{'a', 'b', 'c', 'd', 'e'}));
  EXPECT_EQ(Tokens({folder.path + "other", folder.path + "shard-[ad]"}).values,
            (Values{'x', 'a', 'b', 'e'}));
  EXPECT_EQ(Tokens({folder.path + "*.bin"}).error,
            "no file matches '" + folder.path + "*.bin'");
  // A name that is there is no pattern.
  folder.write("shard-[x]", "!");
  EXPECT_EQ(Tokens({folder.path + "shard-[x]"}).values, (Values{'!'}));
  EXPECT_EQ(Tokens({folder.path}).error,
            "cannot read '" + folder.path +
                "': it is a folder; name files in it, or a pattern in quotes");
}

TEST_F(TokenFiles, APipeIsRefusedWithoutWaiting) {
  std::string path = folder.path + "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(Tokens({path}).error,
            "cannot read '" + path + "': it is not a plain file");
}

TEST_F(TokenFiles, TokensOutsideTheVocabularyAreNamedWithTheirPlace) {
  std::string good = folder.write("a.txt", "abc");
  std::string bad = folder.write(
      "b.bin", llmcFile(kU16Magic, 1, 3, bytesAs<uint16_t>({127, 128, 129})));
  Tokens tokens({good, bad}, std::nullopt, 128);
  EXPECT_EQ(tokens.error, "'" + bad +
                              "' has the token 128 at byte 1026 (number 1, "
                              "from 0), but the model's vocabulary has 128 "
                              "tokens, 0 to 127");
  std::string large =
      folder.write("c.bin", bytesAs<uint32_t>({1, 0xffffffff, 2}));
  EXPECT_EQ(Tokens({large}, TokenType::U32).error,
            "'" + large +
                "' has the token 4294967295 at byte 4 (number 1, from 0), but "
                "the model's vocabulary has 2147483647 tokens, 0 to "
                "2147483646");
}

// Pieces of every length from every place, over files of several types.
TEST_F(TokenFiles, AnyRangeCanBeRead) {
  std::vector<std::string> paths = {
      folder.write("a.txt", "abc"),
      folder.write("b.bin",
                   llmcFile(kU16Magic, 1, 2, bytesAs<uint16_t>({300, 301}))),
      folder.write("c.txt", ""),
      folder.write("d.bin",
                   llmcFile(kU32Magic, 7, 1, bytesAs<uint32_t>({70000}))),
      folder.write("e.txt", "d")};
  TokenStream stream;
  Error error;
  for (const std::string &path : paths)
    ASSERT_TRUE(stream.add(path.c_str(), {}, error)) << error.text;
  const Values all = {'a', 'b', 'c', 300, 301, 70000, 'd'};
  ASSERT_EQ(stream.size(), int64_t(all.size()));
  EXPECT_EQ(stream.numFiles(), 5);
  for (size_t begin = 0; begin < all.size(); ++begin)
    for (size_t end = begin; end <= all.size(); ++end) {
      Values values(end - begin + 1, -7);
      ASSERT_TRUE(stream.read(int64_t(begin), int64_t(end - begin), 70001,
                              values.data(), error));
      Values expected(all.begin() + int64_t(begin), all.begin() + int64_t(end));
      expected.push_back(-7); // Nothing is written behind the end.
      EXPECT_EQ(values, expected);
    }
}

// More than 2^32 bytes and 2^31 tokens; almost all of them are a hole.
TEST_F(TokenFiles, LargeFilesAreReadToTheirEnd) {
  const int64_t count = (INT64_C(1) << 31) + 5;
  std::string path = folder.write("x.bin", "");
  if (truncate(path.c_str(), 2 * count - 4) != 0)
    GTEST_SKIP() << "this file system has no room for holes";
  std::ofstream(path, std::ios::binary | std::ios::app)
      << bytesAs<uint16_t>({700, 701});
  TokenStream stream;
  Error error;
  ASSERT_TRUE(stream.add(path.c_str(), {TokenType::U16}, error)) << error.text;
  EXPECT_EQ(stream.size(), count);
  Values values(3);
  ASSERT_TRUE(stream.read(count - 3, 3, 1000, values.data(), error));
  EXPECT_EQ(values, (Values{0, 700, 701}));
  EXPECT_FALSE(stream.read(count - 3, 3, 701, values.data(), error));
  EXPECT_EQ(std::string(error.text),
            "'" + path +
                "' has the token 701 at byte 4294967304 (number 2147483652, "
                "from 0), but the model's vocabulary has 701 tokens, 0 to "
                "700");
}

TEST_F(TokenFiles, EveryTruncationOfAnLlmcFileIsRefused) {
  std::string path = folder.write(
      "x.bin", llmcFile(kU16Magic, 1, 5, bytesAs<uint16_t>({1, 2, 3, 4, 5})));
  for (int64_t size = 1033; size >= 0; --size) {
    ASSERT_EQ(truncate(path.c_str(), size), 0);
    EXPECT_NE(Tokens({path}).error, "") << size;
  }
}

// Whatever the header says, the tokens are those behind it, or it is refused.
TEST_F(TokenFiles, DamagedLlmcFilesDoNoHarm) {
  const std::string good =
      llmcFile(kU16Magic, 1, 5, bytesAs<uint16_t>({1, 2, 3, 4, 5}));
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = good;
    for (int changes = 1 + int(random() % 2); changes > 0; --changes)
      bytes[random() % 4 ? random() % 12 : random() % bytes.size()] =
          char(random());
    Tokens tokens({folder.write("x.bin", bytes)});
    if (tokens.error.empty()) {
      EXPECT_EQ(tokens.values.size(), 5u);
      ++accepted;
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 1500);
}
