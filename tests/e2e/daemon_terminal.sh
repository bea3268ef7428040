#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In the foreground of a terminal, lines carry no "<N>" for a journal: neither the keeper's nor, through its pipe, those
# of a server that takes over.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/takeover_lib.sh"

need_device
need_tools script setpriv

# The keeper is the child of script's shell, or took its place.
find_keeper() {
	keeper=$(pgrep -o -f -- "^$daemon --name $first_name ")
}

said() {
	grep -q "$1" "$work/terminal"
}

name=$first_name
started=$name
: >"$work/ready.$name"
script -q -f -c "exec $daemon --name $name --foreground --allow-unsafe --size 64M --ready-fd 3 3>$work/ready.$name" \
	"$work/terminal" </dev/null >/dev/null 2>&1 &
wait_for 60 has_line "$work/ready.$name" || fail "no device: $(cat "$work/terminal")"
find_keeper || fail "no keeper"
keepers=$keeper
wait_for 10 find_server || fail "no server"
takeovers=0
takeover() {
	wait_for 10 standby_of "$keeper" >/dev/null || skip "a server is not replaced on this kernel"
	find_server || fail "no server"
	kill -KILL "$server"
	takeovers=$((takeovers + 1))
	wait_for 20 has_taken_over || fail "nobody took over: $(cat "$work/terminal")"
}

has_taken_over() {
	[ "$(grep -c 'another server has taken over' "$work/terminal")" = $takeovers ]
}

# The second successor was started when the keeper already logged through a pipe.
takeover
takeover
# A server's own line: only root is heard.
find_server || fail "no server"
chmod 755 /run/folioswap "/run/folioswap/$name"
chmod 777 "/run/folioswap/$name/control"
setpriv --reuid 65534 --regid 65534 --clear-groups "$FOLIOSWAP_BUILD/control_probe" "$name" info >/dev/null 2>&1 &&
	fail "nobody is heard"
chmod 700 /run/folioswap "/run/folioswap/$name"
wait_for 10 said 'refused a connection' || fail "the server says nothing"
kill -TERM "$keeper"
wait_for 20 is_gone "$keeper" || fail "the keeper does not end"
said 'folioswapd: device' || fail "nothing was said: $(cat "$work/terminal")"
! said '<[0-9]>' || fail "priorities on a terminal: $(cat "$work/terminal")"
