//===- NumpyHeader.h - Where the numbers of a .npy file lie -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DATA_NUMPYHEADER_H
#define REPRISE_RUNTIME_DATA_NUMPYHEADER_H

#include "TokenHeader.h"

#include <string_view>

namespace reprise::runtime {

/// Whether a file that begins with these bytes is a .npy file.
bool isNumpy(std::string_view begin);

/// Reads the header of a .npy file (numpy/lib/format.py):
///
///   \x93NUMPY   u8 major, minor   u16 (u32 from version 2 on) size of what
///   follows, a dictionary as Python writes it:
///   {'descr': '<u2', 'fortran_order': False, 'shape': (40,), }
///
/// Needs one dimension of integers that TokenType has, little-endian, and
/// exactly as many bytes behind the header as these take.
bool readNumpyHeader(const PlainFile &file, TokenRange &range, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DATA_NUMPYHEADER_H
