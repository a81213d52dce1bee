//===- reprisec.cpp - Compiles a description to a program ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Pipelines/Pipelines.h"
#include "reprise/Pipelines/Registration.h"
#include "reprise/Remat/Summary.h"
#include "reprise/Report/Plan.h"
#include "reprise/Target/Executable.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"
#include "llvm/TargetParser/Host.h"
#include <deque>

using namespace mlir;
using namespace reprise;
namespace cl = llvm::cl;

namespace {
cl::OptionCategory category("reprisec options");
cl::OptionCategory
    keyCategory("Keys of the description (an option wins over the file)");

/// All options: its own, and one for each key of the description.
struct Options {
  cl::opt<std::string> input{cl::Positional, cl::desc("<description or IR>"),
                             cl::init(""), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("Write here; - is standard output"),
                              cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> emit{
      "emit",
      cl::desc(
          "Stop early and write nn, joint, remat, kernels, rt, llvm or obj "
          "instead of a program"),
      cl::value_desc("phase"), cl::cat(category)};
  cl::opt<std::string> from{
      "from",
      cl::desc("The input is the IR of this phase: nn, joint, remat, kernels, "
               "rt or llvm"),
      cl::value_desc("phase"), cl::cat(category)};
  cl::opt<std::string> cpu{
      "cpu",
      cl::desc(
          "Processor to compile kernels for, or native (default x86-64-v3)"),
      cl::value_desc("name"), cl::init("x86-64-v3"), cl::cat(category)};
  cl::opt<std::string> runtime{
      "runtime", cl::desc("The runtime archive (default beside this program)"),
      cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> planJSON{
      "plan-json",
      cl::desc("Write the plan as JSON here; - is standard output. Without "
               "-o or --emit nothing else is written"),
      cl::value_desc("file"), cl::cat(category)};
  cl::opt<bool> explain{
      "explain",
      cl::desc("Print why each value is kept or recomputed, and what it takes "
               "at the peak. Without -o or --emit nothing else is written"),
      cl::cat(category)};
  cl::opt<std::string> accounting{
      "accounting",
      cl::desc("megatron: report beside the plan what Megatron's own scheme "
               "would keep for the same options"),
      cl::value_desc("scheme"), cl::cat(category)};
  cl::opt<int> tensorParallel{
      "tensor-model-parallel-size",
      cl::desc("With --accounting: ranks that share each layer (1)"),
      cl::value_desc("ranks"), cl::init(1), cl::cat(category)};
  cl::opt<bool> sequenceParallel{
      "sequence-parallel",
      cl::desc("With --accounting: these ranks split what they do not share by "
               "positions"),
      cl::cat(category)};
  cl::opt<bool> quiet{"quiet", cl::desc("Do not print the plan"),
                      cl::cat(category)};
  cl::opt<bool> verbose{
      "verbose", cl::desc("Print which keys of the model's file mean nothing"),
      cl::cat(category)};
  cl::opt<bool> printKeys{"print-keys",
                          cl::desc("Print the table of all keys and exit"),
                          cl::Hidden, cl::cat(category)};

  Options();
  /// Whether a report of the plan is asked for.
  bool reports() const { return !planJSON.empty() || explain; }

  /// The keys given on the command line, in their order.
  std::vector<std::unique_ptr<cl::opt<std::string>>> keys;
  std::vector<std::string> keyNames;
};
} // namespace

Options::Options() {
  // One list gives the names, the help and the documentation. The strings live
  // as long as the options do.
  static std::vector<frontend::KeyInfo> infos = frontend::listKeys();
  static std::deque<std::string> texts;
  auto keep = [&](std::string text) -> llvm::StringRef {
    return texts.emplace_back(std::move(text));
  };
  for (const frontend::KeyInfo &info : infos) {
    std::vector<std::string> names = {info.name.str()};
    names.insert(names.end(), info.aliases.begin(), info.aliases.end());
    for (auto [index, name] : llvm::enumerate(names)) {
      std::string spelling = name;
      llvm::replace(spelling, '_', '-');
      auto key = std::make_unique<cl::opt<std::string>>(
          keep(spelling),
          cl::desc(keep(info.summary.str() + " (" + info.defaultValue + ")")),
          cl::value_desc(keep(info.type)), cl::cat(keyCategory),
          info.isSwitch ? cl::ValueOptional : cl::ValueRequired,
          index == 0 ? cl::NotHidden : cl::Hidden);
      keys.push_back(std::move(key));
      keyNames.push_back(name);
    }
  }
}

static int fail(const llvm::Twine &message) {
  llvm::WithColor::error() << message << "\n";
  return 1;
}

/// A module as text, and the plan that its description asked for.
static OwningOpRef<ModuleOp> readIR(MLIRContext &context,
                                    llvm::SourceMgr &sources,
                                    const Options &options,
                                    RecomputeOptions &recompute) {
  for (const auto &key : options.keys)
    if (key->getNumOccurrences()) {
      fail("option --" + key->ArgStr + ": is a key of a description, but " +
           "--from says that the input is IR");
      return nullptr;
    }
  std::string error;
  auto buffer = openInputFile(options.input, &error);
  if (!buffer) {
    fail(error);
    return nullptr;
  }
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  auto module = parseSourceFile<ModuleOp>(sources, &context);
  auto train = module ? (*module)->getAttrOfType<DictionaryAttr>(nn::kTrainAttr)
                      : DictionaryAttr();
  auto plan = train ? train.getAs<StringAttr>("recompute") : StringAttr();
  if (!plan)
    return module;
  std::optional<RecomputeOptions> recorded = RecomputeOptions::parse(plan);
  if (!recorded) {
    module->emitError("needs a plan such as 'none', 'selective mlp,layernorm' "
                      "or 'full uniform 1' as 'recompute' in 'nn.train', but "
                      "got ")
        << plan;
    return nullptr;
  }
  recompute = *recorded;
  return module;
}

/// The module of phase `from`, from a description or as IR; null after a
/// message. `recompute` comes from the description or the options.
static OwningOpRef<ModuleOp> readInput(MLIRContext &context,
                                       llvm::SourceMgr &sources,
                                       const Options &options, Phase from,
                                       RecomputeOptions &recompute) {
  if (!options.from.empty())
    return readIR(context, sources, options, recompute);
  frontend::DescriptionReader reader(sources);
  for (auto [key, name] : llvm::zip(options.keys, options.keyNames))
    if (key->getNumOccurrences() && failed(reader.setOption(name, *key)))
      return nullptr;
  FailureOr<frontend::Description> description = reader.read(options.input);
  if (failed(description))
    return nullptr;
  if (options.verbose)
    for (const std::string &key : description->ignoredKeys)
      llvm::WithColor::note()
          << "the key '" << key << "' of the model means nothing here\n";
  recompute.granularity = description->recompute.granularity;
  recompute.method = description->recompute.method;
  recompute.numLayers = description->recompute.numLayers;
  recompute.modules = description->recompute.modules;
  return frontend::buildModel(context, *description);
}

/// The effective plan belongs to the program, and is shown to who makes it.
static void recordPlan(ModuleOp module, const RecomputeOptions &recompute) {
  auto train = module->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  if (!train)
    return;
  NamedAttrList entries(train);
  entries.set("recompute",
              StringAttr::get(module.getContext(), recompute.describe()));
  module->setAttr(nn::kTrainAttr, entries.getDictionary(module.getContext()));
}

static LogicalResult printPlan(ModuleOp module,
                               const RecomputeOptions &recompute) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step)
    return success();
  FailureOr<remat::Summary> summary = remat::summarize(step);
  if (failed(summary))
    return failure();
  llvm::errs() << "recompute: " << recompute.describe() << "\n";
  summary->print(llvm::errs());
  return success();
}

