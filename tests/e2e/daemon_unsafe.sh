#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A daemon in a control group with a memory limit refuses with exit code 3 and names the file; it makes nothing.
. "$(dirname "$0")/lib.sh"

need_device
cgroup_make 1073741824
mkdir "$cgroup/inner" || fail "no inner group"
echo 0 >"$cgroup/inner/notify_on_release" 2>/dev/null

# The limit is on the ancestor, the process in the group below.
CGROUP=$cgroup/inner sh -c 'echo $$ >"$CGROUP/cgroup.procs" && exec "$@"' sh \
	"$daemon" --name "$first_name" --size 1G --ready-fd 3 3>"$work/ready" 2>"$work/err"
rc=$?
rmdir "$cgroup/inner"
[ "$rc" = 3 ] || fail "exit code $rc, not 3: $(cat "$work/err")"
grep -q "$cgroup/memory\..* is 1073741824" "$work/err" || fail "the limit is not named: $(cat "$work/err")"
grep -q '^failed not safe to swap to: ' "$work/ready" || fail "the ready descriptor got: $(cat "$work/ready")"
check_gone "$first_name"

# One line for each thing that could not be had, each with its risk behind a colon.
grep -qv ': refused: .*: ' "$work/err" && fail "not one line each: $(cat "$work/err")"
exit 0
