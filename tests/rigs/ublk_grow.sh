#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A ublk device grows while it is in use: what it held stays, the new part is there, servers may die between any two
# steps of it, and what is made on it afterwards has the new size.
. "$(dirname "$0")/ublk_lib.sh"
. "$(dirname "$0")/../e2e/takeover_lib.sh"

MIB=1048576

set_size() {
	"$cli" set "$name" --size "$1" >"$work/set" 2>&1 || fail "no size $1: $(cat "$work/set")"
}

# check_size BYTES: kernel, stat and list say so.
check_size() {
	[ "$(blockdev --getsize64 "$node")" = "$1" ] || fail "$node has $(blockdev --getsize64 "$node") bytes, not $1"
	[ "$(stat_of SIZE)" = "$1" ] || fail "stat says $(stat_of SIZE) bytes, not $1"
	[ "$("$cli" list --raw --noheadings --bytes -o SIZE "$name")" = "$1" ] || fail "list does not say $1 bytes"
}

has_size() {
	[ "$(blockdev --getsize64 "$node")" = "$1" ]
}

# refused TEXT OPTION...: by set, and the device stays as it is.
refused() {
	text=$1
	shift
	before=$(blockdev --getsize64 "$node")
	"$cli" set "$name" "$@" >"$work/set" 2>&1 && fail "set $* was taken"
	{ [ "$(wc -l <"$work/set")" = 1 ] && grep -q -- "$text" "$work/set"; } || fail "set $*: $(cat "$work/set")"
	check_size "$before"
}

# use BYTES: the last MiB before this end takes what it is given, in this server and the next.
use_end() {
	head -c $MIB /dev/urandom >"$work/bytes"
	dd if="$work/bytes" of="$node" bs=4k oflag=direct,seek_bytes seek=$(($1 - MIB)) status=none || fail "no write at $1"
	same_end "$1"
}

same_end() {
	dd if="$node" bs=$MIB count=1 iflag=direct,skip_bytes skip=$(($1 - MIB)) status=none | cmp -s - "$work/bytes" ||
		fail "the end at $1 reads otherwise"
}

is_zero() {
	cmp -s -n "$2" -i "$1:0" "$node" /dev/zero || fail "$2 bytes at $1 are not zero"
}

kill_server() {
	find_server || fail "no server"
	kill -KILL "$server"
	wait_for 10 is_gone "$server" || fail "a killed server does not end"
}

# Under threads that rewrite and compare their granules of what was there first.
grow_in_use() {
	start_ublk --size 128M --max-size 1G --codec lz4 --reserve 4M --mem-limit 512M
	check_size $((128 * MIB))
	"$FOLIOSWAP_BUILD/rewrite_check" "$node" 600 >"$work/check" 2>&1 &
	check=$!
	sleep 1
	for mib in 130 256 512 1023; do
		set_size ${mib}M
		check_size $((mib * MIB))
		is_zero $(((mib - 2) * MIB)) $((2 * MIB))
		use_end $((mib * MIB))
		kill_server
		same_end $((mib * MIB))
		check_size $((mib * MIB))
		sleep 0.5
	done
	refused "only grows" --size 1022M
	refused "max-size" --size 1025M
	refused "multiple of 4K" --size $((1023 * MIB + 512))
	for bytes in 0 4096 $((1023 * MIB - 4096)) $((1023 * MIB + 1)) $((1024 * MIB + 4096)) 18446744073709551615; do
		"$FOLIOSWAP_BUILD/control_probe" "$name" set-size $bytes >"$work/set" && fail "a size of $bytes bytes was taken"
		check_size $((1023 * MIB))
	done
	set_size 1023M
	set_size 1073741824
	check_size $((1024 * MIB))
	use_end $((1024 * MIB))
	is_gone $check && fail "rewrite_check ended: $(cat "$work/check")"
	kill -TERM $check
	wait_for 60 is_gone $check || fail "rewrite_check hangs"
	wait $check || fail "rewrite_check: $(cat "$work/check")"
	say "$(cat "$work/check")"
	[ "$(stat_of BLAMED)" = "" ] || [ "$(stat_of BLAMED)" = 0 ] || fail "requests were blamed"
	find_server
	stop_ublk
}

deaths() {
	grep -c 'killed by signal 9' "$work/log.$name"
}

