#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A server after the other is upgraded while its device is written, compared and swapped to, with deaths in between. No
# byte is wrong, no request fails, and where the driver has QUIESCE an upgrade makes none come again.
# FOLIOSWAP_UPGRADES: how many (6, 50 with FOLIOSWAP_LONG).
. "$(dirname "$0")/ublk_lib.sh"
. "$(dirname "$0")/../e2e/takeover_lib.sh"

upgrades=${FOLIOSWAP_UPGRADES-6}
[ -z "${FOLIOSWAP_LONG-}" ] || upgrades=${FOLIOSWAP_UPGRADES-50}

requeued() {
	count=$(stat_of REQUEUED)
	echo "${count:-0}"
}

# Sets calm to no where requests came again.
upgrade() {
	before=$server
	again=$(requeued)
	"$cli" upgrade "$name" >"$work/upgrade" 2>&1 || fail "upgrade: $(cat "$work/upgrade")"
	wait_for 10 find_server || fail "no server after an upgrade"
	[ "$server" != "$before" ] || fail "server $server is still the same after an upgrade"
	[ "$(requeued)" = "$again" ] || calm=no
}

kill_one() {
	find_server
	kill -KILL "$server"
	wait_for 10 is_gone "$server" || fail "a killed server does not end"
	wait_for 20 find_server || fail "no server after a kill"
}

# upgrade_under PROCESS N: N upgrades while it lives; before every third one the server is killed.
upgrade_under() {
	calm=yes
	for round in $(seq "$2"); do
		! is_gone "$1" || fail "the load ended before upgrade $round: $(cat "$work/load")"
		[ $((round % 3)) != 0 ] || kill_one
		upgrade
		sleep 0.3
	done
	! is_gone "$1" || fail "the load ended: $(cat "$work/load")"
	! grep -q 'transport has ended' "$work/log.$name" || fail "an upgrade looks like a failure: $(cat "$work/log.$name")"
	[ "$(stat_of BLAMED)" = "" ] || [ "$(stat_of BLAMED)" = 0 ] || fail "requests were blamed"
}

rewrite() {
	start_ublk --size 256M --codec lz4 --reserve 4M --mem-limit 512M
	"$FOLIOSWAP_BUILD/rewrite_check" "$node" 600 >"$work/load" 2>&1 &
	loader=$!
	sleep 1
	upgrade_under $loader "$1"
	end_load $loader
	say "$1 upgrades while it was rewritten: $(cat "$work/load")"
	stop_ublk
}

swap() {
	start_ublk --size 512M --codec lz4 --reserve 4M --mem-limit 512M
	{ mkswap -q "$node" && swapon "$node"; } || fail "cannot swap to $node"
	"$load" seq-write --size 128M --limit 64M --passes 200 --content synthetic --cgroup folioswap-rig-$$ >"$work/load" 2>&1 &
	loader=$!
	sleep 3
	upgrade_under $loader "$1"
	end_load $loader
	swapoff "$node" || fail "swapoff"
	say "$1 upgrades under swap"
	stop_ublk
}

rewrite "$upgrades"
[ $calm = yes ] || fail "the driver has QUIESCE, and requests came again at an upgrade"
swap "$upgrades"
[ $calm = yes ] || fail "the driver has QUIESCE, and requests came again at an upgrade under swap"
export FOLIOSWAP_UBLK_WITHOUT=QUIESCE
rewrite 3
