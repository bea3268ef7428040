#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A server dies and no other takes its place: I/O fails within bounds, whoever uses the device can let it go, and it is
# gone then. No swap is left that cannot be switched off.
. "$(dirname "$0")/ublk_lib.sh"

# die: the server, for good.
die() {
	kill -KILL "$server"
	wait_for 10 is_gone "$server" || fail "the killed server does not end"
}

check_left() {
	wait_for 20 is_gone "$keeper" || fail "the keeper does not end after the last user"
	check_gone "$name" "$server"
	check_no_ublk
}

check_idle() {
	start_ublk --size 64M --no-standby
	die
	check_left
}

# begin_fio: reads and writes on $node until they fail; sets busy.
begin_fio() {
	(cd "$work" && exec fio --name=busy --filename="$node" --direct=1 --rw=randrw --bs=64k --ioengine=libaio --iodepth=16 \
		--size=128m --time_based --runtime=60 >"$work/fio" 2>&1) &
	busy=$!
	wait_for 20 answered 20 || fail "fio does not start: $(cat "$work/fio")"
}

check_open() {
	start_ublk --size 256M --no-standby
	begin_fio
	die
	wait_for 10 is_gone "$busy" || fail "fio hangs on a dead device"
	grep -q 'Input/output error' "$work/fio" || fail "fio has not failed: $(cat "$work/fio")"
	check_left
}

check_mounted() {
	start_ublk --size 256M --no-standby
	make_mount
	dd if=/dev/urandom of="$work/mnt/file" bs=1M count=8 2>/dev/null
	die
	sleep 3
	[ -b "$node" ] || fail "a mounted device is gone"
	timeout 20 umount "$work/mnt" || fail "a dead device cannot be unmounted"
	check_left
}

# fill: swaps a process out and leaves it, sets filled.
fill() {
	make_swap
	cgroup_make 8M
	# shellcheck disable=SC2016
	in_cgroup perl -e '$x = "swap" x (4 << 20); open(F, ">", $ARGV[0]); print F $$; close F;
		sleep 1 until -e $ARGV[1]; for ($i = 0; $i < length $x; $i += 4096) { $s += ord substr $x, $i, 1 }' \
		"$work/filled" "$work/touch" 2>/dev/null &
	wait_for 60 has_line "$work/filled" || fail "nothing is swapped out"
	filled=$(cat "$work/filled")
	[ "$(stat_of DATA)" -gt 6000000 ] || fail "little is swapped out"
}

# let_go: the process that needs its swap is killed by the kernel, not stuck; swap can be switched off.
let_go() {
	: >"$work/touch"
	wait_for 20 is_gone "$filled" || fail "a process that needs lost swap hangs"
	timeout 20 swapoff "$node" || fail "swap on a dead device cannot be switched off"
	! is_swapped_on "$node" || fail "swapoff has done nothing"
	rm -f "$work/touch" "$work/filled"
	wait_for 5 rmdir "$cgroup" 2>/dev/null || fail "a control group is still in use"
	cgroup=
}

check_swapped() {
	start_ublk --size 256M --no-standby
	fill
	die
	sleep 1
	! grep ublkb /proc/swaps | grep -q deleted || fail "a ghost: $(cat /proc/swaps)"
	let_go
	check_left
}

# Nobody is left to take it down: whoever comes next does.
check_keeper_killed() {
	start_ublk --size 256M "$@"
	fill
	kill -KILL "$keeper"
	wait_for 20 is_gone "$keeper" || fail "a killed keeper does not end"
	wait_for 20 is_gone "$server" || fail "the server outlives its keeper"
	timeout 60 "$cli" del "$name" >"$work/del" 2>&1
	rc=$?
	[ $rc = 0 ] || fail "del ended with $rc: $(cat "$work/del")"
	# It is not made to touch what it has lost: swapoff marks such pages, and a uml kernel dies of these marks.
	kill -KILL "$filled"
	wait_for 20 is_gone "$filled" || fail "a process hangs in lost swap"
	rm "$work/filled"
	wait_for 5 rmdir "$cgroup" 2>/dev/null || fail "a control group is still in use"
	cgroup=
	check_gone "$name" "$keeper" "$server"
	wait_for 5 nobody_fails || fail "the process that fails requests is left"
	check_no_ublk
}

# All of it at once, requests under way: nobody is left to answer or to start anybody, and a driver that waits for a
# server waits. list says so, del ends it within bounds.
check_all_killed() {
	start_ublk --size 256M
	standby=
	if has_noswap; then
		wait_for 20 standby_of "$keeper" >/dev/null || fail "no standby"
		standby=$(standby_of "$keeper")
	fi
	begin_fio
	# shellcheck disable=SC2086
	kill -KILL "$keeper" "$server" $standby
	for pid in "$keeper" "$server" $standby; do
		wait_for 20 is_gone "$pid" || fail "killed process $pid does not end"
	done
	[ "$("$cli" list -rno STATE "$name")" = dead ] || fail "list says $("$cli" list "$name")"
	timeout 60 "$cli" del "$name" >"$work/del" 2>&1
	rc=$?
	[ $rc = 0 ] || fail "del ended with $rc: $(cat "$work/del")"
	wait_for 20 is_gone "$busy" || fail "fio hangs"
	grep -q 'error' "$work/fio" || fail "fio has not failed: $(cat "$work/fio")"
	check_gone "$name" "$keeper" "$server"
	wait_for 5 nobody_fails || fail "the process that fails requests is left"
	check_no_ublk
}

nobody_fails() {
	! pgrep -x folioswapd-eio >/dev/null
}

check_no_ublk
check_idle
check_open
# As with a driver that has no USER_COPY: few tags, data put into buffers.
export FOLIOSWAP_UBLK_WITHOUT=USER_COPY,SAFE_STOP_DEV
check_open
unset FOLIOSWAP_UBLK_WITHOUT
check_mounted
check_swapped
check_keeper_killed
check_keeper_killed --no-standby
check_all_killed
