// SPDX-License-Identifier: GPL-2.0-or-later
/* The client side of the control socket against a server made here: paths, errors, messages, descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control.h"
#include "control_at.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT_MS 5000

static char base[64];

static void path_of(char *path, size_t bytes, const char *name, const char *file)
{
	snprintf(path, bytes, "%s/%s%s", base, name, file);
}

static void make_directory(const char *name)
{
	char path[128];

	path_of(path, sizeof(path), name, "");
	assert_int_equal(mkdir(path, 0700), 0);
}

/* Returns a bound SEQPACKET socket; it listens when asked to. */
static int make_socket(const char *name, int backlog)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	path_of(address.sun_path, sizeof(address.sun_path), name, "/control");
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

static int set_up(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/control_test.XXXXXX");
	return mkdtemp(base) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

/* ---- names ---- */

static void names_that_are_no_device_reach_no_path(void **state)
{
	static const char *const names[] = {
		"", "..", "../0", "0/..", "01", "00", "256", "-1", "+1", " 1", "1 ", "1x", "x", "99999999999999999999"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(control_connect_at(base, names[i], TIMEOUT_MS), -EINVAL);
		assert_int_equal(control_keeper_pid_at(base, names[i]), -EINVAL);
	}
}

static void connect_tells_no_device_from_dead_server(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(control_connect_at(base, "0", TIMEOUT_MS), -ENOENT);
	make_directory("0");
	assert_int_equal(control_connect_at(base, "0", TIMEOUT_MS), -ECONNREFUSED);
	fd = make_socket("0", -1);
	assert_int_equal(control_connect_at(base, "0", TIMEOUT_MS), -ECONNREFUSED);
	close(fd);
	assert_int_equal(control_connect_at(base, "0", TIMEOUT_MS), -ECONNREFUSED);
}

static void connect_to_a_server_that_does_not_accept_is_bounded(void **state)
{
	int listen_fd, fds[64], count = 0, error = 0, i;

	(void)state;
	make_directory("0");
	listen_fd = make_socket("0", 0);
	while (count < 64 && (error = control_connect_at(base, "0", 50)) >= 0)
		fds[count++] = error;
	assert_int_equal(error, -ETIMEDOUT);
	for (i = 0; i < count; i++)
		close(fds[i]);
	close(listen_fd);
}

static void list_is_sorted_by_number_and_skips_the_rest(void **state)
{
	char names[8][16];

	(void)state;
	make_directory("10");
	make_directory("9");
	make_directory("255");
	make_directory("0");
	make_directory("300");
	make_directory("x");
	make_directory("07");
	assert_int_equal(control_list_at(base, names, 8), 4);
	assert_string_equal(names[0], "0");
	assert_string_equal(names[1], "9");
	assert_string_equal(names[2], "10");
	assert_string_equal(names[3], "255");
	assert_int_equal(control_list_at(base, names, 2), 2);
	assert_int_equal(control_list_at("/nonexistent", names, 8), 0);
}

/* ---- the keeper's pid ---- */

/* A child that holds the record lock, as a keeper does; says so through the pipe and waits. */
static pid_t start_keeper(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char byte = 0;
	int pair[2];
	pid_t pid;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDWR);

		if (fd < 0 || fcntl(fd, F_SETLK, &lock) < 0 || write(pair[1], &byte, 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_true(pid > 0);
	close(pair[1]);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	close(pair[0]);
	return pid;
}

static void keeper_is_who_holds_the_lock_not_who_is_written(void **state)
{
	char path[128];
	pid_t keeper;
	int fd;

	(void)state;
	assert_int_equal(control_keeper_pid_at(base, "3"), -ENOENT);
	make_directory("3");
	assert_int_equal(control_keeper_pid_at(base, "3"), -ESRCH);
	path_of(path, sizeof(path), "3", "/pid");
	fd = open(path, O_RDWR | O_CREAT, 0600);
	/* The number of a living process that is not a keeper: this one's. */
	assert_true(dprintf(fd, "%d\n", (int)getpid()) > 0);
	close(fd);
	assert_int_equal(control_keeper_pid_at(base, "3"), -ESRCH);
	keeper = start_keeper(path);
	assert_int_equal(control_keeper_pid_at(base, "3"), keeper);
	kill(keeper, SIGKILL);
	waitpid(keeper, NULL, 0);
	assert_int_equal(control_keeper_pid_at(base, "3"), -ESRCH);
}

/* ---- messages ---- */

struct pair {
	int listen_fd;
	int client_fd;
	int server_fd;
};

static struct pair connect_pair(void)
{
	struct pair pair;

	make_directory("1");
	pair.listen_fd = make_socket("1", 4);
	pair.client_fd = control_connect_at(base, "1", 200);
	assert_true(pair.client_fd >= 0);
	pair.server_fd = accept(pair.listen_fd, NULL, NULL);
	assert_true(pair.server_fd >= 0);
	return pair;
}

static void close_pair(struct pair *pair)
{
	close(pair->client_fd);
	close(pair->server_fd);
	close(pair->listen_fd);
}

static void reply_with(int fd, const void *bytes, size_t count, int passed_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec vector = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = count};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

	if (passed_fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &passed_fd, sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &message, 0), (ssize_t)count);
}

