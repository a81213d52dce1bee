//===- reprise-scale-weights.cpp - Weights of eight bits ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Usage: reprise-scale-weights IN.safetensors SCALED.safetensors
// PLAIN.safetensors
//                              [--rows=128] [--columns=128] [--stack]
//
// Writes the weights of IN twice: as large models are published, where matrices
// of linear layers are F8_E4M3 with an F32 scale for each block, and with the
// numbers that these mean, in F32. With --stack the scaled file has all experts
// of a layer in one tensor, gate before up.
//
//===----------------------------------------------------------------------===//

#include "Dump.h"
#include "test/common/Words.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MathExtras.h"
#include <map>

using namespace reprise::test;
namespace cl = llvm::cl;

static cl::OptionCategory category("reprise-scale-weights options");
static cl::opt<std::string> inFile(cl::Positional, cl::Required,
                                   cl::desc("<weights>"), cl::cat(category));
static cl::opt<std::string> scaledFile(cl::Positional, cl::Required,
                                       cl::desc("<scaled>"), cl::cat(category));
static cl::opt<std::string> plainFile(cl::Positional, cl::Required,
                                      cl::desc("<plain>"), cl::cat(category));
static cl::opt<int64_t> blockRows("rows", cl::init(128), cl::cat(category),
                                  cl::desc("Rows of a block"));
static cl::opt<int64_t> blockColumns("columns", cl::init(128),
                                     cl::cat(category),
                                     cl::desc("Columns of a block"));
static cl::opt<bool> stack("stack", cl::cat(category),
                           cl::desc("All experts of a layer in one tensor"));

namespace {
/// A tensor of a file that is written.
struct Out {
  std::string type;
  std::vector<int64_t> shape;
  std::string bytes;
};
using File = std::map<std::string, Out>;
} // namespace

