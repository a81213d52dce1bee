//===- Rendezvous.cpp - How ranks without MPI meet ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rendezvous.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace reprise::runtime;

/// How long a connection, or the first word on it, may take; what rank 0
/// answers comes at once.
static constexpr int kAnswerMilliseconds = 2000;
/// When a rank that still waits says for what. Others may start much later.
static constexpr double kQuietSeconds = 5;
/// Between two looks for rank 0, which may not have started.
static constexpr long kPauseNanoseconds = 100'000'000;

/// The first words of the others.
namespace {
struct Hello {
  uint64_t run;
  int32_t rank, size;
  RankPlace place; ///< The address is what rank 0 sees.
};

/// A socket that is closed with it.
struct Socket {
  explicit Socket(int file) : file(file) {}
  Socket(const Socket &) = delete;
  Socket &operator=(const Socket &) = delete;
  ~Socket() {
    if (file >= 0)
      close(file);
  }
  const int file;
};
} // namespace

namespace {
/// Of a rank that waits.
class Waiting {
public:
  Waiting(const Meeting &meeting, const Board &board)
      : meeting(meeting), board(board) {}

  /// Says once what is waited for, if that is long; `why` nobody comes may be
  /// null.
  void tell(int rank, const char *why) {
    if (isSaid || !meeting.tells || now() - begin < kQuietSeconds)
      return;
    isSaid = true;
    fprintf(stderr,
            "waiting for rank %d at ports %d to %d of %s%s%s; gives up after "
            "%" PRId64 " s\n",
            rank, meeting.port, meeting.port + Meeting::kPorts - 1,
            meeting.host, why ? ": " : "", why ? why : "",
            board.settings->operationSeconds);
    fflush(stderr);
  }

private:
  const Meeting &meeting;
  const Board &board;
  const double begin = now();
  bool isSaid = false;
};
} // namespace

/// What rank 0 answers: nothing that comes back by itself.
static uint64_t answerTo(uint64_t run, int32_t rank) {
  return (run ^ 0x9e3779b97f4a7c15) * 0x100000001b3 + uint64_t(rank);
}

//===----------------------------------------------------------------------===//
// What launchers say
//===----------------------------------------------------------------------===//

/// FNV-1a, of a text and the zero behind it.
static void mix(uint64_t &hash, const char *text) {
  for (const char *at = text ? text : "";; ++at) {
    hash = (hash ^ uint8_t(*at)) * 0x100000001b3;
    if (!*at)
      return;
  }
}

void reprise::runtime::firstNode(const char *list, char *name, size_t size) {
  size_t there = 0;
  bool isInRange = false, isPast = false; // Within [ ], behind its first.
  for (; *list && (isInRange || *list != ',') && there + 1 < size; ++list) {
    if (*list == '[' || *list == ']') {
      isInRange = *list == '[';
      isPast = false;
    } else if (isInRange && (*list == '-' || *list == ',')) {
      isPast = true;
    } else if (!isPast) {
      name[there++] = *list;
    }
  }
  name[there] = '\0';
}

