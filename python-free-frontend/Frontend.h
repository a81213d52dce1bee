//===- Frontend.h - From a description to nn --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_FRONTEND_H
#define REPRISE_FRONTEND_FRONTEND_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "python-free-frontend/Description.h"

namespace reprise::frontend {

/// Whether ranks that share the rest of the model have whole experts each, some
/// of them or all.
bool hasWholeExperts(const Parallel &parallel);

/// The ranks that have the same experts, of those that have some.
int64_t countExpertCopies(const Parallel &parallel);

/// Whether ranks have equal states, of which each can have a share.
bool hasEqualStates(const Parallel &parallel);

/// Builds the module with `@forward`: the mean loss of one micro-batch as a
/// function of tokens, targets, randomness and parameters, in the `nn` dialect.
/// Loads the dialects it needs. Every op has an `nn.scope`, and a location that
/// names its value (`layer3.u`) at the description's section `model`.
///
/// The module's `nn.hub_config` is the text of a `config.json` for weights of
/// the model; its `nn.train` has `lr, min_lr, adam_beta1, adam_beta2, adam_eps,
/// weight_decay, clip_grad` (f64, `clip_grad` 0 for none), `lr_warmup_iters,
/// train_iters, seed, vocab_size` (i64), `lr_decay_style` and `optimizer`
/// (words), and its `nn.train_json` the whole section as JSON. Null, with a
/// diagnostic, if `train.frozen` names no parameter or leaves none to train.
mlir::OwningOpRef<mlir::ModuleOp> buildModel(mlir::MLIRContext &context,
                                             const Description &description);

/// Names the schedule of a pipeline on the module.
void setSchedule(mlir::ModuleOp module, const Parallel &parallel);

/// Lets the program of a description with stages be that of a pipeline: the
/// stages are an axis of the mesh, and the chunks have so many layers.
mlir::LogicalResult makePipeline(mlir::ModuleOp module,
                                 const Parallel &parallel);

/// The model of a description with stages, for one rank along dp, or those that
/// have all experts together, with the samples that each has: the sums of all
/// of them would tie the layers of a chunk together, and take nothing of what
/// is planned for. Where `needsChain`, for a budget or for what stages need,
/// ranks with other experts send rows to each other and sum nothing.
mlir::OwningOpRef<mlir::ModuleOp> buildPlanned(mlir::MLIRContext &context,
                                               Description description,
                                               bool needsChain);

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_FRONTEND_H
