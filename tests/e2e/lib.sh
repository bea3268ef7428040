# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# Helpers of the end-to-end scripts; sourced first. A script is one test: exit 0 passed, 1 failed, 77 skipped.
#
# FOLIOSWAP_BUILD is the directory of the built programs. Devices get high
# numbers, so that they stay out of the way of real ones. Whatever happens,
# the trap at the end takes down what was started here.

set -u
: "${FOLIOSWAP_BUILD:?is to be the directory of the built programs}"

daemon=$FOLIOSWAP_BUILD/folioswapd
work=$(mktemp -d /tmp/folioswap-e2e.XXXXXX)
# shellcheck disable=SC2034
first_name=$((200 + $$ % 40))
started=
keepers=
nodes=
cgroup=

say() {
	printf '%s\n' "$*"
}

skip() {
	say "skipped: $*"
	exit 77
}

fail() {
	say "FAILED: $*"
	for log in "$work"/log.*; do
		[ -e "$log" ] && sed "s|^|  ${log##*/}: |" "$log"
	done
	exit 1
}

need_tools() {
	for tool in "$@"; do
		command -v "$tool" >/dev/null || skip "no $tool"
	done
}

need_device() {
	[ "$(id -u)" = 0 ] || skip "not root"
	[ -x "$daemon" ] || skip "no $daemon"
	[ -c /dev/fuse ] || skip "no /dev/fuse"
	[ -c /dev/loop-control ] || skip "no /dev/loop-control"
	need_tools losetup pgrep mount umount
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
	tries=$(($1 * 20))
	shift
	while ! "$@"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.05
	done
}

# A zombie that its parent has not reaped yet has ended.
is_gone() {
	[ ! -e "/proc/$1" ] || grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null || [ ! -e "/proc/$1" ]
}

has_line() {
	[ -s "$1" ]
}

# The one that serves, not the one that stands by.
server_of() {
	pgrep -P "$1" folioswapd-srv
}

standby_of() {
	pgrep -P "$1" folioswapd-sby
}

# launch NAME OPTION...: starts a daemon; sets keeper.
launch() {
	name=$1
	shift
	: >"$work/ready.$name"
	"$daemon" --name "$name" --ready-fd 3 "$@" 3>"$work/ready.$name" 2>>"$work/log.$name" &
	keeper=$!
	started="$started $name"
	keepers="$keepers $keeper"
}

# start NAME OPTION...: the same, waits until it is ready; sets keeper, server, node. On machines where not everything
# can be had (containers, some VMs) the tests go on without.
start() {
	launch "$@" --allow-unsafe
	wait_for 60 has_line "$work/ready.$name" || fail "device $name does not get ready"
	read -r word node <"$work/ready.$name"
	[ "$word" = ready ] || fail "device $name: $word $node"
	[ -b "$node" ] || fail "device $name: '$node' is not a block device"
	nodes="$nodes $node"
	server=$(server_of "$keeper") || fail "device $name has no server"
}

# Sets rc to the exit code of a daemon that is about to end.
end_of() {
	wait_for "$2" is_gone "$1" || fail "process $1 does not end in $2 s"
	wait "$1"
	rc=$?
}

loops_of() {
	losetup -n -O NAME,BACK-FILE 2>/dev/null | grep -F " /run/folioswap/$1/" || true
}

# Nothing may be left of device NAME (with its processes, if given).
check_gone() {
	[ ! -e "/run/folioswap/$1" ] || fail "/run/folioswap/$1 is left: $(ls /run/folioswap/"$1")"
	grep -q " /run/folioswap/$1/" /proc/self/mountinfo && fail "a mount of device $1 is left"
	[ -z "$(loops_of "$1")" ] || fail "a loop device of device $1 is left: $(loops_of "$1")"
	shift
	for pid in "$@"; do
		wait_for 5 is_gone "$pid" || fail "process $pid is left"
	done
}

is_swapped_on() {
	grep -q "^$1 " /proc/swaps
}

# stop: an ordered stop of the device that was started last.
stop() {
	kill -TERM "$keeper"
	end_of "$keeper" 20
	[ "$rc" = 0 ] || fail "device $name ended with $rc"
	check_gone "$name" "$keeper" "$server"
}

# ---- memory control groups, version 1 or 2 ----

# cgroup_make LIMIT: a child group of ours with a memory limit; sets cgroup.
cgroup_make() {
	version1=$(awk '$(NF-2) == "cgroup" && $NF ~ /(^|,)memory(,|$)/ {print $5; exit}' /proc/self/mountinfo)
	version2=$(awk '$(NF-2) == "cgroup2" {print $5; exit}' /proc/self/mountinfo)
	if [ -n "$version1" ]; then
		cgroup=$version1/folioswap-e2e-$$
		limit_file=memory.limit_in_bytes
	elif [ -n "$version2" ] && grep -qw memory "$version2/cgroup.controllers"; then
		echo +memory >"$version2/cgroup.subtree_control" 2>/dev/null
		cgroup=$version2/folioswap-e2e-$$
		limit_file=memory.max
	else
		skip "no memory control group"
	fi
	mkdir "$cgroup" || skip "cannot make a control group"
	echo "$1" >"$cgroup/$limit_file" || skip "cannot limit a control group"
}

# For programs that make a group of their own.
need_cgroup() {
	cgroup_make 1073741824
	rmdir "$cgroup"
	cgroup=
}

# in_cgroup COMMAND...
in_cgroup() {
	CGROUP=$cgroup sh -c 'echo $$ >"$CGROUP/cgroup.procs" && exec "$@"' sh "$@"
}

# ---- the end ----

clean_name() {
	for loop in $(loops_of "$1" | cut -d' ' -f1); do
		is_swapped_on "$loop" && swapoff "$loop"
		losetup -d "$loop"
	done
	umount -l "/run/folioswap/$1/mnt" 2>/dev/null
	rm -rf "/run/folioswap/$1"
}

clean_all() {
	trap - EXIT INT TERM
	# First of all: swap whose server is gone, with nobody left to start another, holds whoever needs it for ever.
	for node in $nodes; do
		is_swapped_on "$node" && swapoff "$node"
	done
	for pid in $keepers; do
		kill -TERM "$pid" 2>/dev/null
	done
	for pid in $keepers; do
		wait_for 15 is_gone "$pid" || kill -KILL "$pid"
	done
	for name in $started; do
		[ -e "/run/folioswap/$name" ] && clean_name "$name"
	done
	[ -n "$cgroup" ] && rmdir "$cgroup" 2>/dev/null
	rm -rf "$work"
}

on_exit() {
	code=$?
	clean_all
	exit $code
}

trap on_exit EXIT
trap 'exit 1' INT TERM
