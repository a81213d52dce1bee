//===- ModelTensors.cpp - States under the names of files -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelTensors.h"

#include "ScaledTensors.h"
#include "runtime/base/Text.h"
#include "runtime/device/Init.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace reprise::runtime;

/// Elements that a thread reads or copies at a time: some MiB, so that the
/// system is asked for much at once.
static constexpr int64_t kPieceElements = 1 << 20;

ModelTensors::~ModelTensors() {
  for (char *name : names)
    free(name);
}

bool ModelTensors::add(int kind, const char *prefix, Error &error) {
  size_t firstTensor = tensors.size(), firstState = states.size();
  for (int i = 0; i < model.numStates; ++i)
    if (model.states[i].kind == kind && !states.push(i))
      return error.set("no memory left to note %d states", model.numStates);
  std::sort(states.begin() + firstState, states.end(), [&](int a, int b) {
    if (int order = strcmp(nameOf(kind, a), nameOf(kind, b)))
      return order < 0;
    return model.states[a].part < model.states[b].part;
  });
  for (size_t i = firstState; i < states.size();)
    if (!addTensor(kind, prefix, i, error))
      return false;
  // Slices of stacks stand between one another's.
  return sort(firstTensor, error);
}

bool ModelTensors::sort(size_t firstTensor, Error &error) {
  std::sort(tensors.begin() + firstTensor, tensors.end(),
            [](const ModelTensor &a, const ModelTensor &b) {
              return strcmp(a.name, b.name) < 0;
            });
  for (size_t i = firstTensor + 1; i < tensors.size(); ++i)
    if (!strcmp(tensors[i - 1].name, tensors[i].name))
      return error.set("damaged model: the name '%s' stands twice",
                       tensors[i].name);
  return true;
}

/// Adds the tensor whose states begin at `i`, or the slices of one, and goes on
/// to the states of the next.
bool ModelTensors::addTensor(int kind, const char *prefix, size_t &i,
                             Error &error) {
  bool isParameter = kind == REPRISE_STATE_PARAMETER;
  const RepriseState &state = model.states[states[i]];
  ModelTensor tensor = {
      prefix, nameOf(kind, states[i]), state.rank, {}, int(i), 1, -1};
  memcpy(tensor.shape, state.shape, sizeof(tensor.shape));
  setWholeShape(state, tensor.shape);
  if (isParameter)
    tensor.parts = state.parts;
  for (int part = 0; part < tensor.parts; ++part, ++i) {
    const RepriseState *other =
        i < states.size() ? &model.states[states[i]] : nullptr;
    bool fits = other && !strcmp(nameOf(kind, states[i]), tensor.name) &&
                (!isParameter ||
                 (other->part == part && other->parts == tensor.parts)) &&
                other->rank == state.rank &&
                !memcmp(other->cutAxes, state.cutAxes, sizeof(state.cutAxes)) &&
                !memcmp(other->wholeExtents, state.wholeExtents,
                        sizeof(state.wholeExtents)) &&
                !memcmp(other->shape, state.shape, sizeof(state.shape));
    if (!fits)
      return error.set("damaged model: '%s' needs %d parts of one shape, but "
                       "part %d is missing or another",
                       tensor.name, tensor.parts, part);
  }
  if (isParameter && strchr(tensor.name, '*'))
    return addStack(tensor, error);
  if (tensor.parts > 1)
    tensor.shape[tensor.rank - 1] *= tensor.parts;
  return tensors.push(tensor) ||
         error.set("no memory left to note %d states", model.numStates);
}

bool ModelTensors::addStack(const ModelTensor &stack, Error &error) {
  if (stack.parts != 1 || stack.rank < 2)
    return error.set("damaged model: '%s' needs to be one block, of two "
                     "dimensions or more",
                     stack.name);
  ModelTensor tensor = stack;
  --tensor.rank;
  memmove(tensor.shape, stack.shape + 1, size_t(tensor.rank) * sizeof(int64_t));
  const char *star = strchr(stack.name, '*');
  for (tensor.slice = 0; tensor.slice < stack.shape[0]; ++tensor.slice) {
    char *name = nullptr;
    if (asprintf(&name, "%.*s%" PRId64 "%s", int(star - stack.name), stack.name,
                 tensor.slice, star + 1) < 0 ||
        !names.push(name))
      return error.set("no memory left for the names of %" PRId64 " tensors",
                       stack.shape[0]);
    tensor.name = name;
    if (!tensors.push(tensor))
      return error.set("no memory left to note %d states", model.numStates);
  }
  return true;
}

