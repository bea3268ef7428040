#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# upgrade, again and again while a control group swaps to the device: every byte is verified, nobody notices. Binaries
# that are none are refused, and the device goes on. FOLIOSWAP_UPGRADES says how often (10; 50 with FOLIOSWAP_LONG).
. "$(dirname "$0")/cli_lib.sh"

U=--allow-unsafe
upgrades=${FOLIOSWAP_UPGRADES:-$([ -n "${FOLIOSWAP_LONG:-}" ] && echo 50 || echo 10)}
load=$FOLIOSWAP_BUILD/swapload
[ -x "$load" ] || skip "no swapload"

loader=
leave()
{
	code=$?
	trap - EXIT
	if [ -n "$loader" ]; then
		touch "$T/enough"
		kill -TERM "$(cat "$T/load.pid")" 2> /dev/null
		wait "$loader"
	fi
	(exit $code)
	cleanup
}
trap leave EXIT

column()
{
	"$FS" list -rnbo "$1" 0
}

# A dead server's last requests are answered by the next: none may have failed. The log forgets its oldest lines; with
# the mark itself gone, all that is left is younger.
mark="folioswap cli_upgrade $$"
io_errors()
{
	dmesg 2> /dev/null | awk -v mark="$mark" -v error="error, dev ${node#/dev/}," \
		'index($0, mark) { errors = 0 } index($0, error) { errors++ } END { print errors + 0 }'
}

start_load()
{
	rm -f "$T/enough"
	while [ ! -e "$T/enough" ]; do
		"$load" random --size 192M --limit 96M --passes 1 --duration 4 --workers 2 --content synthetic \
			--cgroup "folioswap-cli-$$" > "$T/load" 2>&1 &
		echo $! > "$T/load.pid"
		wait $! || exit
	done &
	loader=$!
}

end_load()
{
	touch "$T/enough"
	wait "$loader"
	code=$?
	loader=
	[ $code != 77 ] || skip "swapload: $(tail -n 1 "$T/load")"
	[ $code = 0 ] || fail "swapload ended with $code: $(cat "$T/load")"
}

load_goes_on()
{
	[ -z "$loader" ] || kill -0 "$loader" 2> /dev/null || end_load
}

wait_for_swap()
{
	tries=0
	while [ "$(awk -v n="$node" '$1 == n { print $4 }' /proc/swaps)" -lt 32768 ]; do
		load_goes_on
		tries=$((tries + 1))
		[ $tries -lt 600 ] || fail "the load does not swap"
		sleep 0.1
	done
}

# WORDS of upgrade; the server must be another one afterwards
upgrade()
{
	before=$(column SERVER)
	cpu_ns=$(column CPU)
	run 0 "$FS" upgrade "$@"
	no_error
	after=$(column SERVER)
	[ "$(column CPU)" -ge "$cpu_ns" ] || fail "CPU time was $cpu_ns ns, and is $(column CPU)"
	[ "$before" != "$after" ] || fail "the server is still $before"
	grep -q "^device 0: process $after (folioswapd .*) serves in place of $before; " "$T/out" ||
		fail "not what happened: $(cat "$T/out")"
	done_upgrades=$((done_upgrades + 1))
}

# TEXT WORDS...: a refusal, and the server is the same
refused()
{
	text=$1
	shift
	before=$(column SERVER)
	run 1 "$FS" upgrade "$@"
	one_line "$text"
	[ ! -s "$T/out" ] || fail "output although it failed"
	[ "$(column SERVER)" = "$before" ] || fail "another server although it was refused"
	load_goes_on
}

run 0 "$FS" add 1G $U --codec lz4 --reserve 4M --swapon=32767
node=$(cat "$T/out")
[ -n "$(column STANDBY)" ] || skip "a server is not replaced on this kernel"
echo "$mark" > /dev/kmsg
done_upgrades=0

start_load
wait_for_swap
while [ $done_upgrades -lt "$upgrades" ]; do
	upgrade 0
	load_goes_on
	sleep "0.$((done_upgrades % 8))"
done

# What it runs is what was asked for, the next standby as well; the file may go.
cp "$FOLIOSWAP_BUILD/folioswapd" "$T/new"
upgrade --binary "$T/new" "$node"
[ "$(readlink "/proc/$after/exe")" = "$T/new" ] || fail "the server runs $(readlink "/proc/$after/exe")"
rm "$T/new"
tries=0
while [ -z "$(column STANDBY)" ]; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || fail "no standby after an upgrade"
	sleep 0.1
