#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The server is killed again and again while it works: another one takes over, every byte is right, no request fails.
# FOLIOSWAP_KILLS says how often (25; 200 with FOLIOSWAP_LONG).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/takeover_lib.sh"

need_device
need_tools fio

kills=${FOLIOSWAP_KILLS:-$([ -n "${FOLIOSWAP_LONG:-}" ] && echo 200 || echo 25)}

random_s() {
	od -An -N2 -tu2 /dev/urandom | awk -v most="$1" '{ printf "%.3f", $1 % most / 1000 }'
}

start "$first_name" --size 512M --codec lz4 --frame 64K --reserve 4M --mem-limit 1G
# No thread that touches requests has a capability, and nothing in the process dumps core or gains any.
for task in /proc/"$server"/task/*; do
	case $(cat "$task/comm") in
	io-* | fs-*) grep -q '^CapPrm:[[:space:]]*0*$' "$task/status" || fail "$(cat "$task/comm") has capabilities" ;;
	*) grep -q '^CapPrm:[[:space:]]*[0-9a-f]*$' "$task/status" || fail "no capabilities in $task/status" ;;
	esac
	grep -q '^NoNewPrivs:[[:space:]]*1' "$task/status" || fail "$(cat "$task/comm") may gain privileges"
done
grep -q '^Max core file size *0 *0 ' "/proc/$server/limits" || fail "the server may dump core"

verify_begin
done_kills=0
while [ $done_kills -lt "$kills" ]; do
	# Not faster: after more than 30 deaths in ten seconds the keeper gives up.
	sleep 0.2
	sleep "$(random_s 500)"
	verify_goes_on
	wait_for 10 find_server || fail "no server after $done_kills kills"
	kill -KILL "$server"
	wait_for 10 is_gone "$server" || fail "a killed server does not end"
	done_kills=$((done_kills + 1))
done
verify_end
wait_for 20 all_replaced $done_kills || fail "$done_kills kills, and $(taken_over) servers took over"
stop
