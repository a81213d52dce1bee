//===- ModelTensors.h - States under the names of files ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_MODELTENSORS_H
#define REPRISE_RUNTIME_CHECKPOINT_MODELTENSORS_H

#include "SafeTensors.h"
#include "runtime/base/ThreadPool.h"
#include "runtime/device/Arena.h"
#include "runtime/transport/Parts.h"

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

/// All states of a model that outlive a step, as tensors of files. The
/// parameters have their published names; parts of one published tensor (the
/// three of GPT-2's c_attn) stand side by side in its columns, and a stack (the
/// weights of experts) is as many tensors, one behind the other. The moments of
/// the optimizer are exp_avg.NAME and exp_avg_sq.NAME, with the parameters' own
/// names and shapes. A layer that predicts a further token is published with
/// copies of the embedding and of the head, which are those of the model.
class ModelTensors {
public:
  /// \param rank  which parts of the tensors it reads.
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

  /// Copies all tensors to `places[i]`, in all threads.
  bool copyOut(const Arena &arena, float *const *places, ThreadPool &pool,
               Error &error) const;

  /// The same at rank 0, where ranks have parts of them, or stages; all call
  /// it, and those that have what rank 0 has not send it. `places` count at
  /// rank 0.
  bool gather(const Arena &arena, float *const *places, Transport &ranks,
              Error &error) const;

  /// Calls `action(bytes, count)` with the bytes of a tensor where they lie in
  /// the arena of the CPU, in their order in a file, until it returns false.
  template <typename Action>
  bool forEachRun(int tensor, const Arena &arena, Action action) const;

  /// Reads `count` of the tensors, from number `first` on, each from
  /// `sources[i]`, whose types are floats and whose shapes are right. With
  /// `onlyFinite`, one that is not a number or infinite is an error. Copies are
  /// passed over, and need no source.
  bool read(const TensorSet &set, const TensorEntry *const *sources, int first,
            int count, bool onlyFinite, Arena &arena, ThreadPool &pool,
            Error &error) const;

private:
  /// Some rows of a tensor.
  struct Piece {
    int tensor;
    int64_t begin, end;
  };
  bool cut();
  const Piece *firstPieceOf(int tensor) const;
  /// Calls `action` with the state of each part of some tensors, until one
  /// returns false.
  template <typename Action>
  bool forEachState(int first, int count, Action action) const;
  bool copyOut(const Arena &arena, float *const *places, int first, int count,
               ThreadPool &pool, Error &error) const;
  bool add(int kind, const char *prefix, Error &error);
  bool addTensor(int kind, const char *prefix, size_t &state, Error &error);
  bool addStack(const ModelTensor &stack, Error &error);
  bool addCopies(Error &error);
  bool sort(size_t first, Error &error);
  /// What its states are called in files.
  const char *nameOf(int kind, int state) const {
    const RepriseState &s = model.states[state];
    return kind == REPRISE_STATE_PARAMETER ? s.hubName : s.name;
  }
  const float *placeOf(const ModelTensor &tensor, int part,
                       const Arena &arena) const {
    const RepriseState &s = model.states[states[size_t(tensor.first + part)]];
    return arena.at<float>(s.buffer) + tensor.firstElement();
  }

  const RepriseModel &model;
  int rank;
  List<ModelTensor> tensors;
  List<int> states;
  List<Piece> pieces; ///< Of all tensors, in their order.
  List<char *> names; ///< Of slices and copies.
  int parameters = 0;
};

template <typename Action>
bool ModelTensors::forEachRun(int index, const Arena &arena,
                              Action action) const {
  const ModelTensor &tensor = tensors[size_t(index)];
  auto from = [&](int part) {
    return reinterpret_cast<const char *>(placeOf(tensor, part, arena));
  };
  if (tensor.parts == 1)
    return action(from(0), size_t(tensor.elements()) * 4);
  // Rows of parts stand side by side, many of them in one call.
  constexpr size_t kGathered = 1 << 16;
  char gathered[kGathered];
  size_t filled = 0, width = size_t(tensor.columns() / tensor.parts) * 4;
  for (int64_t row = 0; row < tensor.rows(); ++row)
    for (int part = 0; part < tensor.parts; ++part) {
      const char *run = from(part) + size_t(row) * width;
      if (filled + width > kGathered) {
        if (!action(gathered, filled))
          return false;
        filled = 0;
      }
      if (width > kGathered) {
        if (!action(run, width))
          return false;
        continue;
      }
      memcpy(gathered + filled, run, width);
      filled += width;
    }
  return action(gathered, filled);
}

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_MODELTENSORS_H
