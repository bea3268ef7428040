#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# kill -9 of a server that nobody replaces, of the keeper, of both, at rest and under I/O.
. "$(dirname "$0")/lib.sh"

need_device

write_forever() {
	dd if=/dev/urandom of="$node" bs=1M oflag=direct 2>/dev/null &
	writer=$!
	sleep 0.2
}

# With the server dead the keeper takes everything down and says so; I/O under way fails, it does not hang.
server_dies() {
	start "$first_name" --size 1G --no-standby
	[ "$1" = busy ] && write_forever
	kill -KILL "$server"
	end_of "$keeper" 10
	[ "$rc" = 1 ] || fail "the keeper ended with $rc, not 1"
	grep -q 'the server was killed by signal 9' "$work/log.$name" || fail "nothing in the log"
	[ "$1" = busy ] && { wait_for 5 is_gone "$writer" || fail "the writer hangs"; }
	check_gone "$name" "$server"
}

# With the keeper dead the server ends by itself and the loop device goes; the rest goes at the next start.
keeper_dies() {
	start "$first_name" --size 1G
	[ "$1" = busy ] && write_forever
	dead=$node
	standby=$(standby_of "$keeper") || fail "no standby"
	kill -KILL "$keeper"
	wait_for 5 is_gone "$server" || fail "the server lives on without its keeper"
	wait_for 5 is_gone "$standby" || fail "the standby lives on without its keeper"
	[ "$1" = busy ] && { wait_for 5 is_gone "$writer" || fail "the writer hangs"; }
	loop_is_gone() { [ -z "$(loops_of "$first_name")" ]; }
	wait_for 5 loop_is_gone || fail "$dead is left"
	start "$first_name" --size 64M
	grep -q 'left from a daemon that was killed' "$work/log.$name" || fail "nothing in the log"
	dd if="$node" of=/dev/null bs=1M count=4 iflag=direct 2>/dev/null || fail "the new device does not read"
	stop
}

both_die() {
	start "$first_name" --size 1G
	standby=$(standby_of "$keeper") || fail "no standby"
	kill -KILL "$keeper" "$server"
	wait_for 5 is_gone "$server" || fail "the server is left"
	wait_for 5 is_gone "$standby" || fail "the standby is left"
	start "$first_name" --size 64M
	stop
}

for load in idle busy; do
	server_dies $load
	keeper_dies $load
done
both_die
