#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Devices come and go, over and over: with somebody who opens each node as soon as it is there, in the middle of I/O,
# from another mount namespace, several at once. Nothing hangs and nothing is left.
. "$(dirname "$0")/ublk_lib.sh"

rounds=25
[ -z "${FOLIOSWAP_LONG-}" ] || rounds=500

# What udev does, and as rudely: whatever appears is opened, read and closed, again and again.
curious() {
	while [ -e "$work/curious" ]; do
		for seen in /dev/ublkb*; do
			[ -b "$seen" ] && dd if="$seen" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
		done
	done
}

# Each step is bounded by the helpers: a round that hangs fails.
check_rounds() {
	: >"$work/curious"
	curious &
	curious_pid=$!
	for round in $(seq "$rounds"); do
		start_ublk --size 64M
		[ $((round % 3)) != 0 ] || dd if=/dev/urandom of="$node" bs=1M count=4 oflag=direct 2>/dev/null || fail "dd"
		stop
	done
	rm "$work/curious"
	wait "$curious_pid"
	check_no_ublk
}

# A stop under I/O ends both; the last round has more depth than the queue.
check_stop_under_load() {
	for depth in 1 8 256; do
		start_ublk --size 256M --io-threads 2
		(cd "$work" && exec fio --name=busy --filename="$node" --direct=1 --rw=randrw --bsrange=4k-2m --blockalign=4k \
			--ioengine=libaio --iodepth=$depth --size=128m --time_based --runtime=60 >"$work/fio" 2>&1) &
		busy=$!
		wait_for 20 answered 20 || fail "fio does not start: $(cat "$work/fio")"
		kill -TERM "$keeper"
		end_of "$keeper" 25
		[ "$rc" = 0 ] || fail "the stop under I/O ended with $rc"
		wait_for 10 is_gone "$busy" || fail "fio hangs on a device that is gone"
		check_gone "$name" "$server"
		check_no_ublk
	done
}

# The orderly way does not take a device from a program that has it open, or a mount.
check_refusal() {
	start_ublk --size 64M
	exec 9<"$node"
	"$cli" del "$name" 2>"$work/refused" && fail "an open device was deleted"
	grep -q 'open by' "$work/refused" || fail "refused for another reason: $(cat "$work/refused")"
	exec 9<&-
	make_mount
	"$cli" del "$name" 2>"$work/refused" && fail "a mounted device was deleted"
	umount "$work/mnt"
	stop_ublk
}

# A daemon whose /dev and /run are its own.
check_namespace() {
	next_name
	name=$first_name
	unshare -m sh -c 'mount --make-rprivate / && mount -t tmpfs tmpfs /mnt && exec "$@"' sh \
		"$cli" add 64M --transport ublk --allow-unsafe >"$work/node" || fail "add in a mount namespace"
	node=$(cat "$work/node")
	dd if=/dev/urandom of="$work/data" bs=1M count=8 2>/dev/null
	dd if="$work/data" of="$node" bs=1M oflag=direct 2>/dev/null || fail "writing to $node"
	cmp -n 8388608 "$work/data" "$node" || fail "$node holds other data"
	"$cli" del "$node" || fail "del from another mount namespace"
	check_no_ublk
}

check_several() {
	for _ in 1 2 3 4 5 6; do
		start_ublk --size 64M
	done
	count_ublk
	[ "$count" = 6 ] || fail "$count devices, not 6"
	for pid in $keepers; do
		kill -TERM "$pid" 2>/dev/null
	done
	for pid in $keepers; do
		wait_for 20 is_gone "$pid" || fail "keeper $pid does not end"
	done
	check_no_ublk
}

check_no_ublk
check_rounds
check_stop_under_load
check_refusal
check_namespace
check_several
