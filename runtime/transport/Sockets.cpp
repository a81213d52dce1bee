//===- Sockets.cpp - Bytes between ranks over TCP -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two ranks have one connection for all exchanges between them, and one for
// each lane in each direction: so the system holds up a lane that nobody takes
// from, and nothing else. A connection is made when it is needed first: of
// exchanges by the higher rank, of a lane by its sender. Who makes it begins
// with the secret of the run, its rank and the number of the connection. Each
// parcel comes behind eight bytes with its size.
//
//===----------------------------------------------------------------------===//

#include "Sockets.h"

#include "LaunchedRank.h"
#include "Launcher.h"
#include "Rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace reprise::runtime;

/// The number of the connection for exchanges; those of lanes follow.
static constexpr int kExchanges = 0, kFirstLane = 1;

/// A rank that waits looks so often whether the run has ended.
static constexpr int kLookMilliseconds = 50;

namespace {
/// The first bytes of a connection.
struct Greeting {
  char secret[sizeof(Places::secret)];
  int32_t rank, number;
};

class Sockets final : public LaunchedRank {
public:
  Sockets(Board &board, int rank, const Places &places, int listener,
          const char *engine)
      : LaunchedRank(board, rank, engine), places(places), listener(listener) {}

  void progress() override;
  bool finishSends(Error &error) override;

private:
  bool move(const char *what, Patience patience, const Parcel *sends,
            int numSends, const Parcel *receives, int numReceives,
            Error &error) override;
  bool put(const char *what, const LaneParcel &parcel, Error &error) override;
  bool take(const char *what, const LaneParcel &parcel, Error &error) override;

  /// A socket, which may be no connection yet.
  struct Connection {
    int file, peer, number; ///< -1: closed; not known yet.
    bool isCaller;          ///< This end says who it is.
    bool isIncoming;        ///< Of a lane, to this rank.
    size_t greeted;         ///< Bytes of `greeting` that have gone, or come.
    Greeting greeting;
    /// In each direction, the last turn in which a parcel was not done: those
    /// behind it wait.
    int64_t turns[2];
  };
  /// A parcel on its way.
  struct Flow {
    int peer, number;
    bool isSend;
    int room; ///< Index of the room that it is sent from; -1: none.
    char *bytes;
    uint64_t size, there; ///< `there` counts `head`, too.
    uint64_t head;        ///< The size, as it goes or comes.
    bool isDone() const { return there == sizeof(head) + size; }
  };

  Connection *find(const Flow &flow);
  bool add(int file, const Connection &connection, Error &error);
  bool call(const Flow &flow, Error &error);
  bool greet(Connection &to, Error &error);
  void answer();
  bool lose(int peer, int code, Error &error) const;

  bool begin(const Parcel &parcel, int number, bool isSend, int room,
             List<Flow> &list, Error &error);
  bool transfer(Connection &connection, Flow &flow, bool &hasMoved,
                Error &error);
  bool advance(Flow &flow, bool &hasMoved, Error &error);
  bool look(List<Flow> &list, bool &hasMoved, Error &error);
  bool lookAtSends(bool &hasMoved, Error &error);
  double sleep(const List<Flow> &list);
  static int missing(const List<Flow> &list);
  static bool areDone(const List<Flow> &list);
  template <typename Done, typename Missing>
  bool wait(const char *what, Patience patience, List<Flow> &list, Done done,
            Missing missing, Error &error);

  const Places &places;
  const int listener;
  int64_t turn = 0; ///< Of looks at flows.
  List<Connection> connections;
  List<Flow> flows;   ///< Of an exchange, or of a parcel that is awaited.
  List<Flow> sending; ///< Of lanes.
  List<pollfd> polls;
};
} // namespace

//===----------------------------------------------------------------------===//
// Connections
//===----------------------------------------------------------------------===//

/// The connection that a flow takes, or null.
Sockets::Connection *Sockets::find(const Flow &flow) {
  auto *found = std::find_if(
      connections.begin(), connections.end(), [&](const Connection &each) {
        return each.peer == flow.peer && each.number == flow.number &&
               (flow.number == kExchanges || each.isIncoming != flow.isSend);
      });
  return found == connections.end() ? nullptr : found;
}

