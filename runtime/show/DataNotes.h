//===- DataNotes.h - What to know of the data -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_SHOW_DATANOTES_H
#define REPRISE_RUNTIME_SHOW_DATANOTES_H

#include "Log.h"

namespace reprise::runtime {

/// Shows what is right as it is, but perhaps not what was meant: bytes that are
/// the tokens of a vocabulary with many more, and lines that end in CR LF.
void noteData(const TokenStream &data, const ShowOptions &options,
              int64_t vocabSize, Log &log);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_DATANOTES_H
