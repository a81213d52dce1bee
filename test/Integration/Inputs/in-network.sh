#!/bin/sh
# in-network.sh COMMAND...: runs it where the loopback interface has 10.9.8.7, too.
ip link set lo up && ip address add 10.9.8.7/32 dev lo && exec "$@"