static LogicalResult runPhases(ModuleOp module, Phase from, Phase to,
                               const RecomputeOptions &recompute) {
  PassManager manager(module.getContext());
  buildPipeline(manager, from, to, recompute);
  return manager.run(module);
}

/// What to report, from the step in nn; memory is still to be planned.
static FailureOr<report::Plan> readPlan(ModuleOp module, const Options &options,
                                        const RecomputeOptions &recompute) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step)
    return module.emitError("needs a function @step to report on");
  FailureOr<report::Plan> plan = report::readDecisions(step);
  if (failed(plan) || options.accounting.empty())
    return plan;
  report::megatron::Options same;
  same.granularity = recompute.granularity;
  same.method = recompute.method;
  same.numLayers = recompute.numLayers.value_or(0);
  same.modules =
      recompute.modules.value_or(std::vector<std::string>{"core_attn"});
  FailureOr<report::Reference> reference = report::computeReference(
      step, same, {options.tensorParallel, options.sequenceParallel});
  if (failed(reference))
    return failure();
  plan->reference = std::move(*reference);
  return plan;
}

/// Writes what is asked for, of a step whose memory is planned.
static LogicalResult writeReports(report::Plan &plan, ModuleOp module,
                                  const Options &options) {
  if (failed(report::readSchedule(plan, module)))
    return failure();
  if (options.explain)
    plan.explain(options.output == "-" || options.planJSON == "-"
                     ? llvm::errs()
                     : llvm::outs());
  if (options.planJSON.empty())
    return success();
  std::string error;
  auto file = openOutputFile(options.planJSON, &error);
  if (!file)
    return failure(fail(error));
  plan.writeJSON(file->os());
  file->keep();
  return success();
}

