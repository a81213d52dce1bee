//===- Describe.cpp - What a program was compiled from --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Describe.h"

#include "runtime/base/Text.h"
#include "runtime/text/JsonWriter.h"
#include "runtime/transport/Mesh.h"

#include "reprise/ABI/Version.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
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
  JsonWriter json(stdout);
  json.object(JsonWriter::Lines);
  json.member("model", model.name).member("plan", model.plan);
  json.member("compiler", isKnown(model.compiler) ? model.compiler : "");
  json.member("interface", REPRISE_ABI_VERSION);
  json.member("planned_bytes", model.arenaBytes).key("budget_bytes");
  if (model.budgetBytes > 0)
    json.value(model.budgetBytes);
  else
    json.null();
  json.member("ranks", countRanks(model));
  json.key("mesh").object(JsonWriter::Spaced);
  for (int i = 0; i < model.numAxes; ++i)
    if (model.axes[i].step == 0 || !strcmp(model.axes[i].name, kExpertAxis))
      json.member(model.axes[i].name, model.axes[i].size);
  json.end();
  if (const int64_t stages = countStages(model); stages > 1) {
    json.key("planned_bytes_of_stages").array(JsonWriter::Spaced);
    for (int64_t stage = 0; stage < stages; ++stage) {
      const RepriseModel *other = findStage(models, numModels, stage);
      json.value(other ? other->arenaBytes : 0);
    }
    json.end();
  }
  for (auto [key, text] :
       {std::pair("config", model.configJson), {"train", model.trainJson}})
    json.key(key).text(isKnown(text) ? text : "null");
  json.finish();
}
