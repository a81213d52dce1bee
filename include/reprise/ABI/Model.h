//===- Model.h - What a compiled model tells its runtime ----------*- C -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The contract between the compiler, which writes these tables as constant
// data into the training binary, and the runtime, which executes them. Plain C
// with fixed-width fields, so that both sides lay it out alike. Model.def has
// the structs and constants, with their meaning; of it, Gemm.def and Device.def
// are made the declarations here, the compiler's writer (lib/Target/Rows.h),
// the runtime's checks and the version.
//
// A schedule is a list of launches, and one step a list of schedules, the
// `program`: one for each micro-batch of the rank (forward, backward, gradients
// added up), and at the end the update (norm, clipping, optimizer). Every
// buffer is a byte range of one arena whose size is known here; nothing is
// allocated later.
//
// Of a pipeline there is a model for each stage, with one schedule for all
// micro-batches, in the order of the stage: tasks of several micro-batches, and
// what it sends to other stages and receives from them.
//
// Two more schedules only go forward and leave what outlives a step alone:
// `evaluate` (the loss of a batch, without dropout) and `sample` (the logits of
// one position of one text). They run between two steps, on the bytes of the
// step's activations.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_ABI_MODEL_H
#define REPRISE_ABI_MODEL_H

#include "reprise/ABI/Device.h"
#include "reprise/ABI/Gemm.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REPRISE_DECLARE
#include "reprise/ABI/Model.def"

/// The runtime's entry point; the compiled object's `main` calls it. The models
/// are the same one, compiled for several targets, or for the stages of a
/// pipeline: one model for each stage and target.
int repriseMain(int argc, char **argv, const RepriseModel *const *models,
                int32_t numModels);

#ifdef __cplusplus
}

/// The definitions as text: names, values and types in their order.
constexpr char kRepriseDefinitions[] =
#define REPRISE_CONSTANT(NAME, VALUE) #NAME "=" #VALUE ";"
#define REPRISE_FUNCTION(RESULT, NAME, PARAMETERS)                             \
  #RESULT " " #NAME #PARAMETERS ";"
#define REPRISE_STRUCT(NAME) #NAME "{"
#define REPRISE_FIELD(TYPE, NAME) #TYPE " " #NAME ";"
#define REPRISE_ARRAY(TYPE, SIZE, NAME) #TYPE " " #NAME "[" #SIZE "];"
#define REPRISE_END(NAME) "};"
#include "reprise/ABI/All.def"
    ;

/// The hash (FNV-1a) of `text`.
constexpr uint32_t repriseHash(const char *text) {
  uint32_t hash = 0x811C9DC5u;
  for (; *text; ++text)
    hash = (hash ^ static_cast<unsigned char>(*text)) * 0x01000193u;
  return hash;
}

/// Programs and runtimes of the same definitions have the same version.
constexpr uint32_t REPRISE_ABI_VERSION = repriseHash(kRepriseDefinitions);
#endif
#endif /* REPRISE_ABI_MODEL_H */
