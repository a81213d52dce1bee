//===- MKLVendor.cpp - MKL at its best on every processor -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MKL, which PyTorch's f32 GEMMs are, chooses its kernels by who made the
// processor before it looks at what that can do: on others than Intel's its
// GEMMs run at half their rate. A baseline held back so would flatter us.
// Preloaded, this answers its question with yes.
//
//===----------------------------------------------------------------------===//

extern "C" int mkl_serv_intel_cpu() { return 1; }
extern "C" int mkl_serv_intel_cpu_true() { return 1; }
