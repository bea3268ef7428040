#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# tools/demo from end to end, shortened: what it prints as JSON, what it puts back, also when it fails or is stopped.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/cli_lib.sh"

command -v python3 > /dev/null || skip "no python3"
# What the demo's workload needs.
make_cgroup
rmdir "$G"
DEMO=$(cd "$(dirname "$0")/../../tools" && pwd)/demo
CLUSTER=/proc/sys/vm/page-cluster
THP=/sys/kernel/mm/transparent_hugepage/enabled
was_cluster=$(cat $CLUSTER)
demo=
leave()
{
	code=$?
	trap - EXIT
	[ -z "$demo" ] || kill -TERM "$demo" 2> /dev/null
	[ -z "$demo" ] || wait "$demo" 2> /dev/null
	echo "$was_cluster" > $CLUSTER
	(exit $code)
	cleanup
}
trap leave EXIT

# A setting that the demo has to change, and to put back.
echo 4 > $CLUSTER
thp=$(cat $THP 2> /dev/null)
zrams()
{
	for dir in /sys/block/zram*; do
		[ -e "$dir" ] && echo "${dir##*/} $(cat "$dir/disksize")"
	done
}
zrams_before=$(zrams)

all_back()
{
	nothing_left
	[ "$(cat $CLUSTER)" = 4 ] || fail "vm.page-cluster is left at $(cat $CLUSTER)"
	[ "$(cat $THP 2> /dev/null)" = "$thp" ] || fail "the huge page setting is left at $(cat $THP)"
	[ "$(zrams)" = "$zrams_before" ] || fail "zram devices are left: $(zrams)"
	! ls -d "${TMPDIR:-/tmp}"/folioswap-demo.* 2> /dev/null || fail "a directory is left"
	! grep -qs folioswap-demo- /proc/[0-9]*/cgroup || fail "a process in a control group is left"
	left=$(find /sys/fs/cgroup -type d -name 'folioswap-demo-*')
	[ -z "$left" ] || fail "a control group is left: $left"
}
TMPDIR=$T
export TMPDIR
# Half a minute where nothing else runs.
RUN_SECONDS=400

# What cannot be, said before anything is done.
run 0 "$DEMO" --help
grep -q -e '--json' "$T/out" || fail "no help"
run 2 "$DEMO" --frobnicate
run 2 "$DEMO" --size 64x
run 2 "$DEMO" --size 64M --limit 64M
[ "$(wc -l < "$T/err")" = 1 ] || fail "not one line about a wrong option"
FOLIOSWAP_BUILD=$T run 1 "$DEMO"
grep -q "there is no $T/folioswap" "$T/err" || fail "a missing program is not named"
all_back

# A workload that fails.
mkdir "$T/build"
ln -s "$FOLIOSWAP_BUILD/folioswap" "$FOLIOSWAP_BUILD/folioswapd" "$T/build"
printf '#!/bin/sh\necho "swapload: no luck today" >&2\nexit 1\n' > "$T/build/swapload"
chmod +x "$T/build/swapload"
FOLIOSWAP_BUILD=$T/build run 1 "$DEMO" --quick --frame 64K
grep -q 'no luck today' "$T/err" || fail "the reason of a failure is not told"
[ ! -s "$T/out" ] || fail "a table although it failed"
all_back

# A codec that is none.
run 1 "$DEMO" --quick --codec lzw
grep -q lzw "$T/err" || fail "the codec that is none is not named"
all_back

# A run.
run 0 "$DEMO" --quick --json --frame 64K
cp "$T/out" "$T/report"
all_back
python3 - "$T/report" "$T/err" << 'PY' || fail "the report is not right"
import json, sys
report = json.load(open(sys.argv[1]))
devices = {device["kind"]: device for device in report["devices"]}
assert report["kernel"] and report["versions"]["folioswap"] and report["machine"]["cpus"] >= 1, report
assert report["workload"]["size_bytes"] == 64 << 20, report["workload"]
zram_left_out = [note for note in report["notes"] if note.startswith("SKIPPED: zram")]
assert set(devices) == ({"folioswap"} if zram_left_out else {"folioswap", "zram"}), (devices.keys(), zram_left_out)
for device in devices.values():
    for key in ("ratio_effective", "dead_share", "ratio_payload", "ratio_stored", "ratio_resident",
                "resident_fixed_bytes", "out_mb_s", "in_mb_s", "cpu_s_per_gib", "major_faults", "fault_p50_us",
                "fault_p99_us", "ratio_effective_after_churn", "dead_share_after_churn"):
        assert isinstance(device[key], (int, float)), (key, device[key])
    assert 1 < device["ratio_stored"] <= device["ratio_payload"] < 20, device
    assert 0 < device["ratio_resident"] < device["ratio_stored"], device
    assert 0 <= device["dead_share"] < 0.5, device["dead_share"]
    assert 0 < device["ratio_effective"] <= device["ratio_stored"] * 1.05, device
    assert device["major_faults"] > 100 and device["cpu_s_per_gib"] > 0.1, device
    assert set(device["seq_write_mb_s_by_page_cluster"]) == {"3", "5"}, device
    for run in device["runs"]["pageout"] + device["runs"]["seq_write"]:
        # All of it went to this device and to no other.
        assert run["size_bytes"] == 64 << 20 and 0.9 < run["written_bytes"] / run["size_bytes"] < 4, run
    for run in device["runs"]["pageout"]:
        assert 0.95 < run["swapped"] / run["size_bytes"] < 1.05, run
latency = devices["folioswap"]["latency"]
assert {row["kind"] for row in latency} == {"read", "write"}, latency
assert all(0 < row["p50_ns"] <= row["p99_ns"] for row in latency), latency
if "zram" in devices:
    # Without read-ahead each page is a fault; with it there are fewer.
    assert devices["folioswap"]["major_faults"] < devices["zram"]["major_faults"], devices
text = open(sys.argv[2]).read()
assert not report["warnings"] or "allow-unsafe" in text, "it went on unsafely without a word"
PY

# Stopped in the middle of a run, like by ctrl-C, then by a signal to it alone.
for signal in INT TERM; do
	setsid sh -c "trap - INT; exec '$DEMO' --quick --frame 64K" > "$T/out" 2> "$T/err" < /dev/null &
	demo=$!
	tries=0
	until grep -qs folioswap-demo- /proc/[0-9]*/cgroup; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || fail "no workload starts"
		kill -0 "$demo" || fail "the demo ends early"
		sleep 0.1
	done
	kill -$signal "$demo"
	wait "$demo"
	code=$?
	demo=
	case $signal in
	INT) wanted=130 ;;
	TERM) wanted=143 ;;
	esac
	[ "$code" = "$wanted" ] || fail "after $signal: exit code $code, not $wanted"
	[ ! -s "$T/out" ] || fail "a table although it was stopped"
	all_back
done
