#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Can a rig be believed? What its script says and returns arrives, and whatever goes wrong in a guest is noticed.
#
#   tests/rigs/selftest.sh [uml | x86 | uml+debug | x86+debug]
set -u

self=$(realpath "$0")
rigs=${self%/*}

# Inside the guest.
said_odd="two  blanks \$HOME 'quoted' *"

in_guest()
{
	case $1 in
	status) exit "$2" ;;
	words) shift; printf "%s\n" "$#" "$@"; echo "on standard error" >&2 ;;
	much) seq 200000 ;;
	hang) trap '' TERM INT HUP; echo "about to hang"; while :; do sleep 1; done ;;
	say) echo "$2" >/dev/kmsg ;;
	power-off) perl -e 'syscall(169, 0xfee1dead, 0x28121969, 0x4321fedc, 0)' ;;
	panic) echo c >/proc/sysrq-trigger ;;
	frozen) frozen ;;
	leave) setsid sleep 1000 & ;;
	look) look "$2" ;;
	esac
}

# A task that waits uninterruptibly, for the kernel's own detector.
frozen()
{
	truncate -s 64M /tmp/image && mkfs.ext4 -q /tmp/image && mkdir /tmp/mounted &&
		mount -o loop /tmp/image /tmp/mounted && fsfreeze -f /tmp/mounted || exit 1
	touch /tmp/mounted/file &
	sleep 8
	fsfreeze -u /tmp/mounted
	wait
}

complain()
{
	echo "guest: $*"
	exit 1
}

look()
{
	local node

	for node in /dev/ublk-control /dev/fuse /dev/loop-control /dev/kmsg; do
		[ -c $node ] || complain "no $node"
	done
	[ -b /dev/zram0 ] || complain "no /dev/zram0"
	grep -q lz4 /sys/block/zram0/comp_algorithm || complain "zram has no lz4"
	grep -q zstd /sys/block/zram0/comp_algorithm || complain "zram has no zstd"
	grep -qw memory /sys/fs/cgroup/cgroup.subtree_control || complain "no memory cgroups"
	[ -e /proc/sys/kernel/hung_task_timeout_secs ] || complain "no detector of hung tasks"
	[ -e /proc/pressure/memory ] || complain "no stall times"
	[ "$RIG" = uml ] || [ -e /sys/kernel/mm/transparent_hugepage/enabled ] || complain "no huge pages"
	[ "$(awk '/^MemTotal/ { print $2 <= 192 * 1024 }' /proc/meminfo)" = 1 ] || complain "more memory than asked for"
	[ "$(nproc)" = 1 ] || complain "more CPUs than asked for"
	[ "$(cat /proc/sys/vm/swappiness)" = 42 ] || complain "vm.swappiness was not set"
	[ "$(cat /proc/sys/vm/page-cluster)" = 1 ] || complain "vm.page-cluster was not set"
	[ "${ASKED_FOR-}" = "a  value" ] || complain "a variable was not passed on"
	[ -z "${NOT_ASKED_FOR-}" ] || complain "a variable was passed on that nobody asked for"
	[ "$FOLIOSWAP_BUILD" = "$1" ] || complain "the build's folder was not passed on"
	[ -f "$1/a file" ] || complain "the build's folder is not there"
	! touch /etc/rig-was-here 2>/dev/null || complain "the host's files can be written"
	touch /tmp/x /run/x /dev/shm/x || complain "a folder cannot be written"
	swapon --show && id -u && echo "written in the guest" >"$RIG_RESULTS/a result"
}

# On the host.
fail()
{
	echo "FAILED: $*" >&2
	sed 's/^/  output: /; 20q' "$work/out" >&2
	sed 's/^/  errors: /; 60q' "$work/err" >&2
	exit 1
}

# run STATUS OPTIONS... -- WORDS...: in the guest; output in $work/out, what the rig says in $work/err
run()
{
	local wanted=$1 options=() status
	shift

	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	"$rigs/$rig" --kernel "$kernel" --timeout 120 "${options[@]}" "$self" guest "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
	[ $status = "$wanted" ] || fail "exit status $status, not $wanted: $*"
	nothing_left "$*"
}

nothing_left()
{
	local pid

	for pid in $(pgrep -f "$FOLIOSWAP_RIG_CACHE/run\."); do
		fail "a process is left after $1: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done
	[ -z "$(find "$FOLIOSWAP_RIG_CACHE" -maxdepth 1 -name 'run.*')" ] || fail "a folder is left after $1"
}

check_output()
{
	run 0 -- status 0
	[ ! -s "$work/err" ] || fail "a rig says something although all is well"
	run 42 -- status 42
	run 77 -- status 77
	run 0 -- words "$said_odd" "" last
	printf '%s\n' 3 "$said_odd" "" last "on standard error" | cmp -s - "$work/out" || fail "words were changed"
	run 0 -- much
	seq 200000 | cmp -s - "$work/out" || fail "output was lost or changed"
	run 0 -- leave
}

check_guest()
{
	mkdir "$work/build" && : >"$work/build/a file"
	ASKED_FOR="a  value" NOT_ASKED_FOR=x FOLIOSWAP_BUILD=$work/build run 0 --mem 192M --cpus 1 --env ASKED_FOR \
		--sysctl vm.swappiness=42 --sysctl vm.page-cluster=1 --results "$work/results" -- look "$work/build"
	[ "$(cat "$work/results/a result")" = "written in the guest" ] || fail "a result did not come out"
	grep -q 'Linux version' "$work/results/console.log" || fail "no log of the console"
}

# The kernel's complaints, and lines that only resemble them.
check_complaints()
{
	run 123 -- say "BUG: made up by the self test"
	grep -q 'console: .*BUG: made up by the self test' "$work/err" || fail "the complaint is not shown"
	run 123 -- say "WARNING: possible recursive locking detected"
	run 123 -- say "rcu: INFO: rcu_sched self-detected stall on CPU"
	run 123 --sysctl kernel.hung_task_timeout_secs=2 -- frozen
	grep -q 'blocked' "$work/err" || fail "the hung task is not shown"
	run 0 -- say "DEBUG: all is well, no warning"
	run 0 --allow "made up" -- say "BUG: made up by the self test"
	run 125 -- power-off
	[ "$rig" = uml ] || run 123 -- panic
}

check_hang()
{
	local began=$SECONDS limit=$1 pid

	run 124 --timeout "$limit" -- hang
	[ $((SECONDS - began)) -le $((limit + 10)) ] || fail "a hung guest was killed after $((SECONDS - began)) s"
	grep -q 'about to hang' "$work/out" || fail "no output of a hung script"

	# The rig itself is ended, gently and not.
	for signal in TERM KILL; do
		: >"$work/out"
		"$rigs/$rig" --kernel "$kernel" "$self" guest hang >"$work/out" 2>"$work/err" </dev/null &
		pid=$!
		for _ in $(seq 1000); do
			! grep -q 'about to hang' "$work/out" || break
			sleep 0.1
		done
		grep -q 'about to hang' "$work/out" || fail "the script was not reached"
		kill -$signal $pid
		wait $pid 2>/dev/null
		[ $signal = KILL ] || nothing_left "signal $signal"
	done
	sleep 1
	# What a killed rig left in its folder is taken away by the next.
	run 0 -- status 0
}

check_bad_input()
{
	for words in "" "--frob $self" "--mem 12 $self" "--mem 0G $self" "--cpus 0 $self" "--timeout 1.5 $self" \
		"--sysctl x $self" "--env a-b $self" "--mem" "/nonexistent" "$work" "--kernel /nonexistent $self"; do
		# shellcheck disable=SC2086
		"$rigs/$rig" $words >"$work/out" 2>"$work/err" && fail "'$words' passed"
		[ "$(wc -l <"$work/err") $(wc -c <"$work/out")" = "1 0" ] || fail "not one line about '$words'"
		nothing_left "$words"
	done
}

if [ "${1-}" = guest ]; then
	shift
	in_guest "$@"
	exit
fi

"$rigs/../../tools/install-packages" e2fsprogs procps || exit 1
kernel=$("$rigs/kernel" "${1-uml}") || exit 1
rig=${1-uml}
rig=${rig%+debug}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/out"
: >"$work/err"
# One of its own, where no other rig runs.
export FOLIOSWAP_RIG_CACHE=$work/cache
mkdir "$FOLIOSWAP_RIG_CACHE"
unset FOLIOSWAP_BUILD
check_bad_input
check_output
check_guest
check_complaints
check_hang "$([ "$rig" = uml ] && echo 5 || echo 60)"
echo "$rig: all is well"
