//===- TensorReader.cpp - States from the tensors of files ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorReader.h"

#include "ScaledTensors.h"
#include "runtime/base/Text.h"
#include "runtime/device/Init.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace reprise::runtime;

/// Elements that a thread reads at a time: some MiB, so that the system is
/// asked for much at once.
static constexpr int64_t kPieceElements = 1 << 20;

bool TensorReader::read(const TensorEntry *const *sources, int first, int count,
                        bool onlyFinite, Error &error) {
  // In a copy of the arena tensors come one by one.
  const int atOnce = arena.isCopy() ? 1 : count;
  for (int i = 0; i < count; i += atOnce)
    if (!readAtOnce(sources + i, first + i, atOnce, onlyFinite, error))
      return false;
  return true;
}

bool TensorReader::readAtOnce(const TensorEntry *const *sources, int first,
                              int count, bool onlyFinite, Error &error) {
  pieces.clear();
  for (int i = 0; i < count; ++i) {
    const ModelTensor &tensor = tensors[first + i];
    if (tensor.isCopy)
      continue;
    if (!cut(tensor, *sources[i]))
      return error.set("no memory left to cut %d tensors", count);
    if (!makeReady(tensor, error))
      return false;
  }
  if (const Piece *bad = convertAll(); bad && onlyFinite)
    return refuse(*bad, error);
  for (int i = 0; i < count; ++i)
    if (const ModelTensor &tensor = tensors[first + i];
        !tensor.isCopy && !forEachState(tensor, [&](const RepriseState &state) {
          return state.isElsewhere || handOverState(state, arena, error);
        }))
      return false;
  return true;
}

bool TensorReader::cut(const ModelTensor &tensor, const TensorEntry &source) {
  const int64_t rows = tensor.rows();
  const int64_t step = std::max<int64_t>(
      1, kPieceElements / std::max<int64_t>(1, tensor.columns()));
  for (int64_t row = 0; row < rows; row += step)
    if (!pieces.push({&tensor, &source, row, std::min(row + step, rows)}))
      return false;
  return true;
}

template <typename Action>
bool TensorReader::forEachState(const ModelTensor &tensor,
                                Action action) const {
  for (int part = 0; part < tensor.parts; ++part)
    if (!action(tensors.stateOf(tensor, part)))
      return false;
  return true;
}

/// Makes the memory of a tensor's states ready to be written.
bool TensorReader::makeReady(const ModelTensor &tensor, Error &error) {
  return forEachState(tensor, [&](const RepriseState &state) {
    // In a copy, the rest of a stack.
    if (arena.isCopy() && tensor.slice >= 0 &&
        !arena.download(state.buffer, error))
      return false;
    if (state.isElsewhere)
      return true;
    arena.touch(state.buffer);
    // Of a stack, the first slice finds nothing of it.
    if (tensor.slice <= 0 && tensors.ownPartOf(state).hasMore())
      memset(arena.at<char>(state.buffer), 0, size_t(state.buffer.bytes));
    return true;
  });
}

/// Brings all pieces to the arena; the first one that is not finite, or null.
const TensorReader::Piece *TensorReader::convertAll() {
  const auto count = int64_t(pieces.size());
  std::atomic<int64_t> bad{count};
  pool.parallelFor(count, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool good = convert(pieces[size_t(i)]);
      int64_t known = bad;
      while (!good && i < known && !bad.compare_exchange_weak(known, i))
        ;
    }
  });
  return bad == count ? nullptr : &pieces[size_t(bad.load())];
}

/// Lets the system fetch these bytes of a file.
static void expect(const unsigned char *bytes, int64_t count) {
  uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
  uintptr_t begin = reinterpret_cast<uintptr_t>(bytes) & ~(page - 1);
  uintptr_t end = reinterpret_cast<uintptr_t>(bytes + count);
  madvise(reinterpret_cast<void *>(begin), end - begin, MADV_WILLNEED);
}

/// \returns whether all of its elements are finite.
bool TensorReader::convert(const Piece &piece) {
  const ModelTensor &tensor = *piece.tensor;
  const int64_t rowBytes = tensor.columns() * piece.source->type->bits / 8;
  expect(set.bytesOf(*piece.source) + piece.begin * rowBytes,
         (piece.end - piece.begin) * rowBytes);
  if (tensor.parts == 1)
    return convertRows(piece, 0, piece.begin, piece.end);
  bool good = true;
  for (int64_t row = piece.begin; row < piece.end; ++row)
    for (int part = 0; part < tensor.parts; ++part)
      good = convertRows(piece, part, row, row + 1) && good;
  return good;
}

/// Of the rows [begin, end) of a part, those elements that the rank has.
bool TensorReader::convertRows(const Piece &piece, int part, int64_t begin,
                               int64_t end) {
  const ModelTensor &tensor = *piece.tensor;
  const RepriseState &state = tensors.stateOf(tensor, part);
  if (state.isElsewhere)
    return true;
  const int64_t columns = tensor.columns(), width = columns / tensor.parts;
  const int64_t base = tensor.firstElement();
  const int64_t before = begin * (columns - width) + part * width - base;
  bool good = true;
  tensors.ownPartOf(state).forEachRun(
      base + begin * width, base + end * width,
      [&](int64_t whole, int64_t own, int64_t number) {
        good = readElements(set, *piece.source, before + whole, number,
                            arena.at<float>(state.buffer) + own) &&
               good;
        return true;
      });
  return good;
}

/// Says where a piece has its first element that is not finite.
bool TensorReader::refuse(const Piece &piece, Error &error) const {
  const ModelTensor &tensor = *piece.tensor;
  const TensorEntry &source = *piece.source;
  int64_t element = piece.begin * tensor.columns();
  float value = 0;
  while (readElements(set, source, element, 1, &value))
    ++element;
  int64_t place[4] = {}, rest = element;
  for (int i = tensor.rank - 1; i >= 0; rest /= tensor.shape[i--])
    place[i] = rest % tensor.shape[i];
  char scale[256] = "";
  if (const TensorEntry *scales = source.scales.entry)
    snprintf(scale, sizeof(scale), " with element %" PRId64 " of '%.160s'",
             scaleIndex(source, element), scales->name);
  return error.set("tensor '%s' of '%s' is %s at %s%s; weights need to be "
                   "finite",
                   source.name, set.pathOf(source), shown(double(value)).chars,
                   ShapeText(place, tensor.rank).chars, scale);
}
