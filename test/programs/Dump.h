//===- Dump.h - Compares what training programs dump ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_PROGRAMS_DUMP_H
#define REPRISE_TEST_PROGRAMS_DUMP_H

#include "reprise/Interpreter/Interpreter.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <string>

namespace reprise::test {
using interpreter::Tensor;

/// All tensors of a safetensors file.
inline llvm::Expected<llvm::StringMap<Tensor>> readDump(llvm::StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false);
  if (!file)
    return llvm::errorCodeToError(file.getError());
  llvm::StringRef bytes = (*file)->getBuffer();
  uint64_t length = llvm::support::endian::read64le(bytes.data());
  llvm::Expected<llvm::json::Value> header =
      llvm::json::parse(bytes.substr(8, length));
  if (!header)
    return header.takeError();
  llvm::StringRef data = bytes.substr(8 + length);
  llvm::StringMap<Tensor> tensors;
  for (auto &[name, value] : *header->getAsObject()) {
    const llvm::json::Object &entry = *value.getAsObject();
    if (!entry.get("dtype"))
      continue;
    llvm::SmallVector<int64_t> shape;
    for (const llvm::json::Value &dim : *entry.getArray("shape"))
      shape.push_back(*dim.getAsInteger());
    Tensor tensor(shape);
    const char *at =
        data.data() + *(*entry.getArray("data_offsets"))[0].getAsInteger();
    bool isInteger = *entry.getString("dtype") == "I32";
    for (double &element : tensor.values) {
      uint32_t word = llvm::support::endian::read32le(at);
      element = isInteger ? double(int32_t(word))
                          : double(llvm::bit_cast<float>(word));
      at += 4;
    }
    tensors[llvm::StringRef(name)] = std::move(tensor);
  }
  return tensors;
}

inline double getNorm(const Tensor &tensor) {
  double sum = 0;
  for (double value : tensor.values)
    sum += value * value;
  return std::sqrt(sum);
}

/// The largest difference seen, and where.
struct Comparison {
  double worst = 0;
  std::string where;

  /// Compares with the largest element of `want`, but at least `floor`. What is
  /// not finite, or not of the same size, is infinitely far away.
  void add(llvm::StringRef name, const Tensor &have, const Tensor &want,
           double floor = 0) {
    double difference = have.size() == want.size() ? 0 : INFINITY;
    double largest = floor;
    for (int64_t e = 0; std::isfinite(difference) && e < want.size(); ++e) {
      double distance = std::abs(have.values[e] - want.values[e]);
      difference =
          std::isfinite(distance) ? std::max(difference, distance) : INFINITY;
      largest = std::max(largest, std::abs(want.values[e]));
    }
    double relative = largest > 0 ? difference / largest : difference;
    if (relative >= worst) {
      worst = relative;
      where = name.str();
    }
  }

  /// The same, with the norm of the difference and the norm of `want`.
  void addNorm(llvm::StringRef name, const Tensor &have, const Tensor &want) {
    Tensor difference = want;
    for (int64_t e = 0; e < want.size(); ++e)
      difference.values[e] =
          e < have.size() ? have.values[e] - want.values[e] : INFINITY;
    double relative = getNorm(difference) / getNorm(want);
    if (!(relative < worst)) {
      worst = relative;
      where = name.str();
    }
  }
};
} // namespace reprise::test

#endif // REPRISE_TEST_PROGRAMS_DUMP_H
