//===- reprise-opt.cpp - Runs passes on text --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "reprise/Pipelines/Registration.h"
#include "tools/command-line/CommandLine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace reprise;

/// Of a pass or a pipeline; null if it is none.
static const mlir::PassRegistryEntry *findPass(llvm::StringRef name) {
  if (const mlir::PassInfo *pass = mlir::PassInfo::lookup(name))
    return pass;
  return mlir::PassPipelineInfo::lookup(name);
}

static tools::OptionInfo describe(llvm::StringRef name,
                                  const llvm::cl::Option &option) {
  tools::OptionInfo info;
  info.name = name.str();
  info.help = option.HelpStr.str();
  info.value = option.ValueStr.empty() ? "value" : option.ValueStr.str();
  info.mayRepeat = true;
  info.takes = tools::Takes::Text;
  if (option.getValueExpectedFlag() == llvm::cl::ValueDisallowed)
    info.takes = tools::Takes::Nothing;
  if (option.getValueExpectedFlag() == llvm::cl::ValueOptional)
    info.takes = tools::Takes::MaybeText;
  if (const mlir::PassRegistryEntry *pass = findPass(name)) {
    info.help = pass->getPassDescription().str();
    info.value = "options";
    info.takes = tools::Takes::MaybeText;
  }
  llvm::replace(info.help, '\n', ' ');
  return info;
}

/// What MLIR has registered is shown, what LLVM did before that is not.
static tools::Tool getTool(const llvm::StringSet<> &hidden) {
  tools::Tool tool;
  tool.name = "reprise-opt";
  tool.overview = "Runs passes on the IR of Reprise and of MLIR, as text or "
                  "bytecode, and prints what comes out.";
  tool.input = "file";
  tool.usage = "[options] <file>";
  tool.libraries = "LLVM " LLVM_VERSION_STRING;
  tool.examples = {
      {"reprise-opt --canonicalize step.mlir", "runs a pass"},
      {"reprise-opt --pass-pipeline='builtin.module(cse,canonicalize)' in.mlir",
       "runs several, each on the ops that it is for"},
      {"reprisec model.yaml --emit=joint | reprise-opt --reprise-remat-apply",
       "goes on where the compiler stopped"},
  };
  tools::Topic own{"Passes of Reprise", {}}, others{"Other passes", {}},
      options{"Options of MLIR", {}}, rest{"Options of LLVM", {}};
  std::vector<std::pair<llvm::StringRef, llvm::cl::Option *>> all;
  for (auto [name, option] : llvm::cl::getRegisteredOptions())
    all.push_back({name, option});
  llvm::sort(all);
  for (auto [name, option] : all) {
    if (name == "help" || name == "version" || name == "h" || name == "o")
      continue;
    tools::OptionInfo info = describe(name, *option);
    info.isHidden = hidden.contains(name) ||
                    option->getOptionHiddenFlag() != llvm::cl::NotHidden;
    bool isPass = findPass(name);
    (info.isHidden                            ? rest
     : isPass && name.starts_with("reprise-") ? own
     : isPass                                 ? others
                                              : options)
        .options.push_back(std::move(info));
  }
  options.options.insert(options.options.begin(),
                         {"o", "file", "Write here (default: standard output)",
                          tools::Takes::OutputFile});
  tool.topics = {own, others, options, rest};
  tools::addCommonOptions(tool);
  return tool;
}

int main(int argc, char **argv) {
  llvm::StringSet<> before;
  for (auto [name, option] : llvm::cl::getRegisteredOptions())
    before.insert(name);
  mlir::DialectRegistry registry;
  registerDialects(registry);
  registerPasses();
  std::string header =
      mlir::registerCLIOptions("Reprise pass driver", registry);
  tools::Tool tool = getTool(before);
  // Files of options, of which there may be any, are read by MLIR, too.
  llvm::BumpPtrAllocator allocator;
  llvm::SmallVector<const char *> given(argv + 1, argv + argc);
  llvm::cl::ExpansionContext config(allocator,
                                    llvm::cl::TokenizeGNUCommandLine);
  llvm::consumeError(config.expandResponseFiles(given));
  tools::Words words;
  if (auto answer = tools::read(tool, {given.begin(), given.end()}, words)) {
    (answer->isError ? llvm::errs() << "error: " : llvm::outs())
        << answer->text << (answer->isError ? "\n" : "");
    return answer->isError;
  }
  auto [input, output] = mlir::parseCLIOptions(argc, argv, header);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, input, output, registry));
}
