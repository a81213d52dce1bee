//===- Files.cpp - Files that are read and written --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Files.h"
#include "reprise/Interfaces/CostTable.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;
using namespace reprise;
using namespace reprise::driver;

using Write = function_ref<void(raw_ostream &)>;

static std::error_code finish(raw_fd_ostream &os) {
  os.flush();
  std::error_code error = os.error();
  os.clear_error();
  return error;
}

/// Writes a file beside `path`, which takes its place; that of the file that a
/// symbolic link names.
static std::error_code replaceFile(StringRef path, Write write) {
  SmallString<128> real;
  if (sys::fs::real_path(path, real))
    real = path; // Not there yet.
  Expected<sys::fs::TempFile> file = sys::fs::TempFile::create(
      real + ".%%%%%%", sys::fs::all_read | sys::fs::all_write);
  if (!file)
    return errorToErrorCode(file.takeError());
  raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  write(os);
  if (std::error_code error = finish(os)) {
    consumeError(file->discard());
    return error;
  }
  return errorToErrorCode(file->keep(real));
}

/// Writes where there is no file to replace: into a device or a pipe.
static std::error_code writeTo(StringRef path, Write write) {
  std::error_code error;
  raw_fd_ostream os(path, error);
  if (error)
    return error;
  write(os);
  return finish(os);
}

/// Whether a file of the name is one, or would be made.
static bool isPlain(StringRef path) {
  sys::fs::file_status status;
  return path != "-" &&
         (sys::fs::status(path, status) || sys::fs::is_regular_file(status));
}

LogicalResult driver::writeFile(StringRef path, Write write) {
  if (path.empty())
    return success();
  if (path == "-") {
    write(outs());
    return flushOutput();
  }
  // What names a temporary file has random letters for each `%`.
  bool canReplace = isPlain(path) && !path.contains('%');
  if (std::error_code error =
          canReplace ? replaceFile(path, write) : writeTo(path, write))
    return failure(fail("cannot write '" + path + "': " + error.message()));
  return success();
}

LogicalResult driver::writeFile(StringRef path, StringRef bytes) {
  return writeFile(path, [&](raw_ostream &os) { os << bytes; });
}

LogicalResult driver::checkKind(StringRef begin, StringRef path, StringRef text,
                                frontend::FileRole role) {
  std::optional<std::string> other = frontend::describeOther(path, text, role);
  if (!other)
    return success();
  return failure(fail(begin + "cannot read '" + path + "': " + *other));
}

LogicalResult driver::flushOutput() {
  if (std::error_code error = finish(outs()))
    return failure(
        fail("cannot write the standard output: " + error.message()));
  return success();
}

static bool isSame(StringRef a, StringRef b) {
  bool isOne = false;
  return a == b || (!sys::fs::equivalent(a, b, isOne) && isOne);
}

LogicalResult driver::checkFiles(const Options &options, StringRef planFile) {
  std::vector<std::pair<std::string, std::string>> outputs =
      options.getOutputs();
  StringRef costs = options.costTable; // Of a machine, or a file.
  const std::pair<const char *, StringRef> inputs[] = {
      {"the input", options.input},
      {"the table of costs", CostTable::get(costs) ? "" : costs},
      {"the plan", planFile}};
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    const auto &[option, path] = *output;
    if (std::string refusal = tools::checkPlace(path); !refusal.empty())
      return failure(fail("option " + option + ": " + refusal));
    // What goes to it one after the other, nobody can take apart.
    bool isOutput = path == "-";
    if (path.empty() || (!isOutput && !isPlain(path)))
      continue;
    for (auto [what, read] : inputs)
      if (!isOutput && !read.empty() && isSame(path, read))
        return failure(fail(Twine("option ") + option +
                            ": needs another file than " + what + " '" + read +
                            "'"));
    for (auto other = outputs.begin(); other != output; ++other)
      if (isSame(path, other->second))
        return failure(
            fail(Twine("options ") + other->first + " and " + option +
                 ": need a file each, but both have " +
                 (isOutput ? "the standard output" : "'" + path + "'")));
  }
  return success();
}
