#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# storm.sh TRANSPORT [kill | VARIANT]: the whole machine swaps, without any control group: programs, daemon and kernel share its
# little memory. No hang, no wrong byte, nobody killed, no access that takes too long. With kill the server is killed on the
# way: what it leaves stays in memory, and another one takes over where nothing can be started. Variants are those of
# storm_must_fail.sh.
# FOLIOSWAP_STORM_SECONDS: how long (120; 600 with FOLIOSWAP_LONG).
#
# Of 192 MiB 164 are free at first, and about 120 beside the daemon, its standby and an empty image; the image then takes
# what is swapped out, and what was freed but not discarded. 3 x 44 MiB passes as well; 3 x 60 is more than fits: writes
# are refused and accesses take half a minute.
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/../e2e/takeover_lib.sh"

transport=$1
seconds=120
stall_seconds=5 # a machine that runs other things, too; the bar itself is 2 s, of the long tier
[ -z "${FOLIOSWAP_LONG-}" ] || seconds=600 stall_seconds=2
seconds=${FOLIOSWAP_STORM_SECONDS-$seconds}

# Without the right to lock memory the daemon goes on, since start gives --allow-unsafe.
unlock()
{
	cat >"$work/unlocked" <<END
#!/bin/sh
exec setpriv --bounding-set -ipc_lock prlimit --memlock=0:0 "$daemon" "\$@"
END
	chmod +x "$work/unlocked"
	daemon=$work/unlocked
}

variant=${2-}
kills=
set -- --transport "$transport" --size 192M --codec lz4 --slots 2 --mem-limit 96M
case $variant in
unlocked) unlock && kills=1 ;;
kill) kills=1 ;;
no-reserve) set -- "$@" --reserve 0 ;;
fuse) set -- "$@" --merge ;;
esac
start "$first_name" "$@"
{ mkswap -q "$node" && swapon "$node"; } || fail "cannot swap to $node"
say "the storm begins"
"$FOLIOSWAP_BUILD/storm_check" 3 "${FOLIOSWAP_STORM_MIB-40}" "$seconds" >"$work/storm" 2>&1 &
storm=$!
if [ -n "$kills" ]; then
	sleep $((seconds / 2))
	find_server && kill -KILL "$server"
fi
wait_for $((seconds + 60)) is_gone $storm || fail "the storm does not end"
wait $storm || fail "storm_check: $(grep -v ': memory at' "$work/storm"; grep ': memory at' "$work/storm")"
say "$transport: $(tail -n 1 "$work/storm")"
if [ -n "$kills" ]; then
	grep -q 'another server has taken over' "$work/log.$name" || fail "nobody took over"
else
	slowest=$(sed -n 's/.*slowest \([0-9]*\)\..*/\1/p' "$work/storm")
	[ "$slowest" -lt $stall_seconds ] || fail "one access took $slowest s"
fi
swapoff "$node" || fail "swapoff"
find_server
stop
