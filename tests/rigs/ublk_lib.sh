# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# Helpers of the scripts about ublk, which run as root in a rig's guest; sourced first.
. "$(dirname "$0")/../e2e/lib.sh"

cli=$FOLIOSWAP_BUILD/folioswap
# shellcheck disable=SC2034
load=$FOLIOSWAP_BUILD/swapload

[ -c /dev/ublk-control ] || skip "no /dev/ublk-control"
need_tools fio blkdiscard mkswap swapon pgrep

# Sets count to the ublk devices that there are.
count_ublk() {
	count=0
	for entry in /sys/class/ublk-char/ublkc*; do
		[ ! -e "$entry" ] || count=$((count + 1))
	done
}

check_no_ublk() {
	count_ublk
	[ "$count" = 0 ] || fail "$count ublk devices are left"
	for entry in /dev/ublkb* /dev/ublkc*; do
		[ ! -e "$entry" ] || fail "$entry is left"
	done
	! grep -q ublkb /proc/swaps || fail "swap is left: $(cat /proc/swaps)"
}

# A name that was not used lately; sets first_name.
next_name() {
	first_name=$((100 + (first_name + 1) % 100))
}

# start_ublk OPTION...: sets name, node, keeper, server.
start_ublk() {
	next_name
	start "$first_name" --transport ublk "$@"
	[ "$(cat "/sys/block/${node#/dev/}/queue/logical_block_size")" = 4096 ] || fail "$node has other blocks than 4 KiB"
}

stop_ublk() {
	stop
	check_no_ublk
}

make_swap() {
	mkswap -q "$node" || fail "no mkswap on $node"
	swapon --discard "$node" || fail "cannot swap to $node"
}

# A file system, mounted at $work/mnt.
make_mount() {
	mkfs.ext4 -q "$node" || fail "no file system on $node"
	mkdir -p "$work/mnt"
	mount "$node" "$work/mnt" || fail "cannot mount $node"
}

# Linux before 6.4 keeps no image for a successor: nobody stands by.
has_noswap() {
	mount -t tmpfs -o noswap none /mnt 2>/dev/null && umount /mnt
}

# answered N: so many reads and writes of the device that was started last.
answered() {
	[ "$(awk '{print $1 + $5}' "/sys/block/${node#/dev/}/stat")" -ge "$1" ]
}

# stat_of FIELD: of the device that was started last, an exact number.
stat_of() {
	"$cli" stat --raw --bytes "$name" | awk -v field="$1" '$1 == field {print $2}'
}

# requests_of KIND ORDER: how many whole requests came.
requests_of() {
	"$cli" stat --orders --raw --bytes "$name" | awk -v kind="$1" -v order="$2" '$2 == kind && $3 == order {print $5}'
}

# end_load PROCESS: swapload or rewrite_check, which writes to $work/load, is told to end and has found nothing wrong.
end_load() {
	kill -TERM "$1"
	wait_for 120 is_gone "$1" || fail "the load hangs"
	wait "$1"
	rc=$?
	[ $rc = 0 ] || [ $rc -ge 128 ] || grep -qi 'signal\|interrupt\|stopped' "$work/load" || fail "the load: $rc: $(cat "$work/load")"
	! grep -qi 'wrong\|differ\|bus error' "$work/load" || fail "the load: $(cat "$work/load")"
}
