//===- PipelineCertificateTest.cpp - Certificates of pipelines ------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RandomSteps.h"
#include "reprise/Solver/Budget.h"
#include "reprise/Solver/StageMoments.h"
#include "tools/reprise-memplan/verify/Verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <sstream>

using namespace reprise::solver;

namespace {
/// A random chain on a pipeline, planned for a budget between the smallest and
/// the largest that matters.
class Planned {
public:
  Planned(unsigned seed, PipelineShape shape, int64_t layersOfChunk);

  /// What the checker says; empty if nothing.
  static std::string verify(const PipelineCertificate &certificate);

  /// Calls `visit` with the replays of a micro-batch, by chunk, of all plans
  /// that fit together.
  void forAllPlans(
      const std::function<void(const std::vector<double> &)> &visit) const;

  /// What a point of a chunk's curve needs.
  struct Plan {
    ChunkBytes bytes;
    double seconds;
  };

  StepGraph graph;
  std::vector<StepStage> steps;
  std::vector<int64_t> inFlight;
  std::vector<std::unique_ptr<BudgetCurve>> curves;
  std::vector<std::vector<Plan>> plans;          ///< by chunk
  std::vector<std::vector<StageMoment>> moments; ///< by stage
  PipelineCertificate certificate;

private:
  void tryPlans(size_t chunk);
  void certifyAll(const std::vector<size_t> &points);
};
} // namespace

/// All plans of a chunk but those that another one is better than, whatever is
/// in flight.
void Planned::tryPlans(size_t chunk) {
  const StepGraph &step = steps[chunk].graph;
  std::vector<int64_t> choices = getChoices(step);
  StepSimulator simulator(step);
  std::vector<Plan> all;
  for (unsigned set = 0; set < 1u << choices.size(); ++set) {
    KeptValues kept = keepAll(step);
    for (size_t k = 0; k < choices.size(); ++k)
      kept[choices[k]] = set >> k & 1;
    const StepRun &run = simulator.run(kept);
    Plan plan = {{0, run.peak}, run.replaySeconds};
    plan.bytes.kept = getKeptBytes(step, kept);
    all.push_back(plan);
  }
  auto isBetter = [](const Plan &a, const Plan &b) {
    return std::tie(a.bytes.kept, a.bytes.work, a.seconds) !=
               std::tie(b.bytes.kept, b.bytes.work, b.seconds) &&
           a.bytes.kept <= b.bytes.kept && a.bytes.work <= b.bytes.work &&
           a.seconds <= b.seconds;
  };
  for (const Plan &plan : all)
    if (std::none_of(all.begin(), all.end(),
                     [&](const Plan &other) { return isBetter(other, plan); }))
      plans[chunk].push_back(plan);
}

Planned::Planned(unsigned seed, PipelineShape shape, int64_t layersOfChunk) {
  int64_t numChunks = shape.stages * shape.virtualStages;
  graph = makeRandomChain(seed, numChunks * layersOfChunk, 2);
  graph.microBatches = shape.microBatches;
  PipelineSchedule schedule = simulate(shape);
  certificate.shape = shape;
  certificate.baseBytes.assign(shape.stages, 0);
  certificate.chunks.resize(numChunks);
  plans.resize(numChunks);
  for (const std::vector<PipelineTask> &tasks : schedule)
    moments.push_back(getMoments(tasks, shape.virtualStages,
                                 /*onlyBackward=*/false));
  std::vector<size_t> points;
  steps = takeStages(graph, std::vector<int64_t>(numChunks, layersOfChunk));
  for (int64_t c = 0; c < numChunks; ++c) {
    inFlight.push_back(getMostInFlight(schedule[c % shape.stages],
                                       shape.virtualStages)[c / shape.stages]);
    BudgetOptions options;
    options.inFlight = inFlight[c];
    curves.push_back(std::make_unique<BudgetCurve>(steps[c].graph, options));
    points.push_back(curves[c]->getPoints().size() / 2);
    tryPlans(c);
  }
  certifyAll(points);
}

