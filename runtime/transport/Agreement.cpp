//===- Agreement.cpp - What all ranks of a run have in common -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Agreement.h"

#include "Collectives.h"
#include "runtime/base/Hash.h"
#include "runtime/base/List.h"
#include "runtime/base/MappedFile.h"

#include <algorithm>

using namespace reprise::runtime;

bool RunMark::find(int argc, const char *const *argv, Error &error) {
  // The file that runs, even if another one has its name by now.
  MappedFile file;
  if (!file.map("/proc/self/exe", error))
    return false;
  program =
      hashOf({reinterpret_cast<const char *>(file.data), size_t(file.size)});
  file.unmap();
  for (int i = 1; i < argc; ++i)
    options = options * 31 + hashOf(argv[i]);
  return true;
}

bool reprise::runtime::agree(Transport &ranks, const RunMark &own,
                             Error &error) {
  RunMark first = own;
  if (!broadcast(ranks, {0, 1, ranks.size()}, "the comparison of programs",
                 &first, sizeof(first), error))
    return false;
  if (own.program != first.program)
    return error.set("its program has the hash %016" PRIx64 ", but that of "
                     "rank 0 has %016" PRIx64 ": all ranks need the same file",
                     own.program, first.program);
  return own.options == first.options ||
         error.set("its options are not those of rank 0: all ranks need the "
                   "same");
}

bool reprise::runtime::agreeOnAll(Transport &ranks, bool &isTrue,
                                  Error &error) {
  List<bool> all;
  const char *what = "the agreement of ranks";
  if (!all.resize(size_t(ranks.size())))
    return error.set("no memory left for %d answers", ranks.size());
  if (!collect(ranks, what, &isTrue, all.begin(), sizeof(isTrue), error))
    return false;
  isTrue = ranks.rank() != 0 ||
           std::all_of(all.begin(), all.end(), [](bool each) { return each; });
  return broadcast(ranks, {0, 1, ranks.size()}, what, &isTrue, sizeof(isTrue),
                   error);
}
