//===- CostTest.cpp - What nn ops say they cost -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts worked out by hand for B = 2, T = 8, C = 24, H = 3, D = 8, F = 96 and
// V = 307: 16 rows, 384 elements of [B, T, C], 1536 of [B, T, F], 384 scores,
// of which 2 * 3 * 36 = 216 on or below the diagonal. Where two heads of keys
// serve six of queries, D is 4 and all scores are twice as many.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "gtest/gtest.h"

#include <set>

using namespace mlir;
using namespace reprise;

namespace {
struct Case {
  const char *op;   ///< on the values of kArguments
  const char *type; ///< of its operands and results
  int64_t flops;
};

const char *const kArguments =
    "%ids: tensor<2x8xi32>, %at: tensor<2xi32>, %rng: tensor<4xi32>, %x: "
    "tensor<2x8x24xf32>, "
    "%u: tensor<2x8x96xf32>, %l: tensor<2x8x307xf32>, %s: tensor<2x3x8x8xf32>, "
    "%odd: tensor<2x3x3x3xf32>, %row: tensor<2x8xf32>, %h: tensor<2x3x8xf32>, "
    "%c: tensor<24xf32>, %f: tensor<96xf32>, %w: tensor<24x96xf32>, "
    "%kv: tensor<2x8x8xf32>, %gh: tensor<2x6x8xf32>, %sg: "
    "tensor<2x6x8x8xf32>, %d: tensor<8xf32>, %heads: tensor<2x8x3xf32>, "
    "%t: tensor<8x8xf32>, "
    "%e: tensor<307x24xf32>, %p: tensor<16x24xf32>, %one: tensor<f32>, "
    "%huge: tensor<4294967296x4294967296xf32>, "
    "%tall: tensor<4294967296x1xf32>, %choice: tensor<2x8x4xf32>, "
    "%slots: tensor<2x8x2xi32>, %dslots: tensor<2x8x2xf32>, "
    "%order: tensor<32xi32>, %offsets: tensor<5xi32>, %xr: tensor<32x24xf32>, "
    "%ur: tensor<32x96xf32>, %wr: tensor<32xf32>, "
    "%experts: tensor<4x96x24xf32>, %gate: tensor<2x8x1xf32>, "
    "%rows: tensor<4xf32>, %narrow: tensor<8x4xf32>, "
    "%vn: tensor<2x8x15xf32>, %nh: tensor<2x8x39xf32>, %kr: tensor<2x8x4xf32>, "
    "%ks: tensor<2x8x36xf32>, %all: tensor<2x5xi32>, "
    "%rounds: tensor<4x3xi32>";

const Case kCases[] = {
    {"nn.embedding %ids, %e",
     "(tensor<2x8xi32>, tensor<307x24xf32>) -> tensor<2x8x24xf32>", 0},
    {"nn.embedding_backward %ids, %x",
     "(tensor<2x8xi32>, tensor<2x8x24xf32>) -> tensor<307x24xf32>", 384},
    {"nn.add_positions %x, %p",
     "(tensor<2x8x24xf32>, tensor<16x24xf32>) -> tensor<2x8x24xf32>", 384},
    {"nn.positions_backward %x", "(tensor<2x8x24xf32>) -> tensor<16x24xf32>",
     384},
    {"nn.take_position %x, %at",
     "(tensor<2x8x24xf32>, tensor<2xi32>) -> tensor<2x24xf32>", 0},
    {"nn.crop_positions %x from 3",
     "(tensor<2x8x24xf32>) -> tensor<2x5x24xf32>", 0},
    {"nn.crop_positions %ids from 1", "(tensor<2x8xi32>) -> tensor<2x7xi32>",
     0},
    {"nn.pad_positions %x from 3",
     "(tensor<2x8x24xf32>) -> tensor<2x12x24xf32>", 0},
    {"nn.training_term %one, %one by 0.5", "tensor<f32>", 2},
    {"nn.layer_norm %x, %c, %c eps 1.0",
     "(tensor<2x8x24xf32>, tensor<24xf32>, tensor<24xf32>) -> "
     "(tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>)",
     7 * 384 + 5 * 16},
    {"nn.layer_norm_backward %x, %c, %row, %row, %x",
     "(tensor<2x8x24xf32>, tensor<24xf32>, tensor<2x8xf32>, tensor<2x8xf32>, "
     "tensor<2x8x24xf32>) -> tensor<2x8x24xf32>",
     10 * 384 + 2 * 16},
    {"nn.layer_norm_backward_gain %x, %row, %row, %x",
     "(tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>, "
     "tensor<2x8x24xf32>) -> tensor<24xf32>",
     4 * 384},
    {"nn.rms_norm %x, %c eps 1.0",
     "(tensor<2x8x24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, "
     "tensor<2x8xf32>)",
     4 * 384 + 4 * 16},
    {"nn.rms_norm %x, %d eps 1.0",
     "(tensor<2x8x24xf32>, tensor<8xf32>) -> (tensor<2x8x24xf32>, "
     "tensor<2x8x3xf32>)",
     4 * 384 + 4 * 48},
    {"nn.rms_norm_backward %x, %d, %heads, %x",
     "(tensor<2x8x24xf32>, tensor<8xf32>, tensor<2x8x3xf32>, "
     "tensor<2x8x24xf32>) -> tensor<2x8x24xf32>",
     7 * 384 + 48},
    {"nn.rms_norm_backward_gain %x, %row, %x",
     "(tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> "
     "tensor<24xf32>",
     3 * 384},
    {"nn.swiglu %u, %u", "tensor<2x8x96xf32>", 6 * 1536},
    {"nn.swiglu_backward %u, %u, %u", "tensor<2x8x96xf32>", 11 * 1536},
    {"nn.rope %x, %t heads 3 half_split",
     "(tensor<2x8x24xf32>, tensor<8x8xf32>) -> tensor<2x8x24xf32>", 3 * 384},
    {"nn.rope_backward %x, %t heads 3 interleaved",
     "(tensor<2x8x24xf32>, tensor<8x8xf32>) -> tensor<2x8x24xf32>", 3 * 384},
    {"nn.rope %x, %narrow heads 3 from 2 half_split",
     "(tensor<2x8x24xf32>, tensor<8x4xf32>) -> tensor<2x8x24xf32>", 3 * 192},
    // Values of width 5: of keys 3 * 8 and 2 * 5 of values in backward.
    {"nn.attention %x, %x, %vn, %rng heads 3 scale 0.5 rate 0.0 stream 0",
     "(tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x15xf32>, "
     "tensor<4xi32>) -> (tensor<2x8x15xf32>, tensor<2x3x8xf32>)",
     216 * (2 * 13 + 5) + 240 + 2 * 48},
    {"nn.attention_backward %x, %x, %vn, %vn, %h, %vn, %rng heads 3 scale 0.5 "
     "rate 0.0 stream 0",
     "(tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x15xf32>, "
     "tensor<2x8x15xf32>, tensor<2x3x8xf32>, tensor<2x8x15xf32>, "
     "tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, "
     "tensor<2x8x15xf32>)",
     216 * (2 * 34 + 5) + 2 * 240 + 2 * 384},
    {"nn.split_columns %x",
     "(tensor<2x8x24xf32>) -> (tensor<2x8x20xf32>, tensor<2x8x4xf32>)", 0},
    {"nn.join_columns %x, %vn",
     "(tensor<2x8x24xf32>, tensor<2x8x15xf32>) -> tensor<2x8x39xf32>", 0},
    {"nn.latent_heads %nh, %kr heads 3",
     "(tensor<2x8x39xf32>, tensor<2x8x4xf32>) -> (tensor<2x8x36xf32>, "
     "tensor<2x8x15xf32>)",
     0},
    {"nn.latent_heads_backward %ks, %vn heads 3",
     "(tensor<2x8x36xf32>, tensor<2x8x15xf32>) -> (tensor<2x8x39xf32>, "
     "tensor<2x8x4xf32>)",
     16 * 4 * 2},
    {"nn.sum_rows %x", "(tensor<2x8x24xf32>) -> tensor<24xf32>", 384},
    {"nn.linear %x, %w, %f in_out",
     "(tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<96xf32>) -> "
     "tensor<2x8x96xf32>",
     2 * 16 * 24 * 96 + 1536},
    {"nn.linear %x, %e out_in",
     "(tensor<2x8x24xf32>, tensor<307x24xf32>) -> tensor<2x8x307xf32>",
     2 * 16 * 24 * 307},
    {"nn.linear %huge, %tall in_out",
     "(tensor<4294967296x4294967296xf32>, tensor<4294967296x1xf32>) -> "
     "tensor<4294967296x1xf32>",
     int64_t(1) << 60},
    {"nn.linear_backward_input %u, %w in_out",
     "(tensor<2x8x96xf32>, tensor<24x96xf32>) -> tensor<2x8x24xf32>",
     2 * 16 * 24 * 96},
    {"nn.linear_backward_weight %x, %u in_out",
     "(tensor<2x8x24xf32>, tensor<2x8x96xf32>) -> tensor<24x96xf32>",
     2 * 16 * 24 * 96},
    {"nn.gelu %u tanh", "tensor<2x8x96xf32>", 9 * 1536},
    {"nn.gelu %u erf", "tensor<2x8x96xf32>", 5 * 1536},
    {"nn.gelu_backward %u, %u tanh", "tensor<2x8x96xf32>", 18 * 1536},
    {"nn.gelu_backward %u, %u erf", "tensor<2x8x96xf32>", 11 * 1536},
    {"nn.squared_relu %u", "tensor<2x8x96xf32>", 2 * 1536},
    {"nn.squared_relu_backward %u, %u", "tensor<2x8x96xf32>", 3 * 1536},
    {"nn.add %x, %x", "tensor<2x8x24xf32>", 384},
    {"nn.scale %x by 2.0", "tensor<2x8x24xf32>", 384},
    {"nn.dropout %x, %rng rate 0.1 stream 0",
     "(tensor<2x8x24xf32>, tensor<4xi32>) -> tensor<2x8x24xf32>", 384},
    {"nn.cast %x", "(tensor<2x8x24xf32>) -> tensor<2x8x24xbf16>", 0},
    {"nn.attention %x, %x, %x, %rng heads 3 scale 0.5 rate 0.1 stream 0",
     "(tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, "
     "tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)",
     216 * (4 * 8 + 6) + 384 + 2 * 48},
    {"nn.attention %x, %x, %x, %rng heads 3 scale 0.5 rate 0.0 stream 0",
     "(tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, "
     "tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)",
     216 * (4 * 8 + 5) + 384 + 2 * 48},
    {"nn.attention_backward %x, %x, %x, %x, %h, %x, %rng heads 3 scale 0.5 "
     "rate 0.1 stream 0",
     "(tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, "
     "tensor<2x8x24xf32>, tensor<2x3x8xf32>, tensor<2x8x24xf32>, "
     "tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, "
     "tensor<2x8x24xf32>)",
     216 * (10 * 8 + 7) + 4 * 384},
    {"nn.scores %x, %x heads 3 scale 0.5",
     "(tensor<2x8x24xf32>, tensor<2x8x24xf32>) -> tensor<2x3x8x8xf32>",
     384 * 2 * 8 + 384},
    {"nn.context %s, %x heads 3 scale 1.0",
     "(tensor<2x3x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>",
     384 * 2 * 8},
    {"nn.attention %x, %kv, %kv, %rng heads 6 kv_heads 2 scale 0.5 rate 0.0 "
     "stream 0",
     "(tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, "
     "tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)",
     432 * (4 * 4 + 5) + 384 + 2 * 96},
    {"nn.attention_backward %x, %kv, %kv, %x, %gh, %x, %rng heads 6 kv_heads 2 "
     "scale 0.5 rate 0.0 stream 0",
     "(tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, "
     "tensor<2x8x24xf32>, tensor<2x6x8xf32>, tensor<2x8x24xf32>, "
     "tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x8x8xf32>, "
     "tensor<2x8x8xf32>)",
     432 * (10 * 4 + 5) + 3 * 384 + 128},
    {"nn.scores %x, %kv heads 6 kv_heads 2 scale 0.5",
     "(tensor<2x8x24xf32>, tensor<2x8x8xf32>) -> tensor<2x6x8x8xf32>",
     768 * 2 * 4 + 768},
    {"nn.context %sg, %kv heads 6 kv_heads 2 scale 0.5",
     "(tensor<2x6x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x24xf32>",
     768 * 2 * 4 + 384},
    {"nn.context %sg, %x heads 6 kv_heads 2 scale 0.5 transposed",
     "(tensor<2x6x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x8xf32>",
     768 * 2 * 4 + 128},
    {"nn.softmax %s", "tensor<2x3x8x8xf32>", 5 * 216},
    {"nn.softmax %odd", "tensor<2x3x3x3xf32>", 5 * 2 * 3 * 6},
    {"nn.softmax_backward %s, %s", "tensor<2x3x8x8xf32>", 4 * 384},
    {"nn.cross_entropy %l, %ids",
     "(tensor<2x8x307xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, "
     "tensor<2x8xf32>)",
     4 * 16 * 307 + 3 * 16},
    {"nn.cross_entropy_backward %l, %ids, %row, %row",
     "(tensor<2x8x307xf32>, tensor<2x8xi32>, tensor<2x8xf32>, tensor<2x8xf32>) "
     "-> tensor<2x8x307xf32>",
     3 * 16 * 307 + 16},
    // A GEMM and the losses; with gradients, two GEMMs more, the
    // gradient of the losses and a sum of weights.
    {"nn.linear_cross_entropy %x, %e, %ids out_in rows 256",
     "(tensor<2x8x24xf32>, tensor<307x24xf32>, tensor<2x8xi32>) -> "
     "tensor<2x8xf32>",
     2 * 16 * 24 * 307 + 4 * 16 * 307 + 3 * 16},
    {"nn.linear_cross_entropy %x, %e, %ids sum(%e) by 0.5 dinput out_in rows "
     "256",
     "(tensor<2x8x24xf32>, tensor<307x24xf32>, tensor<2x8xi32>, "
     "tensor<307x24xf32>) -> (tensor<2x8xf32>, tensor<2x8x24xf32>, "
     "tensor<307x24xf32>)",
     3 * 2 * 16 * 24 * 307 + 7 * 16 * 307 + 4 * 16 + 24 * 307},
    {"nn.mean %row", "(tensor<2x8xf32>) -> tensor<f32>", 17},
    {"nn.broadcast %one by 0.5", "(tensor<f32>) -> tensor<2x8xf32>", 1},
    {"nn.constant 0.5", "tensor<2x8xf32>", 0},
    {"nn.accumulate %w, %w", "tensor<24x96xf32>", 24 * 96},
    {"nn.push %w, %w, %w to %w", "tensor<24x96xf32>", 2 * 24 * 96},
    {"nn.global_norm %w, %f",
     "(tensor<24x96xf32>, tensor<96xf32>) -> tensor<f32>",
     2 * (24 * 96 + 96) + 1},
    {"nn.clip_scale %one max 1.0", "tensor<f32>", 3},
    {"nn.adamw %w, %w, %w, %w, %one, %one, %one, %one beta1 0.5 beta2 0.5 eps "
     "1.0 weight_decay 0.5",
     "tensor<24x96xf32>, tensor<f32>", 17 * 24 * 96},
    {"nn.all_reduce %x over \"tp\"", "tensor<2x8x24xf32>", 384},
    {"nn.all_gather %x to R over \"tp\" dim 1",
     "(tensor<2x8x24xf32>) -> tensor<2x16x24xf32>", 0},
    {"nn.reduce_scatter %x over \"tp\" dim 1",
     "(tensor<2x8x24xf32>) -> tensor<2x4x24xf32>", 192},
    {"nn.gather_offsets %offsets over \"ep\"",
     "(tensor<5xi32>) -> (tensor<2x5xi32>, tensor<3xi32>)", 0},
    {"nn.round_offsets %rounds round 1", "(tensor<4x3xi32>) -> tensor<3xi32>",
     0},
    {"nn.send_rows %xr, %all over \"ep\"",
     "(tensor<32x24xf32>, tensor<2x5xi32>) -> tensor<64x24xf32>", 0},
    {"nn.return_rows %xr, %all over \"ep\"",
     "(tensor<32x24xf32>, tensor<2x5xi32>) -> tensor<16x24xf32>", 0},
    {"nn.reduce_shares %x over \"dp\"", "tensor<2x8x24xf32>", 384},
    {"nn.shares_norm %w, %f over \"dp\"",
     "(tensor<24x96xf32>, tensor<96xf32>) -> tensor<f32>",
     2 * (24 * 96 + 96) + 1},
    {"nn.send %x to 1 over \"pp\" lane 0 places 2", "tensor<2x8x24xf32>", 0},
    {"nn.receive from 0 over \"pp\" lane 0 places 2", "tensor<2x8x24xf32>", 0},
    {"nn.stages_norm %w, %f at [0, 3] of 5 over \"pp\"",
     "(tensor<24x96xf32>, tensor<96xf32>) -> tensor<f32>",
     2 * (24 * 96 + 96) + 6},
    {"nn.take_share %w over \"dp\"", "(tensor<24x96xf32>) -> tensor<2304xf32>",
     0},
    {"nn.gather_shares %f into %f over \"dp\"",
     "(tensor<96xf32>, tensor<96xf32>) -> tensor<96xf32>", 0},
    {"nn.slice %x over \"tp\" dim 1",
     "(tensor<2x8x24xf32>) -> tensor<2x4x24xf32>", 0},
    {"nn.replicate %x over \"tp\"", "tensor<2x8x24xf32>", 0},
    {"nn.embedding_part %ids, %e over \"tp\"",
     "(tensor<2x8xi32>, tensor<307x24xf32>) -> tensor<2x8x24xf32>", 0},
    {"nn.embedding_part_backward %ids, %x over \"tp\"",
     "(tensor<2x8xi32>, tensor<2x8x24xf32>) -> tensor<307x24xf32>", 384},
    {"nn.cross_entropy_part %l, %ids over \"tp\"",
     "(tensor<2x8x307xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, "
     "tensor<2x8xf32>)",
     4 * 4912 + 2 * 16},
    {"nn.cross_entropy_part_backward %l, %ids, %row, %row, %row over \"tp\"",
     "(tensor<2x8x307xf32>, tensor<2x8xi32>, tensor<2x8xf32>, "
     "tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x307xf32>",
     4 * 4912},
    {"nn.join_lse %row", "(tensor<2x8xf32>) -> tensor<1x8xf32>",
     4 * 16 + 2 * 8},
    {"nn.join_lse_backward %row, %row, %row",
     "(tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>",
     3 * 16},
    {"nn.add_bias %x, %c",
     "(tensor<2x8x24xf32>, tensor<24xf32>) -> tensor<2x8x24xf32>", 384},
    {"nn.choose_experts %choice", "(tensor<2x8x4xf32>) -> tensor<2x8x2xi32>",
     4 * 3 * 64},
    {"nn.choose_experts %choice bias %rows sigmoid groups 2 keep 1 by_two",
     "(tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8x2xi32>",
     (5 + 4 * 3 + 2) * 64 + 4 * 2 * 2 * 16},
    {"nn.expert_weights %choice, %slots sigmoid normalized scale 2.5",
     "(tensor<2x8x4xf32>, tensor<2x8x2xi32>) -> tensor<2x8x2xf32>", 7 * 32},
    {"nn.expert_weights_backward %choice, %slots, %dslots sigmoid normalized",
     "(tensor<2x8x4xf32>, tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> "
     "tensor<2x8x4xf32>",
     (6 + 7) * 32},
    {"nn.expert_weights_backward %choice, %slots, %dslots sigmoid scale 2.0",
     "(tensor<2x8x4xf32>, tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> "
     "tensor<2x8x4xf32>",
     (5 + 3) * 32},
    {"nn.expert_weights %choice, %slots normalized",
     "(tensor<2x8x4xf32>, tensor<2x8x2xi32>) -> tensor<2x8x2xf32>", 4 * 32},
    {"nn.expert_weights %choice, %slots",
     "(tensor<2x8x4xf32>, tensor<2x8x2xi32>) -> tensor<2x8x2xf32>",
     3 * 64 + 32},
    {"nn.expert_weights_backward %choice, %slots, %dslots normalized",
     "(tensor<2x8x4xf32>, tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> "
     "tensor<2x8x4xf32>",
     4 * 32 + 2 * 32 + 2 * 32},
    {"nn.expert_weights_backward %choice, %slots, %dslots",
     "(tensor<2x8x4xf32>, tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> "
     "tensor<2x8x4xf32>",
     3 * 64 + 32 + 2 * 32 + 3 * 64},
    {"nn.sort_rows %slots",
     "(tensor<2x8x2xi32>) -> (tensor<32xi32>, tensor<2x8x2xi32>, "
     "tensor<5xi32>)",
     4 * 32},
    {"nn.sort_rows %slots capacity 6",
     "(tensor<2x8x2xi32>) -> (tensor<25xi32>, tensor<2x8x2xi32>, "
     "tensor<5xi32>)",
     4 * 32},
    {"nn.sort_rows %slots by %dslots capacity 6",
     "(tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> (tensor<25xi32>, "
     "tensor<2x8x2xi32>, tensor<5xi32>)",
     (4 + 62) * 32},
    {"nn.permute %dslots, %order, %slots",
     "(tensor<2x8x2xf32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<32xf32>",
     0},
    {"nn.dispatch %x, %order, %slots",
     "(tensor<2x8x24xf32>, tensor<32xi32>, tensor<2x8x2xi32>) -> "
     "tensor<32x24xf32>",
     0},
    {"nn.combine %xr, %order, %slots",
     "(tensor<32x24xf32>, tensor<32xi32>, tensor<2x8x2xi32>) -> "
     "tensor<2x8x24xf32>",
     384},
    {"nn.grouped_linear %x, %experts, %offsets rows %order, %slots",
     "(tensor<2x8x24xf32>, tensor<4x96x24xf32>, tensor<5xi32>, "
     "tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<32x96xf32>",
     2 * 32 * 96 * 24},
    {"nn.grouped_linear_backward_input %ur, %experts, %offsets",
     "(tensor<32x96xf32>, tensor<4x96x24xf32>, tensor<5xi32>) -> "
     "tensor<32x24xf32>",
     2 * 32 * 96 * 24},
    {"nn.grouped_linear_backward_weight %xr, %ur, %offsets",
     "(tensor<32x24xf32>, tensor<32x96xf32>, tensor<5xi32>) -> "
     "tensor<4x96x24xf32>",
     2 * 32 * 96 * 24},
    {"nn.weighted_swiglu %ur, %ur, %wr",
     "(tensor<32x96xf32>, tensor<32x96xf32>, tensor<32xf32>) -> "
     "tensor<32x96xf32>",
     7 * 32 * 96},
    {"nn.weighted_swiglu_backward %ur, %ur, %wr, %ur",
     "(tensor<32x96xf32>, tensor<32x96xf32>, tensor<32xf32>, "
     "tensor<32x96xf32>) -> (tensor<32x96xf32>, tensor<32x96xf32>, "
     "tensor<32xf32>)",
     15 * 32 * 96},
    {"nn.gate_weight %gate", "(tensor<2x8x1xf32>) -> tensor<2x8xf32>", 4 * 16},
    {"nn.gate_weight_backward %row, %row",
     "(tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x1xf32>", 3 * 16},
    {"nn.count_rows %offsets, %offsets",
     "(tensor<5xi32>, tensor<5xi32>) -> tensor<4xf32>", 0},
    {"nn.expected_rows %choice, %rows",
     "(tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8xf32>", 5 * 64 + 16},
    {"nn.expected_rows_backward %choice, %rows, %row",
     "(tensor<2x8x4xf32>, tensor<4xf32>, tensor<2x8xf32>) -> "
     "tensor<2x8x4xf32>",
     7 * 64 + 2 * 16},
    {"nn.row_shares %rows", "tensor<4xf32>", 2 * 4},
    {"nn.count_choices %slots", "(tensor<2x8x2xi32>) -> tensor<2x4xf32>", 0},
    {"nn.expected_rows %choice, %rows sigmoid",
     "(tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8xf32>", 7 * 64 + 16},
    {"nn.expected_rows_backward %choice, %rows, %row sigmoid",
     "(tensor<2x8x4xf32>, tensor<4xf32>, tensor<2x8xf32>) -> "
     "tensor<2x8x4xf32>",
     11 * 64 + 2 * 16},
    {"nn.squared_logsumexp %choice", "(tensor<2x8x4xf32>) -> tensor<2x8xf32>",
     3 * 64 + 3 * 16},
    {"nn.squared_logsumexp_backward %choice, %row",
     "(tensor<2x8x4xf32>, tensor<2x8xf32>) -> tensor<2x8x4xf32>",
     4 * 64 + 5 * 16},
    {"nn.row_logsumexp %choice", "(tensor<2x8x4xf32>) -> tensor<2x8xf32>",
     3 * 64 + 2 * 16},
    {"nn.sum_probabilities %choice, %row",
     "(tensor<2x8x4xf32>, tensor<2x8xf32>) -> tensor<4xf32>", 3 * 64},
    {"nn.balance_loss %rows, %rows by 1.0e-03",
     "(tensor<4xf32>, tensor<4xf32>) -> tensor<f32>", 2 * 4 + 1},
    {"nn.balance_loss_backward %rows, %one by 1.0e-03",
     "(tensor<4xf32>, tensor<f32>) -> tensor<4xf32>", 4 + 1},
    {"nn.balance_bias %rows, %rows, %one rate 1.0e-03",
     "tensor<4xf32>, tensor<f32>", 5 * 4},
};

class Cost : public testing::Test {
protected:
  Cost() { context.loadDialect<func::FuncDialect, nn::NNDialect>(); }