void Planned::certifyAll(const std::vector<size_t> &points) {
  const PipelineShape &shape = certificate.shape;
  std::vector<KeptValues> kept;
  for (size_t c = 0; c < points.size(); ++c) {
    kept.push_back(curves[c]->getPlan(points[c]));
    Certificate &chunk = certificate.chunks[c].certificate;
    chunk.kind = Certificate::Budget::Activations;
    certify(steps[c].graph, kept[c], 0.5, chunk, inFlight[c]);
    certifyMemory(steps[c].graph, kept[c], chunk);
  }
  for (int64_t stage = 0; stage < shape.stages; ++stage)
    certificate.budgetBytes =
        std::max(certificate.budgetBytes, getStageNeed(certificate, stage));
  for (size_t c = 0; c < points.size(); ++c) {
    Certificate &chunk = certificate.chunks[c].certificate;
    chunk.budgetBytes = certificate.budgetBytes;
    certify(steps[c].graph, kept[c], 0.5, chunk, inFlight[c]);
    certifyMemory(steps[c].graph, kept[c], chunk);
  }
  for (int64_t stage = 0; stage < shape.stages; ++stage)
    sharePrice(certificate, stage);
  computeSpans(certificate);
}

std::string Planned::verify(const PipelineCertificate &certificate) {
  std::ostringstream text;
  writeCertificate(text, certificate);
  reprise::verify::CertificateFigures figures;
  auto fault = reprise::verify::verifyCertificate(text.str(), figures);
  if (fault)
    return fault->message;
  EXPECT_EQ(figures.span, certificate.spanSeconds);
  EXPECT_EQ(int64_t(figures.stages.size()), certificate.shape.stages);
  for (size_t s = 0; s < figures.stages.size(); ++s)
    EXPECT_NEAR(figures.stages[s].bound, getStageBound(certificate, s), 1e-9);
  return "";
}

void Planned::forAllPlans(
    const std::function<void(const std::vector<double> &)> &visit) const {
  std::vector<double> seconds(plans.size());
  std::vector<std::vector<ChunkBytes>> needs(certificate.shape.stages);
  std::function<void(size_t)> choose = [&](size_t c) {
    if (c == plans.size())
      return visit(seconds);
    size_t stage = c % needs.size();
    for (const Plan &plan : plans[c]) {
      needs[stage].push_back(plan.bytes);
      seconds[c] = plan.seconds;
      if (getNeed(moments[stage], needs[stage]) <= certificate.budgetBytes)
        choose(c + 1);
      needs[stage].pop_back();
    }
  };
  choose(0);
}

/// What the chunks take without replays.
static std::vector<ChunkTimes>
getBareTimes(const PipelineCertificate &certificate) {
  std::vector<ChunkTimes> bare;
  for (const PipelineCertificate::Chunk &chunk : certificate.chunks) {
    bare.push_back(getTimes(chunk.certificate));
    bare.back().backward -= chunk.certificate.replaySeconds /
                            double(certificate.shape.microBatches);
  }
  return bare;
}

/// How many plans fit, of which the first `most` end the schedule no sooner
/// than `bound`.
static int countPlans(const Planned &planned, double bound, int most) {
  const PipelineShape &shape = planned.certificate.shape;
  PipelineSchedule schedule = simulate(shape);
  std::vector<ChunkTimes> bare = getBareTimes(planned.certificate);
  int numPlans = 0;
  planned.forAllPlans([&](const std::vector<double> &seconds) {
    if (++numPlans > most)
      return;
    std::vector<ChunkTimes> times = bare;
    for (size_t c = 0; c < times.size(); ++c)
      times[c].backward += seconds[c];
    ASSERT_GE(getSpan(shape, schedule, times), bound * (1 - 1e-12));
  });
  return numPlans;
}

static const std::pair<PipelineShape, int64_t>
    kShapes[] = {{{1, 1, 3}, 2}, {{2, 1, 4}, 2}, {{3, 1, 5}, 1},
                 {{2, 2, 4}, 1}, {{2, 3, 4}, 1}, {{2, 2, 6, 3}, 1},
                 {{3, 1, 2}, 1}}; // The last has fewer micro-batches than
                                  // stages.