/// Adds what a layer that predicts a further token has of the model's own, for
/// each such layer.
bool ModelTensors::addCopies(Error &error) {
  int embedding = -1, head = -1;
  for (int i = 0; i < size(); ++i) {
    if (endsWithName(tensors[size_t(i)].name, "embed_tokens.weight"))
      embedding = i;
    if (endsWithName(tensors[size_t(i)].name, "lm_head.weight"))
      head = i;
  }
  const struct {
    const char *name;
    int original;
  } copies[] = {{"embed_tokens.weight", embedding},
                {"shared_head.head.weight", head < 0 ? embedding : head}};
  for (int i = 0, count = size(); i < count; ++i) {
    const std::string_view name = tensors[size_t(i)].name;
    if (!endsWithName(name, kOfFurtherLayer))
      continue;
    const int base = int(name.size() - kOfFurtherLayer.size());
    for (const auto &copy : copies) {
      if (copy.original < 0)
        continue;
      ModelTensor tensor = tensors[size_t(copy.original)];
      tensor.isCopy = true;
      char *full = nullptr;
      if (asprintf(&full, "%.*s%s", base, tensors[size_t(i)].name, copy.name) <
              0 ||
          !names.push(full))
        return error.set("no memory left for the name of '%s'", copy.name);
      tensor.name = full;
      if (!tensors.push(tensor))
        return error.set("no memory left to note %d states", model.numStates);
    }
  }
  return sort(0, error);
}

int ModelTensors::originalOf(int i) const {
  int original = 0;
  while (tensors[size_t(original)].first != tensors[size_t(i)].first ||
         tensors[size_t(original)].isCopy)
    ++original;
  return tensors[size_t(i)].isCopy ? original : i;
}

bool ModelTensors::find(Error &error) {
  if (!add(REPRISE_STATE_PARAMETER, "", error) || !addCopies(error))
    return false;
  parameters = size();
  return add(REPRISE_STATE_MOMENT1, "exp_avg.", error) &&
         add(REPRISE_STATE_MOMENT2, "exp_avg_sq.", error) &&
         (cut() || error.set("no memory left to cut %d tensors", size()));
}

bool ModelTensors::cut() {
  for (int i = 0; i < size(); ++i) {
    int64_t rows = tensors[size_t(i)].rows();
    int64_t step = std::max<int64_t>(
        1, kPieceElements / std::max<int64_t>(1, tensors[size_t(i)].columns()));
    for (int64_t row = 0; row < rows; row += step)
      if (!pieces.push({i, row, std::min(row + step, rows)}))
        return false;
  }
  return true;
}

const ModelTensors::Piece *ModelTensors::firstPieceOf(int tensor) const {
  return std::lower_bound(
      pieces.begin(), pieces.end(), tensor,
      [](const Piece &piece, int other) { return piece.tensor < other; });
}

template <typename Action>
bool ModelTensors::forEachState(int first, int count, Action action) const {
  for (int i = first; i < first + count; ++i)
    for (int part = 0; part < tensors[size_t(i)].parts; ++part)
      if (!action(
              model.states[states[size_t(tensors[size_t(i)].first + part)]]))
        return false;
  return true;
}

bool ModelTensors::gather(const List<TensorSlice> &slices, float *own,
                          const Arena &arena, Transport &ranks,
                          ThreadPool &pool, Error &error) const {
  Deliveries deliveries;
  int64_t before = 0; // In the memory of the rank that gets them.
  for (const TensorSlice *slice = slices.begin(); slice != slices.end();
       before += slice->end - slice->begin, ++slice) {
    if (slice != slices.begin() && slice->rank != slice[-1].rank)
      before = 0;
    const ModelTensor &tensor = tensors[size_t(slice->tensor)];
    const int64_t columns = tensor.columns(), width = columns / tensor.parts;
    for (int part = 0; part < tensor.parts; ++part) {
      // Of the elements before one of the tensor, those that are in the part.
      auto inPart = [&](int64_t element) {
        return element / columns * width +
               std::clamp<int64_t>(element % columns - part * width, 0, width);
      };
      const int64_t base = tensor.firstElement();
      const Share elements = {base + inPart(slice->begin),
                              base + inPart(slice->end)};
      const WholePlace place = {own, width, columns, base,
                                part * width - slice->begin + before};
      if (!deliveries.add(model.states[states[size_t(tensor.first + part)]],
                          elements, slice->rank, place))
        return error.set("no memory left to note %d tensors", size());
    }
  }
  return deliveries.run(model, arena, ranks, pool, error);
}

