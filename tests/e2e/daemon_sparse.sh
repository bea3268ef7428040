#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A device of 16 GiB costs what is stored in it: blocks around the 4 GiB borders and at its end come back, the rest is
# zeros, and the daemon stays small.
. "$(dirname "$0")/lib.sh"

need_device

start "$first_name" --size 16G --mem-limit 512M
head -c 8192 /dev/urandom >"$work/data"
places="0 1048575 2097151 3145727 4194302"
for place in $places; do
	dd if="$work/data" of="$node" bs=4096 count=2 seek="$place" oflag=direct 2>/dev/null || fail "write at $place"
done
dd if="$work/data" of="$node" bs=4096 count=1 seek=4194304 oflag=direct 2>/dev/null && fail "a write behind the end"
for place in $places; do
	dd if="$node" bs=4096 count=2 skip="$place" iflag=direct 2>/dev/null | cmp - "$work/data" || fail "bytes at $place"
done
dd if="$node" bs=1M count=64 skip=1 iflag=direct 2>/dev/null | cmp -n 67108864 - /dev/zero || fail "not zeros"
resident_kb=$(awk '/^VmRSS:/ {print $2}' "/proc/$server/status")
[ "$resident_kb" -lt 262144 ] || fail "the server takes $resident_kb KiB"
stop
