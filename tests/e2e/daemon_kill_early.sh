#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Killed at any moment of its start, keeper or server, a daemon leaves no process and no loop device; what a dead keeper
# leaves in its directory does not hinder the next one. The moments are spread over the whole start, 2 ms apart.
. "$(dirname "$0")/lib.sh"

need_device

children_of() {
	pgrep -P "$1" || true
}

loop_is_gone() {
	[ -z "$(loops_of "$first_name")" ]
}

kill_keeper_after() {
	launch "$first_name" --size 256M --reserve 2M --allow-unsafe
	sleep "$1"
	children=$(children_of "$keeper")
	kill -KILL "$keeper"
	for pid in $children; do
		wait_for 5 is_gone "$pid" || fail "killed after $1 s: process $pid is left"
	done
	wait_for 5 loop_is_gone || fail "killed after $1 s: $(loops_of "$first_name") is left"
}

kill_server_after() {
	launch "$first_name" --size 256M --reserve 2M --allow-unsafe --no-standby
	sleep "$1"
	for pid in $(children_of "$keeper"); do
		kill -KILL "$pid" 2>/dev/null
	done
	if ! wait_for 1 is_gone "$keeper"; then # nobody to kill yet, or the helper only
		kill -TERM "$keeper"
	fi
	end_of "$keeper" 10
	check_gone "$first_name"
}

i=0
while [ $i -lt 50 ]; do
	delay=$(printf '0.%03d' $((i * 2)))
	kill_keeper_after "$delay"
	[ $((i % 2)) = 0 ] && clean_name "$first_name" # else the next start finds the remains
	i=$((i + 1))
done
start "$first_name" --size 64M
stop
i=0
while [ $i -lt 50 ]; do
	kill_server_after "$(printf '0.%03d' $((i * 2)))"
	i=$((i + 1))
done
start "$first_name" --size 64M
stop
