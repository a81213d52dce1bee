//===- Describe.cpp - What a program was compiled from --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Describe.h"

#include "runtime/base/Text.h"
#include "runtime/text/Json.h"
#include "runtime/transport/Mesh.h"

#include "reprise/ABI/Version.h"

#include <cinttypes>
#include <cstdio>
#include <utility>

using namespace reprise::runtime;

/// What the compiler left out is empty, or not there at all.
static bool isKnown(const char *text) { return text && *text; }

void reprise::runtime::printVersion(const RepriseModel &model) {
  printf("Reprise " REPRISE_VERSION "\n"
         "trains %s, recompute: %s\n"
         "compiled by %s; interface version %u\n",
         model.name, model.plan, isKnown(model.compiler) ? model.compiler : "",
         REPRISE_ABI_VERSION);
  printf("memory: %s", human(model.arenaBytes).chars);
  if (model.budgetBytes > 0)
    printf(" of a budget of %s", human(model.budgetBytes).chars);
  if (model.numAxes > 0) {
    char mesh[128];
    describeMesh(model, mesh, sizeof(mesh));
    printf(" in each of %" PRId64 " ranks (%s)", countRanks(model), mesh);
  }
  printf("\n--describe shows the description\n");
}

void reprise::runtime::printDescription(const RepriseModel &model) {
  printf("{\n  \"model\": ");
  writeJsonString(stdout, model.name);
  printf(",\n  \"plan\": ");
  writeJsonString(stdout, model.plan);
  printf(",\n  \"compiler\": ");
  writeJsonString(stdout, isKnown(model.compiler) ? model.compiler : "");
  printf(",\n  \"interface\": %u,\n  \"planned_bytes\": %" PRId64 ",\n",
         REPRISE_ABI_VERSION, model.arenaBytes);
  if (model.budgetBytes > 0)
    printf("  \"budget_bytes\": %" PRId64, model.budgetBytes);
  else
    printf("  \"budget_bytes\": null");
  printf(",\n  \"ranks\": %" PRId64 ",\n  \"mesh\": {", countRanks(model));
  for (int i = 0; i < model.numAxes; ++i)
    printf("%s\"%s\": %" PRId64, i ? ", " : "", model.axes[i].name,
           model.axes[i].size);
  printf("}");
  for (auto [key, text] :
       {std::pair("config", model.configJson), {"train", model.trainJson}}) {
    printf(",\n  \"%s\": ", key);
    writeNestedJson(stdout, isKnown(text) ? text : "null");
  }
  printf("\n}\n");
}
