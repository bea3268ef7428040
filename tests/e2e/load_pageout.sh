#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# swapload pageout --thp sends whole huge pages out in every pass, not in the first one alone: the device sees requests
# of the transport's largest orders.
. "$(dirname "$0")/lib.sh"

need_device
need_tools mkswap swapon swapoff
need_cgroup
load=$FOLIOSWAP_BUILD/swapload
cli=$FOLIOSWAP_BUILD/folioswap
[ -x "$load" ] || skip "no swapload"
[ -x "$cli" ] || skip "no folioswap"
[ "$(wc -l </proc/swaps)" = 1 ] || skip "this machine swaps already"
grep -qs '\[never\]' /sys/kernel/mm/transparent_hugepage/enabled && skip "huge pages are switched off"
[ -e /sys/kernel/mm/transparent_hugepage/enabled ] || skip "no huge pages"

start "$first_name" --size 512M --codec lz4
mkswap "$node" >/dev/null 2>&1 || fail "mkswap"
swapon --discard -p 10 "$node" || fail "swapon"
# One line a pass: bytes written so far in requests of 1 MiB and more, and all of them.
cat >"$work/look" <<'END'
"$1" stat "$2" --orders --raw --bytes --noheadings |
	awk '$2 == "write" && $3 ~ /^[0-9]+$/ {all += $6; if ($4 >= 1048576) large += $6} END {print large + 0, all + 0}'
END
"$load" pageout --thp --size 64M --workers 1 --passes 3 --content synthetic --cgroup folioswap-e2e-$$ \
	--hold-cmd "sh '$work/look' '$cli' '$name' >>'$work/sums'" >"$work/load" 2>&1 || fail "$(cat "$work/load")"
[ "$(wc -l <"$work/sums")" = 3 ] || fail "not three passes: $(cat "$work/sums")"
awk '{
	large = $1 - last_large; all = $2 - last_all
	last_large = $1; last_all = $2
	if (all < 0.9 * 67108864 || large < 0.9 * all) {
		print "pass " NR ": " large " of " all " bytes in large requests"
		bad = 1
	}
} END {exit bad}' "$work/sums" || fail "not whole huge pages"
swapoff "$node" || fail "swapoff"
stop