// The checker, which simulates the schedule by itself, agrees; and no plans of
// the stages that fit end the schedule sooner than the bound says.
TEST(PipelineCertificateTest, BoundsEveryPlan) {
  int numBounds = 0;
  for (const std::pair<PipelineShape, int64_t> &layersOf : kShapes)
    for (unsigned seed = 0; seed < 20; ++seed) {
      const PipelineShape &shape = layersOf.first;
      Planned planned(seed, shape, layersOf.second);
      SCOPED_TRACE("seed " + std::to_string(seed));
      EXPECT_EQ(Planned::verify(planned.certificate), "");
      double least =
          getSpan(shape, simulate(shape), getBareTimes(planned.certificate));
      double bound = planned.certificate.lowerBoundSeconds;
      numBounds += bound > least * (1 + 1e-9);
      EXPECT_GT(countPlans(planned, bound, /*most=*/20000), 0);
    }
  EXPECT_GT(numBounds, 60);
}

// No plans of the chunks of a stage, of all that there are, need the budget at
// most and replay less than the bound; and it is near the least that they do.
TEST(PipelineCertificateTest, BoundsTheReplaysOfAStage) {
  double sumOfBounds = 0, sumOfLeast = 0;
  for (const std::pair<PipelineShape, int64_t> &layersOf : kShapes)
    for (unsigned seed = 0; seed < 30; ++seed) {
      const PipelineShape &shape = layersOf.first;
      if (shape.virtualStages == 1)
        continue;
      Planned planned(seed, shape, layersOf.second);
      for (int64_t stage = 0; stage < shape.stages; ++stage) {
        double least = HUGE_VAL;
        std::vector<ChunkBytes> needs;
        std::function<void(double)> choose = [&](double seconds) {
          if (getNeed(planned.moments[stage], needs) >
              planned.certificate.budgetBytes)
            return;
          if (int64_t(needs.size()) == shape.virtualStages) {
            least = std::min(least, seconds);
            return;
          }
          size_t chunk = needs.size() * shape.stages + stage;
          for (const Planned::Plan &plan : planned.plans[chunk]) {
            needs.push_back(plan.bytes);
            choose(seconds + plan.seconds);
            needs.pop_back();
          }
        };
        choose(0);
        double bound = getStageBound(planned.certificate, stage);
        EXPECT_LE(bound, least + 1e-9)
            << "seed " << seed << ", stage " << stage;
        sumOfBounds += bound;
        sumOfLeast += least;
      }
    }
  EXPECT_GT(sumOfBounds, 0.7 * sumOfLeast);
}

// What is proven for budgets beside that of the certificate falls, and holds.
TEST(PipelineCertificateTest, BoundsOtherBudgets) {
  for (const std::pair<PipelineShape, int64_t> &layersOf : kShapes)
    for (unsigned seed = 0; seed < 8; ++seed) {
      const PipelineShape &shape = layersOf.first;
      Planned planned(seed, shape, layersOf.second);
      int64_t budget = planned.certificate.budgetBytes;
      std::vector<int64_t> budgets = {budget - budget / 5, budget - budget / 9,
                                      budget, budget + budget / 9};
      std::vector<double> bounds = computeBounds(planned.certificate, budgets);
      ASSERT_EQ(bounds.size(), budgets.size());
      double least =
          getSpan(shape, simulate(shape), getBareTimes(planned.certificate));
      for (size_t k = 0; k < budgets.size(); ++k) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", budget " +
                     std::to_string(budgets[k]));
        EXPECT_GE(bounds[k], least * (1 - 1e-12));
        if (k > 0)
          EXPECT_LE(bounds[k], bounds[k - 1]);
        planned.certificate.budgetBytes = budgets[k];
        countPlans(planned, bounds[k], /*most=*/2000);
      }
    }
}

/// The least of a convex function on [0, 1].
static double findLeast(const std::function<double(double)> &function) {
  double low = 0, high = 1;
  for (int step = 0; step < 40; ++step) {
    double left = low + (high - low) / 3, right = high - (high - low) / 3;
    (function(left) <= function(right) ? high : low) =
        function(left) <= function(right) ? right : left;
  }
  return function((low + high) / 2);
}

// The mean of paths proves as much as can be proven of what the stages replay:
// the shortest span, however each stage shares it out among its two chunks.
TEST(PipelineCertificateTest, PathsProveTheShortestSpan) {
  int numMeans = 0, numBounds = 0;
  std::mt19937 random(6);
  for (unsigned seed = 0; seed < 30; ++seed) {
    PipelineShape shape = {2, 2, seed % 2 ? 4 : 2};
    PipelineCertificate certificate = Planned(seed, shape, 1).certificate;
    // Chunks that wait for each other now here, now there.
    for (PipelineCertificate::Chunk &chunk : certificate.chunks)
      for (CertifiedLaunch &launch : chunk.certificate.schedule)
        launch.seconds = double(random() % 4);
    computeSpans(certificate);
    std::vector<ChunkTimes> bare = getBareTimes(certificate);
    std::vector<StageReplays> replays;
    for (int64_t stage = 0; stage < 2; ++stage) {
      replays.push_back(getStageReplays(certificate, stage));
      for (int64_t v = 0; v < 2; ++v)
        bare[2 * v + stage].backward += replays[stage].forced[v];
    }
    PipelineSchedule schedule = simulate(shape);
    auto getSpanOf = [&](double first, double second) {
      std::vector<ChunkTimes> times = bare;
      times[0].backward += first * replays[0].shared;
      times[2].backward += (1 - first) * replays[0].shared;
      times[1].backward += second * replays[1].shared;
      times[3].backward += (1 - second) * replays[1].shared;
      return getSpan(shape, schedule, times);
    };
    double least = findLeast([&](double first) {
      return findLeast([&](double second) { return getSpanOf(first, second); });
    });
    double bound = certificate.lowerBoundSeconds;
    EXPECT_NEAR(bound, least, 1e-6 * least) << "seed " << seed;
    EXPECT_LE(bound, least * (1 + 1e-9)) << "seed " << seed;
    numMeans += certificate.paths.size() > 1;
    numBounds += bound > getSpan(shape, schedule, bare) * (1 + 1e-6);
  }
  EXPECT_GT(numMeans, 0);
  EXPECT_GT(numBounds, 10);
}

// What must run again does so whatever memory is worth: a chunk without a price
// on it counts like the others.
TEST(PipelineCertificateTest, CountsReplaysWithoutPrice) {
  int numForced = 0;
  for (auto [shape, layers] : kShapes)
    for (unsigned seed = 0; seed < 10; ++seed) {
      PipelineCertificate certificate =
          Planned(seed, shape, layers).certificate;
      double before = 0, least = 0;
      for (PipelineCertificate::Chunk &chunk : certificate.chunks) {
        Certificate &part = chunk.certificate;
        before += part.replaySeconds;
        part.points.clear();
        // No layer may keep what none of its class does.
        for (CertifiedClass &kind : part.classes)
          for (CertifiedTensor &tensor : kind.tensors)
            tensor.rule = CertifiedTensor::Rule::Drop;
        for (const CertifiedLayer &layer : part.layers)
          for (const std::string &kept : layer.keeps)
            for (CertifiedTensor &tensor : part.classes[layer.kind].tensors)
              if (tensor.name == kept)
                tensor.rule = CertifiedTensor::Rule::Free;
        computeBound(part);
        least += part.lowerBoundSeconds;
      }
      if (least > before * (1 + 1e-9))
        continue; // What nothing needs is not kept, and cannot be dropped.
      double sum = 0;
      for (int64_t stage = 0; stage < shape.stages; ++stage)
        sum += getStageBound(certificate, stage);
      EXPECT_NEAR(sum * double(shape.microBatches), least, 1e-9);
      computeSpans(certificate);
      EXPECT_EQ(Planned::verify(certificate), "") << "seed " << seed;
      numForced += least > 0;
    }
  EXPECT_GT(numForced, 5);
}

// A stage that is slower than the others together, and chunks of a stage whose
// points have other prices: the checker comes to the same bounds, and those
// are no higher than what the plans take.
TEST(PipelineCertificateTest, AgreesOnUnevenChunks) {
  int numPrices = 0;
  for (auto [shape, layers] : kShapes)
    for (unsigned seed = 0; seed < 10; ++seed) {
      PipelineCertificate certificate =
          Planned(seed, shape, layers).certificate;
      // An op of backward: of the forward pass a class says what ops take.
      Certificate &slow = certificate.chunks.back().certificate;
      auto op =
          std::find_if(slow.schedule.rbegin(), slow.schedule.rend(),
                       [](const CertifiedLaunch &launch) {
                         return !launch.isUpdate && launch.replays.empty();
                       });
      op->seconds += 100;
      slow.stepSeconds += 100 * double(shape.microBatches);
      double factor = 1;
      for (PipelineCertificate::Chunk &chunk : certificate.chunks) {
        for (PricedPoint &point : chunk.certificate.points) {
          point.secondsPerByte *= factor;
          ++numPrices;
        }
        factor *= 1.25;
        computeBound(chunk.certificate);
      }
      computeSpans(certificate);
      EXPECT_EQ(Planned::verify(certificate), "") << "seed " << seed;
      EXPECT_LE(certificate.lowerBoundSeconds, certificate.spanSeconds);
    }
  EXPECT_GT(numPrices, 20);
}

// What a certificate may lie about beside its chunks' own certificates.
TEST(PipelineCertificateTest, RefusesLies) {
  for (auto [shape, layers] : kShapes) {
    Planned planned(1, shape, layers);
    auto lie = [&](const std::function<void(PipelineCertificate &)> &change) {
      PipelineCertificate wrong = planned.certificate;
      change(wrong);
      return Planned::verify(wrong);
    };
    auto expect = [&](const std::string &message, const char *words) {
      EXPECT_NE(message.find(words), std::string::npos) << message;
    };
    size_t last = planned.certificate.chunks.size() - 1;
    // In flight, in a layer or in all of a chunk, with a peak and a bound to go
    // with it.
    for (int64_t off : {-1, 1})
      for (size_t c : {size_t(0), last}) {
        if (planned.inFlight[c] + off < 1)
          continue;
        expect(
            lie([&, c = c](PipelineCertificate &wrong) {
              Certificate &chunk = wrong.chunks[c].certificate;
              for (CertifiedLayer &layer : chunk.layers)
                layer.inFlight += off;
              chunk.peakBytes +=
                  getBytesInFlight(chunk) -
                  getBytesInFlight(planned.certificate.chunks[c].certificate);
              chunk.budgetBytes = std::max(chunk.budgetBytes, chunk.peakBytes);
              wrong.budgetBytes += chunk.budgetBytes;
              computeBound(chunk);
              computeSpans(wrong);
            }),
            " micro-batches in flight on the schedule of its pipeline, but "
            "got ");
        expect(lie([&, c = c](PipelineCertificate &wrong) {
                 wrong.chunks[c].certificate.layers.back().inFlight += off;
               }),
               " micro-batches in flight on the schedule");
      }
    expect(lie([](PipelineCertificate &wrong) { ++wrong.shape.microBatches; }),
           "micro-batches");
    expect(lie([](PipelineCertificate &wrong) { wrong.budgetBytes /= 4; }),
           "bytes, but the budget is ");
    expect(lie([](PipelineCertificate &wrong) { wrong.spanSeconds *= 0.999; }),
           "the schedule takes ");
    expect(lie([](PipelineCertificate &wrong) {
             wrong.lowerBoundSeconds *= 1.001;
           }),
           "no plans take less than ");
    expect(lie([](PipelineCertificate &wrong) {
             wrong.lowerBoundSeconds = 2 * wrong.spanSeconds;
           }),
           "no plans take less than ");
    expect(lie([](PipelineCertificate &wrong) {
             wrong.chunks[0].certificate.layers[0].minimum += 1;
           }),
           "the least price of ");
    expect(lie([](PipelineCertificate &wrong) {
             wrong.baseBytes[0] = wrong.budgetBytes;
           }),
           "stage 0 needs ");
    expect(
        lie([](PipelineCertificate &wrong) { wrong.baseBytes.push_back(0); }),
        "needs bytes for each of ");
    // What a step has once, as much as the budget or of too many stages.
    expect(lie([](PipelineCertificate &wrong) {
             wrong.besideBytes.assign(wrong.shape.stages, 0);
             wrong.besideBytes.front() = wrong.budgetBytes;
           }),
           "stage 0 needs ");
    expect(lie([](PipelineCertificate &wrong) {
             wrong.besideBytes.assign(wrong.shape.stages + 1, 0);
           }),
           "needs bytes for each of ");
    expect(lie([](PipelineCertificate &wrong) { wrong.chunks.pop_back(); }),
           "needs a chunk for each virtual stage of each stage, but got ");
    // Chunks of another model, on another machine, or with more to spend.
    expect(lie([&](PipelineCertificate &wrong) {
             wrong.chunks[last].certificate.model = "another";
           }),
           last > 0 ? " needs the model '' of chunk 0, but got 'another'" : "");
    expect(lie([&](PipelineCertificate &wrong) {
             wrong.chunks[last].certificate.machine = "another";
           }),
           last > 0 ? " needs the machine '' of chunk 0, but got 'another'"
                    : "");
    expect(lie([&](PipelineCertificate &wrong) {
             Certificate &chunk = wrong.chunks[last].certificate;
             chunk.budgetBytes = wrong.budgetBytes + 1;
             computeBound(chunk);
           }),
           shape.virtualStages > 1 ? " bytes that its stage has for a step"
                                   : "'s chunks come to ");
    // Priced tasks: with more weight than the price has, that are not there,
    // other ones, or of too few stages.
    if (shape.virtualStages > 1) {
      expect(lie([](PipelineCertificate &wrong) {
               for (auto &stage : wrong.pricedTasks)
                 stage.push_back({0, 1});
             }),
             " that add up to 1 at most, but with this one they come to ");
      expect(lie([](PipelineCertificate &wrong) {
               for (auto &stage : wrong.pricedTasks)
                 stage = {{1000, 1}};
             }),
             "needs a task out of the ");
      expect(lie([](PipelineCertificate &wrong) {
               for (auto &stage : wrong.pricedTasks)
                 for (PipelineCertificate::PricedTask &priced : stage)
                   priced.task = 0;
             }),
             "the least price of ");
      expect(
          lie([](PipelineCertificate &wrong) { wrong.pricedTasks.pop_back(); }),
          "needs priced tasks of each of ");
    }
    // Paths: heavier than one, of tasks that are not there or do not wait.
    expect(
        lie([](PipelineCertificate &wrong) { wrong.paths[0].weight += 0.01; }),
        "needs weights of paths that add up to 1 at most, but with this one "
        "they come to 1.01");
    expect(lie([](PipelineCertificate &wrong) {
             wrong.paths[0].tasks.back().last += 100;
           }),
           " to ");
    expect(lie([](PipelineCertificate &wrong) {
             PathPart &first = wrong.paths[0].tasks.front();
             std::swap(first.first, ++first.last);
           }),
           "needs tasks out of the ");
    if (shape.stages > 1)
      expect(lie([](PipelineCertificate &wrong) {
               wrong.paths[0].tasks = {{0, 0, 0}, {1, 1, 1}};
             }),
             "task 1 of stage 1 does not wait for task 0 of stage 0");
    expect(lie([](PipelineCertificate &wrong) {
             wrong.paths[0].tasks.front().stage = 99;
           }),
           shape.stages > 1 ? "needs a stage between 0 and "
                            : "needs a stage that is 0, but got ");
    expect(lie([](PipelineCertificate &wrong) { wrong.paths.clear(); }),
           "no plans take less than 0 s by the bounds of the stages and the "
           "paths, but got ");
    // Replays of the first stage are for nothing only where it waits.
    for (PipelineCertificate::Chunk &chunk : planned.certificate.chunks)
      if (chunk.certificate.replaySeconds > 0 && shape.stages == 1)
        expect(lie([&](PipelineCertificate &wrong) {
                 wrong.chunks[0].slackSeconds = 0.5;
               }),
               " without the replays that are said to cost nothing");
    expect(lie([](PipelineCertificate &wrong) {
             wrong.chunks[0].slackSeconds = 1e6;
           }),
           "are for nothing");
  }
}