  /// Calls `visit` with the op of each case.
  template <typename Visit>
  void forEachCase(Visit visit) {
    for (const Case &each : kCases) {
      std::string text = std::string("func.func @f(") + kArguments + ") {\n" +
                         prefix(each) + each.op + " : " + each.type +
                         "\nreturn\n}\n";
      OwningOpRef<ModuleOp> module =
          parseSourceString<ModuleOp>(text, &context);
      ASSERT_TRUE(module) << text;
      module->walk([&](CostModel op) { visit(each, op); });
    }
  }

  MLIRContext context;

private:
  /// Names for the results.
  static std::string prefix(const Case &each) {
    StringRef op(each.op);
    if (op.starts_with("nn.layer_norm ") || op.starts_with("nn.adamw") ||
        op.starts_with("nn.attention_backward") ||
        op.starts_with("nn.sort_rows") ||
        op.starts_with("nn.weighted_swiglu_backward") ||
        (op.starts_with("nn.linear_cross_entropy") && op.contains("dinput")))
      return "%r:3 = ";
    if (op.starts_with("nn.attention ") ||
        op.starts_with("nn.cross_entropy ") ||
        op.starts_with("nn.cross_entropy_part ") ||
        op.starts_with("nn.gather_offsets ") || op.starts_with("nn.push ") ||
        op.starts_with("nn.rms_norm ") ||
        op.starts_with("nn.swiglu_backward") ||
        op.starts_with("nn.split_columns") || op.starts_with("nn.latent_heads"))
      return "%r:2 = ";
    return op.starts_with("nn.send ") ? "" : "%r = ";
  }
};
} // namespace

