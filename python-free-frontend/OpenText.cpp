//===- OpenText.cpp - Opens what a parser is to read ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "python-free-frontend/Keys.h"
#include "reprise/Support/RawJSON.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace reprise;
using namespace reprise::frontend;

// No description is near these limits.
static constexpr uint64_t kMaxFileBytes = 1 << 20;
static constexpr ptrdiff_t kMaxLineBytes = 4096;

static void checkText(StringRef text, Syntax syntax, Diagnostics &diagnostics) {
  auto refuse = [&](const char *at, const Twine &message) {
    diagnostics.error({SMLoc::getFromPointer(at)}, message);
  };
  size_t offset;
  if (!json::isUTF8(text, &offset))
    return refuse(text.data() + std::min(offset, text.size() - 1),
                  "needs UTF-8 text, but got other bytes");
  const char *line = text.begin();
  bool indenting = true;
  for (const char &c : text) {
    if (c == '\n') {
      line = &c + 1;
      indenting = true;
      continue;
    }
    bool isControl = static_cast<unsigned char>(c) < ' ' || c == '\x7F';
    if (isControl && c != '\t' && c != '\r')
      return refuse(&c, "needs text, but got a control character with code " +
                            Twine(static_cast<int>(c)));
    if (c == '\r' && syntax == Syntax::YAML &&
        !StringRef(&c + 1, text.end() - &c - 1).starts_with("\n"))
      return refuse(&c, "needs lines that end in a line feed, but got a "
                        "carriage return alone");
    if (c == '\t' && indenting && syntax == Syntax::YAML)
      return refuse(&c, "needs spaces for indentation, but got a tab");
    indenting &= c == ' ';
    if (&c - line >= kMaxLineBytes && syntax == Syntax::YAML)
      return refuse(&c, "needs lines of at most " + Twine(kMaxLineBytes) +
                            " bytes");
  }
  const char *bracket =
      syntax == Syntax::JSON ? findLevelTooMany(text) : nullptr;
  if (bracket)
    refuse(bracket, "needs lists and objects nested at most " +
                        Twine(kMostLevels) + " deep");
}

/// What begins like a file of another kind.
static std::optional<std::string> describeLarge(StringRef path, FileRole role) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> head =
      MemoryBuffer::getFileSlice(path, kMaxLineBytes * 16, 0);
  return head ? describeOther(path, (*head)->getBuffer(), role) : std::nullopt;
}

/// Whether the path, or what was put behind a folder, begins as a shell has it.
static bool isHome(StringRef path) {
  return path.starts_with("~/") || path.contains("/~/");
}
static constexpr StringLiteral kHomeHint =
    "; ~ is a home for shells alone: write that folder's path";

const MemoryBuffer *reprise::frontend::openText(StringRef path, Syntax syntax,
                                                Origin origin,
                                                Diagnostics &diagnostics,
                                                StringRef hint) {
  FileRole role =
      syntax == Syntax::YAML ? FileRole::Description : FileRole::Config;
  auto refuse = [&](const Twine &reason) {
    diagnostics.error(origin, "cannot read '" + path + "': " + reason);
    return nullptr;
  };
  if (path != "-") {
    sys::fs::file_status status;
    if (std::error_code error = sys::fs::status(path, status))
      return refuse(error.message() +
                    (isHome(path) ? StringRef(kHomeHint) : hint));
    if (sys::fs::is_directory(status))
      return refuse(describeFolder(path, role));
    if (status.type() == sys::fs::file_type::character_file ||
        status.type() == sys::fs::file_type::block_file)
      return refuse("it is a device");
    if (status.getSize() > kMaxFileBytes)
      return refuse(
          describeLarge(path, role)
              .value_or(("it has " + Twine(status.getSize()) +
                         " bytes, more than the " + Twine(kMaxFileBytes) +
                         " that a description may have")
                            .str()));
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> file =
      MemoryBuffer::getFileOrSTDIN(path);
  if (!file)
    return refuse(file.getError().message());
  if ((*file)->getBufferSize() > kMaxFileBytes)
    return refuse("it has more than " + Twine(kMaxFileBytes) + " bytes");

  if (std::optional<std::string> other =
          describeOther(path, (*file)->getBuffer(), role))
    return refuse(*other);

  SourceMgr &sources = diagnostics.getSources();
  unsigned id = sources.AddNewSourceBuffer(std::move(*file), SMLoc());
  const MemoryBuffer *buffer = sources.getMemoryBuffer(id);
  StringRef text = buffer->getBuffer();
  bool failedBefore = diagnostics.hasFailed();
  if (text.trim().empty())
    diagnostics.error({SMLoc::getFromPointer(text.begin())},
                      "the file is empty");
  else
    checkText(text, syntax, diagnostics);
  return diagnostics.hasFailed() && !failedBefore ? nullptr : buffer;
}
