#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# del while add is still at work: both end in bounded time with one line that says what happened, and nothing is left.
. "$(dirname "$0")/cli_lib.sh"

U="--allow-unsafe --unit 64K --reserve 2M"

is_listed()
{
	[ -e /run/folioswap/0 ]
}

wait_until()
{
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 2000 ] || fail "never so: $*"
		sleep 0.005
	done
}

# add_behind OPTION...: its output in $T/add.out, $T/add.err (a pipe, as in run), its exit code in $T/add.code
add_behind()
{
	{
		{
			# shellcheck disable=SC2086
			timeout -s KILL 60 "$FS" add 64M $U "$@" > "$T/add.out"
			echo $? > "$T/add.code"
		} 2>&1 | grep -v ': warning: ' > "$T/add.err"
	} &
	adder=$!
	wait_until is_listed
}

# add_ends CODE: and what it said goes where one_line looks.
add_ends()
{
	wait $adder
	cp "$T/add.out" "$T/out"
	cp "$T/add.err" "$T/err"
	[ "$(cat "$T/add.code")" = "$1" ] || fail "add ended with $(cat "$T/add.code"), not $1"
}

# The setup waits for the server, which answers the kernel's first request after 2 s.
for moment in 0 0.02 0.1 0.5 1.5; do
	add_behind --fault delay=2s:op=flush
	sleep $moment
	run 0 "$FS" del 0
	one_line "just being set up"
	add_ends 1
	one_line "told to stop by 'folioswap del' before it was ready"
	[ ! -s "$T/out" ] || fail "add printed a node"
	nothing_left
done

# The device exists and is held by its own daemon alone, which waits for a udev that never ends its work.
made=
leave()
{
	code=$?
	trap - EXIT
	umount /run/udev
	[ -z "$made" ] || rmdir /run/udev
	(exit $code)
	cleanup
}
[ -d /run/udev ] || { mkdir /run/udev && made=1; }
mount -t tmpfs tmpfs /run/udev || fail "no tmpfs"
trap leave EXIT
: > /run/udev/control
: > /run/udev/queue
has_loop()
{
	grep -q '^/run/folioswap/0/' /sys/block/loop*/loop/backing_file 2> /dev/null
}
add_behind
wait_until has_loop
run 0 "$FS" del 0
one_line "just being set up"
add_ends 1
one_line "told to stop by 'folioswap del' before it was ready"
rm /run/udev/control
nothing_left

# In the middle of mkswap the device is in use: del says so, and add comes to its end.
command -v mkswap > /dev/null && command -v pgrep > /dev/null || exit 0
mkswap_runs()
{
	node=$("$FS" list -rno NODE 0 2> /dev/null) && [ -n "$node" ] && pgrep -f "^mkswap $node\$" > /dev/null
}
add_behind --swapon=5 --fault delay=4s:op=write:at=1
wait_until mkswap_runs
run 4 "$FS" del 0
one_line "mkswap"
add_ends 0
[ ! -s "$T/err" ] || fail "add complains"
node=$(cat "$T/out")
is_swapped_on "$node" || fail "not swapped on"
run 0 "$FS" del 0
nothing_left