TEST_F(Cost, Flops) {
  forEachCase([](const Case &each, CostModel op) {
    EXPECT_EQ(op.getFlops(), each.flops) << each.op << " : " << each.type;
  });
}

TEST_F(Cost, Gemms) {
  const std::set<StringRef> gemms = {"nn.linear",
                                     "nn.linear_backward_input",
                                     "nn.linear_backward_weight",
                                     "nn.scores",
                                     "nn.context",
                                     "nn.grouped_linear",
                                     "nn.grouped_linear_backward_input",
                                     "nn.grouped_linear_backward_weight",
                                     "nn.linear_cross_entropy"};
  forEachCase([&](const Case &each, CostModel op) {
    EXPECT_EQ(op.isGemm(), gemms.count(op->getName().getStringRef()) == 1)
        << each.op;
  });
}

/// 384 f32 read twice and written once; 384 f32 in, bf16 out.
TEST_F(Cost, Bytes) {
  forEachCase([](const Case &each, CostModel op) {
    if (StringRef(each.op) == "nn.add %x, %x")
      EXPECT_EQ(op.getBytes(), 3 * 4 * 384);
    if (StringRef(each.op) == "nn.cast %x")
      EXPECT_EQ(op.getBytes(), (4 + 2) * 384);
  });
}

/// Every op with a cost has a case.
TEST_F(Cost, IsComplete) {
  std::set<StringRef> seen;
  forEachCase([&](const Case &, CostModel op) {
    seen.insert(op->getName().getStringRef());
  });
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.hasInterface<CostModel>())
      EXPECT_TRUE(seen.count(name.getStringRef()))
          << name.getStringRef().str() << " has no case";
}