bool Sockets::add(int file, const Connection &connection, Error &error) {
  int one = 1;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  auto *closed =
      std::find_if(connections.begin(), connections.end(),
                   [](const Connection &each) { return each.file < 0; });
  if (closed != connections.end()) {
    *closed = connection;
    return true;
  }
  if (connections.push(connection))
    return true;
  close(file);
  return error.set("no memory left for a connection of ranks");
}

/// Begins a connection; whether the other end is there, sending will tell.
bool Sockets::call(const Flow &flow, Error &error) {
  const RankPlace &place = places.ranks[size_t(flow.peer)];
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = place.port;
  name.sin_addr.s_addr = place.address;
  int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0)
    return error.set("cannot make a socket: %s", strerror(errno));
  if (connect(file, reinterpret_cast<sockaddr *>(&name), sizeof(name)) != 0 &&
      errno != EINPROGRESS) {
    int code = errno;
    close(file);
    return lose(flow.peer, code, error);
  }
  Connection connection = {};
  connection.file = file;
  connection.peer = flow.peer;
  connection.number = flow.number;
  connection.isCaller = true;
  memcpy(connection.greeting.secret, places.secret, sizeof(places.secret));
  connection.greeting.rank = rank();
  connection.greeting.number = flow.number;
  return add(file, connection, error);
}

/// Says who has called; false if it cannot be said now, or with an error.
bool Sockets::greet(Connection &to, Error &error) {
  const auto *bytes = reinterpret_cast<const char *>(&to.greeting);
  while (to.isCaller && to.greeted < sizeof(Greeting)) {
    ssize_t count = ::send(to.file, bytes + to.greeted,
                           sizeof(Greeting) - to.greeted, MSG_NOSIGNAL);
    if (count >= 0)
      to.greeted += size_t(count);
    else if (errno == EAGAIN)
      return false;
    else if (errno != EINTR)
      return lose(to.peer, errno, error);
  }
  return true;
}

