#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# mkswap, swapon: a stop is refused, by signal and for good reason; swapoff: it is not. A server that dies under a
# swapped-on device leaves a keeper that waits for swapoff and then takes everything down.
. "$(dirname "$0")/lib.sh"

need_device
need_tools mkswap swapon swapoff

swap_it() {
	mkswap "$node" >/dev/null 2>&1 || fail "mkswap $node"
	swapon "$@" "$node" || fail "swapon $node"
	is_swapped_on "$node" || fail "$node is not in /proc/swaps"
}

start "$first_name" --size 256M
swap_it --discard
kill -TERM "$keeper"
refused() { grep -q "not stopping: $node is swapped on" "$work/log.$name"; }
wait_for 5 refused || fail "the log does not say that the stop was refused"
is_gone "$keeper" && fail "the keeper left a swapped-on device"
is_gone "$server" && fail "the server left a swapped-on device"
is_swapped_on "$node" || fail "$node is no longer swapped on"
swapoff "$node" || fail "swapoff $node"
stop

start "$first_name" --size 256M --no-standby
swap_it -p 5
kill -KILL "$server"
told() { grep -q "$node is swapped on and what it held is lost" "$work/log.$name"; }
wait_for 5 told || fail "the log does not say that swap is lost"
sleep 2
is_gone "$keeper" && fail "the keeper left a swapped-on device"
[ -e "/run/folioswap/$name" ] || fail "the directory went before swapoff"
swapoff "$node" || fail "swapoff of the dead device"
end_of "$keeper" 10
[ "$rc" = 1 ] || fail "the keeper ended with $rc, not 1"
check_gone "$name" "$server"

# The keeper killed, too: the next start of that name refuses as long as the remains are swapped on.
start "$first_name" --size 256M
swap_it
kill -KILL "$keeper"
wait_for 5 is_gone "$server" || fail "the server lives on without its keeper"
"$daemon" --name "$first_name" --size 64M --allow-unsafe 2>"$work/err"
rc=$?
[ "$rc" = 4 ] || fail "a start over swapped-on remains: exit code $rc, not 4"
grep -q "swapoff $node" "$work/err" || fail "it said: $(cat "$work/err")"
swapoff "$node" || fail "swapoff of the dead device"
start "$first_name" --size 64M
stop
