#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Beside somebody who does with block devices what udev does: opens each at once when it appears, changes, goes or has
# been written, locks it, reads its beginning and keeps it for 200 ms. add and del work all the same.
. "$(dirname "$0")/cli_lib.sh"

U="--allow-unsafe --unit 64K --reserve 2M"
command -v python3 > /dev/null || skip "no python3"

cat > "$T/watcher.py" << 'END'
import ctypes, fcntl, os, select, socket, struct, sys, threading, time
IN_CLOSE_WRITE = 8
opened = 0
def look(node):
    global opened
    try:
        fd = os.open(node, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return
    opened += 1
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pread(fd, 65536, 0)
    except OSError:
        pass
    time.sleep(0.2)
    os.close(fd)
libc = ctypes.CDLL(None)
events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)
events.bind((0, 1))
writes = libc.inotify_init1(0)
watched = {}
print("watching", flush=True)
while os.path.exists(sys.argv[0]) and not os.path.exists(sys.argv[1]):
    nodes = []
    for ready in select.select([events, writes], [], [], 0.1)[0]:
        if ready is events:
            path = events.recv(8192).split(b"\0")[0].decode(errors="replace")
            if "/block/loop" in path:
                node = "/dev/" + path.rsplit("/", 1)[1]
                nodes.append(node)
                watched[libc.inotify_add_watch(writes, node.encode(), IN_CLOSE_WRITE)] = node
        else:
            seen = os.read(writes, 4096)
            while seen:
                watch, mask, cookie, length = struct.unpack("iIII", seen[:16])
                seen = seen[16 + length:]
                nodes.append(watched.get(watch, "/dev/null"))
    for node in nodes:
        threading.Thread(target=look, args=(node,)).start()
print(opened)
END
python3 "$T/watcher.py" "$T/enough" > "$T/watched" 2> "$T/watcher.err" &
watcher=$!
tries=0
until [ -s "$T/watched" ]; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || skip "no events of devices are to be had: $(cat "$T/watcher.err")"
	sleep 0.1
done

i=0
while [ $i -lt 10 ]; do
	# shellcheck disable=SC2086
	case $((i % 2)) in
	0) run 0 "$FS" add 64M $U ;;
	1) run 0 "$FS" add 64M $U --swapon=5 ;;
	esac
	no_error
	node=$(cat "$T/out")
	[ "$(stat -c %a:%u "$node")" = 600:0 ] || fail "$node is $(stat -c %a:%u "$node")"
	[ $i -ge 5 ] || sleep 0.3 # later rounds delete what the watcher has just begun to look at
	start=$(date +%s)
	run 0 "$FS" del 0
	[ ! -s "$T/err" ] || fail "del complains"
	[ $(($(date +%s) - start)) -lt 10 ] || fail "del took $(($(date +%s) - start)) s"
	! is_swapped_on "$node" || fail "still swapped on"
	nothing_left
	i=$((i + 1))
done
: > "$T/enough"
wait $watcher
opened=$(tail -n 1 "$T/watched")
[ "$opened" -ge 20 ] || fail "the watcher has opened $opened devices only: $(cat "$T/watcher.err")"
