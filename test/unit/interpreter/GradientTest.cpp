//===- GradientTest.cpp - Every VJP against finite differences --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Each case is a loss as a function of parameters, written in nn. Its gradient
// by `reprise-differentiate` and the interpreter must be that of central
// differences, which know of forward ops only. A last test looks for ops with a
// derivative that no case covers.
//
//===----------------------------------------------------------------------===//

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "reprise/Autodiff/Passes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Interpreter/Interpreter.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace reprise;
using interpreter::Tensor;

namespace {
struct Parameter {
  const char *name, *shape;
};

struct Case {
  const char *name;
  std::vector<Parameter> parameters; ///< besides those of every module
  const char *body;                  ///< defines %logits, 2x3x5, or %loss
  const char *logits = "f32";        ///< their element type
};

const Case
    kCases
        [] =
            {
                {"embedding",
                 {{"w", "7x5"}},
                 R"(%logits = nn.embedding %tokens, %w : (tensor<2x3xi32>, tensor<7x5xf32>) -> tensor<2x3x5xf32>)"},
                {"add_positions",
                 {{"x", "2x3x5"}, {"w", "4x5"}},
                 R"(%logits = nn.add_positions %x, %w : (tensor<2x3x5xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>)"},
                {"layer_norm",
                 {{"x", "2x3x5"}, {"g", "5"}, {"b", "5"}},
                 R"(%logits, %mean, %rstd = nn.layer_norm %x, %g, %b eps 1.0e-05 : (tensor<2x3x5xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<2x3x5xf32>, tensor<2x3xf32>, tensor<2x3xf32>))"},
                {"linear_in_out",
                 {{"x", "2x3x4"}, {"w", "4x5"}, {"b", "5"}},
                 R"(%logits = nn.linear %x, %w, %b in_out : (tensor<2x3x4xf32>, tensor<4x5xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>)"},
                {"linear_out_in",
                 {{"x", "2x3x4"}, {"w", "5x4"}},
                 R"(%logits = nn.linear %x, %w out_in : (tensor<2x3x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5xf32>)"},
                {"gelu_tanh",
                 {{"x", "2x3x5"}},
                 R"(%logits = nn.gelu %x tanh : tensor<2x3x5xf32>)"},
                {"gelu_erf",
                 {{"x", "2x3x5"}},
                 R"(%logits = nn.gelu %x erf : tensor<2x3x5xf32>)"},
                {"squared_relu",
                 {{"x", "2x3x5"}},
                 R"(%logits = nn.squared_relu %x : tensor<2x3x5xf32>)"},
                {"add_scale_reuse",
                 {{"x", "2x3x5"}, {"y", "2x3x5"}},
                 R"(%a = nn.add %x, %y : tensor<2x3x5xf32>
        %b = nn.scale %a by 0.7 : tensor<2x3x5xf32>
        %c = nn.gelu %x tanh : tensor<2x3x5xf32>
        %d = nn.add %b, %c : tensor<2x3x5xf32>
        %logits = nn.add %d, %d : tensor<2x3x5xf32>)"},
                {"dropout",
                 {{"x", "2x3x5"}},
                 R"(%logits = nn.dropout %x, %rng rate 0.4 stream 3 : (tensor<2x3x5xf32>, tensor<4xi32>) -> tensor<2x3x5xf32>)"},
                {"cast",
                 {{"x", "2x3x5"}},
                 R"(%h = nn.cast %x : (tensor<2x3x5xf32>) -> tensor<2x3x5xbf16>
        %logits = nn.cast %h : (tensor<2x3x5xbf16>) -> tensor<2x3x5xf32>)"},
                {"bf16",
                 {{"t", "5x4"},
                  {"pos", "4x4"},
                  {"g", "4"},
                  {"b", "4"},
                  {"w", "4x5"},
                  {"c", "5"}},
                 R"(%th = nn.cast %t : (tensor<5x4xf32>) -> tensor<5x4xbf16>
        %ph = nn.cast %pos : (tensor<4x4xf32>) -> tensor<4x4xbf16>
        %wh = nn.cast %w : (tensor<4x5xf32>) -> tensor<4x5xbf16>
        %e = nn.embedding %tokens, %th : (tensor<2x3xi32>, tensor<5x4xbf16>) -> tensor<2x3x4xbf16>
        %ep = nn.add_positions %e, %ph : (tensor<2x3x4xbf16>, tensor<4x4xbf16>) -> tensor<2x3x4xbf16>
        %n, %mean, %rstd = nn.layer_norm %ep, %g, %b eps 1.0e-02 : (tensor<2x3x4xbf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xbf16>, tensor<2x3xf32>, tensor<2x3xf32>)
        %ch = nn.cast %c : (tensor<5xf32>) -> tensor<5xbf16>
        %u = nn.linear %n, %wh, %ch in_out : (tensor<2x3x4xbf16>, tensor<4x5xbf16>, tensor<5xbf16>) -> tensor<2x3x5xbf16>
        %v = nn.linear %ep, %th out_in : (tensor<2x3x4xbf16>, tensor<5x4xbf16>) -> tensor<2x3x5xbf16>
        %s = nn.swiglu %u, %v : tensor<2x3x5xbf16>
        %logits = nn.cast %s : (tensor<2x3x5xbf16>) -> tensor<2x3x5xf32>)"},
                {"bf16_weight_that_is_made",
                 {{"x", "2x3x4"}, {"g", "4"}, {"w", "5x4"}},
                 R"(%xh = nn.cast %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xbf16>
        %wh = nn.cast %w : (tensor<5x4xf32>) -> tensor<5x4xbf16>
        %wn, %rw = nn.rms_norm %wh, %g eps 1.0e-02 : (tensor<5x4xbf16>, tensor<4xf32>) -> (tensor<5x4xbf16>, tensor<5xf32>)
        %xn, %rx = nn.rms_norm %xh, %g eps 1.0e-02 : (tensor<2x3x4xbf16>, tensor<4xf32>) -> (tensor<2x3x4xbf16>, tensor<2x3xf32>)
        %y = nn.linear %xn, %wn out_in : (tensor<2x3x4xbf16>, tensor<5x4xbf16>) -> tensor<2x3x5xbf16>
        %logits = nn.cast %y : (tensor<2x3x5xbf16>) -> tensor<2x3x5xf32>)"},
                {"bf16_head",
                 {{"x", "2x3x4"}, {"w", "5x4"}},
                 R"(%xh = nn.cast %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xbf16>
        %wh = nn.cast %w : (tensor<5x4xf32>) -> tensor<5x4xbf16>
        %logits = nn.linear %xh, %wh out_in : (tensor<2x3x4xbf16>, tensor<5x4xbf16>) -> tensor<2x3x5xbf16>)",
                 "bf16"},
                {"attention",
                 {{"q", "2x3x6"}, {"k", "2x3x6"}, {"v", "2x3x6"}, {"w", "6x5"}},
                 R"(%ctx, %lse = nn.attention %q, %k, %v, %rng heads 2 scale 0.6 rate 0.3 stream 1 : (tensor<2x3x6xf32>, tensor<2x3x6xf32>, tensor<2x3x6xf32>, tensor<4xi32>) -> (tensor<2x3x6xf32>, tensor<2x2x3xf32>)
        %logits = nn.linear %ctx, %w in_out : (tensor<2x3x6xf32>, tensor<6x5xf32>) -> tensor<2x3x5xf32>)"},
                {"unfused",
                 {{"q", "2x3x6"}, {"k", "2x3x6"}, {"v", "2x3x6"}, {"w", "6x5"}},
                 R"(%s = nn.scores %q, %k heads 2 scale 0.6 : (tensor<2x3x6xf32>, tensor<2x3x6xf32>) -> tensor<2x2x3x3xf32>
        %p = nn.softmax %s : tensor<2x2x3x3xf32>
        %pd = nn.dropout %p, %rng rate 0.3 stream 1 : (tensor<2x2x3x3xf32>, tensor<4xi32>) -> tensor<2x2x3x3xf32>
        %ctx = nn.context %pd, %v heads 2 scale 0.9 : (tensor<2x2x3x3xf32>, tensor<2x3x6xf32>) -> tensor<2x3x6xf32>
        %logits = nn.linear %ctx, %w in_out : (tensor<2x3x6xf32>, tensor<6x5xf32>) -> tensor<2x3x5xf32>)"},
                {"context_transposed",
                 {{"p", "2x2x3x3"}, {"v", "2x3x6"}, {"w", "6x5"}},
                 R"(%ctx = nn.context %p, %v heads 2 scale 0.9 transposed : (tensor<2x2x3x3xf32>, tensor<2x3x6xf32>) -> tensor<2x3x6xf32>
        %logits = nn.linear %ctx, %w in_out : (tensor<2x3x6xf32>, tensor<6x5xf32>) -> tensor<2x3x5xf32>)"},
                {"experts",
                 {{"x", "2x3x4"},
                  {"r", "3x4"},
                  {"g", "3x6x4"},
                  {"u", "3x6x4"},
                  {"d", "3x5x6"}},
                 R"(%scores = nn.linear %x, %r out_in : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x3xf32>
        %ids = nn.choose_experts %scores : (tensor<2x3x3xf32>) -> tensor<2x3x2xi32>
        %w = nn.expert_weights %scores, %ids normalized : (tensor<2x3x3xf32>, tensor<2x3x2xi32>) -> tensor<2x3x2xf32>
        %order, %inverse, %offsets = nn.sort_rows %ids : (tensor<2x3x2xi32>) -> (tensor<12xi32>, tensor<2x3x2xi32>, tensor<4xi32>)
        %wr = nn.permute %w, %order, %inverse : (tensor<2x3x2xf32>, tensor<12xi32>, tensor<2x3x2xi32>) -> tensor<12xf32>
        %gr = nn.grouped_linear %x, %g, %offsets rows %order, %inverse : (tensor<2x3x4xf32>, tensor<3x6x4xf32>, tensor<4xi32>, tensor<12xi32>, tensor<2x3x2xi32>) -> tensor<12x6xf32>
        %ur = nn.grouped_linear %x, %u, %offsets rows %order, %inverse : (tensor<2x3x4xf32>, tensor<3x6x4xf32>, tensor<4xi32>, tensor<12xi32>, tensor<2x3x2xi32>) -> tensor<12x6xf32>
        %a = nn.weighted_swiglu %gr, %ur, %wr : (tensor<12x6xf32>, tensor<12x6xf32>, tensor<12xf32>) -> tensor<12x6xf32>
        %y = nn.grouped_linear %a, %d, %offsets : (tensor<12x6xf32>, tensor<3x5x6xf32>, tensor<4xi32>) -> tensor<12x5xf32>
        %logits = nn.combine %y, %order, %inverse : (tensor<12x5xf32>, tensor<12xi32>, tensor<2x3x2xi32>) -> tensor<2x3x5xf32>)"},
                // Of 8 experts some have no row; weights do not sum up to 1.
                {"experts_of_rows",
                 {{"x", "2x3x4"}, {"r", "8x4"}, {"g", "8x5x4"}},
                 R"(%scores = nn.linear %x, %r out_in : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
        %ids = nn.choose_experts %scores : (tensor<2x3x8xf32>) -> tensor<2x3x1xi32>
        %w = nn.expert_weights %scores, %ids : (tensor<2x3x8xf32>, tensor<2x3x1xi32>) -> tensor<2x3x1xf32>
        %order, %inverse, %offsets = nn.sort_rows %ids : (tensor<2x3x1xi32>) -> (tensor<6xi32>, tensor<2x3x1xi32>, tensor<9xi32>)
        %wr = nn.permute %w, %order, %inverse : (tensor<2x3x1xf32>, tensor<6xi32>, tensor<2x3x1xi32>) -> tensor<6xf32>
        %xr = nn.dispatch %x, %order, %inverse : (tensor<2x3x4xf32>, tensor<6xi32>, tensor<2x3x1xi32>) -> tensor<6x4xf32>
        %gr = nn.grouped_linear %xr, %g, %offsets : (tensor<6x4xf32>, tensor<8x5x4xf32>, tensor<9xi32>) -> tensor<6x5xf32>
        %a = nn.weighted_swiglu %gr, %gr, %wr : (tensor<6x5xf32>, tensor<6x5xf32>, tensor<6xf32>) -> tensor<6x5xf32>
        %logits = nn.combine %a, %order, %inverse : (tensor<6x5xf32>, tensor<6xi32>, tensor<2x3x1xi32>) -> tensor<2x3x5xf32>)"},
                // The same with an exchange of rows, which has room for more.
                {"experts_of_one_rank",
                 {{"x", "2x3x4"}, {"r", "8x4"}, {"g", "8x5x4"}},
                 R"(%scores = nn.linear %x, %r out_in : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
        %ids = nn.choose_experts %scores : (tensor<2x3x8xf32>) -> tensor<2x3x1xi32>
        %w = nn.expert_weights %scores, %ids : (tensor<2x3x8xf32>, tensor<2x3x1xi32>) -> tensor<2x3x1xf32>
        %order, %inverse, %offsets = nn.sort_rows %ids : (tensor<2x3x1xi32>) -> (tensor<6xi32>, tensor<2x3x1xi32>, tensor<9xi32>)
        %all, %own = nn.gather_offsets %offsets over "ep" : (tensor<9xi32>) -> (tensor<1x9xi32>, tensor<9xi32>)
        %wr = nn.permute %w, %order, %inverse : (tensor<2x3x1xf32>, tensor<6xi32>, tensor<2x3x1xi32>) -> tensor<6xf32>
        %xr = nn.dispatch %x, %order, %inverse : (tensor<2x3x4xf32>, tensor<6xi32>, tensor<2x3x1xi32>) -> tensor<6x4xf32>
        %ws = nn.send_rows %wr, %all over "ep" : (tensor<6xf32>, tensor<1x9xi32>) -> tensor<8xf32>
        %xs = nn.send_rows %xr, %all over "ep" : (tensor<6x4xf32>, tensor<1x9xi32>) -> tensor<8x4xf32>
        %gr = nn.grouped_linear %xs, %g, %own : (tensor<8x4xf32>, tensor<8x5x4xf32>, tensor<9xi32>) -> tensor<8x5xf32>
        %a = nn.weighted_swiglu %gr, %gr, %ws : (tensor<8x5xf32>, tensor<8x5xf32>, tensor<8xf32>) -> tensor<8x5xf32>
        %home = nn.return_rows %a, %all over "ep" : (tensor<8x5xf32>, tensor<1x9xi32>) -> tensor<6x5xf32>
        %logits = nn.combine %home, %order, %inverse : (tensor<6x5xf32>, tensor<6xi32>, tensor<2x3x1xi32>) -> tensor<2x3x5xf32>)"},
                // Two of three groups of two, chosen with a bias; weights as
                // they are, and scaled softmax over all.
                {"experts_of_groups",
                 {{"x", "2x3x4"}, {"r", "6x4"}, {"g", "6x5x4"}},
                 R"(%scores = nn.linear %x, %r out_in : (tensor<2x3x4xf32>, tensor<6x4xf32>) -> tensor<2x3x6xf32>
        %bias = nn.sum_rows %scores : (tensor<2x3x6xf32>) -> tensor<6xf32>
        %ids = nn.choose_experts %scores bias %bias sigmoid groups 3 keep 2 by_two : (tensor<2x3x6xf32>, tensor<6xf32>) -> tensor<2x3x2xi32>
        %w = nn.expert_weights %scores, %ids sigmoid normalized scale 2.5 : (tensor<2x3x6xf32>, tensor<2x3x2xi32>) -> tensor<2x3x2xf32>
        %order, %inverse, %offsets = nn.sort_rows %ids : (tensor<2x3x2xi32>) -> (tensor<12xi32>, tensor<2x3x2xi32>, tensor<7xi32>)
        %wr = nn.permute %w, %order, %inverse : (tensor<2x3x2xf32>, tensor<12xi32>, tensor<2x3x2xi32>) -> tensor<12xf32>
        %gr = nn.grouped_linear %x, %g, %offsets rows %order, %inverse : (tensor<2x3x4xf32>, tensor<6x5x4xf32>, tensor<7xi32>, tensor<12xi32>, tensor<2x3x2xi32>) -> tensor<12x5xf32>
        %a = nn.weighted_swiglu %gr, %gr, %wr : (tensor<12x5xf32>, tensor<12x5xf32>, tensor<12xf32>) -> tensor<12x5xf32>
        %logits = nn.combine %a, %order, %inverse : (tensor<12x5xf32>, tensor<12xi32>, tensor<2x3x2xi32>) -> tensor<2x3x5xf32>)"},
                {"experts_by_sigmoid",
                 {{"x", "2x3x4"}, {"r", "6x4"}, {"g", "6x5x4"}},
                 R"(%scores = nn.linear %x, %r out_in : (tensor<2x3x4xf32>, tensor<6x4xf32>) -> tensor<2x3x6xf32>
        %ids = nn.choose_experts %scores groups 3 keep 1 : (tensor<2x3x6xf32>) -> tensor<2x3x2xi32>
        %s = nn.expert_weights %scores, %ids sigmoid scale 0.5 : (tensor<2x3x6xf32>, tensor<2x3x2xi32>) -> tensor<2x3x2xf32>
        %t = nn.expert_weights %scores, %ids scale 3.0 : (tensor<2x3x6xf32>, tensor<2x3x2xi32>) -> tensor<2x3x2xf32>
        %w = nn.add %s, %t : tensor<2x3x2xf32>
        %order, %inverse, %offsets = nn.sort_rows %ids : (tensor<2x3x2xi32>) -> (tensor<12xi32>, tensor<2x3x2xi32>, tensor<7xi32>)
        %wr = nn.permute %w, %order, %inverse : (tensor<2x3x2xf32>, tensor<12xi32>, tensor<2x3x2xi32>) -> tensor<12xf32>
        %gr = nn.grouped_linear %x, %g, %offsets rows %order, %inverse : (tensor<2x3x4xf32>, tensor<6x5x4xf32>, tensor<7xi32>, tensor<12xi32>, tensor<2x3x2xi32>) -> tensor<12x5xf32>
        %a = nn.weighted_swiglu %gr, %gr, %wr : (tensor<12x5xf32>, tensor<12x5xf32>, tensor<12xf32>) -> tensor<12x5xf32>
        %logits = nn.combine %a, %order, %inverse : (tensor<12x5xf32>, tensor<12xi32>, tensor<2x3x2xi32>) -> tensor<2x3x5xf32>)"},
                // Latent attention with narrower values, of two heads with 3
                // columns of their own and 4 in common.
                {"latent_attention",
                 {{"q", "2x3x14"}, {"c", "2x3x9"}, {"u", "10x5"}, {"w", "4x5"}},
                 R"(%c0, %k0 = nn.split_columns %c : (tensor<2x3x9xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x4xf32>)
        %kv = nn.linear %c0, %u out_in : (tensor<2x3x5xf32>, tensor<10x5xf32>) -> tensor<2x3x10xf32>
        %qr = nn.rope %q, %rotary heads 2 from 3 interleaved : (tensor<2x3x14xf32>, tensor<3x4xf32>) -> tensor<2x3x14xf32>
        %kr = nn.rope %k0, %rotary heads 1 interleaved : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
        %k, %v = nn.latent_heads %kv, %kr heads 2 : (tensor<2x3x10xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x14xf32>, tensor<2x3x4xf32>)
        %ctx, %lse = nn.attention %qr, %k, %v, %rng heads 2 scale 0.6 rate 0.3 stream 1 : (tensor<2x3x14xf32>, tensor<2x3x14xf32>, tensor<2x3x4xf32>, tensor<4xi32>) -> (tensor<2x3x4xf32>, tensor<2x2x3xf32>)
        %s = nn.scores %qr, %k heads 2 scale 0.6 : (tensor<2x3x14xf32>, tensor<2x3x14xf32>) -> tensor<2x2x3x3xf32>
        %p = nn.softmax %s : tensor<2x2x3x3xf32>
        %other = nn.context %p, %v heads 2 scale 0.9 : (tensor<2x2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
        %sum = nn.add %ctx, %other : tensor<2x3x4xf32>
        %logits = nn.linear %sum, %w in_out : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>)"},
                {"joined_columns",
                 {{"x", "2x3x2"}, {"y", "2x3x3"}},
                 R"(%logits = nn.join_columns %x, %y : (tensor<2x3x2xf32>, tensor<2x3x3xf32>) -> tensor<2x3x5xf32>)"},
                {"shared_expert",
                 {{"x", "2x3x4"}, {"s", "1x4"}, {"g", "5x4"}, {"u", "5x4"}},
                 R"(%gt = nn.linear %x, %g out_in : (tensor<2x3x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5xf32>
        %ut = nn.linear %x, %u out_in : (tensor<2x3x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5xf32>
        %st = nn.linear %x, %s out_in : (tensor<2x3x4xf32>, tensor<1x4xf32>) -> tensor<2x3x1xf32>
        %w = nn.gate_weight %st : (tensor<2x3x1xf32>) -> tensor<2x3xf32>
        %logits = nn.weighted_swiglu %gt, %ut, %w : (tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3xf32>) -> tensor<2x3x5xf32>)"},
                // How many rows there are has no gradient.
                {"balance",
                 {{"x", "2x3x4"}, {"r", "3x4"}, {"g", "2x3x5"}},
                 R"(%scores = nn.linear %x, %r out_in : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x3xf32>
        %ids = nn.choose_experts %scores : (tensor<2x3x3xf32>) -> tensor<2x3x2xi32>
        %order, %inverse, %offsets = nn.sort_rows %ids : (tensor<2x3x2xi32>) -> (tensor<12xi32>, tensor<2x3x2xi32>, tensor<4xi32>)
        %rows = nn.count_rows %offsets, %offsets : (tensor<4xi32>, tensor<4xi32>) -> tensor<3xf32>
        %expected = nn.expected_rows %scores, %rows : (tensor<2x3x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
        %logits = nn.weighted_swiglu %g, %g, %expected : (tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3xf32>) -> tensor<2x3x5xf32>)"},
                {"balance_of_sigmoids_by_sequence",
                 {{"x", "2x3x4"}, {"r", "3x4"}, {"g", "2x3x5"}},
                 R"(%scores = nn.linear %x, %r out_in : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x3xf32>
        %ids = nn.choose_experts %scores sigmoid : (tensor<2x3x3xf32>) -> tensor<2x3x2xi32>
        %rows = nn.count_choices %ids : (tensor<2x3x2xi32>) -> tensor<2x3xf32>
        %expected = nn.expected_rows %scores, %rows sigmoid : (tensor<2x3x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        %logits = nn.weighted_swiglu %g, %g, %expected : (tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3xf32>) -> tensor<2x3x5xf32>)"},
                {"squared_logsumexp",
                 {{"x", "2x3x4"}, {"r", "3x4"}, {"g", "2x3x5"}},
                 R"(%scores = nn.linear %x, %r out_in : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x3xf32>
        %squares = nn.squared_logsumexp %scores : (tensor<2x3x3xf32>) -> tensor<2x3xf32>
        %logits = nn.weighted_swiglu %g, %g, %squares : (tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<2x3xf32>) -> tensor<2x3x5xf32>)"},
                // Of six choices of three experts some are dropped: an expert
                // has one row.
                {"capacity",
                 {{"x", "2x3x4"}, {"r", "3x4"}, {"u", "3x6x4"}, {"d", "3x5x6"}},
                 R"(%scores = nn.linear %x, %r out_in : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x3xf32>
        %ids = nn.choose_experts %scores : (tensor<2x3x3xf32>) -> tensor<2x3x1xi32>
        %w = nn.expert_weights %scores, %ids : (tensor<2x3x3xf32>, tensor<2x3x1xi32>) -> tensor<2x3x1xf32>
        %order, %inverse, %offsets = nn.sort_rows %ids by %w capacity 1 : (tensor<2x3x1xi32>, tensor<2x3x1xf32>) -> (tensor<4xi32>, tensor<2x3x1xi32>, tensor<4xi32>)
        %wr = nn.permute %w, %order, %inverse : (tensor<2x3x1xf32>, tensor<4xi32>, tensor<2x3x1xi32>) -> tensor<4xf32>
        %h = nn.grouped_linear %x, %u, %offsets rows %order, %inverse : (tensor<2x3x4xf32>, tensor<3x6x4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<2x3x1xi32>) -> tensor<4x6xf32>
        %a = nn.weighted_swiglu %h, %h, %wr : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4xf32>) -> tensor<4x6xf32>
        %y = nn.grouped_linear %a, %d, %offsets : (tensor<4x6xf32>, tensor<3x5x6xf32>, tensor<4xi32>) -> tensor<4x5xf32>
        %logits = nn.combine %y, %order, %inverse : (tensor<4x5xf32>, tensor<4xi32>, tensor<2x3x1xi32>) -> tensor<2x3x5xf32>)"},
                {"rms_norm",
                 {{"x", "2x3x5"}, {"g", "5"}},
                 R"(%logits, %rstd = nn.rms_norm %x, %g eps 1.0e-06 : (tensor<2x3x5xf32>, tensor<5xf32>) -> (tensor<2x3x5xf32>, tensor<2x3xf32>))"},
                {"rms_norm_heads",
                 {{"x", "2x3x12"}, {"g", "4"}, {"w", "12x5"}},
                 R"(%n, %rstd = nn.rms_norm %x, %g eps 1.0e-02 : (tensor<2x3x12xf32>, tensor<4xf32>) -> (tensor<2x3x12xf32>, tensor<2x3x3xf32>)
        %logits = nn.linear %n, %w in_out : (tensor<2x3x12xf32>, tensor<12x5xf32>) -> tensor<2x3x5xf32>)"},
                {"swiglu",
                 {{"x", "2x3x5"}, {"y", "2x3x5"}},
                 R"(%logits = nn.swiglu %x, %y : tensor<2x3x5xf32>)"},
                {"swiglu_of_itself",
                 {{"x", "2x3x5"}},
                 R"(%logits = nn.swiglu %x, %x : tensor<2x3x5xf32>)"},
                {"rope_half_split",
                 {{"x", "2x3x12"}, {"w", "12x5"}},
                 R"(%r = nn.rope %x, %rotary heads 3 half_split : (tensor<2x3x12xf32>, tensor<3x4xf32>) -> tensor<2x3x12xf32>
        %logits = nn.linear %r, %w in_out : (tensor<2x3x12xf32>, tensor<12x5xf32>) -> tensor<2x3x5xf32>)"},
                {"rope_interleaved",
                 {{"x", "2x3x12"}, {"w", "12x5"}},
                 R"(%r = nn.rope %x, %rotary heads 3 interleaved : (tensor<2x3x12xf32>, tensor<3x4xf32>) -> tensor<2x3x12xf32>
        %logits = nn.linear %r, %w in_out : (tensor<2x3x12xf32>, tensor<12x5xf32>) -> tensor<2x3x5xf32>)"},
                {"attention_groups",
                 {{"q", "2x3x12"},
                  {"k", "2x3x4"},
                  {"v", "2x3x4"},
                  {"w", "12x5"}},
                 R"(%ctx, %lse = nn.attention %q, %k, %v, %rng heads 6 kv_heads 2 scale 0.6 rate 0.3 stream 1 : (tensor<2x3x12xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4xi32>) -> (tensor<2x3x12xf32>, tensor<2x6x3xf32>)
        %logits = nn.linear %ctx, %w in_out : (tensor<2x3x12xf32>, tensor<12x5xf32>) -> tensor<2x3x5xf32>)"},
                {"unfused_groups",
                 {{"q", "2x3x12"},
                  {"k", "2x3x4"},
                  {"v", "2x3x4"},
                  {"w", "12x5"}},
                 R"(%s = nn.scores %q, %k heads 6 kv_heads 2 scale 0.6 : (tensor<2x3x12xf32>, tensor<2x3x4xf32>) -> tensor<2x6x3x3xf32>
        %p = nn.softmax %s : tensor<2x6x3x3xf32>
        %ctx = nn.context %p, %v heads 6 kv_heads 2 scale 0.9 : (tensor<2x6x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x12xf32>
        %logits = nn.linear %ctx, %w in_out : (tensor<2x3x12xf32>, tensor<12x5xf32>) -> tensor<2x3x5xf32>)"},
                {"context_transposed_groups",
                 {{"p", "2x6x3x3"}, {"v", "2x3x12"}, {"w", "4x5"}},
                 R"(%ctx = nn.context %p, %v heads 6 kv_heads 2 scale 0.9 transposed : (tensor<2x6x3x3xf32>, tensor<2x3x12xf32>) -> tensor<2x3x4xf32>
        %logits = nn.linear %ctx, %w in_out : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>)"},
                {"normed_and_turned_heads_on_one_key",
                 {{"q", "2x3x12"},
                  {"k", "2x3x4"},
                  {"v", "2x3x4"},
                  {"gq", "4"},
                  {"gk", "4"},
                  {"w", "12x5"}},
                 R"(%qn, %rq = nn.rms_norm %q, %gq eps 1.0e-06 : (tensor<2x3x12xf32>, tensor<4xf32>) -> (tensor<2x3x12xf32>, tensor<2x3x3xf32>)
        %kn, %rk = nn.rms_norm %k, %gk eps 1.0e-06 : (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>)
        %qr = nn.rope %qn, %rotary heads 3 half_split : (tensor<2x3x12xf32>, tensor<3x4xf32>) -> tensor<2x3x12xf32>
        %kr = nn.rope %kn, %rotary heads 1 half_split : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
        %ctx, %lse = nn.attention %qr, %kr, %v, %rng heads 3 kv_heads 1 scale 0.5 rate 0.0 stream 1 : (tensor<2x3x12xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4xi32>) -> (tensor<2x3x12xf32>, tensor<2x3x3xf32>)
        %logits = nn.linear %ctx, %w in_out : (tensor<2x3x12xf32>, tensor<12x5xf32>) -> tensor<2x3x5xf32>)"},
                {"moves_of_one_rank",
                 {{"x", "2x3x5"}},
                 R"(%a = nn.replicate %x over "tp" : tensor<2x3x5xf32>
        %b = nn.slice %a over "tp" dim 1 : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
        %c = nn.all_gather %b to I over "tp" dim 1 : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
        %d = nn.gelu %c tanh : tensor<2x3x5xf32>
        %e:2 = nn.all_reduce %d, %x over "tp" : tensor<2x3x5xf32>, tensor<2x3x5xf32>
        %f = nn.all_gather %e#1 to R over "tp" dim 0 : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
        %g = nn.swiglu %e#0, %f : tensor<2x3x5xf32>
        %sum = nn.all_reduce %g over "tp" : tensor<2x3x5xf32>
        %logits = nn.reduce_scatter %sum over "tp" dim 2 : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>)"},
                {"embedding_part",
                 {{"w", "7x5"}, {"b", "5"}},
                 R"(%x = nn.embedding_part %tokens, %w over "tp" : (tensor<2x3xi32>, tensor<7x5xf32>) -> tensor<2x3x5xf32>
        %logits = nn.add_bias %x, %b : (tensor<2x3x5xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>)"},
                {"cross_entropy_part",
                 {{"x", "2x3x5"}, {"y", "2x3x5"}},
                 R"(%lse, %hit = nn.cross_entropy_part %x, %targets over "tp" : (tensor<2x3x5xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
        %other, %only = nn.cross_entropy_part %y, %targets over "tp" : (tensor<2x3x5xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
        %hits = nn.add %hit, %only : tensor<2x3xf32>
        %joined = nn.join_lse %lse : (tensor<2x3xf32>) -> tensor<1x3xf32>
        %a = nn.mean %joined : (tensor<1x3xf32>) -> tensor<f32>
        %b = nn.mean %hits : (tensor<2x3xf32>) -> tensor<f32>
        %c = nn.scale %b by -1.0 : tensor<f32>
        %loss = nn.add %a, %c : tensor<f32>)"},
                {"further_positions",
                 {{"x", "2x3x5"}, {"y", "2x4x5"}},
                 R"(%some = nn.crop_positions %y from 1 : (tensor<2x4x5xf32>) -> tensor<2x2x5xf32>
        %all = nn.pad_positions %some from 1 : (tensor<2x2x5xf32>) -> tensor<2x3x5xf32>
        %both = nn.add %x, %all : tensor<2x3x5xf32>
        %losses, %l = nn.cross_entropy %both, %targets : (tensor<2x3x5xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
        %further = nn.crop_positions %targets from 1 : (tensor<2x3xi32>) -> tensor<2x2xi32>
        %more, %m = nn.cross_entropy %some, %further : (tensor<2x2x5xf32>, tensor<2x2xi32>) -> (tensor<2x2xf32>, tensor<2x2xf32>)
        %a = nn.mean %losses : (tensor<2x3xf32>) -> tensor<f32>
        %b = nn.mean %more : (tensor<2x2xf32>) -> tensor<f32>
        %loss = nn.training_term %a, %b by 0.3 : tensor<f32>)"},
                {"balance_of_model",
                 {{"x", "2x3x4"}, {"r", "3x4"}},
                 R"(%scores = nn.linear %x, %r out_in : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x3xf32>
        %ids = nn.choose_experts %scores : (tensor<2x3x3xf32>) -> tensor<2x3x2xi32>
        %rows = nn.count_choices %ids : (tensor<2x3x2xi32>) -> tensor<3xf32>
        %lse = nn.row_logsumexp %scores : (tensor<2x3x3xf32>) -> tensor<2x3xf32>
        %sums = nn.sum_probabilities %scores, %lse : (tensor<2x3x3xf32>, tensor<2x3xf32>) -> tensor<3xf32>
        %loss = nn.balance_loss %rows, %sums by 0.5 : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>)"},
};

std::string getModule(const Case &test) {
  std::string text = R"(func.func @forward(
      %tokens: tensor<2x3xi32> {nn.input = "tokens"},
      %targets: tensor<2x3xi32> {nn.input = "targets"},
      %rng: tensor<4xi32> {nn.input = "rng"},
      %rotary: tensor<3x4xf32> {nn.rotary = #nn.rotary<theta = 100.0 : f64>})";
  for (auto [name, shape] : test.parameters)
    text += std::string(", %") + name + ": tensor<" + shape +
            "xf32> {nn.parameter = #nn.parameter<name = \"" + name +
            "\", init = zeros>}";
  text += ") -> tensor<f32> attributes {nn.micro_batches = 2 : i64} {\n";
  text += test.body;
  if (StringRef(test.body).contains("%loss ="))
    return text + "\nreturn %loss : tensor<f32>\n}";
  return text + R"(
      %losses, %l = nn.cross_entropy %logits, %targets : (tensor<2x3x5x)" +
         test.logits +
         R"(>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
      %loss = nn.mean %losses : (tensor<2x3xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    })";
}

class GradientTest : public ::testing::TestWithParam<Case> {
protected:
  static OwningOpRef<ModuleOp> parse(MLIRContext &context, const Case &test) {
    context.loadDialect<nn::NNDialect, func::FuncDialect>();
    return parseSourceString<ModuleOp>(getModule(test), &context);
  }
};

/// Values for every argument: normal parameters, ids below 5, zero sums.
std::vector<Tensor> makeArguments(func::FuncOp function) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::vector<Tensor> values;
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
    Tensor tensor(type.getShape());
    bool isParameter = bool(function.getArgAttr(index, nn::kParameterAttr));
    for (double &value : tensor.values)
      if (isParameter)
        value = normal(random);
      else if (type.getElementType().isInteger(32))
        value = double(random() % 5);
    values.push_back(std::move(tensor));
  }
  return values;
}

std::vector<Tensor> evaluate(func::FuncOp function,
                             const std::vector<Tensor> &arguments) {
  interpreter::Interpreter machine(function);
  machine.setExact();
  for (auto [argument, value] : llvm::zip(function.getArguments(), arguments))
    if (!function.getArgAttr(argument.getArgNumber(), nn::kRotaryAttr))
      machine.set(argument, value);
  FailureOr<std::vector<Tensor>> results = machine.run();
  EXPECT_TRUE(succeeded(results));
  return *results;
}

TEST_P(GradientTest, IsThatOfCentralDifferences) {
  MLIRContext context;
  OwningOpRef<ModuleOp> forward = parse(context, GetParam());
  ASSERT_TRUE(forward);
  OwningOpRef<ModuleOp> joint = forward->clone();
  PassManager manager(&context);
  manager.addPass(autodiff::createDifferentiate());
  ASSERT_TRUE(succeeded(manager.run(*joint)));
  auto function = forward->lookupSymbol<func::FuncOp>("forward");
  auto step = joint->lookupSymbol<func::FuncOp>("step");

  std::vector<Tensor> arguments = makeArguments(function);
  std::vector<Tensor> stepArguments = makeArguments(step);
  std::vector<Tensor> results = evaluate(step, stepArguments);
  double loss = evaluate(function, arguments)[0].values[0];
  EXPECT_DOUBLE_EQ(results[0].values[0], loss / 2); // of two micro-batches

  unsigned checked = 0;
  for (unsigned r = 1; r < results.size(); ++r) {
    auto name = step.getResultAttrOfType<StringAttr>(r, nn::kGradientAttr);
    ASSERT_TRUE(name);
    for (unsigned a = 0; a < arguments.size(); ++a) {
      auto parameter =
          function.getArgAttrOfType<nn::ParameterAttr>(a, nn::kParameterAttr);
      if (!parameter || parameter.getName() != name.getValue())
        continue;
      for (int64_t e = 0; e < arguments[a].size(); ++e) {
        const double h = 1e-5;
        auto at = [&](double delta) {
          std::vector<Tensor> moved = arguments;
          moved[a].values[e] += delta;
          return evaluate(function, moved)[0].values[0];
        };
        double expected = (at(h) - at(-h)) / (2 * h) / 2;
        EXPECT_NEAR(results[r].values[e], expected,
                    1e-8 + 1e-6 * std::abs(expected))
            << name.getValue().str() << "[" << e << "]";
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 0u);
}

/// Where the logits come from a projection, head and loss go chunk by chunk;
/// the loss and all gradients stay what they are.
TEST_P(GradientTest, IsTheSameInChunks) {
  MLIRContext context;
  OwningOpRef<ModuleOp> whole = parse(context, GetParam());
  ASSERT_TRUE(whole);
  nn::LinearOp head;
  for (auto loss : whole->lookupSymbol<func::FuncOp>("forward")
                       .getOps<nn::CrossEntropyOp>())
    head = loss.getLogits().getDefiningOp<nn::LinearOp>();
  PassManager manager(&context);
  manager.addPass(autodiff::createDifferentiate());
  manager.addPass(createCanonicalizerPass());
  ASSERT_TRUE(succeeded(manager.run(*whole)));
  OwningOpRef<ModuleOp> chunks = whole->clone();
  PassManager chunking(&context);
  autodiff::ChunkHeadOptions options;
  options.rows = 1024;
  chunking.addNestedPass<func::FuncOp>(autodiff::createChunkHead(options));
  ASSERT_TRUE(succeeded(chunking.run(*chunks)));

  auto step = chunks->lookupSymbol<func::FuncOp>("step");
  EXPECT_EQ(llvm::range_size(step.getOps<nn::LinearCrossEntropyOp>()),
            head && !head.getBias() ? 1u : 0u);
  std::vector<Tensor> arguments = makeArguments(step);
  std::vector<Tensor> results = evaluate(step, arguments);
  std::vector<Tensor> expected =
      evaluate(whole->lookupSymbol<func::FuncOp>("step"), arguments);
  for (auto [result, other] : llvm::zip_equal(results, expected))
    for (auto [a, b] : llvm::zip_equal(result.values, other.values))
      EXPECT_NEAR(a, b, 1e-12);
}

/// The table is given: cosines, then sines. Position 99999 turns by the f32
/// nearest to 99999 times the f32 nearest to a tenth, 9999.900390625.
TEST(RotaryTable, IsThatOfTheRuntime) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  auto rotary = cast<nn::RotaryAttr>(
      parseAttribute("#nn.rotary<theta = 100.0 : f64>", &context));
  Tensor table = interpreter::makeRotaryTable(rotary, 100000, 4);
  auto row = [&](int64_t t) {
    return std::vector<double>(table.values.begin() + t * 4,
                               table.values.begin() + (t + 1) * 4);
  };
  EXPECT_EQ(row(0), (std::vector<double>{1, 1, 0, 0}));
  EXPECT_EQ(row(1)[0], 0.540302276611328125);
  EXPECT_EQ(row(1)[2], 0.841470956802368164);
  EXPECT_EQ(row(99999)[1], -0.9778273701667786);
  EXPECT_EQ(row(99999)[3], -0.20941264927387238);
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientTest, ::testing::ValuesIn(kCases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

TEST(GradientCoverage, EveryDifferentiableOpHasACase) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  std::string all;
  for (const Case &test : kCases)
    all += getModule(test);
  unsigned found = 0;
  for (RegisteredOperationName op : context.getRegisteredOperations()) {
    if (!op.hasInterface<Differentiable>())
      continue;
    ++found;
    EXPECT_NE(all.find("= " + op.getStringRef().str() + " "), std::string::npos)
        << op.getStringRef().str() << " has a derivative that nothing checks";
  }
  EXPECT_GE(found, 10u);
}
} // namespace
