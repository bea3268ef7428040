#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Real swapping inside a memory control group, every byte verified; then the server is killed while most of the load
# is on the device: the load dies of it, nothing hangs, and after swapoff nothing is left.
. "$(dirname "$0")/lib.sh"

need_device
need_tools mkswap swapon swapoff
need_cgroup
load=$FOLIOSWAP_BUILD/swapload
[ -x "$load" ] || skip "no swapload"
[ "$(wc -l </proc/swaps)" = 1 ] || skip "this machine swaps already"

swap_it() {
	mkswap "$node" >/dev/null 2>&1 || fail "mkswap"
	swapon --discard -p 10 "$node" || fail "swapon"
}

start "$first_name" --size 1G --codec lz4
swap_it
timeout 120 "$load" random --size 256M --limit 128M --duration 5 --passes 1 --content synthetic --cgroup folioswap-e2e-$$ \
	>"$work/load" 2>&1
rc=$?
[ $rc = 77 ] && skip "swapload: $(cat "$work/load")"
[ $rc = 0 ] || fail "swapload ended with $rc: $(cat "$work/load")"
written=$(awk '{print $7}' "/sys/block/${node#/dev/}/stat")
[ "$written" -gt 262144 ] || fail "only $written sectors were written: no swapping took place"
swapoff "$node" || fail "swapoff"
stop

# The kill comes while the whole working set is on the device; another server brings it all back.
start "$first_name" --size 1G --codec lz4
swap_it
timeout 120 "$load" pageout --size 128M --passes 1 --content synthetic --limit 512M --cgroup folioswap-e2e-$$ \
	--hold-cmd "kill -KILL $server" >"$work/load" 2>&1 || fail "swapload over a killed server: $(cat "$work/load")"
grep -q 'another server has taken over' "$work/log.$name" || fail "nobody took over"
swapoff "$node" || fail "swapoff after a take-over"
stop

# Where nobody takes over, the next touch is a read of what is no more.
start "$first_name" --size 1G --codec lz4 --no-standby
swap_it
timeout 120 "$load" pageout --size 128M --passes 1 --content synthetic --limit 512M --cgroup folioswap-e2e-$$ \
	--hold-cmd "kill -KILL $server" >"$work/load" 2>&1 &
victim=$!
wait_for 60 is_gone "$server" || fail "nothing was paged out: $(cat "$work/load")"
wait_for 60 is_gone "$victim" || fail "the load hangs on a dead device"
wait "$victim" && fail "the load says that all was right"
grep -qi 'bus\|signal 7' "$work/load" || say "the load died otherwise: $(cat "$work/load")"
swapoff "$node" || fail "swapoff of the dead device"
end_of "$keeper" 10
[ "$rc" = 1 ] || fail "the keeper ended with $rc, not 1"
check_gone "$name" "$server"
