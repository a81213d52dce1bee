//===- Dump.h - The last step as safetensors --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_CHECKPOINT_DUMP_H
#define REPRISE_RUNTIME_CHECKPOINT_DUMP_H

#include "runtime/base/MicroBatch.h"
#include "runtime/base/ReplacedFile.h"
#include "runtime/base/ThreadPool.h"
#include "runtime/device/Arena.h"
#include "runtime/transport/Transport.h"

namespace reprise::runtime {

/// What one step started from and what came out, for comparison with another
/// implementation. Unlike all else it allocates while the run goes on.
class Dump {
public:
  explicit Dump(const RepriseModel &model) : model(model) {}
  Dump(const Dump &) = delete;
  Dump &operator=(const Dump &) = delete;
  ~Dump();

  /// Finds out whether `path` can be written, and allocates the room for
  /// copies.
  bool start(const char *path, Error &error);

  /// Keeps a micro-batch's inputs.
  void keepInputs(int64_t microBatch, const MicroBatch &batch);

  /// Keeps states, loss and this step's scalars; call before the update. Rank 0
  /// keeps them; where ranks have parts of states, the others send theirs.
  bool keepStates(const Arena &arena, Transport &ranks, ThreadPool &pool,
                  Error &error);

  /// Writes the file. Tensors: parameter/NAME,
  /// gradient/NAME, moment1/NAME, moment2/NAME (as before the update), loss,
  /// lr, bias_correction1, bias_correction2, grad_norm, tokens and targets
  /// [micro-batches, rows, length], rng [micro-batches, 4].
  bool write(float gradNorm, Error &error);

private:
  const RepriseModel &model;
  ReplacedFile file;
  char *memory = nullptr;
  char **states = nullptr; ///< The copy of each state.
  int32_t *tokens = nullptr, *targets = nullptr, *rng = nullptr;
  float loss = 0, lr = 0, correction1 = 0, correction2 = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_CHECKPOINT_DUMP_H
