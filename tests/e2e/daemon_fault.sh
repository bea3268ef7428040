#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The fault rule acts through the transport: errors reach the program, delays delay, a kill is a dead server.
. "$(dirname "$0")/lib.sh"

need_device

start "$first_name" --size 64M --fault error=EIO:op=write:every=3
errors=0
i=0
while [ $i -lt 9 ]; do
	dd if=/dev/zero of="$node" bs=4096 count=1 seek=$i oflag=direct 2>/dev/null || errors=$((errors + 1))
	i=$((i + 1))
done
[ $errors = 3 ] || fail "$errors of 9 writes failed, not 3"
dd if="$node" of=/dev/null bs=4096 count=9 iflag=direct 2>/dev/null || fail "a read failed"
stop

start "$first_name" --size 64M --fault delay=300ms:op=read
begin=$(date +%s%N)
dd if="$node" of=/dev/null bs=4096 count=2 iflag=direct 2>/dev/null || fail "a delayed read failed"
took_ms=$((($(date +%s%N) - begin) / 1000000))
[ $took_ms -ge 600 ] || fail "two reads took $took_ms ms, not 600"
# A server that sleeps in a request is stopped all the same, in bounded time.
stop

start "$first_name" --size 64M --no-standby --fault kill:op=write:at=5
dd if=/dev/zero of="$node" bs=4096 count=10 oflag=direct 2>/dev/null && fail "ten writes passed a kill at the fifth"
end_of "$keeper" 10
[ "$rc" = 1 ] || fail "the keeper ended with $rc, not 1"
check_gone "$name" "$server"
