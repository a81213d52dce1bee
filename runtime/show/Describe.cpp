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

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

using namespace reprise::runtime;

/// What the compiler left out is empty, or not there at all.
static bool isKnown(const char *text) { return text && *text; }

/// The first model of a stage; null if there is none.
static const RepriseModel *findStage(const RepriseModel *const *models,
                                     int numModels, int64_t stage) {
  const auto *found =
      std::find_if(models, models + numModels, [&](const RepriseModel *model) {
        return model->stage == stage;
      });
  return found == models + numModels ? nullptr : *found;
}

void reprise::runtime::printVersion(const RepriseModel *const *models,
                                    int numModels) {
  const RepriseModel &model = *models[0];
  printf("Reprise " REPRISE_VERSION "\n"
         "trains %s, recompute: %s\n"
         "compiled by %s; interface version %u\n",
         model.name, model.plan, isKnown(model.compiler) ? model.compiler : "",
         REPRISE_ABI_VERSION);
  printf("memory: %s", human(model.arenaBytes).chars);
  for (int64_t stage = 1; stage < countStages(model); ++stage)
    if (const RepriseModel *other = findStage(models, numModels, stage))
      printf(", %s", human(other->arenaBytes).chars);
  if (model.budgetBytes > 0)
    printf(" of a budget of %s", human(model.budgetBytes).chars);
  if (model.numAxes > 0) {
    char mesh[128];
    describeMesh(model, mesh, sizeof(mesh));
    printf(" in each of %" PRId64 " ranks%s (%s)", countRanks(model),
           countStages(model) > 1 ? ", by their stages" : "", mesh);
  }
  printf("\n--describe shows the description\n");
}

void reprise::runtime::printDescription(const RepriseModel *const *models,
                                        int numModels) {
  const RepriseModel &model = *models[0];
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
  const char *before = "";
  for (int i = 0; i < model.numAxes; ++i)
    if (model.axes[i].step == 0) {
      printf("%s\"%s\": %" PRId64, before, model.axes[i].name,
             model.axes[i].size);
      before = ", ";
    }
  printf("}");
  if (const int64_t stages = countStages(model); stages > 1) {
    printf(",\n  \"planned_bytes_of_stages\": [");
    for (int64_t stage = 0; stage < stages; ++stage) {
      const RepriseModel *other = findStage(models, numModels, stage);
      printf("%s%" PRId64, stage ? ", " : "", other ? other->arenaBytes : 0);
    }
    printf("]");
  }
  for (auto [key, text] :
       {std::pair("config", model.configJson), {"train", model.trainJson}}) {
    printf(",\n  \"%s\": ", key);
    writeNestedJson(stdout, isKnown(text) ? text : "null");
  }
  printf("\n}\n");
}
