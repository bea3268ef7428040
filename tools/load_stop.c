// SPDX-License-Identifier: GPL-2.0-or-later
/* Signals by signalfd. */
#include "load_stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"

static int signal_fd = -1;
static int stop_signal;

int load_stop_init(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	signal(SIGPIPE, SIG_IGN);
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return signal_fd < 0 ? -errno : signal_fd;
}

int load_stop_signal(void)
{
	struct signalfd_siginfo info;

	while (signal_fd >= 0 && read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGCHLD && !stop_signal)
			stop_signal = (int)info.ssi_signo;
	}
	return stop_signal;
}

void load_stop_child(pid_t parent)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1); /* it died before the line above */
	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

bool load_stop_sleep_ms(unsigned ms)
{
	uint64_t end_ns = clock_ns() + (uint64_t)ms * 1000000;
	struct pollfd wait = {.fd = signal_fd, .events = POLLIN};

	for (;;) {
		uint64_t now_ns = clock_ns();

		if (load_stop_signal())
			return false;
		if (now_ns >= end_ns)
			return true;
		poll(&wait, 1, (int)((end_ns - now_ns + 999999) / 1000000));
	}
}