/// Lets the system fetch these bytes of a file.
static void expect(const unsigned char *bytes, int64_t count) {
  uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
  uintptr_t begin = reinterpret_cast<uintptr_t>(bytes) & ~(page - 1);
  uintptr_t end = reinterpret_cast<uintptr_t>(bytes + count);
  madvise(reinterpret_cast<void *>(begin), end - begin, MADV_WILLNEED);
}

bool ModelTensors::read(const TensorSet &set, const TensorEntry *const *sources,
                        int first, int count, bool onlyFinite, Arena &arena,
                        ThreadPool &pool, Error &error) const {
  if (count == 1 && tensors[size_t(first)].isCopy)
    return true;
  if (arena.isCopy() && count > 1) {
    for (int i = 0; i < count; ++i)
      if (!read(set, sources + i, first + i, 1, onlyFinite, arena, pool, error))
        return false;
    return true;
  }
  // In a copy, where tensors come one by one, the rest of a stack.
  if (arena.isCopy() && tensors[size_t(first)].slice >= 0 &&
      !forEachState(first, count, [&](const RepriseState &state) {
        return arena.download(state.buffer, error);
      }))
    return false;
  const Piece *ours = firstPieceOf(first);
  int64_t numPieces = firstPieceOf(first + count) - ours;
  for (int i = first; i < first + count; ++i)
    forEachState(i, 1, [&](const RepriseState &state) {
      if (state.isElsewhere)
        return true;
      arena.touch(state.buffer);
      // Of a stack, the first slice finds nothing of it.
      if (tensors[size_t(i)].slice <= 0 && partOf(model, state, rank).hasMore())
        memset(arena.at<char>(state.buffer), 0, size_t(state.buffer.bytes));
      return true;
    });

  // Of the rows [begin, end) of a state, those elements that the rank has, from
  // the file to the arena.
  auto convert = [&](const Piece &piece, int part, int64_t begin, int64_t end) {
    const ModelTensor &tensor = tensors[size_t(piece.tensor)];
    const TensorEntry &source = *sources[piece.tensor - first];
    int64_t columns = tensor.columns(), width = columns / tensor.parts;
    const RepriseState &state =
        model.states[states[size_t(tensor.first + part)]];
    if (state.isElsewhere)
      return true;
    const int64_t base = tensor.firstElement();
    const int64_t before = begin * (columns - width) + part * width - base;
    bool good = true;
    partOf(model, state, rank)
        .forEachRun(base + begin * width, base + end * width,
                    [&](int64_t whole, int64_t own, int64_t number) {
                      good =
                          readElements(set, source, before + whole, number,
                                       arena.at<float>(state.buffer) + own) &&
                          good;
                      return true;
                    });
    return good;
  };
  std::atomic<int64_t> bad{INT64_MAX}; // The first piece that is not finite.
  pool.parallelFor(numPieces, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Piece &piece = ours[i];
      const ModelTensor &tensor = tensors[size_t(piece.tensor)];
      if (tensor.isCopy)
        continue;
      const TensorEntry &source = *sources[piece.tensor - first];
      int64_t rowBytes = tensor.columns() * source.type->bits / 8;
      expect(set.bytesOf(source) + piece.begin * rowBytes,
             (piece.end - piece.begin) * rowBytes);
      bool good = true;
      if (tensor.parts == 1)
        good = convert(piece, 0, piece.begin, piece.end);
      else
        for (int64_t row = piece.begin; row < piece.end; ++row)
          for (int part = 0; part < tensor.parts; ++part)
            good = convert(piece, part, row, row + 1) && good;
      int64_t known = bad;
      while (!good && i < known && !bad.compare_exchange_weak(known, i))
        ;
    }
  });
  if (!onlyFinite || bad == INT64_MAX)
    return forEachState(first, count, [&](const RepriseState &state) {
      return state.isElsewhere || handOverState(state, arena, error);
    });
  const Piece &piece = ours[bad.load()];
  const ModelTensor &tensor = tensors[size_t(piece.tensor)];
  const TensorEntry &source = *sources[piece.tensor - first];
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
