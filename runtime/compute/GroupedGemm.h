//===- GroupedGemm.h - GEMMs of rows that belong to groups ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_GROUPEDGEMM_H
#define REPRISE_RUNTIME_COMPUTE_GROUPEDGEMM_H

#include "Gemm.h"
#include "runtime/base/Error.h"

namespace reprise::runtime {

/// The addresses of a GEMM with groups. `offsets` has shape.groups + 1
/// numbers, of which none is below the one before, from 0 to at most the number
/// of rows; `order` one for each row, below shape.places, or is null without
/// `gather`. `workspace` holds repriseGemmWorkspaceBytes(shape) bytes.
struct GroupedOperands {
  const void *a, *b;
  const int32_t *offsets, *order;
  void *c;
  float *workspace;
};

/// Computes the GEMMs of all groups, as declared at RepriseGemm: one after
/// another, each shared out among the threads where it is large enough, in
/// parts of at most REPRISE_GEMM_GROUP_ROWS rows. Groups without rows cost
/// nothing, but that their sums are set to zero. The bits of a group depend on
/// its rows alone. Fails, before anything is computed, if `offsets` or `order`
/// name rows that are not there; `name` is that of the GEMM.
bool groupedGemm(const RepriseGemm &shape, const GroupedOperands &operands,
                 const MicroKernels &kernels, ThreadPool &pool,
                 const char *name, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_GROUPEDGEMM_H