/// Refuses options of reports that make no sense.
static LogicalResult checkReports(const Options &options, Phase from,
                                  Phase to) {
  if (options.accounting.empty()) {
    if (options.tensorParallel.getNumOccurrences() ||
        options.sequenceParallel.getNumOccurrences())
      return failure(fail("options --tensor-model-parallel-size and "
                          "--sequence-parallel: need --accounting=megatron; a "
                          "program is for one rank"));
  } else if (options.accounting != "megatron") {
    return failure(fail("option --accounting: needs megatron, but got '" +
                        options.accounting + "'"));
  } else if (!options.reports()) {
    return failure(fail("option --accounting: needs --plan-json or --explain, "
                        "which show it"));
  }
  if (options.tensorParallel < 1)
    return failure(fail("option --tensor-model-parallel-size: needs at least "
                        "1, but got " +
                        llvm::Twine(options.tensorParallel)));
  if (options.reports() && from > Phase::Remat)
    return failure(fail("options --plan-json and --explain: need an input of "
                        "phase nn, joint or remat, which has the decisions, "
                        "but --from says " +
                        stringifyPhase(from)));
  if (options.reports() && to < Phase::RT)
    return failure(fail("options --plan-json and --explain: need --emit=rt or "
                        "later, where memory is planned, but got '" +
                        options.emit + "'"));
  return success();
}

/// Refuses to put a program or an object where something else would be lost;
/// a symbolic link stands for the file that it names.
static LogicalResult checkOutput(Options &options) {
  if (options.output == "-")
    return failure(fail("option -o: needs a file for a program, but got '-'"));
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(options.output, status))
    return success(); // What is not there is not lost.
  if (!llvm::sys::fs::is_regular_file(status))
    return failure(fail("option -o: needs a plain file, but '" +
                        options.output + "' is a folder or a device"));
  bool same = false;
  if (!llvm::sys::fs::equivalent(options.input, options.output, same) && same)
    return failure(fail("option -o: needs another file than the input '" +
                        options.input + "'"));
  llvm::SmallString<128> real;
  if (!llvm::sys::fs::real_path(options.output, real))
    options.output = real.str().str();
  return success();
}

/// Writes `bytes` to `path`, all or with a message.
static LogicalResult writeFile(llvm::StringRef path, llvm::StringRef bytes) {
  std::error_code error;
  llvm::ToolOutputFile file(path, error, llvm::sys::fs::OF_None);
  if (!error) {
    file.os() << bytes;
    file.os().close();
    error = file.os().error();
    file.os().clear_error();
  }
  if (error)
    return failure(fail("cannot write '" + path + "': " + error.message()));
  file.keep();
  return success();
}