bool reprise::runtime::findMeeting(const Launch &launch, Meeting &meeting,
                                   Error &error) {
  const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
  const char *nodes = getenv("SLURM_STEP_NODELIST");
  const bool isSlurm = !strcmp(launch.name, "srun");
  meeting.run = 0xcbf29ce484222325;
  meeting.tells = launch.localRank == 0;
  for (const char *name :
       {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID"})
    mix(meeting.run, getenv(name));
  if (host && strchr(host, ':'))
    return error.set("needs an IPv4 address, or the name of a host, as "
                     "MASTER_ADDR, but got '%s'",
                     host);
  if (host && *host)
    snprintf(meeting.host, sizeof(meeting.host), "%s", host);
  else if (isSlurm && nodes && *nodes)
    firstNode(nodes, meeting.host, sizeof(meeting.host));
  else
    return error.set("%s has started %" PRId64 " ranks (%s), but does not say "
                     "where they meet: needs MASTER_ADDR and MASTER_PORT",
                     launch.name, launch.size, launch.variable);
  // Below the ports that systems give to whoever asks for any.
  constexpr int kFirst = 20000, kCount = 12000;
  meeting.port = kFirst + int(meeting.run % kCount);
  if (!port)
    return isSlurm || error.set("needs MASTER_PORT beside MASTER_ADDR");
  char *end = nullptr;
  long number = strtol(port, &end, 10);
  if (end == port || *end || number < 1 || number + Meeting::kPorts > 65535)
    return error.set("needs a port from 1 to %d as MASTER_PORT, but got '%s'",
                     65535 - Meeting::kPorts, port);
  meeting.port = int(number) + 1;
  return true;
}

//===----------------------------------------------------------------------===//
// Sockets
//===----------------------------------------------------------------------===//

static int openSocket() {
  return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool listenAt(int file, uint32_t address, uint16_t port) {
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = port;
  name.sin_addr.s_addr = address;
  int one = 1;
  setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  return bind(file, reinterpret_cast<sockaddr *>(&name), sizeof(name)) == 0 &&
         listen(file, SOMAXCONN) == 0;
}

int reprise::runtime::listenForRanks(bool isLocal, RankPlace &own,
                                     Error &error) {
  sockaddr_in name = {};
  socklen_t size = sizeof(name);
  own = {htonl(isLocal ? INADDR_LOOPBACK : INADDR_ANY), 0, 0};
  int file = openSocket();
  if (file >= 0 && listenAt(file, own.address, 0) &&
      getsockname(file, reinterpret_cast<sockaddr *>(&name), &size) == 0) {
    own.port = name.sin_port;
    return file;
  }
  error.set("cannot listen for other ranks: %s", strerror(errno));
  if (file >= 0)
    close(file);
  return -1;
}

/// Waits until a socket is ready; false if it is not in time.
static bool waitFor(int file, short events, int milliseconds) {
  pollfd ready = {file, events, 0};
  return poll(&ready, 1, milliseconds) == 1;
}

/// All bytes, of which none may come later than `milliseconds` behind another.
static bool receiveAll(int file, void *bytes, size_t size, int milliseconds) {
  for (size_t there = 0; there < size;) {
    ssize_t count =
        recv(file, static_cast<char *>(bytes) + there, size - there, 0);
    if (count > 0)
      there += size_t(count);
    else if (count == 0 || (errno != EAGAIN && errno != EINTR) ||
             !waitFor(file, POLLIN, milliseconds))
      return false;
  }
  return true;
}

static bool sendAll(int file, const void *bytes, size_t size) {
  for (size_t there = 0; there < size;) {
    ssize_t count = send(file, static_cast<const char *>(bytes) + there,
                         size - there, MSG_NOSIGNAL);
    if (count >= 0)
      there += size_t(count);
    else if ((errno != EAGAIN && errno != EINTR) ||
             !waitFor(file, POLLOUT, kAnswerMilliseconds))
      return false;
  }
  return true;
}

static bool connectTo(int file, uint32_t address, uint16_t port) {
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = port;
  name.sin_addr.s_addr = address;
  int code = 0;
  socklen_t size = sizeof(code);
  if (connect(file, reinterpret_cast<sockaddr *>(&name), sizeof(name)) == 0)
    return true;
  return errno == EINPROGRESS && waitFor(file, POLLOUT, kAnswerMilliseconds) &&
         getsockopt(file, SOL_SOCKET, SO_ERROR, &code, &size) == 0 && code == 0;
}

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

static int listenAtMeeting(const Meeting &meeting, bool isLocal, Error &error) {
  const uint32_t address = htonl(isLocal ? INADDR_LOOPBACK : INADDR_ANY);
  for (int i = 0; i < Meeting::kPorts; ++i) {
    int file = openSocket();
    if (file >= 0 && listenAt(file, address, htons(uint16_t(meeting.port + i))))
      return file;
    if (file >= 0)
      close(file);
  }
  error.set("cannot listen at a port from %d to %d, where the other ranks look "
            "for rank 0: %s",
            meeting.port, meeting.port + Meeting::kPorts - 1, strerror(errno));
  return -1;
}

namespace {
/// Somebody who has called, perhaps a rank.
struct Caller {
  int file;
  double since;
  size_t there; ///< Bytes of `hello`.
  Hello hello;
};

/// Rank 0 while ranks come. All are heard at once: who says nothing, or is none
/// of the run, holds up nobody.
class Host {
public:
  Host(const Meeting &meeting, Board &board, Places &places, int listener)
      : meeting(meeting), board(board), places(places), listener(listener) {}
  Host(const Host &) = delete;
  Host &operator=(const Host &) = delete;
  ~Host();

  bool gather(Error &error);

private:
  void accept();
  void hear();
  void welcome(Caller &caller);
  int countMissing();

  const Meeting &meeting;
  Board &board;
  Places &places;
  const int listener;
  List<Caller> callers;
  List<int> ranks; ///< The sockets of those that have come; -1: none.
};
} // namespace

Host::~Host() {
  for (const Caller &each : callers)
    if (each.file >= 0)
      close(each.file);
  for (int file : ranks)
    if (file >= 0)
      close(file);
}

void Host::accept() {
  for (int file; (file = accept4(listener, nullptr, nullptr,
                                 SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    Caller caller = {};
    caller.file = file;
    caller.since = now();
    if (!callers.push(caller))
      close(file);
  }
}

/// Takes what callers say; forgets those who are none of the run, or late.
void Host::hear() {
  for (Caller &each : callers) {
    ssize_t count =
        recv(each.file, reinterpret_cast<char *>(&each.hello) + each.there,
             sizeof(Hello) - each.there, 0);
    const bool isOpen =
        count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
    if (count > 0)
      each.there += size_t(count);
    if (each.there == sizeof(Hello)) {
      welcome(each);
    } else if (!isOpen || now() - each.since > 1e-3 * kAnswerMilliseconds) {
      close(each.file);
      each.file = -1;
    }
  }
  Caller *end =
      std::remove_if(callers.begin(), callers.end(),
                     [](const Caller &each) { return each.file < 0; });
  callers.resize(size_t(end - callers.begin()));
}

/// A rank that has come before, and has lost patience, takes its place again.
void Host::welcome(Caller &caller) {
  const Hello &hello = caller.hello;
  const int file = caller.file;
  caller.file = -1;
  sockaddr_in name;
  socklen_t size = sizeof(name);
  const uint64_t answer = answerTo(meeting.run, hello.rank);
  if (hello.run != meeting.run || hello.size != board.numRanks ||
      hello.rank <= 0 || hello.rank >= board.numRanks ||
      getpeername(file, reinterpret_cast<sockaddr *>(&name), &size) != 0 ||
      !sendAll(file, &answer, sizeof(answer))) {
    close(file);
    return;
  }
  int &own = ranks[size_t(hello.rank)];
  if (own >= 0)
    close(own);
  own = file;
  // Of this machine: the others know it by the address of rank 0.
  const bool isHere = (ntohl(name.sin_addr.s_addr) >> 24) == 127;
  places.ranks[size_t(hello.rank)] = {isHere ? 0 : name.sin_addr.s_addr,
                                      hello.place.port, 0};
}

/// The ranks that have not come, or have left.
int Host::countMissing() {
  int missing = 0;
  for (int rank = 1; rank < board.numRanks; ++rank) {
    int &file = ranks[size_t(rank)];
    char byte;
    if (file >= 0 && recv(file, &byte, 1, MSG_PEEK) == 0) {
      close(file);
      file = -1;
    }
    missing += file < 0;
  }
  return missing;
}

static bool tellPlaces(const Places &places, const List<int> &files,
                       Error &error) {
  const size_t bytes = places.ranks.size() * sizeof(RankPlace);
  for (size_t rank = 1; rank < files.size(); ++rank)
    if (!sendAll(files[rank], places.secret, sizeof(places.secret)) ||
        !sendAll(files[rank], places.ranks.begin(), bytes))
      return error.set("rank %zu has left before all ranks have met", rank);
  return true;
}

bool Host::gather(Error &error) {
  for (int i = 0; i < board.numRanks; ++i)
    if (!ranks.push(-1))
      return error.set("no memory left for the other ranks");
  double last = now();
  Waiting waiting(meeting, board);
  for (int missing = board.numRanks - 1; missing > 0;) {
    if (board.isAborted())
      return error.set("another rank has ended the run");
    const int rank =
        int(std::find(ranks.begin() + 1, ranks.end(), -1) - ranks.begin());
    waiting.tell(rank, nullptr);
    if (now() - last >= double(board.settings->operationSeconds))
      return error.set("has waited %" PRId64 " s for rank %d to come to port "
                       "%d and those behind it on %s",
                       board.settings->operationSeconds, rank, meeting.port,
                       meeting.host);
    // Those who have called say more within milliseconds.
    waitFor(listener, POLLIN, callers.empty() ? 100 : 1);
    accept();
    hear();
    const int before = missing;
    missing = countMissing();
    if (missing < before)
      last = now();
  }
  return tellPlaces(places, ranks, error);
}

static bool host(const Meeting &meeting, bool isLocal, Board &board,
                 RankPlace own, Places &places, Error &error) {
  Socket listener(listenAtMeeting(meeting, isLocal, error));
  if (listener.file < 0)
    return false;
  if (getrandom(places.secret, sizeof(places.secret), 0) !=
      ssize_t(sizeof(places.secret)))
    return error.set("cannot make a secret: %s", strerror(errno));
  places.ranks[0] = {0, own.port, 0};
  const bool isGood = Host(meeting, board, places, listener.file).gather(error);
  for (RankPlace &place : places.ranks)
    if (place.address == 0)
      place.address = htonl(INADDR_LOOPBACK);
  return isGood;
}

//===----------------------------------------------------------------------===//
// The other ranks
//===----------------------------------------------------------------------===//

/// The addresses of a name, at most `most`; how many there are. If there are
/// none, `why` says why.
static int resolve(const char *host, uint32_t *addresses, int most,
                   const char *&why) {
  addrinfo hints = {}, *first = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  int count = 0, code = getaddrinfo(host, nullptr, &hints, &first);
  why = code ? gai_strerror(code) : nullptr;
  if (code)
    return 0;
  for (addrinfo *each = first; each && count < most; each = each->ai_next)
    addresses[count++] =
        reinterpret_cast<const sockaddr_in *>(each->ai_addr)->sin_addr.s_addr;
  freeaddrinfo(first);
  return count;
}

/// Whether a socket is connected to itself, as may be where nobody listens.
static bool isOwn(int file) {
  sockaddr_in self = {}, peer = {};
  socklen_t size = sizeof(self), other = sizeof(peer);
  return getsockname(file, reinterpret_cast<sockaddr *>(&self), &size) != 0 ||
         getpeername(file, reinterpret_cast<sockaddr *>(&peer), &other) != 0 ||
         (self.sin_port == peer.sin_port &&
          self.sin_addr.s_addr == peer.sin_addr.s_addr);
}

/// Says hello at one place; whether rank 0 of this run is there.
static bool greet(int file, uint32_t address, int port, const Hello &hello) {
  uint64_t answer = 0;
  return connectTo(file, address, htons(uint16_t(port))) && !isOwn(file) &&
         sendAll(file, &hello, sizeof(hello)) &&
         receiveAll(file, &answer, sizeof(answer), kAnswerMilliseconds) &&
         answer == answerTo(hello.run, hello.rank);
}

/// What rank 0 says once all have come. It may take long; so that a rank which
/// is to end does, it is looked for in short turns. False if rank 0 has left,
/// or with an error.
static bool takePlaces(int file, uint32_t address, Board &board, Places &places,
                       Error &error) {
  const double begin = now();
  while (!waitFor(file, POLLIN, 100)) {
    if (board.isAborted())
      return error.set("another rank has ended the run");
    if (now() - begin >= double(board.settings->operationSeconds))
      return error.set("has waited %" PRId64 " s for all ranks to meet",
                       board.settings->operationSeconds);
  }
  const size_t bytes = places.ranks.size() * sizeof(RankPlace);
  if (!receiveAll(file, places.secret, sizeof(places.secret),
                  kAnswerMilliseconds) ||
      !receiveAll(file, places.ranks.begin(), bytes, kAnswerMilliseconds))
    return false;
  for (RankPlace &place : places.ranks)
    if (place.address == 0)
      place.address = address;
  return true;
}

/// Looks once for rank 0 at all places; `error` ends the search.
static bool lookAround(const Meeting &meeting, bool isLocal, Board &board,
                       const Hello &hello, Places &places, const char *&why,
                       Error &error) {
  uint32_t addresses[8] = {htonl(INADDR_LOOPBACK)};
  int count = isLocal ? 1 : resolve(meeting.host, addresses, 8, why);
  for (int i = 0; i < count * Meeting::kPorts && !error.text[0]; ++i) {
    Socket line(openSocket());
    uint32_t address = addresses[i / Meeting::kPorts];
    if (greet(line.file, address, meeting.port + i % Meeting::kPorts, hello) &&
        takePlaces(line.file, address, board, places, error))
      return true;
  }
  return false;
}

static bool visit(const Meeting &meeting, bool isLocal, Board &board, int rank,
                  RankPlace own, Places &places, Error &error) {
  const Hello hello = {meeting.run, rank, board.numRanks, own};
  const char *why = nullptr;
  error.text[0] = '\0';
  Waiting waiting(meeting, board);
  for (const double begin = now();
       now() - begin < double(board.settings->operationSeconds);) {
    if (lookAround(meeting, isLocal, board, hello, places, why, error))
      return true;
    if (error.text[0])
      return false;
    waiting.tell(0, why);
    const timespec pause = {0, kPauseNanoseconds};
    nanosleep(&pause, nullptr);
    if (board.isAborted())
      return error.set("another rank has ended the run");
  }
  if (why)
    return error.set("cannot find an IPv4 address of the host of rank 0, '%s': "
                     "%s",
                     meeting.host, why);
  return error.set("has looked %" PRId64 " s for rank 0 at ports %d to %d of "
                   "%s",
                   board.settings->operationSeconds, meeting.port,
                   meeting.port + Meeting::kPorts - 1, meeting.host);
}

bool reprise::runtime::meet(const Meeting &meeting, bool isLocal, Board &board,
                            int rank, RankPlace own, Places &places,
                            Error &error) {
  for (int i = 0; i < board.numRanks; ++i)
    if (!places.ranks.push({0, 0, 0}))
      return error.set("no memory left for the places of the other ranks");
  return rank == 0 ? host(meeting, isLocal, board, own, places, error)
                   : visit(meeting, isLocal, board, rank, own, places, error);
}
