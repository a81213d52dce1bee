//===- SafeTensorsWriter.cpp - Headers of safetensors files ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SafeTensorsWriter.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace reprise::runtime;

bool OutputTensor::operator<(const OutputTensor &other) const {
  if (isInt != other.isInt)
    return other.isInt;
  if (int order = strcmp(prefix, other.prefix))
    return order < 0;
  return strcmp(name, other.name) < 0;
}

char *reprise::runtime::makeSafeTensorsHeader(OutputTensor *tensors, int count,
                                              size_t &size) {
  std::sort(tensors, tensors + count);
  char *header = nullptr;
  FILE *file = open_memstream(&header, &size);
  if (!file)
    return nullptr;
  // The length goes first, but is known last.
  uint64_t length = 0;
  fwrite(&length, sizeof(length), 1, file);
  fprintf(file, "{\"__metadata__\":{\"format\":\"pt\"}");
  size_t offset = 0;
  for (const OutputTensor *t = tensors; t != tensors + count; ++t) {
    fprintf(file, ",\"%s%s\":{\"dtype\":\"%s\",\"shape\":[", t->prefix, t->name,
            t->isInt ? "I32" : "F32");
    for (int i = 0; i < t->rank; ++i)
      fprintf(file, "%s%" PRId64, i ? "," : "", t->shape[i]);
    fprintf(file, "],\"data_offsets\":[%zu,%zu]}", offset, offset + t->bytes());
    offset += t->bytes();
  }
  fputc('}', file);
  while (ftell(file) % 8 && !ferror(file))
    fputc(' ', file);
  bool good = !ferror(file);
  if (fclose(file) != 0 || !good) {
    free(header);
    return nullptr;
  }
  length = size - sizeof(length);
  memcpy(header, &length, sizeof(length));
  return header;
}