/// Everything after the last phase of IR.
static int writeProgram(ModuleOp module, const Options &options,
                        llvm::StringRef program) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = target::translateModel(module, context);
  if (!code)
    return 1;
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream os(object);
  std::string cpu = options.cpu == "native" ? llvm::sys::getHostCPUName().str()
                                            : std::string(options.cpu);
  if (failed(target::emitObject(*code, cpu, os)))
    return 1;
  if (options.emit == "obj")
    return failed(writeFile(options.output, os.str()));

  llvm::SmallString<128> path;
  if (std::error_code error =
          llvm::sys::fs::createTemporaryFile("reprise", "o", path))
    return fail("cannot write a temporary file: " + error.message());
  llvm::FileRemover remover(path);
  if (failed(writeFile(path, os.str())))
    return 1;
  std::string runtime = options.runtime;
  if (runtime.empty()) {
    llvm::SmallString<128> beside(llvm::sys::fs::getMainExecutable(
        program.str().c_str(), reinterpret_cast<void *>(&writeProgram)));
    llvm::sys::path::remove_filename(beside);
    llvm::sys::path::append(beside, "..", "lib", "libreprise_runtime.a");
    runtime = beside.str().str();
  }
  return failed(target::linkExecutable(path, runtime, options.output));
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Options options;
  cl::HideUnrelatedOptions({&category, &keyCategory});

  // Keys may be spelt with dashes or underscores, as in a description.
  std::vector<std::string> spellings(argv, argv + argc);
  std::vector<const char *> arguments;
  for (std::string &spelling : spellings) {
    if (llvm::StringRef(spelling).starts_with("--"))
      std::replace(spelling.begin(),
                   spelling.begin() +
                       std::min(spelling.find('='), spelling.size()),
                   '_', '-');
    arguments.push_back(spelling.c_str());
  }
  cl::ParseCommandLineOptions(
      arguments.size(), arguments.data(),
      "Compiles a description of a transformer into a training program\n");
  if (options.printKeys) {
    frontend::printKeysAsMarkdown(llvm::outs());
    return 0;
  }
  if (options.input.empty())
    return fail("needs a description, as in: reprisec model.yaml -o train");

  std::optional<Phase> from = Phase::NN, to = Phase::LLVM;
  if (!options.from.empty() && !(from = parsePhase(options.from)))
    return fail("option --from: needs nn, joint, remat, kernels, rt or llvm, "
                "but got '" +
                options.from + "'");
  bool isText = !options.emit.empty() && options.emit != "obj";
  if (isText && !(to = parsePhase(options.emit)))
    return fail("option --emit: needs nn, joint, remat, kernels, rt, llvm or "
                "obj, but got '" +
                options.emit + "'");
  if (*from > *to)
    return fail("option --emit: needs a phase after '" + stringifyPhase(*from) +
                "', which --from says the input is, but got '" + options.emit +
                "'");
  if (failed(checkReports(options, *from, *to)))
    return 1;
  bool isReport =
      options.reports() && options.output.empty() && options.emit.empty();
  if (isReport)
    to = Phase::RT;
  if (options.output.empty() && !isReport) {
    if (!isText)
      return fail("needs a place for the program: -o FILE");
    options.output = "-";
  }
  if (!isText && !isReport && failed(checkOutput(options)))
    return 1;

  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  RecomputeOptions recompute;
  OwningOpRef<ModuleOp> module =
      readInput(context, sources, options, *from, recompute);
  if (!module)
    return 1;
  if (options.from.empty())
    recordPlan(*module, recompute);

  Phase decided = std::min(*to, Phase::Remat);
  if (failed(runPhases(*module, *from, std::max(*from, decided), recompute)))
    return 1;
  if (*from < Phase::Remat && *to >= Phase::Remat && !options.quiet &&
      failed(printPlan(*module, recompute)))
    return 1;
  if (options.reports()) {
    FailureOr<report::Plan> plan = readPlan(*module, options, recompute);
    if (failed(plan) ||
        failed(runPhases(*module, decided, Phase::RT, recompute)) ||
        failed(writeReports(*plan, *module, options)))
      return 1;
    if (isReport)
      return 0;
    decided = Phase::RT;
  }
  if (failed(runPhases(*module, std::max(*from, decided), *to, recompute)))
    return 1;
  if (!isText)
    return writeProgram(*module, options, argv[0]);

  std::string error;
  auto file = openOutputFile(options.output, &error);
  if (!file)
    return fail(error);
  module->print(file->os());
  file->os().flush();
  if (file->os().has_error()) {
    std::error_code reason = file->os().error();
    file->os().clear_error();
    return fail("cannot write '" + options.output + "': " + reason.message());
  }
  file->keep();
  return 0;
}
