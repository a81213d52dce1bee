//===- ModelTensors.h - States under the names of files ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_MODELTENSORS_H
#define REPRISE_RUNTIME_CHECKPOINT_MODELTENSORS_H

#include "Delivery.h"
#include "SafeTensors.h"

#include <cstring>
#include <string_view>

namespace reprise::runtime {

/// What a layer has, and no other, that predicts a further token.
inline constexpr std::string_view kOfFurtherLayer = "eh_proj.weight";

/// Whether `name` is `suffix` or ends with it, behind a point.
inline bool endsWithName(std::string_view name, std::string_view suffix) {
  size_t more = name.size() - suffix.size();
  return name.size() >= suffix.size() &&
         !memcmp(name.data() + more, suffix.data(), suffix.size()) &&
         (more == 0 || name[more - 1] == '.');
}

/// A tensor as it stands in a file: a whole state, several side by side, or a
/// slice of a stack, an index of its first dimension.
struct ModelTensor {
  const char *prefix, *name; ///< Its name in the file is both together.
  int rank;
  int64_t shape[4];
  int first, parts;    ///< Its states: some of `ModelTensors::states`.
  int64_t slice;       ///< Of a stack; -1: its states are whole.
  bool isCopy = false; ///< Of another tensor, whose states these are.

  int64_t columns() const { return rank ? shape[rank - 1] : 1; }
  int64_t rows() const {
    int64_t rows = 1;
    for (int i = 0; i + 1 < rank; ++i)
      rows *= shape[i];
    return rows;
  }
  int64_t elements() const { return rows() * columns(); }
  /// Where it begins in its state.
  int64_t firstElement() const { return slice < 0 ? 0 : slice * elements(); }
};

/// Elements [begin, end) of a tensor of a file, which a rank writes.
struct TensorSlice {
  int tensor;
  int64_t begin, end;
  int rank;

  int64_t bytes() const { return (end - begin) * 4; }
};

/// All states of a model that outlive a step, as tensors of files. The
/// parameters have their published names; parts of one published tensor (the
/// three of GPT-2's c_attn) stand side by side in its columns, and a stack (the
/// weights of experts) is as many tensors, one behind the other. The moments of
/// the optimizer are exp_avg.NAME and exp_avg_sq.NAME, with the parameters' own
/// names and shapes. A layer that predicts a further token is published with
/// copies of the embedding and of the head, which are those of the model.
class ModelTensors {
public:
  /// \param rank  whose parts of the tensors are its own.
  explicit ModelTensors(const RepriseModel &model, int rank = 0)
      : model(model), rank(rank) {}
  ModelTensors(const ModelTensors &) = delete;
  ModelTensors &operator=(const ModelTensors &) = delete;
  ~ModelTensors();

  /// Finds the tensors, once; false if parts of one are missing.
  bool find(Error &error);

  int size() const { return int(tensors.size()); }
  /// Whether ranks have parts of some of them, or stages.
  bool haveParts() const { return hasParts(model); }
  /// The first ones are the parameters.
  int numParameters() const { return parameters; }
  /// Sorted by name, parameters and each kind of moments for themselves.
  const ModelTensor &operator[](int i) const { return tensors[size_t(i)]; }
  /// What the tensor is a copy of; its own number if it is none.
  int originalOf(int i) const;

  /// Brings this rank's own of the slices, which come in the order of ranks, to
  /// `own`, one behind the other, from its arena and from other ranks that have
  /// parts of them. All ranks call it, with the same slices.
  bool gather(const List<TensorSlice> &slices, float *own, const Arena &arena,
              Transport &ranks, ThreadPool &pool, Error &error) const;

  /// Calls `action(bytes, count)` with the bytes of a slice where they lie in
  /// the arena of the CPU, in their order in a file, until it returns false.
  template <typename Action>
  bool forEachRun(const TensorSlice &slice, const Arena &arena,
                  Action action) const;

  /// The state that is a part of a tensor, or that a slice is of.
  const RepriseState &stateOf(const ModelTensor &tensor, int part) const {
    return model.states[states[size_t(tensor.first + part)]];
  }
  /// What this rank has of a state.
  Part ownPartOf(const RepriseState &state) const {
    return partOf(model, state, rank);
  }

private:
  bool add(int kind, const char *prefix, Error &error);
  bool addTensor(int kind, const char *prefix, size_t &state, Error &error);
  bool addStack(const ModelTensor &stack, Error &error);
  bool addCopies(Error &error);
  const float *placeOf(const ModelTensor &tensor, int part,
                       const Arena &arena) const {
    return arena.at<float>(stateOf(tensor, part).buffer) +
           tensor.firstElement();
  }

  const RepriseModel &model;
  int rank;
  List<ModelTensor> tensors;
  List<int> states;
  List<char *> names; ///< Of slices and copies.
  int parameters = 0;
};

template <typename Action>
bool ModelTensors::forEachRun(const TensorSlice &slice, const Arena &arena,
                              Action action) const {
  const ModelTensor &tensor = tensors[size_t(slice.tensor)];
  const int64_t columns = tensor.columns(), width = columns / tensor.parts;
  if (tensor.parts == 1)
    return action(placeOf(tensor, 0, arena) + slice.begin,
                  size_t(slice.bytes()));
  // Rows of parts stand side by side, many of them in one call.
  constexpr int64_t kGathered = 1 << 14;
  float gathered[kGathered];
  int64_t filled = 0;
  for (int64_t at = slice.begin, run; at < slice.end; at += run) {
    const int64_t part = at % columns / width, column = at % width;
    const float *from =
        placeOf(tensor, int(part), arena) + at / columns * width + column;
    run = width - column;
    run = run < slice.end - at ? run : slice.end - at;
    run = run < kGathered ? run : kGathered;
    if (filled + run > kGathered) {
      if (!action(gathered, size_t(filled) * 4))
        return false;
      filled = 0;
    }
    memcpy(gathered + filled, from, size_t(run) * 4);
    filled += run;
  }
  return filled == 0 || action(gathered, size_t(filled) * 4);
}

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_MODELTENSORS_H
