//===- Collectives.h - Sums over ranks in a fixed order ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_COLLECTIVES_H
#define REPRISE_RUNTIME_TRANSPORT_COLLECTIVES_H

#include "Transport.h"

namespace reprise::runtime {

/// `out[i]` becomes the sum over `parts` of `parts[p][i]`, each addition
/// rounded to f32, by the binary tree that splits `numParts` at the largest
/// power of two below it: ((0 + 1) + (2 + 3)) + 4. So d ranks that each have
/// the sum of a power of two of consecutive parts get the bits of one rank that
/// has them all. `out` may be one of the parts.
void sumTree(float *out, const float *const *parts, int numParts,
             int64_t count);

/// Ranks that are equally far from each other: those along an axis of a mesh.
struct Group {
  int first, stride, size;

  /// The rank of member `i`.
  int rankOf(int i) const { return first + i * stride; }
  /// The member that `rank` is.
  int memberOf(int rank) const { return (rank - first) / stride; }
};

/// Elements of f32 in a row.
struct Span {
  float *values;
  int64_t count;
};

/// All elements of `spans` become the sums of those of all members of `group`,
/// this rank among them, by `sumTree` in order of the members: an exchange of
/// parts, a sum of one's own part, and an exchange of sums. Each rank sends and
/// receives 2 (n-1)/n of the bytes. `spans` have the same sizes everywhere.
///
/// \param what       names the operation in errors.
/// \param workspace  what is summed at a time, at least one element for each
///                   member.
bool allReduce(Transport &transport, const Group &group, const char *what,
               const Span *spans, int numSpans, Span workspace, Error &error);

/// Gives every rank the `size` bytes of rank 0, which they wait for without a
/// limit.
bool broadcast(Transport &transport, const char *what, void *bytes, size_t size,
               Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_COLLECTIVES_H
