#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Faults under a load that swaps inside a memory control group: a server that dies and reads that fail end the load by
# an error, never by a hang or by wrong bytes; failed writes lose nothing. Then a swapoff for which there is no room.
. "$(dirname "$0")/lib.sh"

need_device
need_tools mkswap swapon swapoff timeout
need_cgroup
load=$FOLIOSWAP_BUILD/swapload
cli=$FOLIOSWAP_BUILD/folioswap
[ -x "$load" ] || skip "no swapload"
[ -x "$cli" ] || skip "no folioswap"
[ "$(wc -l </proc/swaps)" = 1 ] || skip "this machine swaps already"

# swap_with RULE
swap_with() {
	: >"$work/log.$first_name"
	start "$first_name" --size 512M --codec lz4 --no-standby --fault "$1"
	mkswap "$node" >/dev/null 2>&1 || fail "mkswap"
	swapon --discard -p 10 "$node" || fail "swapon"
}

# run_load CODE OPTION...: no byte may be wrong, whatever the exit code.
run_load() {
	wanted=$1
	shift
	timeout -s KILL 120 "$load" "$@" --content synthetic --no-thp --workers 2 --cgroup folioswap-e2e-$$ >"$work/load" 2>&1
	rc=$?
	[ $rc = 77 ] && skip "swapload: $(cat "$work/load")"
	[ $rc = 137 ] && fail "the load hangs"
	grep -q WRONG "$work/load" && fail "wrong bytes: $(cat "$work/load")"
	[ $rc = "$wanted" ] || fail "the load ended with $rc, not $wanted: $(cat "$work/load")"
}

log_says() {
	wait_for 5 grep -q "$1" "$work/log.$name" || fail "the log does not say: $1"
}

# The server is dead under its device. end: what switches swap off, if the load has not done it.
check_dead() {
	log_says "$1"
	[ "$2" = none ] || log_says "$node is swapped on and what it held is lost"
	is_gone "$server" || fail "the server lives"
	case $2 in
	swapoff) timeout -s KILL 60 swapoff "$node" || fail "swapoff of the dead device" ;;
	del) timeout -s KILL 60 "$cli" del "$name" >"$work/del" 2>&1 || fail "del: $(cat "$work/del")" ;;
	esac
	is_swapped_on "$node" && fail "$node is still swapped on"
	end_of "$keeper" 10
	[ "$rc" = 1 ] || fail "the keeper ended with $rc, not 1"
	check_gone "$name" "$server" "$keeper"
}

# dies RULE LOG-LINE END LOAD...
dies() {
	says=$2 end=$3
	swap_with "$1"
	shift 3
	run_load 1 "$@"
	grep -q 'was killed by signal [79] ' "$work/load" || fail "the load died otherwise: $(cat "$work/load")"
	check_dead "$says" "$end"
}

# del_it: the server lived through it all.
del_it() {
	is_gone "$server" && fail "the server is dead"
	timeout -s KILL 60 "$cli" del "$name" >"$work/del" 2>&1 || fail "del: $(cat "$work/del")"
	is_swapped_on "$node" && fail "$node is still swapped on"
	end_of "$keeper" 10
	[ "$rc" = 0 ] || fail "the keeper ended with $rc, not 0"
	check_gone "$name" "$server" "$keeper"
}

export node cli name work
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:handle_sigbus=0" # a load of that build, too, dies of the signal itself
killed='the server was killed by signal 9'
dies kill:op=write:at=3000 "$killed" swapoff seq-write --size 128M --limit 48M --passes 2
dies kill:op=read:at=500 "$killed" del seq-write --size 128M --limit 48M --passes 2
dies exit:op=write:at=3000 'the server has ended with exit code 1' del random --size 96M --limit 32M --duration 20
# In the middle of a swapoff: that ends, and the load misses what did not come back.
# shellcheck disable=SC2016
dies kill:op=read:at=500 "$killed" none pageout --size 64M --passes 1 --hold-cmd 'timeout -s KILL 60 swapoff "$node"'

# A page that cannot be read is the end of who needs it, and of nothing else.
swap_with error=EIO:op=read:at=500
run_load 1 seq-write --size 128M --limit 48M --passes 2
grep -q 'was killed by signal 7 ' "$work/load" || fail "the load died otherwise: $(cat "$work/load")"
run_load 0 seq-write --size 128M --limit 48M --passes 2
del_it
# A page that cannot be written stays in memory until a later try.
swap_with error=EIO:op=write:every=50,error=ENOSPC:op=write:every=71
run_load 0 seq-write --size 128M --limit 48M --passes 2
grep -q 'every byte right' "$work/load" || fail "nothing was verified: $(cat "$work/load")"
del_it

# What is in swap does not fit into the group's limit and nobody in it may be killed for that, which version 1 can say:
# swapoff fails, and nothing is deleted. With room it succeeds, and the load finds every byte.
version1=$(awk '$(NF-2) == "cgroup" && $NF ~ /(^|,)memory(,|$)/ {print $5; exit}' /proc/self/mountinfo)
if [ -z "$version1" ]; then
	say "no memory group of version 1: swapoff without room is not looked at"
	exit 0
fi
cat >"$work/no_room" <<'END'
set -e
group=$(find "$1" -type d -name "$2")
used=$(awk -v n="$node" '$1 == n {print $4}' /proc/swaps)
[ "$used" -gt 65536 ]
echo 1 >"$group/memory.oom_control"
rc=0
timeout -s KILL 60 "$cli" del "$name" 2>"$work/del" || rc=$?
cat "$work/del"
[ $rc = 4 ]
grep -q 'do not fit into free memory' "$work/del"
[ "$(wc -l <"$work/del")" = 1 ]
grep -q "^$node " /proc/swaps
[ "$("$cli" list -rno NAME,STATE "$name")" = "$name up" ]
echo 512M >"$group/memory.limit_in_bytes"
echo 0 >"$group/memory.oom_control"
timeout -s KILL 60 swapoff "$node"
END
swap_with ''
run_load 0 seq-write --size 128M --limit 32M --passes 1 --hold-cmd "sh -x $work/no_room $version1 folioswap-e2e-$$"
grep -q 'every byte right' "$work/load" || fail "nothing was verified: $(cat "$work/load")"
del_it
