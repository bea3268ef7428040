#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Swap on and off, with a memory control group that swaps: del waits for swapoff, but not for ever.
. "$(dirname "$0")/cli_lib.sh"

U=--allow-unsafe
command -v python3 > /dev/null || skip "no python3"

make_cgroup

hog=
leave()
{
	code=$?
	trap - EXIT
	[ -z "$hog" ] || kill -KILL "$hog" 2> /dev/null
	sleep 0.3
	rmdir "$G"
	(exit $code)
	cleanup
}
trap leave EXIT
echo $((16 << 20)) > "$G/$limit" || skip "no memory limit can be set"

run 0 "$FS" add 256M $U --swapon=11
no_error
node=$(cat "$T/out")
is_swapped_on "$node" || fail "not swapped on"
[ "$(awk -v n="$node" '$1 == n { print $5 }' /proc/swaps)" = 11 ] || fail "not of priority 11"
run 0 "$FS" list -rno PRIO,SWAPPED
grep -q '^11 ' "$T/out" || fail "list does not see the priority"
run 0 "$FS" doctor --help
run 0 "$FS" del "$node"
! is_swapped_on "$node" || fail "still swapped on"
nothing_left

# Switched off by the user before, and without swap at all.
run 0 "$FS" add 256M $U --swapon
swapoff "$(cat "$T/out")" || fail "swapoff"
run 0 "$FS" del 0
nothing_left

# A process that keeps most of its 48 MiB in swap; a read takes 2 ms, so that swapoff takes half a minute.
run 0 "$FS" add 256M $U --swapon=32767 --fault delay=2ms:op=read
node=$(cat "$T/out")
sh -c "echo \$\$ > '$G/cgroup.procs' && exec python3 -c '
import os, random, sys, time
block = random.Random(1).randbytes(1 << 20)
held = [bytearray(block) for i in range(48)]
open(sys.argv[1], \"w\").close()
time.sleep(600)' '$T/full'" &
hog=$!
tries=0
while [ ! -e "$T/full" ]; do
	tries=$((tries + 1))
	[ $tries -lt 600 ] || fail "the process does not get its memory"
	sleep 0.1
done
used=$(awk -v n="$node" '$1 == n { print $4 }' /proc/swaps)
[ "$used" -gt 16384 ] || fail "only $used KiB are swapped out"
run 0 "$FS" list --json -o SWAPPED,EFFECTIVE,DEAD,DATA
python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))["devices"][0]
assert d["swapped"] > 16 << 20 and d["effective"] > 0 and 0 <= d["dead"] <= 1, d' "$T/out" || fail "figures of a swapped-on device"

# Room to come back, so that only time is missing.
echo $((1 << 30)) > "$G/$limit" || fail "the limit cannot be raised"
start=$(date +%s)
run 4 "$FS" del 0 --timeout 1
one_line "did not end within 1 s"
took=$(($(date +%s) - start))
[ $took -le 20 ] || fail "it took $took s to give up"
is_swapped_on "$node" || fail "no longer swapped on although it was refused"
run 0 "$FS" list -rno NAME,STATE
[ "$(cat "$T/out")" = "0 up" ] || fail "the device is not as it was"
kill -0 "$hog" || fail "the process whose memory is swapped out is gone"

kill -KILL "$hog"
wait "$hog" 2> /dev/null
hog=
run 0 "$FS" del 0
! is_swapped_on "$node" || fail "still swapped on"
nothing_left
