#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Two devices at once are two devices: each keeps its own bytes, and one ends without the other. Then eight that start
# in the same moment, looking for loop devices side by side.
. "$(dirname "$0")/lib.sh"

need_device

start "$first_name" --size 64M --codec lz4
node1=$node keeper1=$keeper server1=$server
start $((first_name + 1)) --size 128M --codec zstd:1
node2=$node keeper2=$keeper server2=$server
[ "$node1" != "$node2" ] || fail "both are $node1"
head -c 8M /dev/urandom >"$work/one"
head -c 8M /dev/urandom >"$work/two"
dd if="$work/one" of="$node1" bs=1M oflag=direct 2>/dev/null || fail "write to $node1"
dd if="$work/two" of="$node2" bs=1M oflag=direct 2>/dev/null || fail "write to $node2"
kill -TERM "$keeper1"
end_of "$keeper1" 20
check_gone "$first_name" "$keeper1" "$server1"
dd if="$node2" bs=1M count=8 iflag=direct 2>/dev/null | cmp - "$work/two" || fail "the second device lost bytes"
keeper=$keeper2 server=$server2 name=$((first_name + 1))
stop

many=
for i in 2 3 4 5 6 7 8 9; do
	launch $((first_name + i)) --size 64M --slots 1 --reserve 0 --compress-threads 1 --io-threads 1 --allow-unsafe
	many="$many $name:$keeper"
done
nodes=
for pair in $many; do
	name=${pair%:*}
	wait_for 60 has_line "$work/ready.$name" || fail "device $name does not get ready"
	read -r word node <"$work/ready.$name"
	[ "$word" = ready ] || fail "device $name: $word $node"
	nodes="$nodes $node"
done
# shellcheck disable=SC2086
[ "$(printf '%s\n' $nodes | sort -u | wc -l)" = 8 ] || fail "not eight nodes:$nodes"
for pair in $many; do
	kill -TERM "${pair#*:}"
done
for pair in $many; do
	end_of "${pair#*:}" 20
	[ "$rc" = 0 ] || fail "device ${pair%:*} ended with $rc"
	check_gone "${pair%:*}"
done