static void append(std::string &bytes, float value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

/// What a byte means in E4M3, which has no infinities.
static double valueOf(int code) {
  const int exponent = code >> 3 & 15;
  const double size = exponent ? std::ldexp(8 + (code & 7), exponent - 10)
                               : std::ldexp(code & 7, -9);
  return code & 128 ? -size : size;
}

/// The byte whose value is nearest; of those, the first.
static int nearestCode(double value) {
  int best = 0;
  for (int code = 0; code < 256; ++code)
    if ((code & 127) != 127 &&
        std::abs(valueOf(code) - value) < std::abs(valueOf(best) - value))
      best = code;
  return best;
}

/// Appends a matrix as bytes and scales, and what both mean.
static void scale(llvm::ArrayRef<double> values, int64_t rows, int64_t columns,
                  std::string &bytes, std::string &scales, std::string &plain) {
  std::vector<char> codes(values.size());
  std::vector<float> meant(values.size());
  for (int64_t r = 0; r < rows; r += blockRows)
    for (int64_t c = 0; c < columns; c += blockColumns) {
      auto forEach = [&](auto action) {
        for (int64_t i = r; i < std::min(rows, r + blockRows); ++i)
          for (int64_t j = c; j < std::min(columns, c + blockColumns); ++j)
            action(i * columns + j);
      };
      double most = 0;
      forEach([&](int64_t at) { most = std::max(most, std::abs(values[at])); });
      const float factor = most > 0 ? float(most / 448) : 1;
      forEach([&](int64_t at) {
        const int code = nearestCode(values[at] / factor);
        codes[at] = char(code);
        meant[at] = float(valueOf(code) * factor); // Rounded once.
      });
      append(scales, factor);
    }
  bytes.append(codes.data(), codes.size());
  for (float value : meant)
    append(plain, value);
}

static Out plainOf(const Tensor &tensor) {
  Out out = {"F32", {tensor.shape.begin(), tensor.shape.end()}, ""};
  for (double value : tensor.values)
    append(out.bytes, float(value));
  return out;
}

/// The matrices of linear layers, but for routers and heads.
static bool isLinear(llvm::StringRef name, const Tensor &tensor) {
  return tensor.shape.size() == 2 &&
         (name.ends_with("_proj.weight") || name.contains("_proj_with_mqa"));
}

/// Two or one matrices of all experts, one behind the other, gate before up.
static Tensor join(llvm::StringMap<Tensor> &tensors, llvm::StringRef experts,
                   llvm::ArrayRef<llvm::StringRef> leaves) {
  Tensor all;
  int64_t count = 0;
  for (;; ++count)
    for (llvm::StringRef leaf : leaves) {
      auto found = tensors.find(
          (experts + llvm::Twine(count) + "." + leaf + ".weight").str());
      if (found == tensors.end()) {
        all.shape = {count, all.shape[0] * int64_t(leaves.size()),
                     all.shape[1]};
        return all;
      }
      all.shape = found->second.shape;
      llvm::append_range(all.values, found->second.values);
    }
}

/// Takes the experts of all layers together.
static void joinExperts(llvm::StringMap<Tensor> &tensors) {
  constexpr llvm::StringLiteral kFirst = ".experts.0.down_proj.weight";
  std::vector<std::string> layers;
  for (const auto &entry : tensors)
    if (entry.getKey().ends_with(kFirst))
      layers.push_back(entry.getKey().drop_back(kFirst.size()).str() +
                       ".experts.");
  for (const std::string &layer : layers) {
    Tensor both = join(tensors, layer, {"gate_proj", "up_proj"});
    Tensor down = join(tensors, layer, {"down_proj"});
    for (int64_t e = 0; e < down.shape[0]; ++e)
      for (llvm::StringRef leaf : {"gate_proj", "up_proj", "down_proj"})
        tensors.erase((layer + llvm::Twine(e) + "." + leaf + ".weight").str());
    tensors[layer + "gate_up_proj"] = std::move(both);
    tensors[layer + "down_proj"] = std::move(down);
  }
}

static void scaleAll(const llvm::StringMap<Tensor> &tensors, File &scaled,
                     File &plain) {
  for (const auto &entry : tensors) {
    const std::string name = entry.getKey().str();
    const Tensor &tensor = entry.getValue();
    scaled[name] = plain[name] = plainOf(tensor);
    const bool isStack = tensor.shape.size() == 3;
    if (!isStack && !isLinear(name, tensor))
      continue;
    const int64_t columns = tensor.shape.back();
    const int64_t rows = tensor.shape[tensor.shape.size() - 2];
    Out &codes = scaled[name], scales = {"F32", codes.shape, ""};
    scales.shape.back() = llvm::divideCeil(columns, int64_t(blockColumns));
    scales.shape[scales.shape.size() - 2] =
        llvm::divideCeil(rows, int64_t(blockRows));
    codes.type = "F8_E4M3";
    codes.bytes.clear();
    plain[name].bytes.clear();
    llvm::ArrayRef<double> values(tensor.values);
    for (; !values.empty(); values = values.drop_front(rows * columns))
      scale(values.take_front(rows * columns), rows, columns, codes.bytes,
            scales.bytes, plain[name].bytes);
    scaled[name + "_scale_inv"] = std::move(scales);
  }
}

static bool write(llvm::StringRef path, const File &file) {
  std::string header = "{", data;
  for (const auto &[name, tensor] : file) {
    std::string shape =
        llvm::join(llvm::map_range(tensor.shape,
                                   [](int64_t n) { return llvm::itostr(n); }),
                   ",");
    header += (data.empty() ? "\"" : ",\"") + name + "\":{\"dtype\":\"" +
              tensor.type + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
              llvm::itostr(int64_t(data.size())) + ",";
    data += tensor.bytes;
    header += llvm::itostr(int64_t(data.size())) + "]}";
  }
  header += "}";
  std::error_code code;
  llvm::raw_fd_ostream os(path, code);
  const uint64_t length = header.size();
  os.write(reinterpret_cast<const char *>(&length), sizeof(length));
  os << header << data;
  os.close();
  return !code && !os.has_error();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  readWords(argc, argv, category, "Scales weights block by block\n");
  llvm::Expected<llvm::StringMap<Tensor>> tensors = readDump(inFile);
  if (!tensors) {
    llvm::WithColor::error() << toString(tensors.takeError()) << "\n";
    return 1;
  }
  if (stack)
    joinExperts(*tensors);
  File scaled, plain;
  scaleAll(*tensors, scaled, plain);
  if (write(scaledFile, scaled) && write(plainFile, plain))
    return 0;
  llvm::WithColor::error() << "cannot write '" << scaledFile << "' and '"
                           << plainFile << "'\n";
  return 1;
}
