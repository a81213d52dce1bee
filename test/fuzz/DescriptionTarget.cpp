//===- DescriptionTarget.cpp - Descriptions and their config.json ---------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is a description, and behind a zero the file config.json beside it.
//
//===----------------------------------------------------------------------===//

#include "Target.h"

#include "python-free-frontend/Description.h"

using namespace reprise::fuzz;
using namespace reprise::frontend;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Folder folder;
  Parts input(data, size);
  folder.write("config.json", input.second);
  std::string path = folder.write("description.yaml", input.first);
  unsigned numMessages = 0;
  llvm::SourceMgr sources;
  sources.setDiagHandler([](const llvm::SMDiagnostic &,
                            void *count) { ++*static_cast<unsigned *>(count); },
                         &numMessages);
  DescriptionReader reader(sources);
  require(llvm::succeeded(reader.read(path)) || numMessages > 0,
          "a refusal says why");
  return 0;
}
