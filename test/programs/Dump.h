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
#include "llvm/Support/WithColor.h"
#include <cmath>
#include <optional>
#include <string>

namespace reprise::test {
using interpreter::Tensor;

/// A tensor of F32 or I32 from its entry of the header; nothing if it is not in
/// `data`.
inline std::optional<Tensor> readTensor(const llvm::json::Object &entry,
                                        llvm::StringRef data) {
  const llvm::json::Array *dims = entry.getArray("shape"),
                          *offsets = entry.getArray("data_offsets");
  auto type = entry.getString("dtype");
  auto begin = offsets && !offsets->empty() ? (*offsets)[0].getAsInteger()
                                            : std::nullopt;
  if (!dims || !begin || *begin < 0 || !type ||
      (*type != "F32" && *type != "I32"))
    return std::nullopt;
  int64_t room = int64_t(data.size()) - *begin, size = 4;
  llvm::SmallVector<int64_t> shape;
  for (const llvm::json::Value &dim : *dims) {
    auto length = dim.getAsInteger();
    if (!length || *length < 0 || (*length > 0 && size > room / *length))
      return std::nullopt;
    shape.push_back(*length);
    size *= *length;
  }
  if (size > room)
    return std::nullopt;
  Tensor tensor(shape);
  const char *at = data.data() + *begin;
  for (double &element : tensor.values) {
    uint32_t word = llvm::support::endian::read32le(at);
    element = *type == "I32" ? double(int32_t(word))
                             : double(llvm::bit_cast<float>(word));
    at += 4;
  }
  return tensor;
}

/// All tensors of a safetensors file.
inline llvm::Expected<llvm::StringMap<Tensor>> readDump(llvm::StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false);
  auto fail = [&](const llvm::Twine &what) {
    return llvm::createStringError("'" + path + "' " + what);
  };
  if (!file)
    return fail("cannot be read: " + file.getError().message());
  llvm::StringRef bytes = (*file)->getBuffer();
  uint64_t length =
      bytes.size() < 8 ? 0 : llvm::support::endian::read64le(bytes.data());
  if (length == 0 || length > bytes.size() - 8)
    return fail("needs to be a safetensors file, but is none");
  llvm::Expected<llvm::json::Value> header =
      llvm::json::parse(bytes.substr(8, length));
  if (!header)
    return fail("has a broken header: " + toString(header.takeError()));
  llvm::StringRef data = bytes.substr(8 + length);
  llvm::StringMap<Tensor> tensors;
  if (!header->getAsObject())
    return fail("has a header that is no object");
  for (auto &[name, value] : *header->getAsObject()) {
    const llvm::json::Object *entry = value.getAsObject();
    if (entry && !entry->get("dtype"))
      continue;
    std::optional<Tensor> tensor =
        entry ? readTensor(*entry, data) : std::nullopt;
    if (!tensor)
      return fail("needs F32 or I32 within its bytes as '" +
                  llvm::StringRef(name) + "'");
    tensors[llvm::StringRef(name)] = std::move(*tensor);
  }
  return tensors;
}

/// A dump from which tensors are taken by name. What it lacks is said, and
/// reads as zeros.
class Dump {
public:
  static llvm::Expected<Dump> read(llvm::StringRef path) {
    llvm::Expected<llvm::StringMap<Tensor>> tensors = readDump(path);
    if (!tensors)
      return tensors.takeError();
    return Dump(path, std::move(*tensors));
  }

  /// The tensor `name`, in the shape `shape`, of as many elements.
  const Tensor &get(const llvm::Twine &name, llvm::ArrayRef<int64_t> shape) {
    std::string key = name.str();
    Tensor wanted(shape);
    auto [entry, isMissing] = tensors.try_emplace(key, wanted);
    if (isMissing)
      fail("has no tensor '" + key + "', which the step has");
    else if (entry->second.size() != wanted.size()) {
      fail("needs " + llvm::Twine(wanted.size()) + " elements in '" + key +
           "', but has " + llvm::Twine(entry->second.size()));
      entry->second = std::move(wanted);
    }
    entry->second.shape.assign(shape.begin(), shape.end()); // Scalars have [1].
    return entry->second;
  }

  /// The elements of the tensor `name`; 0 without one.
  int64_t size(llvm::StringRef name) const {
    auto found = tensors.find(name);
    return found == tensors.end() ? 0 : found->second.size();
  }

  /// Whether all that was asked for was there.
  bool isWhole() const { return whole; }

private:
  Dump(llvm::StringRef path, llvm::StringMap<Tensor> tensors)
      : path(path), tensors(std::move(tensors)) {}
  void fail(const llvm::Twine &message) {
    llvm::WithColor::error() << "'" << path << "' " << message << "\n";
    whole = false;
  }

  std::string path;
  llvm::StringMap<Tensor> tensors;
  bool whole = true;
};

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
