#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Take-overs have bounds: a server that hangs is ended after 10 s; a request that two servers in a row crash on is
# answered with an error, alone; servers that cannot take over, or die too often, end in failing I/O and a log line.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/takeover_lib.sh"

need_device

write_node() {
	timeout -s KILL 60 dd if=/dev/zero of="$node" bs=4096 count=1 seek="$1" oflag=direct 2>"$work/dd"
}

read_node() {
	timeout -s KILL 60 dd if="$node" of=/dev/null bs=4096 count=1 skip="$1" iflag=direct 2>"$work/dd"
}

# A stopped process hears nothing and says nothing.
start "$first_name" --size 64M
write_node 0 || fail "a write"
kill -STOP "$server"
read_node 0 || fail "a read while the server hung"
grep -q 'has not moved for 10 s: killed' "$work/log.$name" || fail "a hung server was not ended"
find_server
stop

# A request that takes too long takes its server with it, and is answered by the next one.
start "$first_name" --size 64M --fault delay=15s:step=slot-copy:at=2
write_node 0 || fail "a quick write"
write_node 0 || fail "a slow write"
grep -q 'has not moved for 10 s: killed' "$work/log.$name" || fail "nothing in the log"
find_server
stop

# Servers crash while they copy the write: the third one answers with an error and lives.
start "$first_name" --size 64M --fault exit:step=slot-copy:at=1
write_node 3 && fail "a write that kills servers was acknowledged"
[ "$(grep -c 'exit code 1' "$work/log.$name")" = 2 ] || fail "not two servers died"
read_node 3 || fail "a read after it"
find_server || fail "no server after it"
stop

# Nobody gets as far as serving.
start "$first_name" --size 64M --fault exit:step=hello
kill -KILL "$server"
read_node 0 && fail "a read was answered"
end_of "$keeper" 20
[ "$rc" = 1 ] || fail "the keeper ended with $rc, not 1"
grep -q '5 servers in a row could not take over: giving up' "$work/log.$name" || fail "nothing in the log"
check_gone "$name"

# Each serves, but not for long.
start "$first_name" --size 64M --fault kill:op=read
timeout -s KILL 60 dd if="$node" of=/dev/null bs=4096 count=2 iflag=direct 2>"$work/dd"
[ $? -lt 124 ] || fail "a reader hangs"
end_of "$keeper" 20
[ "$rc" = 1 ] || fail "the keeper ended with $rc, not 1"
# Those that die before they have said that they serve count as such that could not take over.
grep -q '30 servers died in 10 s: giving up\|5 servers in a row could not take over: giving up' "$work/log.$name" ||
	fail "nothing in the log"
check_gone "$name"
