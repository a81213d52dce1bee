//===- SafeTensorsWriter.cpp - Headers of safetensors files ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SafeTensorsWriter.h"

#include "runtime/text/JsonWriter.h"

#include <algorithm>
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
  JsonWriter json(file);
  json.object().key("__metadata__").object().member("format", "pt").end();
  size_t offset = 0;
  for (const OutputTensor *t = tensors; t != tensors + count; ++t) {
    const size_t end = offset + t->bytes();
    json.key(t->prefix, t->name).object();
    json.member("dtype", t->isInt ? "I32" : "F32").key("shape").array();
    for (int i = 0; i < t->rank; ++i)
      json.value(t->shape[i]);
    json.end().key("data_offsets").array().value(offset).value(end);
    json.end().end();
    offset = end;
  }
  json.end();
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
