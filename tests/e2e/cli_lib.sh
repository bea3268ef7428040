# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# For the cli_*.sh tests: sourced first. Runs the test again in a mount
# namespace of its own with an empty /run/folioswap, so that it sees its own
# devices only, and takes them down at the end.
#
#   run CODE COMMAND...   runs it; its exit code must be CODE; output in $T/out, $T/err
#   one_line TEXT         $T/err must be one line of folioswap's own, with TEXT in it
#   nothing_left          no device, daemon, mount or swap of this test remains
#   make_cgroup           a memory control group, $G, whose limit is in its file $limit; skips where there can be none
#   skip WHY, fail WHY

set -u

skip()
{
	echo "skipped: $*"
	exit 77
}

fail()
{
	echo "FAILED: $*" >&2
	[ -z "${T:-}" ] || sed 's/^/  stdout: /; 40q' "$T/out" >&2
	[ -z "${T:-}" ] || sed 's/^/  stderr: /; 40q' "$T/err" >&2
	exit 1
}

: "${FOLIOSWAP_BUILD:?directory of the built programs}"
FS=$FOLIOSWAP_BUILD/folioswap
[ -x "$FS" ] || fail "$FS is not there"
[ -x "$FOLIOSWAP_BUILD/folioswapd" ] || fail "$FOLIOSWAP_BUILD/folioswapd is not there"
[ "$(id -u)" = 0 ] || skip "not root"
[ -c /dev/fuse ] || skip "no /dev/fuse"
[ -c /dev/loop-control ] || skip "no loop devices"

if [ -z "${CLI_TEST_NAMESPACE:-}" ]; then
	CLI_TEST_NAMESPACE=1
	export CLI_TEST_NAMESPACE
	unshare --mount --propagation private true || skip "no mount namespace"
	exec unshare --mount --propagation private sh "$0" "$@"
fi
mkdir -p /run/folioswap
# Copies of mounts that devices outside have: a copy would keep them from ending.
awk '$2 ~ "^/run/folioswap/" { print $2 }' /proc/self/mounts | while read -r point; do
	umount -l "$point"
done
mount -t tmpfs -o mode=0700 tmpfs /run/folioswap || skip "no tmpfs"

T=$(mktemp -d)
: > "$T/out"
: > "$T/err"
NAMESPACE=$(readlink /proc/self/ns/mnt)

# stderr is a pipe, so that no daemon keeps it: what it logs later is not ours. Who is late is asked to end, and may
# put back what it changed, before it is made to.
run()
{
	wanted=$1
	shift
	{
		timeout -k 60 "${RUN_SECONDS:-120}" "$@" > "$T/out" < /dev/null
		echo $? > "$T/code"
	} 2>&1 | cat > "$T/err"
	code=$(cat "$T/code")
	[ "$code" = "$wanted" ] || fail "exit code $code, not $wanted: $*"
}

one_line()
{
	[ "$(wc -l < "$T/err")" = 1 ] || fail "not one line"
	grep -q '^folioswap: ' "$T/err" || fail "not a line of folioswap's"
	grep -F -q -e "$1" "$T/err" || fail "no '$1' in the line"
}

# Its warnings aside: a host that cannot keep the daemon safe says so.
no_error()
{
	! grep -v ': warning: ' "$T/err" | grep -q . || fail "an error although it passed"
}

make_cgroup()
{
	if [ -f /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
		G=/sys/fs/cgroup/memory/folioswap-cli-$$
		limit=memory.limit_in_bytes
	elif [ -f /sys/fs/cgroup/cgroup.controllers ]; then
		G=/sys/fs/cgroup/folioswap-cli-$$
		limit=memory.max
		echo +memory > /sys/fs/cgroup/cgroup.subtree_control 2> /dev/null
	else
		skip "no memory control group"
	fi
	mkdir "$G" || skip "no control group can be made"
	[ -f "$G/$limit" ] && return
	rmdir "$G"
	skip "control groups do not limit memory here"
}

our_daemons()
{
	for dir in /proc/[0-9]*; do
		comm=
		read -r comm < "$dir/comm"
		case $comm in
		folioswapd | folioswapd-*) ;;
		*) continue ;;
		esac
		[ "$(readlink "$dir/ns/mnt" 2> /dev/null)" = "$NAMESPACE" ] || continue
		grep -q '^State:[[:space:]]*Z' "$dir/status" || echo "${dir#/proc/}"
	done 2> /dev/null
}

nothing_left()
{
	[ -z "$(ls -A /run/folioswap)" ] || fail "/run/folioswap has $(ls -A /run/folioswap)"
	! grep -q ' /run/folioswap/' /proc/self/mounts || fail "a mount is left"
	tries=0
	while [ -n "$(our_daemons)" ]; do
		tries=$((tries + 1))
		[ $tries -lt 20 ] || fail "processes are left: $(our_daemons)"
		sleep 0.1
	done
}

is_swapped_on()
{
	grep -q "^$1 " /proc/swaps
}

cleanup()
{
	code=$?
	trap - EXIT
	# Daemons are killed only when nothing is swapped out to them.
	if timeout -s KILL 150 "$FS" del --all --timeout 100 > /dev/null 2>&1 || ! grep -q '^/dev/loop' /proc/swaps; then
		for pid in $(our_daemons); do
			kill -KILL "$pid" 2> /dev/null
		done
	fi
	rm -rf "$T"
	exit $code
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP
