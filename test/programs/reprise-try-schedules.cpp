//===- reprise-try-schedules.cpp - Random schedules, run ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// reprise-try-schedules MODELS [FIRST]: small models at random, each cut into
// stages in several ways, each of these with several plans of recompute and
// tables. Most tables are nobody's schedule: chance says which task is next,
// and entries change places as long as the proof takes it. Of each table:
//
//   * 20 others with one thing broken are refused, each with its stage;
//   * the proof takes it, its program ends, and what it dumps behind two steps
//     are the bits of one device, which is compiled as reprisec does (where the
//     first and the last stage share a table, terms are added in another order:
//     1e-5, or 1e-2 in bf16);
//   * every rank has written what is planned.
//
// Kernels are compiled once for all programs, so that a table takes tenths of a
// second. Prints how many there were, and the largest ratio of a stage's plan
// to the most bytes alive at one time, which no packing does without. The first
// violation ends it with the table and the command that shows it again.
//
//===----------------------------------------------------------------------===//

#include "CodeCache.h"
#include "Draw.h"
#include "RandomTables.h"
#include "lib/Stages/Table.h"
#include "mlir/Pass/PassManager.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Pipelines/Pipelines.h"
#include "reprise/Pipelines/Registration.h"
#include "reprise/Pipelines/StagePrograms.h"
#include "reprise/Solver/BorderBytes.h"
#include "reprise/Target/Executable.h"
#include "test/common/Words.h"
#include "test/unit/solver/BrokenTables.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace reprise;
using reprise::test::CodeCache;
using reprise::test::Draw;

using Keys = std::vector<std::pair<std::string, std::string>>;

namespace cl = llvm::cl;
static cl::OptionCategory category("reprise-try-schedules options");
static cl::opt<int64_t> models(cl::Positional, cl::desc("<models>"),
                               cl::cat(category));
static cl::opt<int64_t> first(cl::Positional, cl::desc("<first>"), cl::init(1),
                              cl::cat(category));

namespace {
/// Ways to cut a model, and tables of each.
constexpr int kMeshes = 5, kTables = 4, kBroken = 20;

/// What is the same for all models.
struct Setting {
  MLIRContext &context;
  CodeCache &cache;
  std::string folder; ///< for files
  std::string compare, runtime, cpu;
  codegen::Registers registers;
};

struct Tally {
  int64_t models = 0, layouts = 0, tables = 0, named = 0, split = 0;
  int64_t exchanges = 0, refused = 0, broken = 0;
  double ratio = 0;
};

/// Tries one model.
class Trier {
public:
  Trier(const Setting &setting, Draw draw, Tally &tally)
      : setting(setting), draw(draw), damage(draw.number(1, 1 << 30)),
        tally(tally) {}

  bool run();

private:
  void drawModel();
  void drawMesh();
  void drawRecompute();
  OwningOpRef<ModuleOp> build(const Keys &keys, frontend::Parallel &parallel);
  bool runPhases(ModuleOp module, Phase from, Phase to);
  bool compileOne();
  bool tryMesh();
  bool tryTable(ModuleOp stages, solver::ScheduleTable table);
  bool tryBroken(const solver::ScheduleTable &table);
  void exchange(solver::ScheduleTable &table);
  bool runProgram(StringRef name);
  bool checkBytes(StringRef log);
  bool checkBits();
  bool need(bool holds, const Twine &what);
  std::string path(StringRef name) const {
    return setting.folder + "/" + name.str();
  }

  const Setting &setting;
  Draw draw;
  std::mt19937 damage;
  Tally &tally;
  Keys model, mesh;
  RecomputeOptions recompute;
  int64_t layers = 7, batches = 1, ranks = 1, groups = 1;
  bool isTied = false, isRounded = false;
  std::string shown; ///< the table that is tried
};
} // namespace

bool Trier::need(bool holds, const Twine &what) {
  if (holds)
    return true;
  llvm::errs() << "violation: " << what << "\n ";
  for (const Keys &keys : {model, mesh})
    for (auto &[key, value] : keys)
      llvm::errs() << " --" << key << "=" << value;
  llvm::errs() << "; " << recompute.describe() << "\n" << shown;
  return false;
}

//===----------------------------------------------------------------------===//
// What is tried
//===----------------------------------------------------------------------===//

void Trier::drawModel() {
  auto set = [&](const char *key, const Twine &value) {
    model.push_back({key, value.str()});
  };
  bool isGPT2 = !draw.oneIn(3);
  isTied = draw.oneIn(4);
  isRounded = draw.oneIn(4);
  batches = draw.number(1, 8);
  groups = draw.oneIn(5) ? 2 : 1;
  set("model_type", isGPT2 ? "gpt2" : "llama");
  set("vocab_size", "263");
  set(isGPT2 ? "n_positions" : "max_position_embeddings", "16");
  set(isGPT2 ? "n_embd" : "hidden_size", "16");
  set(isGPT2 ? "n_head" : "num_attention_heads", "2");
  set(isGPT2 ? "n_layer" : "num_hidden_layers", Twine(layers));
  set(isGPT2 ? "n_inner" : "intermediate_size", "26");
  std::string drop = draw.oneIn(2) ? "0.1" : "0.0";
  if (isGPT2)
    for (const char *key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"})
      set(key, drop);
  set("attention", draw.oneIn(2) ? "flash" : "unfused");
  set("precision", isRounded ? "bf16" : "fp32");
  set("tie_word_embeddings", isTied ? "true" : "false");
  set("seq_length", "6");
  set("micro_batch_size", "1");
  set("global_batch_size", Twine(batches * groups));
  set("lr", "1e-3");
  set("lr_decay_style", "constant");
  set("train_iters", "4");
  ranks = draw.oneIn(5) ? 2 : 1;
  if (ranks > 1) {
    set("tensor_model_parallel_size", "2");
    set("sequence_parallel", draw.oneIn(2) ? "true" : "false");
  }
}

/// Only the ends may be without layers. Chunks take turns in groups that are as
/// large as they may be, since tables are replaced anyway.
void Trier::drawMesh() {
  int64_t stages = draw.number(2, 4);
  int64_t each = batches >= stages ? draw.pick<int64_t>({1, 1, 2, 3}) : 1;
  if (stages * each - 2 > layers)
    each = 1;
  std::vector<int64_t> sizes(stages * each, 1);
  sizes.front() = sizes.back() = 0;
  for (int64_t left = layers - int64_t(sizes.size()) + 2; left > 0; --left)
    ++sizes[draw.number(0, sizes.size() - 1)];
  std::string layout = "E";
  for (auto [chunk, size] : llvm::enumerate(sizes))
    layout += (chunk ? "|" : "") + std::string(size, 't');
  mesh = {{"pipeline_stages", std::to_string(stages)},
          {"pipeline_layout", layout + "L"}};
  if (each == 1)
    return;
  mesh.push_back({"virtual_stages", std::to_string(each)});
  mesh.push_back(
      {"microbatch_group_size_per_vp_stage", std::to_string(batches)});
}

void Trier::drawRecompute() {
  recompute = RecomputeOptions();
  recompute.isFree = draw.oneIn(2);
  switch (draw.number(0, 3)) {
  case 0:
    recompute.granularity = "full";
    recompute.method = draw.oneIn(2) ? "uniform" : "block";
    recompute.numLayers = draw.number(1, 3);
    return;
  case 1:
    recompute.granularity = "selective";
    recompute.modules.emplace();
    for (const char *label : {"core_attn", "mlp", "layernorm"})
      if (draw.oneIn(2))
        recompute.modules->push_back(label);
    return;
  default:
    return;
  }
}

/// The step of a description before anything is done to it.
OwningOpRef<ModuleOp> Trier::build(const Keys &keys,
                                   frontend::Parallel &parallel) {
  llvm::SourceMgr sources;
  frontend::DescriptionReader reader(sources);
  for (auto &[key, value] : keys)
    if (failed(reader.setOption(key, value)))
      return nullptr;
  FailureOr<frontend::Description> description =
      reader.read(path("empty.yaml"));
  if (failed(description))
    return nullptr;
  parallel = description->parallel;
  OwningOpRef<ModuleOp> module =
      frontend::buildModel(setting.context, *description);
  TargetOptions target;
  target.overlap = false;
  if (module)
    setTarget(*module, target);
  return module;
}

bool Trier::runPhases(ModuleOp module, Phase from, Phase to) {
  PassManager manager(module.getContext());
  TargetOptions target;
  target.overlap = false;
  target.registers = setting.registers;
  target.isPipeline = isPipeline(module);
  buildPipeline(manager, from, to, recompute, /*inference=*/false, target);
  return succeeded(manager.run(module));
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

bool Trier::runProgram(StringRef name) {
  std::string program = path(name), dump = path((name + ".dump").str()),
              log = path("log"), text = path("text");
  llvm::sys::fs::remove(dump);
  StringRef arguments[] = {program, "--data",    text, "--steps",
                           "2",     "--threads", "1",  "--peak-flops",
                           "1e12",  "--dump",    dump, "--check-memory"};
  constexpr unsigned kSeconds = 100;
  std::string error;
  int status = llvm::sys::ExecuteAndWait(program, arguments, std::nullopt,
                                         {StringRef(), log, log}, kSeconds,
                                         /*MemoryLimit=*/0, &error);
  if (status == 0)
    return true;
  auto said = llvm::MemoryBuffer::getFile(log);
  return need(false, "a program ends with " + Twine(status) + " " + error +
                         "\n" + (said ? (*said)->getBuffer() : ""));
}

/// The step of one device, or of the ranks of one stage, as reprisec compiles
/// it.
bool Trier::compileOne() {
  frontend::Parallel parallel;
  Keys keys = model;
  if (groups > 1)
    keys.push_back({"gradient_reduction_groups", std::to_string(groups)});
  OwningOpRef<ModuleOp> one = build(keys, parallel);
  recompute = RecomputeOptions();
  if (!one || !runPhases(*one, Phase::NN, Phase::LLVM))
    return false;
  FailureOr<std::vector<target::ObjectFile>> objects =
      target::compileModels({{*one}}, setting.cpu);
  return succeeded(objects) &&
         succeeded(
             target::linkExecutable(*objects, setting.runtime, path("one"))) &&
         runProgram("one");
}

bool Trier::checkBits() {
  auto have = llvm::MemoryBuffer::getFile(path("many.dump"), /*IsText=*/false);
  auto want = llvm::MemoryBuffer::getFile(path("one.dump"), /*IsText=*/false);
  if (!have || !want)
    return need(false, "a program has dumped nothing");
  if (!isTied && groups == 1)
    return need((*have)->getBuffer() == (*want)->getBuffer(), "other bits");
  std::string many = path("many.dump"), one = path("one.dump"),
              log = path("compared");
  SmallVector<StringRef> arguments = {setting.compare, many, one,
                                      "--first-inputs"};
  arguments.push_back(!isTied     ? "--tolerance=0"
                      : isRounded ? "--tolerance=1e-2"
                                  : "--tolerance=1e-5");
  if (isTied && isRounded)
    arguments.push_back("--norms");
  int status = llvm::sys::ExecuteAndWait(setting.compare, arguments,
                                         std::nullopt, {StringRef(), log, log});
  auto said = llvm::MemoryBuffer::getFile(log);
  return need(status == 0,
              "other bits: " + (said ? (*said)->getBuffer() : StringRef()));
}

/// The least and the most of all ranks are what is planned of theirs, and rank
/// 0 has written all of it but what lies behind the last buffer. In bf16 that
/// may be the workspace of a GEMM, of which this processor may need less.
bool Trier::checkBytes(StringRef log) {
  std::string planned, used;
  SmallVector<StringRef> lines;
  log.split(lines, '\n');
  bool isWritten = false;
  for (StringRef line : lines) {
    StringRef rest = line.ltrim();
    if (rest.consume_front("planned memory"))
      planned = rest.trim().str();
    else if (rest.consume_front("high-water mark"))
      used = rest.trim().str();
    size_t place = line.find("high-water ");
    if (!line.starts_with("done:") || place == StringRef::npos)
      continue;
    std::string numbers = line.drop_front(place + 11).str();
    llvm::erase(numbers, ',');
    SmallVector<StringRef> words;
    StringRef(numbers).split(words, ' ');
    int64_t high = 0, plan = 0, written = 0;
    isWritten = words.size() > 5 && !words[0].getAsInteger(10, high) &&
                !words[3].getAsInteger(10, plan) &&
                !words[5].getAsInteger(10, written) && high == plan &&
                written <= plan && (isRounded || written > plan - 64);
  }
  return need(isWritten && !planned.empty() && planned == used,
              "other bytes than planned\n" + log);
}

bool Trier::tryBroken(const solver::ScheduleTable &table) {
  for (int tries = 0; tries < kBroken;) {
    solver::ScheduleTable broken = table;
    std::string what = test::breakTable(broken, damage);
    if (what.empty())
      continue;
    ++tries;
    ++tally.broken;
    std::optional<solver::ScheduleFault> fault = solver::verify(broken);
    if (!need(fault && fault->stage >= 0,
              "a table passes the proof that is broken: " + what))
      return false;
  }
  return true;
}

/// Lets entries change places where the proof takes it.
void Trier::exchange(solver::ScheduleTable &table) {
  for (int64_t tries = draw.number(0, 20); tries > 0; --tries) {
    solver::ScheduleTable other = table;
    std::vector<solver::ScheduleEntry> &entries =
        other.stages[draw.number(0, other.stages.size() - 1)].entries;
    int64_t first = draw.number(0, entries.size() - 1),
            second = first + draw.number(1, 4);
    if (second >= int64_t(entries.size()))
      continue;
    std::swap(entries[first], entries[second]);
    if (solver::verify(other)) {
      ++tally.refused;
      continue;
    }
    ++tally.exchanges;
    table = std::move(other);
  }
}

bool Trier::tryTable(ModuleOp stages, solver::ScheduleTable table) {
  exchange(table);
  OwningOpRef<ModuleOp> program = stages.clone();
  auto schedule = *program->getOps<pipe::ScheduleOp>().begin();
  OpBuilder builder(schedule);
  stages::writeTable(builder, schedule.getLoc(), table);
  schedule.erase();
  shown.clear();
  llvm::raw_string_ostream os(shown);
  (*program->getOps<pipe::ScheduleOp>().begin())->print(os);
  std::optional<solver::ScheduleFault> fault = solver::verify(table);
  if (!need(!fault, "the proof refuses a table that has run: " +
                        (fault ? fault->text : "")) ||
      !tryBroken(table) ||
      !need(runPhases(*program, Phase::Remat, Phase::RT), "no program"))
    return false;
  for (rt::ArenaAttr arena : getStageArenas(*program))
    tally.ratio =
        std::max(tally.ratio, double(arena.getBytes()) / arena.getLeast());
  if (!need(succeeded(
                setting.cache.link(*program, setting.runtime, path("many"))),
            "no code") ||
      !runProgram("many"))
    return false;
  auto log = llvm::MemoryBuffer::getFile(path("log"));
  ++tally.tables;
  return checkBytes(log ? (*log)->getBuffer() : "") && checkBits();
}

bool Trier::tryMesh() {
  drawMesh();
  drawRecompute();
  shown.clear();
  frontend::Parallel parallel;
  Keys keys = model;
  llvm::append_range(keys, mesh);
  if (groups > 1)
    keys.push_back({"data_parallel_size", std::to_string(groups)});
  OwningOpRef<ModuleOp> stages = build(keys, parallel);
  if (!need(stages && succeeded(frontend::makePipeline(*stages, parallel)) &&
                runPhases(*stages, Phase::NN, Phase::Remat),
            "the stages are none"))
    return false;
  ++tally.layouts;
  auto schedule = *stages->getOps<pipe::ScheduleOp>().begin();
  solver::ScheduleTable named = stages::readTable(schedule).table;
  for (int number = 0; number < kTables; ++number) {
    bool isNamed = number == 0 && draw.oneIn(2);
    solver::ScheduleTable table =
        isNamed ? named
                : test::drawTable(named.shape, test::getFacts(named), draw);
    solver::setBorderBytes(table, solver::getBorderBytes(named));
    tally.named += isNamed;
    tally.split += llvm::any_of(table.stages.front().entries, [](auto &entry) {
      return entry.kind == solver::ScheduleEntry::Weight;
    });
    if (!tryTable(*stages, std::move(table)))
      return false;
  }
  return true;
}

bool Trier::run() {
  ++tally.models;
  drawModel();
  if (!need(compileOne(), "one device has no program"))
    return false;
  for (int number = 0; number < kMeshes; ++number)
    if (!tryMesh())
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

static bool writeFile(const std::string &path, StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  os << text;
  return !error;
}

/// Words by chance.
static std::string makeText() {
  Draw draw(1);
  std::string text;
  for (int letter = 0; letter < 3000; ++letter)
    text += draw.oneIn(6) ? ' ' : char(draw.number('a', 'z'));
  return text;
}

static void print(const Tally &tally, size_t kernels) {
  llvm::outs() << tally.tables << " tables of " << tally.layouts
               << " layouts of " << tally.models
               << " models have the bits of one device: " << tally.named
               << " named, " << tally.split
               << " with gradients of weights apart; " << tally.exchanges
               << " of " << tally.exchanges + tally.refused << " exchanges\n"
               << tally.broken << " broken tables are refused; plans take at "
               << "most " << llvm::format("%.3f", tally.ratio)
               << " of what is alive at one time; " << kernels << " kernels\n";
  llvm::outs().flush();
}

int main(int argc, char **argv) {
  test::readWords(argc, argv, category, "Runs random schedules of pipelines\n");
  if (models < 1 || first < 1) {
    llvm::errs() << "reprise-try-schedules MODELS [FIRST]: needs numbers of at "
                    "least 1\n";
    return 2;
  }
  // To set options of LLVM's reads these anew.
  const int64_t begin = first, end = first + models;
  llvm::SmallString<128> folder,
      beside(llvm::sys::fs::getMainExecutable(
          argv[0], reinterpret_cast<void *>(&print)));
  llvm::sys::path::remove_filename(beside);
  llvm::sys::path::append(beside, "reprise-compare-dumps");
  if (llvm::sys::fs::createUniqueDirectory("reprise-schedules", folder) ||
      !writeFile((folder + "/empty.yaml").str(), "model: {}\n") ||
      !writeFile((folder + "/text").str(), makeText())) {
    llvm::errs() << "reprise-try-schedules: cannot write temporary files\n";
    return 1;
  }
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::string cpu = target::resolveCPU("native");
  auto registers = target::hasWideRegisters(cpu) ? codegen::Registers::Wide
                                                 : codegen::Registers::Base;
  CodeCache cache(cpu, registers);
  Setting setting = {
      context,         cache, folder.str().str(), beside.str().str(),
      REPRISE_RUNTIME, cpu,   registers};
  Tally tally;
  bool holds = true;
  for (int64_t number = begin; holds && number < end; ++number) {
    holds = Trier(setting, Draw(number), tally).run();
    if (!holds)
      llvm::errs() << "  again: " << argv[0] << " 1 " << number << "\n";
  }
  if (holds)
    llvm::sys::fs::remove_directories(folder);
  print(tally, cache.size());
  return holds ? 0 : 1;
}