# One step of growing, at which servers may die: it is done, or nothing is.
grow_once() {
	before=$(blockdev --getsize64 "$node")
	if [ $(($1 / MIB % 64)) = 0 ]; then
		"$cli" set "$name" --size "$1" >"$work/set" 2>&1
	else
		"$FOLIOSWAP_BUILD/control_probe" "$name" set-size "$1" >"$work/set" 2>&1 # which does not ask again
	fi
	rc=$?
	wait_for 20 find_server || fail "no server after $step"
	wait_for 10 kernel_knows_all ||
		fail "$step: the store has $(stat_of SIZE) bytes, the kernel knows $(blockdev --getsize64 "$node")"
	now=$(blockdev --getsize64 "$node")
	[ $rc != 0 ] || [ "$now" = "$1" ] || fail "$step: $now bytes after $1 were set"
	[ "$now" = "$1" ] || [ "$now" = "$before" ] || fail "$step: $now bytes, neither $before nor $1"
	same_end $((64 * MIB))
	[ "$now" = $((64 * MIB)) ] || is_zero $((now - MIB)) $MIB
}

# Servers end themselves between the steps, as chance has it; who asked is answered by the next one, or asks again.
grow_and_die() {
	for step in grow-map grow-size grow-asked grow-done; do
		start_ublk --size 64M --max-size 1G --codec lz4 --reserve 4M --mem-limit 512M --fault "kill:step=$step:chance=2"
		use_end $((64 * MIB))
		mib=64
		while [ $mib -lt 1024 ] && { [ $mib -lt 160 ] || [ "$(deaths)" -lt 3 ]; }; do
			mib=$((mib + 32))
			grow_once $((mib * MIB))
		done
		[ "$(deaths)" -ge 3 ] || fail "$(deaths) servers died at $step"
		say "$step: $(deaths) servers died, $((now / MIB)) MiB at the end"
		stop_ublk
	done
}

kernel_knows_all() {
	[ "$(blockdev --getsize64 "$node")" = "$(stat_of SIZE)" ]
}

# Swap that is on keeps its size; the next mkswap takes all.
grow_swap() {
	start_ublk --size 64M --max-size 256M --codec lz4
	make_swap
	set_size 256M
	grep -q "swapoff, mkswap" "$work/set" || fail "nothing is said of swap: $(cat "$work/set")"
	check_size $((256 * MIB))
	is_on_with $((64 * MIB)) || fail "swap of another size: $(cat /proc/swaps)"
	"$load" seq-write --size 96M --limit 64M --passes 1 --content synthetic --cgroup folioswap-rig-$$ >"$work/load" 2>&1 ||
		fail "the load: $(cat "$work/load")"
	swapoff "$node" || fail "swapoff"
	make_swap
	is_on_with $((256 * MIB)) || fail "swap of another size: $(cat /proc/swaps)"
	"$load" seq-write --size 192M --limit 32M --passes 1 --content synthetic --cgroup folioswap-rig-$$ >"$work/load" 2>&1 ||
		fail "the load: $(cat "$work/load")"
	swapoff "$node" || fail "swapoff"
	stop_ublk
}

# The header's page is not counted.
is_on_with() {
	[ "$(awk -v node="$node" '$1 == node {print $3 * 1024}' /proc/swaps)" = $(($1 - 4096)) ]
}

grow_mounted() {
	start_ublk --size 64M --max-size 256M --codec lz4
	make_mount
	head -c 20M /dev/urandom >"$work/mnt/file"
	cp "$work/mnt/file" "$work/file"
	set_size 256M
	resize2fs "$node" >"$work/resize" 2>&1 || fail "no resize2fs: $(cat "$work/resize")"
	head -c 100M /dev/urandom >"$work/mnt/more" || fail "the file system is no larger"
	cmp "$work/mnt/file" "$work/file" || fail "a file has changed"
	umount "$work/mnt"
	stop_ublk
}

cannot() {
	export FOLIOSWAP_UBLK_WITHOUT=UPDATE_SIZE
	start_ublk --size 64M
	refused UPDATE_SIZE --size 128M
	stop_ublk
	unset FOLIOSWAP_UBLK_WITHOUT
}

check_no_ublk
grow_in_use
grow_and_die
grow_swap
grow_mounted
cannot
