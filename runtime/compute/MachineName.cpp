//===- MachineName.cpp - What a machine is called -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MachineName.h"

#include <cinttypes>
#include <cstdio>

using namespace reprise::runtime;

MachineName reprise::runtime::describeProcessor(int64_t threads) {
  char name[96] = "this machine";
  if (FILE *file = fopen("/proc/cpuinfo", "re")) {
    char line[256];
    while (fgets(line, sizeof(line), file))
      if (sscanf(line, "model name : %95[^\n]", name) == 1)
        break;
    fclose(file);
  }
  MachineName text;
  snprintf(text.chars, sizeof(text.chars), "%" PRId64 " thread%s of %s",
           threads, threads == 1 ? "" : "s", name);
  return text;
}
