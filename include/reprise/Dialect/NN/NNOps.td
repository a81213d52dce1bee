//===- NNOps.td - All ops of the nn dialect ----------------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNOPS
#define REPRISE_DIALECT_NN_NNOPS

include "reprise/Dialect/NN/NNModelOps.td"
include "reprise/Dialect/NN/NNActivationOps.td"
include "reprise/Dialect/NN/NNRotaryOps.td"
include "reprise/Dialect/NN/NNExpertOps.td"
include "reprise/Dialect/NN/NNFurtherOps.td"
include "reprise/Dialect/NN/NNAttentionOps.td"
include "reprise/Dialect/NN/NNLatentOps.td"
include "reprise/Dialect/NN/NNTrainingOps.td"
include "reprise/Dialect/NN/NNCollectiveOps.td"
include "reprise/Dialect/NN/NNShardOps.td"
include "reprise/Dialect/NN/NNExpertRankOps.td"
include "reprise/Dialect/NN/NNBalanceOps.td"

#endif // REPRISE_DIALECT_NN_NNOPS