done
[ "$(readlink "/proc/$(column STANDBY)/exe")" = "$T/new (deleted)" ] || fail "the standby runs another binary"
kill -KILL "$after"
tries=0
while [ "$(column SERVER)" = "$after" ]; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || fail "nobody takes over"
	sleep 0.1
done
[ "$(readlink "/proc/$(column SERVER)/exe")" = "$T/new (deleted)" ] || fail "the successor runs another binary"
kills=1

# Back to the one that add starts: beside the tool, and by PATH where there is none.
upgrade 0
[ "$(readlink "/proc/$after/exe")" = "$(realpath "$FOLIOSWAP_BUILD")/folioswapd" ] || fail "not the default binary"
mkdir "$T/alone"
cp "$FS" "$T/alone/folioswap"
tool=$FS
path=$PATH
FS=$T/alone/folioswap
PATH=$FOLIOSWAP_BUILD:$PATH
upgrade 0
FS=$tool
PATH=$path

# Not one of them costs the device anything.
refused "No such file or directory" --binary "$T/nothing" 0
refused "it is no file" --binary "$T" 0
refused "it is no folioswapd" --binary "$(command -v env)" 0
printf 'touch %s\n' "$T/was-run" > "$T/text"
refused "it is not executable" --binary "$T/text" 0
chmod +x "$T/text"
refused "it is no folioswapd" --binary "$T/text" 0
[ ! -e "$T/was-run" ] || fail "a text was given to a shell"
cp "$FOLIOSWAP_BUILD/folioswapd" "$T/mode"
chmod -x "$T/mode"
refused "it is not executable" --binary "$T/mode" 0
head -c 100000 "$FOLIOSWAP_BUILD/folioswapd" > "$T/half"
chmod +x "$T/half"
refused "cannot be the new server" --binary "$T/half" 0
# These look like one; only the keeper finds out.
printf '#!/bin/sh\necho folioswapd 77.0\n' > "$T/script"
chmod +x "$T/script"
refused "its old server goes on: " --binary "$T/script" 0
# The start block's magic number is another one in it, as it would be in another version.
LC_ALL=C sed 's/lofs/lofx/g' "$FOLIOSWAP_BUILD/folioswapd" > "$T/version"
chmod +x "$T/version"
if ! cmp -s "$FOLIOSWAP_BUILD/folioswapd" "$T/version"; then
	refused "its old server goes on: " --binary "$T/version" 0
fi
run 2 "$FS" upgrade --binary "/$(printf '%0250d' 0)" --timeout 0 0
one_line "from 1 to"
run 2 "$FS" upgrade
one_line "one device is needed"
run 5 "$FS" upgrade 7
one_line "no device '7'"

# And after all that it is as replaceable as ever.
upgrade 0
end_load
[ "$(column RECOVERIES)" = $((done_upgrades + kills)) ] || fail "$(column RECOVERIES) recoveries of $done_upgrades upgrades and $kills kills"
[ "$(column BLAMED)" = 0 ] || fail "$(column BLAMED) requests were blamed"
[ "$(column READ-ERRORS,WRITE-ERRORS)" = "0 0" ] || fail "requests failed"
[ "$(io_errors)" = 0 ] || fail "$(io_errors) I/O errors in the kernel's log"
run 0 "$FS" stat 0
grep -q "^RECOVERIES  *$((done_upgrades + kills)) " "$T/out" || fail "stat does not tell"
grep -q '^LAST-OUTAGE ' "$T/out" || fail "stat does not tell the outage"
run 0 "$FS" stat --openmetrics -
grep -q "^folioswap_recoveries_total{device=\"0\"} $((done_upgrades + kills))\$" "$T/out" || fail "metrics do not tell"
summary="$done_upgrades upgrades, $(column REQUEUED) requests asked again, worst outage $("$FS" list -rno WORST-OUTAGE 0)"
run 0 "$FS" del 0
nothing_left

# Where nobody can take over there is nothing to upgrade.
run 0 "$FS" add 64M $U --unit 64K --reserve 2M --no-standby
[ -z "$(column STANDBY)" ] || fail "a standby although none was wanted"
refused "is not replaced" 0
run 0 "$FS" del 0
nothing_left
echo "$summary"
