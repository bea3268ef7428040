#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Servers are killed on ublk: threads that rewrite and compare their granules, then swap under a memory control group
# with every byte verified. Nothing is lost, no request fails. FOLIOSWAP_KILLS: how often (25, 200 with FOLIOSWAP_LONG).
. "$(dirname "$0")/ublk_lib.sh"
. "$(dirname "$0")/../e2e/takeover_lib.sh"

kills=${FOLIOSWAP_KILLS-25}
[ -z "${FOLIOSWAP_LONG-}" ] || kills=${FOLIOSWAP_KILLS-200}

# Kills the server every so often, so many times, while process $1 lives.
kill_servers() {
	killed=0
	while [ $killed -lt "$2" ] && ! is_gone "$1"; do
		sleep 0.5
		wait_for 20 find_server || fail "no server after $killed kills"
		kill -KILL "$server"
		wait_for 10 is_gone "$server" || fail "a killed server does not end"
		killed=$((killed + 1))
	done
}

check_taken() {
	wait_for 20 all_replaced "$killed" || fail "$killed kills, and $(taken_over) servers took over"
	[ "$(stat_of BLAMED)" = "" ] || [ "$(stat_of BLAMED)" = 0 ] || fail "requests were blamed"
	find_server
}

rewrite() {
	start_ublk --size 256M --codec lz4 --reserve 4M --mem-limit 512M
	"$FOLIOSWAP_BUILD/rewrite_check" "$node" 600 >"$work/check" 2>&1 &
	check=$!
	kill_servers $check "$kills"
	kill -TERM $check
	wait_for 60 is_gone $check || fail "rewrite_check hangs"
	wait $check || fail "rewrite_check: $(cat "$work/check")"
	say "$killed kills: $(cat "$work/check")"
	check_taken
	stop_ublk
}

swap() {
	start_ublk --size 512M --codec lz4 --reserve 4M --mem-limit 512M
	{ mkswap -q "$node" && swapon "$node"; } || fail "cannot swap to $node"
	"$load" seq-write --size 128M --limit 64M --passes 200 --content synthetic --cgroup folioswap-rig-$$ >"$work/load" 2>&1 &
	loader=$!
	sleep 3
	kill_servers $loader "$kills"
	is_gone $loader && fail "the load ended after $killed kills: $(cat "$work/load")"
	end_load $loader
	swapoff "$node" || fail "swapoff"
	check_taken
	say "$killed kills under swap"
	stop_ublk
}

rewrite
swap
