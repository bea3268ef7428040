#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Servers end themselves between the steps of publication, before and after recovery, between the replay of FUSE's
# first request, the call for requests in flight, and the first receive: nothing is lost.
# FOLIOSWAP_KILLS says how often at least (25; 200 with FOLIOSWAP_LONG).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/takeover_lib.sh"

need_device
need_tools fio

kills=25 chance=3000
# Not as fast, then: after more than 30 deaths in ten seconds the keeper gives up.
[ -z "${FOLIOSWAP_LONG:-}" ] || kills=200 chance=8000
kills=${FOLIOSWAP_KILLS:-$kills}
at_take_over=kill:step=recover:chance=8,kill:step=recovered:chance=8,kill:step=hello:chance=8,kill:step=resend:chance=8

enough_deaths() {
	verify_goes_on
	[ "$(grep -c 'killed by signal 9' "$work/log.$name")" -ge "$kills" ]
}

start "$first_name" --size 512M --codec lz4 --frame 64K --reserve 4M --mem-limit 1G --fault \
	kill:step=any:chance=$chance
verify_begin
wait_for 400 enough_deaths || fail "only $(taken_over) take-overs in 400 s"
verify_end
stop

start "$first_name" --size 512M --codec lz4 --frame 64K --reserve 4M --mem-limit 1G --fault $at_take_over
verify_begin
deaths=0
while [ "$deaths" -lt "$kills" ]; do
	verify_goes_on
	wait_for 20 find_server || fail "no server: $(tail -n 3 "$work/log.$name")"
	sleep 0.4
	kill -KILL "$server" 2>/dev/null
	deaths=$(grep -c 'killed by signal 9' "$work/log.$name")
done
verify_end
stop
