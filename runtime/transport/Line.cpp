//===- Line.cpp - What watchers tell each other ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Line.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace reprise::runtime;

/// What a message says.
enum Kind : uint16_t { Hello = 1, Beat, Reason, Signal, Bye };

/// How long a connection to one address may take.
static constexpr int kConnectMilliseconds = 2000;

/// The addresses of this machine that others may reach.
static void findAddresses(MeetingPlace &place) {
  ifaddrs *first = nullptr;
  if (getifaddrs(&first) != 0)
    return;
  for (ifaddrs *each = first; each; each = each->ifa_next) {
    if (!each->ifa_addr || each->ifa_addr->sa_family != AF_INET ||
        (each->ifa_flags & IFF_LOOPBACK) || !(each->ifa_flags & IFF_UP) ||
        place.numAddresses == MeetingPlace::kMostAddresses)
      continue;
    sockaddr_in address;
    memcpy(&address, each->ifa_addr, sizeof(address));
    place.addresses[place.numAddresses++] = address.sin_addr.s_addr;
  }
  freeifaddrs(first);
}

static sockaddr_in addressOf(uint32_t address, uint16_t port) {
  sockaddr_in all = {};
  all.sin_family = AF_INET;
  all.sin_port = port;
  all.sin_addr.s_addr = address;
  return all;
}

bool Line::listen(bool isLocal, Error &error) {
  MeetingPlace &place = board.place;
  const uint32_t loopback = htonl(INADDR_LOOPBACK);
  sockaddr_in name = addressOf(isLocal ? loopback : htonl(INADDR_ANY), 0);
  socklen_t size = sizeof(name);
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  auto *address = reinterpret_cast<sockaddr *>(&name);
  if (listener < 0 || bind(listener, address, size) != 0 ||
      ::listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, address, &size) != 0 ||
      getrandom(place.secret, sizeof(place.secret), 0) !=
          ssize_t(sizeof(place.secret)))
    return error.set("cannot listen for the watchers of the other ranks: %s",
                     strerror(errno));
  place.port = name.sin_port;
  if (!isLocal)
    findAddresses(place);
  if (place.numAddresses == 0)
    place.addresses[place.numAddresses++] = loopback;
  return true;
}

bool Line::push(int socket, int rank, Error &error) {
  int one = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  Connection connection = {};
  connection.socket = socket;
  connection.rank = rank;
  if (connections.push(connection))
    return true;
  close(socket);
  return error.set("no memory left for a connection of watchers");
}

bool Line::connectTo(uint32_t address, Error &error) {
  int line = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in name = addressOf(address, board.place.port);
  int code = 0;
  socklen_t size = sizeof(code);
  if (connect(line, reinterpret_cast<sockaddr *>(&name), sizeof(name)) != 0)
    code = errno;
  if (code == EINPROGRESS) {
    pollfd ready = {line, POLLOUT, 0};
    if (poll(&ready, 1, kConnectMilliseconds) != 1)
      code = ETIMEDOUT;
    else
      getsockopt(line, SOL_SOCKET, SO_ERROR, &code, &size);
  }
  if (code == 0)
    return push(line, 0, error);
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &name.sin_addr, text, sizeof(text));
  close(line);
  return error.set("cannot reach the watcher of rank 0 at %s, port %d: %s",
                   text, int(ntohs(name.sin_port)), strerror(code));
}

bool Line::call(Error &error) {
  hasCalled = true;
  for (int i = 0; i < board.place.numAddresses; ++i)
    if (connectTo(board.place.addresses[i], error)) {
      sendAll(Hello, board.place.secret, sizeof(board.place.secret));
      return true;
    }
  return false;
}

bool Line::appendTo(List<pollfd> &polls) const {
  if (listener >= 0 && !polls.push({listener, POLLIN, 0}))
    return false;
  for (const Connection &each : connections)
    if (each.socket >= 0 && !polls.push({each.socket, POLLIN, 0}))
      return false;
  return true;
}