static void request_and_reply_arrive_as_sent(void **state)
{
	struct control_request sent = {.version = CONTROL_VERSION, .op = CONTROL_SET, .limit_bytes = 123456789}, got;
	struct control_reply reply = {.version = CONTROL_VERSION, .error = -EBUSY, .done_bytes = 7}, received;
	struct pair pair = connect_pair();
	char byte = 0;
	int file[2], passed = -2;

	(void)state;
	assert_int_equal(control_send(pair.client_fd, &sent), 0);
	assert_int_equal(recv(pair.server_fd, &got, sizeof(got), 0), sizeof(got));
	assert_memory_equal(&got, &sent, sizeof(got));

	assert_int_equal(pipe(file), 0);
	memset(reply.message, 'x', sizeof(reply.message)); /* no end: the receiver's to set */
	reply_with(pair.server_fd, &reply, sizeof(reply), file[1]);
	close(file[1]);
	assert_int_equal(control_receive(pair.client_fd, &received, &passed), 0);
	assert_int_equal(received.error, -EBUSY);
	assert_int_equal(received.done_bytes, 7);
	assert_int_equal(strlen(received.message), sizeof(received.message) - 1);
	assert_true(passed >= 0);
	assert_true(fcntl(passed, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(passed, "z", 1), 1);
	assert_int_equal(read(file[0], &byte, 1), 1);
	assert_int_equal(byte, 'z');

	/* A descriptor that nobody asked for is closed: then the pipe has no writer left. */
	reply_with(pair.server_fd, &reply, sizeof(reply), passed);
	close(passed);
	assert_int_equal(control_receive(pair.client_fd, &received, NULL), 0);
	assert_int_equal(read(file[0], &byte, 1), 0);

	reply_with(pair.server_fd, &reply, sizeof(reply), -1);
	assert_int_equal(control_receive(pair.client_fd, &received, &passed), 0);
	assert_int_equal(passed, -1);
	close(file[0]);
	close_pair(&pair);
}

static void replies_of_another_kind_are_refused(void **state)
{
	struct control_reply reply = {.version = CONTROL_VERSION}, received = {.done_bytes = 42};
	unsigned char big[sizeof(reply) + 8] = {0};
	struct pair pair = connect_pair();

	(void)state;
	memcpy(big, &reply, sizeof(reply));
	reply_with(pair.server_fd, &reply, sizeof(reply) - 1, -1);
	assert_int_equal(control_receive(pair.client_fd, &received, NULL), -EPROTO);
	reply_with(pair.server_fd, big, sizeof(big), -1);
	assert_int_equal(control_receive(pair.client_fd, &received, NULL), -EPROTO);
	reply.version = CONTROL_VERSION + 1;
	reply_with(pair.server_fd, &reply, sizeof(reply), -1);
	assert_int_equal(control_receive(pair.client_fd, &received, NULL), -EPROTO);
	assert_int_equal(received.done_bytes, 42); /* untouched on failure */
	assert_int_equal(control_receive(pair.client_fd, &received, NULL), -ETIMEDOUT);
	close_pair(&pair);
}

static void note_signal(int number)
{
	(void)number;
}

/* With a timeout on its socket a process that was stopped, or had a signal to handle, finds its wait cut short. */
static void an_interrupted_wait_goes_on(void **state)
{
	const struct sigaction noted = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
	struct control_reply reply = {.version = CONTROL_VERSION, .done_bytes = 7}, received;
	struct pair pair = connect_pair();
	struct sigaction before;
	pid_t child;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &noted, &before), 0);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 3; i++) {
			usleep(100000);
			kill(getppid(), SIGUSR1);
		}
		usleep(100000);
		_exit(send(pair.server_fd, &reply, sizeof(reply), 0) != (ssize_t)sizeof(reply));
	}
	assert_true(child > 0);
	assert_int_equal(control_receive(pair.client_fd, &received, NULL), 0);
	assert_int_equal(received.done_bytes, 7);
	assert_int_equal(waitpid(child, NULL, 0), child);
	sigaction(SIGUSR1, &before, NULL);
	close_pair(&pair);
}