/// Takes who calls. Those who do not know the secret are none of the run.
void Sockets::answer() {
  Error error; // Whoever finds no room here is not heard.
  for (int file; (file = accept4(listener, nullptr, nullptr,
                                 SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    Connection connection = {};
    connection.file = file;
    connection.peer = -1;
    add(file, connection, error);
  }
  for (Connection &each : connections) {
    if (each.file < 0 || each.peer >= 0)
      continue;
    ssize_t count =
        recv(each.file, reinterpret_cast<char *>(&each.greeting) + each.greeted,
             sizeof(Greeting) - each.greeted, 0);
    if (count > 0)
      each.greeted += size_t(count);
    const Greeting &said = each.greeting;
    const bool isWhole = each.greeted == sizeof(Greeting);
    const bool isOurs =
        isWhole && !memcmp(said.secret, places.secret, sizeof(said.secret)) &&
        said.rank >= 0 && said.rank < size() && said.rank != rank();
    if (isOurs) {
      each.peer = said.rank;
      each.number = said.number;
      each.isIncoming = said.number != kExchanges;
    } else if (isWhole || count == 0 ||
               (count < 0 && errno != EAGAIN && errno != EINTR)) {
      close(each.file);
      each.file = -1;
    }
  }
}

/// If a rank is gone, its watcher says why; this end waits for that.
bool Sockets::lose(int peer, int code, Error &error) const {
  waitForReason();
  char name[128];
  board.nameRank(peer, name, sizeof(name));
  return error.set("has lost the connection to %s: %s", name,
                   code ? strerror(code) : "it has closed it");
}

//===----------------------------------------------------------------------===//
// Parcels
//===----------------------------------------------------------------------===//

/// What is empty is not sent.
bool Sockets::begin(const Parcel &parcel, int number, bool isSend, int room,
                    List<Flow> &list, Error &error) {
  if (parcel.size == 0)
    return true;
  Flow flow = {parcel.rank,  number,      isSend, room,
               parcel.bytes, parcel.size, 0,      isSend ? parcel.size : 0};
  return list.push(flow) ||
         error.set("no memory left for the parcels of an exchange");
}

/// Moves what can be moved now.
bool Sockets::transfer(Connection &connection, Flow &flow, bool &hasMoved,
                       Error &error) {
  while (!flow.isDone()) {
    const bool isHead = flow.there < sizeof(flow.head);
    char *bytes = isHead ? reinterpret_cast<char *>(&flow.head) + flow.there
                         : flow.bytes + (flow.there - sizeof(flow.head));
    const size_t rest =
        (isHead ? sizeof(flow.head) : sizeof(flow.head) + flow.size) -
        flow.there;
    ssize_t count = flow.isSend ? ::send(connection.file, bytes, rest,
                                         MSG_NOSIGNAL | (isHead ? MSG_MORE : 0))
                                : ::recv(connection.file, bytes, rest, 0);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && errno == EAGAIN)
      return true;
    if (count <= 0)
      return lose(flow.peer, count < 0 ? errno : 0, error);
    hasMoved = true;
    flow.there += size_t(count);
    if (flow.there != sizeof(flow.head) || flow.head == flow.size)
      continue;
    char peer[128];
    board.nameRank(flow.peer, peer, sizeof(peer));
    return error.set("needs a parcel of %" PRIu64 " bytes from %s, but got "
                     "%" PRIu64,
                     flow.size, peer, flow.head);
  }
  return true;
}

/// A parcel waits for those before it on its connection.
bool Sockets::advance(Flow &flow, bool &hasMoved, Error &error) {
  Connection *connection = find(flow);
  const bool isCaller =
      flow.number == kExchanges ? rank() > flow.peer : flow.isSend;
  if (!connection && isCaller) {
    if (!call(flow, error))
      return false;
    connection = find(flow);
  }
  if (!connection)
    return true;
  int64_t &last = connection->turns[flow.isSend];
  if (last == turn)
    return true;
  last = turn; // Also where the greeting waits.
  if (!greet(*connection, error))
    return !error.text[0];
  if (!transfer(*connection, flow, hasMoved, error))
    return false;
  if (flow.isDone())
    last = turn - 1;
  return true;
}

/// Looks at each parcel once.
bool Sockets::look(List<Flow> &list, bool &hasMoved, Error &error) {
  ++turn;
  for (Flow &flow : list)
    if (!flow.isDone() && !advance(flow, hasMoved, error))
      return false;
  return true;
}

/// The same of what is sent on lanes; forgets what has gone.
bool Sockets::lookAtSends(bool &hasMoved, Error &error) {
  if (!look(sending, hasMoved, error))
    return false;
  for (const Flow &flow : sending)
    if (flow.isDone())
      rooms[size_t(flow.room)].pending = 0;
  Flow *end = std::remove_if(sending.begin(), sending.end(),
                             [](const Flow &flow) { return flow.isDone(); });
  sending.resize(size_t(end - sending.begin()));
  return true;
}

/// An error shows where something is waited for.
void Sockets::progress() {
  Error ignored;
  bool hasMoved;
  if (!sending.empty())
    lookAtSends(hasMoved, ignored);
}

/// Sleeps until something can be moved, or somebody calls. Returns how long, at
/// most twice as long as it is to be: a run may have been stopped.
double Sockets::sleep(const List<Flow> &list) {
  polls.clear();
  polls.push({listener, POLLIN, 0});
  for (const Connection &each : connections)
    if (each.file >= 0 && each.peer < 0)
      polls.push({each.file, POLLIN, 0});
  const List<Flow> &others = sending;
  for (const List<Flow> *flows : {&list, &others})
    for (const Flow &flow : *flows)
      if (Connection *connection = flow.isDone() ? nullptr : find(flow)) {
        const bool isGreeted =
            !connection->isCaller || connection->greeted == sizeof(Greeting);
        polls.push({connection->file,
                    short(flow.isSend || !isGreeted ? POLLOUT : POLLIN), 0});
      }
  const double begin = now();
  poll(polls.begin(), polls.size(), kLookMilliseconds);
  return std::min(now() - begin, 2e-3 * kLookMilliseconds);
}

/// Moves the parcels of `list`, and those that are sent on lanes, until
/// `isDone()`; `missing` says whom that takes.
template <typename Done, typename Missing>
bool Sockets::wait(const char *what, Patience patience, List<Flow> &list,
                   Done isDone, Missing missing, Error &error) {
  error.text[0] = '\0';
  for (double quiet = 0;;) {
    bool hasMoved = false;
    answer();
    if (!look(list, hasMoved, error) || !lookAtSends(hasMoved, error))
      return false;
    if (isDone())
      return true;
    if (board.isAborted())
      return error.set("another rank has ended the run");
    quiet = hasMoved ? 0 : quiet + sleep(list);
    if (patience == Patience::Limited &&
        quiet >= double(board.settings->operationSeconds))
      return giveUp(what, missing(), quiet, error);
  }
}

/// Whom the first parcel of a list that is not done is with.
int Sockets::missing(const List<Flow> &list) {
  return std::find_if(list.begin(), list.end(),
                      [](const Flow &flow) { return !flow.isDone(); })
      ->peer;
}

bool Sockets::areDone(const List<Flow> &list) {
  return std::all_of(list.begin(), list.end(),
                     [](const Flow &flow) { return flow.isDone(); });
}

bool Sockets::move(const char *what, Patience patience, const Parcel *sends,
                   int numSends, const Parcel *receives, int numReceives,
                   Error &error) {
  flows.clear();
  for (int i = 0; i < numReceives; ++i)
    if (!begin(receives[i], kExchanges, /*isSend=*/false, -1, flows, error))
      return false;
  for (int i = 0; i < numSends; ++i)
    if (!begin(sends[i], kExchanges, /*isSend=*/true, -1, flows, error))
      return false;
  return wait(
      what, patience, flows, [&] { return areDone(flows); },
      [&] { return missing(flows); }, error);
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

bool Sockets::put(const char *what, const LaneParcel &parcel, Error &error) {
  if (parcel.size == 0)
    return true;
  if (!addRooms(parcel, error))
    return false;
  flows.clear();
  auto isFree = [&] { return findRoom(parcel, /*needsFree=*/true) >= 0; };
  if (!wait(
          what, Patience::Limited, flows, isFree, [&] { return parcel.rank; },
          error))
    return false;
  const int room = findRoom(parcel, /*needsFree=*/true);
  Room &free = rooms[size_t(room)];
  free.pending = 1;
  memcpy(free.bytes, parcel.bytes, parcel.size);
  bool hasMoved;
  return begin({parcel.rank, free.bytes, parcel.size}, kFirstLane + parcel.lane,
               /*isSend=*/true, room, sending, error) &&
         lookAtSends(hasMoved, error);
}

bool Sockets::take(const char *what, const LaneParcel &parcel, Error &error) {
  flows.clear();
  return begin({parcel.rank, parcel.bytes, parcel.size},
               kFirstLane + parcel.lane, /*isSend=*/false, -1, flows, error) &&
         wait(
             what, Patience::Limited, flows, [&] { return areDone(flows); },
             [&] { return parcel.rank; }, error);
}

bool Sockets::finishSends(Error &error) {
  flows.clear();
  return wait(
      "the end of the run", Patience::Endless, flows,
      [&] { return sending.empty(); }, [&] { return missing(sending); }, error);
}

//===----------------------------------------------------------------------===//
// A rank
//===----------------------------------------------------------------------===//

int reprise::runtime::runSocketRank(Board &board, int rank,
                                    const RankWork &work) {
  const Launch &launch = *static_cast<const Launch *>(work.engine);
  const bool isLocal = launch.localSize == launch.size;
  Meeting meeting;
  Places places;
  RankPlace own;
  Error error;
  int listener = -1, status = 1;
  char engine[64];
  snprintf(engine, sizeof(engine), "started by %s, over TCP", launch.name);
  bool isGood = findMeeting(launch, meeting, error) &&
                (listener = listenForRanks(isLocal, own, error)) >= 0 &&
                meet(meeting, isLocal, board, rank, own, places, error);
  if (isGood) {
    Sockets transport(board, rank, places, listener, engine);
    bool isTogether;
    isGood = runLaunchedBody(board, transport, work, status, isTogether, error);
  }
  if (!isGood)
    board.abort(rank, error.text);
  return isGood ? status : 1;
}
