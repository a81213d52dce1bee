//===- Machine.h - What is taken for granted of machines --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_ABI_MACHINE_H
#define REPRISE_ABI_MACHINE_H

/// The ranks of a machine, if a table of costs does not say how many they are:
/// the compiler reads it so, and a program leaves no larger number out.
#define REPRISE_RANKS_PER_MACHINE 8

#endif /* REPRISE_ABI_MACHINE_H */
