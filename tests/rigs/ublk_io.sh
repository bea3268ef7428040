#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Requests over ublk: every byte right at 4 KiB to 16 MiB, whole units in one request, discard accounted for, every
# queue depth, and what older drivers lack.
. "$(dirname "$0")/ublk_lib.sh"

MIB=1048576

queue_of() {
	cat "/sys/block/${node#/dev/}/queue/$1"
}

# verify OPTION...: random reads and writes with check sums, by two jobs on their own parts.
verify() {
	(cd "$work" && fio --name=verify --filename="$node" --direct=1 --rw=randrw --blockalign=4k --ioengine=libaio \
		--iodepth=8 --size=96m --numjobs=2 --offset_increment=96m --verify=crc32c --verify_fatal=1 \
		--buffer_compress_percentage=50 --group_reporting "$@" >"$work/fio" 2>&1) || fail "fio: $(cat "$work/fio")"
}

# check_whole UNIT-BYTES ORDER: requests of a unit arrive as such, written and read.
check_whole() {
	before_writes=$(requests_of write "$2") before_reads=$(requests_of read "$2")
	for rw in write read; do
		(cd "$work" && fio --name=whole --filename="$node" --direct=1 --rw=$rw --bs="$1" --ioengine=libaio --iodepth=2 \
			--size=64m >"$work/fio" 2>&1) || fail "fio: $(cat "$work/fio")"
	done
	for kind in write read; do
		before=${before_writes:-0}
		[ $kind = write ] || before=${before_reads:-0}
		came=$(($(requests_of $kind "$2") - before)) wanted=$((64 * MIB / $1))
		[ $came = $wanted ] || fail "$came of $wanted ${kind}s of $1 bytes came whole: $("$cli" stat -o "$name")"
	done
}

# check_unit UNIT UNIT-BYTES ORDER
check_unit() {
	start_ublk --size 512M --unit "$1" --codec lz4
	[ "$(queue_of max_sectors_kb)" = $(($2 / 1024)) ] || fail "max_sectors_kb is $(queue_of max_sectors_kb)"
	[ "$(queue_of optimal_io_size)" = "$2" ] || fail "optimal_io_size is $(queue_of optimal_io_size)"
	[ "$(queue_of chunk_sectors)" = $(($2 / 512)) ] || fail "chunk_sectors is $(queue_of chunk_sectors)"
	[ "$(stat -c '%a %U:%G' "$node")" = "600 root:root" ] || fail "$node is $(stat -c '%a %U:%G' "$node")"
	case $(queue_of scheduler) in
	*'[none]'* | none) ;;
	*) fail "the scheduler is $(queue_of scheduler)" ;;
	esac
	check_whole "$2" "$3"
	verify --bsrange=4k-16m
	verify --bs=4k --size=8m --offset_increment=8m
	stop_ublk
}

check_zero() {
	cmp -n "$2" -i "$1:0" "$node" /dev/zero || fail "$2 bytes at $1 are not zero"
}

check_discard() {
	start_ublk --size 256M --codec lz4
	(cd "$work" && fio --name=fill --filename="$node" --direct=1 --rw=write --bs=1m --size=64m >"$work/fio" 2>&1) ||
		fail "fio: $(cat "$work/fio")"
	[ "$(stat_of DATA)" = $((64 * MIB)) ] || fail "$(stat_of DATA) bytes are held after 64 MiB were written"
	blkdiscard -f -o 4096 -l $((32 * MIB)) "$node" 2>/dev/null || fail "no discard"
	[ "$(stat_of DATA)" = $((32 * MIB)) ] || fail "$(stat_of DATA) bytes are held after half was discarded"
	check_zero 4096 $((32 * MIB))
	blkdiscard -f -z -o $((40 * MIB)) -l $((8 * MIB)) "$node" 2>/dev/null || fail "no zeroing"
	[ "$(stat_of DATA)" = $((24 * MIB)) ] || fail "$(stat_of DATA) bytes are held after more was zeroed"
	check_zero $((40 * MIB)) $((8 * MIB))
	cmp -s -n 4096 "$node" /dev/zero && fail "more was discarded than asked for"
	blkdiscard -f "$node" 2>/dev/null || fail "no discard of all"
	[ "$(stat_of DATA) $(stat_of PAYLOAD)" = "0 0" ] || fail "$(stat_of DATA) bytes are held after discarding all"
	[ "$(requests_of discard all)" -ge 3 ] || fail "discards are not counted"
	stop_ublk
	start_ublk --size 64M --no-discard
	[ "$(queue_of discard_max_bytes)" = 0 ] || fail "discards are taken although refused"
	blkdiscard -f "$node" 2>/dev/null && fail "a discard was carried out although refused"
	blkdiscard -f -z "$node" 2>/dev/null || fail "zeroing by writes fails"
	stop_ublk
}

# The block layer takes no more requests than the queue has tags; an odd depth leaves threads with unequal shares.
check_depths() {
	for depth in 1 2 3 7 64 1000 4096; do
		export FOLIOSWAP_UBLK_DEPTH=$depth
		start_ublk --size 64M --io-threads 3 --codec copy
		verify --bs=4k --iodepth=$depth --size=4m --offset_increment=4m
		stop_ublk
	done
	unset FOLIOSWAP_UBLK_DEPTH
	start_ublk --size 64M
	for depth in 1 16 256 4096; do
		verify --bs=4k --iodepth=$depth --size=4m --offset_increment=4m
	done
	stop_ublk
}

# What older drivers lack; with the last list it is a driver of Linux 6.1.
check_older() {
	older=NO_AUTO_PART_SCAN,SAFE_STOP_DEV,UPDATE_SIZE
	for lacking in USER_COPY "$older" "$older,USER_COPY" "$older,USER_COPY,CMD_IOCTL_ENCODE"; do
		export FOLIOSWAP_UBLK_WITHOUT="$lacking"
		start_ublk --size 512M --codec lz4
		check_whole $((2 * MIB)) 9
		verify --bsrange=4k-4m
		stop_ublk
	done
	unset FOLIOSWAP_UBLK_WITHOUT
}

check_faults() {
	start_ublk --size 64M --fault error=EIO:every=10
	(cd "$work" && fio --name=bad --filename="$node" --direct=1 --rw=randwrite --bs=4k --size=4m --continue_on_error=all \
		>"$work/fio" 2>&1)
	grep -q 'errors *: total=10[23],' "$work/fio" || fail "not every tenth failed: $(cat "$work/fio")"
	stop_ublk
}

check_no_ublk
check_unit 64K 65536 4
check_unit 2M $((2 * MIB)) 9
check_unit 16M $((16 * MIB)) 12
check_discard
check_depths
check_older
check_faults
