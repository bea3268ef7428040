#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Three threads rewrite their granules and compare at once, over upgrades and kills: not one old byte. Two daemons that
# take over in the wrong order (requests called for again after the first receive; a predecessor that is not reaped)
# must be seen to fail here, or this script is worth nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/takeover_lib.sh"

need_device
upgrades=10
slow_writes=delay=60ms:op=write:chance=8

# Replaces the server, by kill or upgrade, until it was done often enough or the load has ended; sets rc to the load's.
replace_under_load() {
	start "$first_name" --size 256M --codec lz4 --reserve 4M --mem-limit 1G --fault $slow_writes
	"$FOLIOSWAP_BUILD/rewrite_check" "$node" 60 >"$work/check" 2>&1 &
	check=$!
	i=0
	while [ $i -lt "$2" ] && ! is_gone $check; do
		sleep 0.4 # more often is a storm, which the keeper ends
		if [ "$1" = upgrade ]; then
			"$FOLIOSWAP_BUILD/folioswap" upgrade --binary "$daemon" "$name" >>"$work/log.upgrade" 2>&1
		else
			wait_for 10 find_server && kill -KILL "$server" 2>/dev/null
		fi
		i=$((i + 1))
	done
	sleep 0.5
	is_gone $check || kill -TERM $check
	wait_for 30 is_gone $check || fail "rewrite_check hangs"
	wait $check
	rc=$?
	say "$daemon, $1: rewrite_check ended with $rc after $i: $(cat "$work/check")"
	load_rc=$rc
	kill -TERM "$keeper"
	end_of "$keeper" 30
	[ -e "/run/folioswap/$name" ] && clean_name "$name"
	rc=$load_rc
	: >"$work/log.$first_name"
}

good=$daemon
for how in kill upgrade; do
	replace_under_load $how $upgrades
	[ $rc = 0 ] || fail "wrong bytes or errors"
done
daemon=${good}_resend_late
replace_under_load kill 100
[ $rc = 1 ] || fail "calling for requests again too late was not seen"
daemon=${good}_no_reap
replace_under_load upgrade 100
[ $rc != 0 ] || fail "a predecessor that is not reaped was not seen"