static void a_server_that_goes_is_told_from_one_that_is_slow(void **state)
{
	struct control_request request = {.version = CONTROL_VERSION, .op = CONTROL_INFO};
	struct control_reply reply;
	struct pair pair = connect_pair();

	(void)state;
	close(pair.server_fd);
	pair.server_fd = -1;
	assert_int_equal(control_receive(pair.client_fd, &reply, NULL), -ECONNRESET);
	assert_int_equal(control_send(pair.client_fd, &request), -ECONNRESET);
	close_pair(&pair);
}

static bool is_there(const char *name, const char *file)
{
	char path[128];

	path_of(path, sizeof(path), name, file);
	return access(path, F_OK) == 0;
}

/* As a killed keeper leaves it: mount point, socket, a pid file that nobody holds. */
static void make_remains(const char *name, char *pid_path, size_t bytes)
{
	char path[128];
	int fd;

	make_directory(name);
	close(make_socket(name, 1));
	path_of(path, sizeof(path), name, "/mnt");
	assert_int_equal(mkdir(path, 0700), 0);
	path_of(pid_path, bytes, name, "/pid");
	fd = open(pid_path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(fd, "1\n", 2), 2);
	close(fd);
}

static void remains_go_unless_their_keeper_lives(void **state)
{
	char pid_path[128], problem[256] = "";
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int ready[2], fd;
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(control_clean_at(base, "5", problem, sizeof(problem)), 0); /* nothing there */
	assert_true(control_clean_at(base, "../5", problem, sizeof(problem)) < 0);
	make_remains("5", pid_path, sizeof(pid_path));
	make_directory("6");
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		fd = open(pid_path, O_RDWR);
		_exit(fcntl(fd, F_SETLK, &lock) < 0 || write(ready[1], "x", 1) != 1 || pause());
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(control_clean_at(base, "5", problem, sizeof(problem)), -EEXIST);
	assert_true(is_there("5", "/control") && is_there("5", "/pid") && is_there("5", "/mnt"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(control_clean_at(base, "5", problem, sizeof(problem)), 0);
	assert_false(is_there("5", ""));
	assert_true(is_there("6", ""));
}

static void every_unsafe_bit_has_a_name_and_a_risk(void **state)
{
	unsigned bit;

	(void)state;
	for (bit = 1; bit <= CONTROL_UNSAFE_MIN_FREE; bit <<= 1) {
		assert_string_not_equal(control_unsafe_name(bit), "unknown");
		assert_string_not_equal(control_unsafe_risk(bit), "unknown");
	}
	assert_string_equal(control_unsafe_name(bit), "unknown");
	assert_string_equal(control_unsafe_name(3), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_that_are_no_device_reach_no_path, set_up, tear_down),
		cmocka_unit_test_setup_teardown(connect_tells_no_device_from_dead_server, set_up, tear_down),
		cmocka_unit_test_setup_teardown(connect_to_a_server_that_does_not_accept_is_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(list_is_sorted_by_number_and_skips_the_rest, set_up, tear_down),
		cmocka_unit_test_setup_teardown(keeper_is_who_holds_the_lock_not_who_is_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(request_and_reply_arrive_as_sent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(replies_of_another_kind_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_interrupted_wait_goes_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_server_that_goes_is_told_from_one_that_is_slow, set_up, tear_down),
		cmocka_unit_test_setup_teardown(remains_go_unless_their_keeper_lives, set_up, tear_down),
		cmocka_unit_test(every_unsafe_bit_has_a_name_and_a_risk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
