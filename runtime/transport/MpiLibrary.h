//===- MpiLibrary.h - An MPI library, opened at run time --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Open MPI and MPICH have the same functions and other types. What is used here
// fits both: a handle (a pointer there, an int here) is the low bytes of a
// word, which calls pass in a register or a place of eight bytes; what a call
// writes is the beginning of a word of zeros; statuses are ignored.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_MPILIBRARY_H
#define REPRISE_RUNTIME_TRANSPORT_MPILIBRARY_H

#include "Launcher.h"

namespace reprise::runtime {

/// A handle of MPI: a communicator, a datatype, a request.
using MpiWord = uint64_t;

/// What is said of a message that is there. Libraries have 20 and 24 bytes.
struct MpiStatus {
  alignas(16) char bytes[64];
};

/// Name, symbol and parameters of each function.
#define REPRISE_MPI(X)                                                         \
  X(getVersion, MPI_Get_library_version, (char *text, int *length))            \
  X(init, MPI_Init_thread, (int *argc, char ***argv, int needed, int *got))    \
  X(rank, MPI_Comm_rank, (MpiWord group, int *rank))                           \
  X(size, MPI_Comm_size, (MpiWord group, int *size))                           \
  X(setErrorHandler, MPI_Comm_set_errhandler, (MpiWord group, MpiWord what))   \
  X(send, MPI_Isend,                                                           \
    (const void *bytes, int count, MpiWord type, int to, int tag,              \
     MpiWord group, MpiWord *request))                                         \
  X(receive, MPI_Irecv,                                                        \
    (void *bytes, int count, MpiWord type, int from, int tag, MpiWord group,   \
     MpiWord *request))                                                        \
  X(test, MPI_Test, (MpiWord * request, int *isDone, MpiStatus *status))       \
  X(getCount, MPI_Get_count,                                                   \
    (const MpiStatus *status, MpiWord type, int *count))                       \
  X(finalize, MPI_Finalize, ())

/// A library of this machine, found by the linker's rules. It stays open to the
/// end.
struct MpiLibrary {
#define REPRISE_DECLARE(member, symbol, parameters)                            \
  int(*member) parameters = nullptr;
  REPRISE_MPI(REPRISE_DECLARE)
#undef REPRISE_DECLARE

  char version[64] = ""; ///< "Open MPI 4.1.4".
  MpiWord world = 0, byte = 0, errorsReturn = 0;

  /// Opens one of a family. Says what is missing and where it was looked for.
  bool open(const Launch &launch, Error &error);
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_MPILIBRARY_H
