#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What was discarded or zeroed reads as zeros, its neighbours stay; --no-discard refuses and says so in the queue.
. "$(dirname "$0")/lib.sh"

need_device
need_tools blkdiscard

# Fills 16 MiB of the device with the file, clears a range both there and in the file, and compares.
check_range() {
	head -c 16M /dev/urandom >"$work/data"
	dd if="$work/data" of="$node" bs=1M oflag=direct 2>/dev/null || fail "write"
	# shellcheck disable=SC2086
	blkdiscard $1 -o "$2" -l "$3" "$node" || fail "blkdiscard $1 -o $2 -l $3"
	dd if=/dev/zero of="$work/data" bs=4096 seek=$(($2 / 4096)) count=$(($3 / 4096)) conv=notrunc 2>/dev/null
	dd if="$node" bs=1M count=16 iflag=direct 2>/dev/null | cmp - "$work/data" || fail "bytes differ: $1 -o $2 -l $3"
}

queue() {
	cat "/sys/block/${node#/dev/}/queue/$1"
}

for unit in 2M 64K; do
	start "$first_name" --size 64M --unit $unit --frame 16K
	[ "$(queue discard_max_bytes)" != 0 ] || fail "the queue takes no discards"
	[ "$(queue discard_granularity)" = 4096 ] || fail "granularity $(queue discard_granularity)"
	for how in "" -z; do
		check_range "$how" 0 4096
		check_range "$how" 4096 2093056
		check_range "$how" 2097152 2097152
		check_range "$how" 1048576 9437184
		check_range "$how" 16773120 4096
		check_range "$how" 0 16777216
	done
	stop
done

start "$first_name" --size 64M --no-discard
blkdiscard -o 0 -l 4096 "$node" 2>/dev/null && fail "--no-discard took a discard"
[ "$(queue discard_max_bytes)" = 0 ] || fail "--no-discard: the queue says it takes discards"
check_range -z 4096 8192
stop

# The number that refused is as good as new for the next device.
start "$first_name" --size 64M
[ "$(queue discard_max_bytes)" != 0 ] || fail "discard stays off after --no-discard"
stop
