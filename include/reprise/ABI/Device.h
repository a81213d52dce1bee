//===- Device.h - Kernels for GPUs --------------------------------*- C -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a program for GPUs holds beside its tables: its code, for one chip or
// many, and how each kernel is launched. Device.def has the structs, with their
// meaning.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_ABI_DEVICE_H
#define REPRISE_ABI_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REPRISE_DECLARE
#include "reprise/ABI/Device.def"

#ifdef __cplusplus
}
#endif
#endif /* REPRISE_ABI_DEVICE_H */
