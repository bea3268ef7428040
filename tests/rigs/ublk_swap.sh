#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Swap on ublk: every page comes back, freed swap is discarded, a device that is swapped on is not deleted.
. "$(dirname "$0")/ublk_lib.sh"

size=96M limit=48M
[ -z "${FOLIOSWAP_LONG-}" ] || size=384M limit=128M

# run_load WORKLOAD OPTION...
run_load() {
	timeout 250 "$load" "$@" --size $size --limit $limit --content synthetic --workers 2 >"$work/load" 2>&1 ||
		fail "swapload $1: $(cat "$work/load")"
}

swap_off() {
	timeout 60 swapoff "$node" || fail "swapoff fails"
	! is_swapped_on "$node" || fail "$node is still swapped on"
}

for unit in 64K 2M 16M; do
	start_ublk --size 512M --unit $unit --codec lz4
	make_swap
	run_load seq-write --passes 1
	[ $unit != 2M ] || run_load shmem --passes 1
	[ "$(stat_of WRITE-BYTES)" -gt 41943040 ] || fail "next to nothing was swapped out"
	[ "$(stat_of READS)" -gt 0 ] || fail "nothing was swapped in"
	swap_off
	stop_ublk
done

# Neither way to end it takes a device away that is swapped on.
start_ublk --size 256M
make_swap
kill -TERM "$keeper"
sleep 2
is_gone "$keeper" && fail "the keeper left a device that is swapped on"
[ -b "$node" ] || fail "the node of a device that is swapped on is gone"
run_load random --ops 1000 --passes 1
swap_off
stop_ublk

# The command line tool: swapoff comes first.
next_name
node=$("$cli" add 256M --transport ublk --swapon=10 --allow-unsafe) || fail "folioswap add"
is_swapped_on "$node" || fail "$node is not swapped on"
run_load usemem --passes 1
"$cli" del "$node" || fail "folioswap del"
check_no_ublk
