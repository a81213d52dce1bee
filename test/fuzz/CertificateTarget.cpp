//===- CertificateTarget.cpp - Any text as a certificate ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A certificate is good or has a fault with a place within the text; so are the
// rows of a packing.
//
//===----------------------------------------------------------------------===//

#include "Target.h"

#include "tools/reprise-memplan/verify/Verify.h"

#include <string_view>

using namespace reprise::fuzz;
using namespace reprise::verify;

static void expectPlace(const std::optional<Fault> &fault,
                        std::string_view text) {
  if (!fault)
    return;
  require(fault->at <= text.size(), "a fault is within the text");
  require(!fault->message.empty(), "a fault says why");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  CertificateFigures certificate;
  expectPlace(verifyCertificate(text, certificate), text);
  PackingFigures packing;
  expectPlace(verifyPacking(text, 1, packing), text);
  expectPlace(compareRows(text, text), text);
  return 0;
}