void Line::acceptAll() {
  Error error; // Whoever finds no room here is not heard.
  for (int socket;
       listener >= 0 && (socket = accept4(listener, nullptr, nullptr,
                                          SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;)
    push(socket, -1, error);
  if (listener >= 0 && (errno == EMFILE || errno == ENFILE))
    board.abort(self, "no file descriptors left for the watchers of the other "
                      "ranks: see ulimit -n");
}

void Line::take() {
  acceptAll();
  for (Connection &each : connections)
    if (each.socket >= 0)
      takeFrom(each);
}

void Line::takeFrom(Connection &from) {
  auto *bytes = reinterpret_cast<char *>(&from.message);
  while (from.socket >= 0) {
    size_t whole = sizeof(Head);
    if (from.there >= whole) {
      if (from.message.head.size > kMostText) // No watcher says that.
        return lose(from);
      whole += from.message.head.size;
    }
    if (from.there >= sizeof(Head) && from.there == whole) {
      from.there = 0;
      handle(from);
      continue;
    }
    ssize_t count =
        recv(from.socket, bytes + from.there, whole - from.there, MSG_DONTWAIT);
    if (count > 0)
      from.there += size_t(count);
    else if (count < 0 && errno == EINTR)
      continue;
    else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return;
    else
      return lose(from);
  }
}

void Line::handle(Connection &from) {
  const Head &head = from.message.head;
  if (from.rank < 0) {
    bool isOurs = head.kind == Hello && head.rank > 0 &&
                  head.rank < board.numRanks &&
                  head.size == sizeof(board.place.secret) &&
                  !memcmp(from.message.text, board.place.secret, head.size);
    if (!isOurs)
      return lose(from);
    from.rank = head.rank;
    if (hasToldReason)
      sendReason(from);
    if (hasSaidBye)
      send(from, Bye, "", 0);
  }
  RankState &state = board.ranks()[from.rank];
  state.beats.fetch_add(1, std::memory_order_relaxed);
  if (head.kind == Beat || head.kind == Bye)
    state.step.store(head.step, std::memory_order_relaxed);
  if (head.kind == Bye)
    from.isBye = true;
  if (head.kind == Signal)
    signal = int(head.step);
  if (head.kind == Reason && head.rank >= 0 && head.rank < board.numRanks) {
    hasHeardReason = true;
    from.message.text[std::min<size_t>(head.size, kMostText - 1)] = '\0';
    board.abort(head.rank, head.step, from.message.text);
  }
}

/// The other end is closed, or not one of ours.
void Line::lose(Connection &from) {
  close(from.socket);
  from.socket = -1;
  if (from.rank < 0 || from.isBye || board.isAborted())
    return;
  hasLostFirst = from.rank == 0;
  // What it last said of its step may be a beat old, but ranks are never more
  // than a step apart.
  const RankState *ranks = board.ranks();
  int64_t step =
      std::max(ranks[from.rank].step.load(), ranks[self].step.load());
  board.abort(from.rank, step, "has ended without a word");
}

/// A message is small and its reader quick: where it finds no room, the other
/// end is taken for dead soon.
void Line::send(Connection &to, uint16_t kind, const char *text, size_t size,
                int64_t number) {
  const RankState &state = board.ranks()[self];
  Message message;
  message.head = {kind, uint16_t(size), self, state.step.load()};
  if (kind == Reason) {
    message.head.rank = board.reasonRank;
    message.head.step = board.reasonStep;
  }
  if (kind == Signal)
    message.head.step = number;
  memcpy(message.text, text, size);
  if (to.socket >= 0)
    ::send(to.socket, &message, sizeof(Head) + size,
           MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Line::sendAll(uint16_t kind, const char *text, size_t size) {
  for (Connection &each : connections)
    if (each.rank >= 0)
      send(each, kind, text, size);
}

void Line::sendReason(Connection &to) {
  send(to, Reason, board.reason, strlen(board.reason));
}

void Line::beat() { sendAll(Beat); }

void Line::passOn(int number) {
  for (Connection &each : connections)
    send(each, Signal, "", 0, number);
}

int Line::takeSignal() {
  int last = signal;
  signal = 0;
  return last;
}

void Line::sayBye() {
  hasSaidBye = true;
  sendAll(Bye);
}

void Line::tellReason() {
  if (hasToldReason || !board.hasWholeReason())
    return;
  hasToldReason = true;
  for (Connection &each : connections)
    if (each.rank >= 0)
      sendReason(each);
}

bool Line::hears(int rank) const {
  return std::any_of(
      connections.begin(), connections.end(), [&](const Connection &each) {
        return each.rank == rank && each.socket >= 0 && !each.isBye;
      });
}

bool Line::isOver() const {
  auto isOpen = [](const Connection &each) { return each.socket >= 0; };
  auto hasEnded = [](const Connection &each) {
    return each.rank > 0 && each.isBye;
  };
  auto hasCome = [](const Connection &each) { return each.rank > 0; };
  auto areAll = [&](auto is) {
    return std::count_if(connections.begin(), connections.end(), is) ==
           board.numRanks - 1;
  };
  if (self != 0)
    return std::none_of(connections.begin(), connections.end(), isOpen);
  if (!board.isAborted())
    return areAll(hasEnded);
  // Who knows the place may come late, and hears the reason.
  return !board.hasPlace.load() || areAll(hasCome);
}

bool Line::isFirstGone() const {
  return self != 0 &&
         (hasLostFirst || (board.reasonRank == 0 && !hasHeardReason));
}

bool Line::isSpeaker() const {
  return self == 0 || connections.empty() || (self == 1 && isFirstGone());
}
