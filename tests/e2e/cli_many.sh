#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Devices come and go: 50 times in a row, several at once, interrupted, and with processes of their daemon killed.
. "$(dirname "$0")/cli_lib.sh"

U=--allow-unsafe

i=0
while [ $i -lt 50 ]; do
	run 0 "$FS" add 64M $U --unit 64K --reserve 2M
	run 0 "$FS" del 0
	nothing_left
	i=$((i + 1))
done

# At once: each gets a number and a node of its own.
pids=
for i in 1 2 3 4; do
	"$FS" add 64M $U --unit 64K --reserve 2M > "$T/add$i" 2>> "$T/err" &
	pids="$pids $!"
done
for pid in $pids; do
	wait "$pid" || fail "one of four adds at once failed"
done
[ "$(cat "$T"/add? | sort -u | wc -l)" = 4 ] || fail "not four nodes: $(cat "$T"/add?)"
run 0 "$FS" list -rno NAME
[ "$(tr '\n' ' ' < "$T/out")" = "0 1 2 3 " ] || fail "not four numbers"
run 0 "$FS" del 1
run 0 "$FS" add 64M $U --unit 64K --reserve 2M
run 0 "$FS" list -rno NAME
[ "$(tr '\n' ' ' < "$T/out")" = "0 1 2 3 " ] || fail "the lowest free number was not taken"
run 0 "$FS" del --all
nothing_left

# Output in a pipe: whoever reads it sees its end although the daemon lives on.
run 0 sh -c "timeout 20 sh -c '\"$FS\" add 64M $U --unit 64K --reserve 2M 2>&1 | cat' > /dev/null"
run 0 "$FS" del 0
nothing_left

# Interrupted while the daemon is starting: nothing is left.
for signal in INT TERM HUP; do
	setsid "$FS" add 64M $U --unit 64K --reserve 2M --fault delay=2s > "$T/out" 2> "$T/err" &
	pid=$!
	sleep 0.3
	kill -$signal "$pid" 2> /dev/null
	wait "$pid"
	code=$?
	if [ $code = 0 ]; then
		run 0 "$FS" del 0 # it was ready before the signal came
	else
		[ $code = 1 ] || fail "interrupted add ended with $code"
		sed -i '/^<[0-9]>folioswapd: /d' "$T/err" # a file as stderr takes the daemon's log, too
		one_line "interrupted"
	fi
	nothing_left
done

# Server killed: the tool waits for the next one, and nothing is amiss. Several times, the standby once as well.
run 0 "$FS" add 64M $U --unit 64K --reserve 2M
node=$(cat "$T/out")
head -c 1048576 /dev/urandom > "$T/data"
dd if="$T/data" of="$node" bs=64k oflag=direct status=none || fail "write"
kills=0
if [ -n "$("$FS" list -rno STANDBY 0)" ]; then
	while [ $kills -lt 5 ]; do
		victims=$("$FS" list -rno SERVER 0)
		[ $kills != 3 ] || victims="$("$FS" list -rno STANDBY 0) $victims"
		for pid in $victims; do
			kill -KILL "$pid" || fail "no process $pid"
		done
		run 0 "$FS" set 0 --codec lz4:$((kills + 1))
		run 0 "$FS" list -rno NAME,STATE,CODEC 0
		[ "$(cat "$T/out")" = "0 up lz4:$((kills + 1))" ] || fail "what was set is not so after $kills kills"
		dd if="$node" bs=64k count=16 iflag=direct status=none | cmp - "$T/data" || fail "other bytes after a kill"
		kills=$((kills + 1))
	done
	[ "$("$FS" list -rno RECOVERIES,BLAMED 0)" = "5 0" ] || fail "$("$FS" list -rno RECOVERIES,BLAMED 0), not 5 0"
	kill -KILL "$("$FS" list -rno SERVER 0)"
fi
run 0 "$FS" del 0
nothing_left

# Where nobody takes over, the keeper takes the device down by itself.
run 0 "$FS" add 64M $U --unit 64K --reserve 2M --no-standby
! grep -q 'if its server dies' "$T/err" || fail "a warning of what was asked for"
kill -KILL "$("$FS" list -rno SERVER 0)"
tries=0
while [ -n "$(ls -A /run/folioswap)" ]; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || fail "a device whose server is dead stays"
	sleep 0.1
done
run 5 "$FS" stat 0
nothing_left

# Keeper killed: the device is called dead, everything else goes on, del takes the rest down.
run 0 "$FS" add 64M $U --unit 64K --reserve 2M
run 0 "$FS" add 64M $U --unit 64K --reserve 2M
keeper=$("$FS" list -rno KEEPER 0)
for pid in $(our_daemons); do
	[ "$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status" 2> /dev/null)" = "$keeper" ] && servers="${servers:-} $pid"
done
kill -KILL "$keeper"
for pid in ${servers:-}; do
	kill -KILL "$pid" 2> /dev/null
done
sleep 0.2
run 1 "$FS" list -rno NAME,STATE
grep -q '^0 dead$' "$T/out" || fail "0 is not called dead"
grep -q '^1 up$' "$T/out" || fail "1 is not up"
run 1 "$FS" stat 0
one_line "'folioswap del 0' cleans up"
run 1 "$FS" set 0 --codec lz4
run 1 "$FS" doctor
grep -q '^FAIL devices: device 0' "$T/out" || fail "doctor does not see the dead device"
run 0 "$FS" del 0
run 0 "$FS" list -rno NAME,STATE
[ "$(cat "$T/out")" = "1 up" ] || fail "1 is not what is left"
run 0 "$FS" del 1
nothing_left
