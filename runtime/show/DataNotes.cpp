//===- DataNotes.cpp - What to know of the data ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DataNotes.h"

#include "runtime/base/Text.h"
#include "runtime/checkpoint/HubConfig.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

using namespace reprise::runtime;

/// Whether a file's first lines end in CR LF.
static bool hasCarriageReturns(const PlainFile &file) {
  char begin[4096];
  size_t size = size_t(std::min<int64_t>(file.size, sizeof(begin)));
  Error ignored;
  return size > 0 && file.read(0, int64_t(size), begin, ignored) &&
         memmem(begin, size, "\r\n", 2);
}

/// What frames the texts in files that are called so; null if nothing does.
static const char *findMarkup(const char *path) {
  struct Markup {
    const char *ending, *what;
  };
  constexpr Markup kMarkups[] = {{".jsonl", "braces, names and escapes"},
                                 {".json", "braces, names and escapes"},
                                 {".csv", "quotes and separators"},
                                 {".tsv", "separators"},
                                 {".html", "tags"},
                                 {".htm", "tags"},
                                 {".xml", "tags"}};
  for (const Markup &markup : kMarkups)
    if (endsIn(path, markup.ending))
      return markup.what;
  return nullptr;
}

/// Whether there is a tokenizer beside the weights, of which there is a note.
static bool isTokenizerBeside(const char *weights) {
  if (!weights)
    return false;
  Path path("%s/tokenizer.json", folderOfWeights(weights).chars);
  return access(path, R_OK) == 0;
}

void reprise::runtime::noteData(const TokenStream &data,
                                const ShowOptions &options, int64_t vocabSize,
                                Log &log) {
  constexpr int64_t kBytes = 256;
  Error note;
  // Of the files from `first` on the first one that `sets` a note; one is
  // enough.
  auto noteOne = [&](int64_t first, auto sets) {
    for (int64_t i = first; i < data.numFiles(); ++i)
      if (sets(i))
        return log.note(note.text);
  };
  noteOne(0, [&](int64_t i) {
    return data.isBare(i) && looksLikeText(data.file(i)) &&
           !note.set("'%s' begins as text does, and its bytes are read as "
                     "numbers of tokens; if it is text, give it a name in .txt",
                     data.file(i).path);
  });
  int64_t firstText = 0;
  while (firstText < data.numFiles() && !data.isText(firstText))
    ++firstText;
  // Bytes and some special tokens are a vocabulary of their own.
  if (firstText < data.numFiles() && !options.tokenizer &&
      vocabSize > 2 * kBytes && !isTokenizerBeside(options.initFrom)) {
    note.set("the bytes of the text are its tokens, %" PRId64 " of the "
             "vocabulary's %s; --tokenizer DIR|FILE makes others",
             kBytes, grouped(vocabSize).chars);
    log.note(note.text);
  }
  noteOne(firstText, [&](int64_t i) {
    const char *markup = findMarkup(data.file(i).path);
    return markup && data.isText(i) &&
           !note.set("'%s' is trained on as it is, with its %s; write the "
                     "texts alone to a file if they are meant",
                     data.file(i).path, markup);
  });
  noteOne(firstText, [&](int64_t i) {
    return data.isText(i) && hasCarriageReturns(data.file(i)) &&
           !note.set("'%s' has lines that end in CR LF, and both are trained "
                     "on; dos2unix makes them LF",
                     data.file(i).path);
  });
}
