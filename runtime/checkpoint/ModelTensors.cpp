//===- ModelTensors.cpp - States under the names of files -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelTensors.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

using namespace reprise::runtime;

/// What a state is called in files.
static const char *nameOf(const RepriseState &state) {
  return state.kind == REPRISE_STATE_PARAMETER ? state.hubName : state.name;
}

ModelTensors::~ModelTensors() {
  for (char *name : names)
    free(name);
}

/// Sorts the tensors from number `first` on by their names; two of one name are
/// an error.
static bool sortByName(List<ModelTensor> &tensors, size_t first, Error &error) {
  std::sort(tensors.begin() + first, tensors.end(),
            [](const ModelTensor &a, const ModelTensor &b) {
              return strcmp(a.name, b.name) < 0;
            });
  for (size_t i = first + 1; i < tensors.size(); ++i)
    if (!strcmp(tensors[i - 1].name, tensors[i].name))
      return error.set("damaged model: the name '%s' stands twice",
                       tensors[i].name);
  return true;
}

bool ModelTensors::add(int kind, const char *prefix, Error &error) {
  size_t firstTensor = tensors.size(), firstState = states.size();
  for (int i = 0; i < model.numStates; ++i)
    if (model.states[i].kind == kind && !states.push(i))
      return error.set("no memory left to note %d states", model.numStates);
  std::sort(states.begin() + firstState, states.end(), [&](int a, int b) {
    if (int order = strcmp(nameOf(model.states[a]), nameOf(model.states[b])))
      return order < 0;
    return model.states[a].part < model.states[b].part;
  });
  for (size_t i = firstState; i < states.size();)
    if (!addTensor(kind, prefix, i, error))
      return false;
  // Slices of stacks stand between one another's.
  return sortByName(tensors, firstTensor, error);
}

/// Adds the tensor whose states begin at `i`, or the slices of one, and goes on
/// to the states of the next.
bool ModelTensors::addTensor(int kind, const char *prefix, size_t &i,
                             Error &error) {
  bool isParameter = kind == REPRISE_STATE_PARAMETER;
  const RepriseState &state = model.states[states[i]];
  ModelTensor tensor = {prefix, nameOf(state), state.rank, {}, int(i), 1, -1};
  memcpy(tensor.shape, state.shape, sizeof(tensor.shape));
  setWholeShape(state, tensor.shape);
  if (isParameter)
    tensor.parts = state.parts;
  for (int part = 0; part < tensor.parts; ++part, ++i) {
    const RepriseState *other =
        i < states.size() ? &model.states[states[i]] : nullptr;
    bool fits = other && !strcmp(nameOf(*other), tensor.name) &&
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
  return sortByName(tensors, 0, error);
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
         add(REPRISE_STATE_MOMENT2, "exp_avg_sq.", error);
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
      if (!deliveries.add(stateOf(tensor, part), elements, slice->rank, place))
        return error.set("no memory left to note %d tensors", size());
    }
  }
  return deliveries.run(model, arena, ranks, pool, error);
}
