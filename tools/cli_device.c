// SPDX-License-Identifier: GPL-2.0-or-later
/* Finding devices and speaking with their daemons. */
#include "cli_device.h"

#include "cleanup.h"
#include "cli.h"
#include "cli_process.h"
#include "remains.h"

#include <errno.h>
#include <string.h>

#define CONNECT_TRIES 10
#define CONNECT_PAUSE_MS 200

int device_names(char names[][16])
{
	int count = control_list(names, CONTROL_DEVICES_MAX);

	return count > 0 ? count : 0;
}

int device_connect(const char *name, int timeout_ms)
{
	int fd = -ECONNREFUSED;

	for (int i = 0; i < CONNECT_TRIES; i++) {
		fd = control_connect(name, timeout_ms);
		if (fd != -ECONNREFUSED || control_keeper_pid(name) < 0)
			break;
		process_sleep_ms(CONNECT_PAUSE_MS);
	}
	return fd;
}

int device_exit_code(int error)
{
	switch (error) {
	case 0:
		return CLI_DONE;
	case -EBUSY:
	case -ETIMEDOUT:
	case -EAGAIN:
		return CLI_BUSY;
	case -ENOENT:
	case -ENODEV:
		return CLI_NO_DEVICE;
	default:
		return CLI_FAILED;
	}
}

int device_report_silence(const char *name, int error)
{
	if (error == -ENOENT)
		return cli_fail(CLI_NO_DEVICE, "no device '%s'; 'folioswap list' shows those there are", name);
	if (error == -EACCES || error == -EPERM)
		return cli_fail(CLI_FAILED, "device %s: %s; root is needed", name, strerror(-error));
	if (error == -EPROTO)
		return cli_fail(CLI_FAILED, "device %s: its daemon is of another version than this tool", name);
	if (error == -ECONNREFUSED || error == -ECONNRESET)
		return cli_fail(CLI_FAILED, "device %s: its daemon is dead (%s); 'folioswap del %s' cleans up", name,
			strerror(-error), name);
	return cli_fail(CLI_FAILED, "device %s: its daemon does not answer: %s", name, strerror(-error));
}

static int ask_once(const char *name, const struct control_request *request, int timeout_ms, struct control_reply *ret,
	int *ret_image_fd)
{
	CLEANUP(close_fd) int fd = device_connect(name, timeout_ms);
	int error;

	if (fd < 0)
		return fd;
	error = control_send(fd, request);
	if (error)
		return error;
	return control_receive(fd, ret, ret_image_fd);
}

/* The successor of a server that dies before it has answered is asked again: to say a thing twice does no harm here. */
int device_ask(const char *name, const struct control_request *request, int timeout_ms, struct control_reply *ret,
	int *ret_image_fd)
{
	int error = ask_once(name, request, timeout_ms, ret, ret_image_fd);

	for (int i = 1; i < CONNECT_TRIES && error == -ECONNRESET && control_keeper_pid(name) > 0; i++) {
		process_sleep_ms(CONNECT_PAUSE_MS);
		error = ask_once(name, request, timeout_ms, ret, ret_image_fd);
	}
	return error;
}

int device_request(const char *name, const struct control_request *request, int timeout_ms, struct control_reply *ret)
{
	int error = device_ask(name, request, timeout_ms, ret, NULL);

	if (error)
		return device_report_silence(name, error);
	if (ret->error)
		return cli_fail(device_exit_code(ret->error), "device %s: %.*s", name, (int)sizeof(ret->message),
			ret->message[0] ? ret->message : strerror(-ret->error));
	return CLI_DONE;
}

static int info_or_error(const char *name, struct control_info *ret, int *ret_image_fd)
{
	const struct control_request request = {.version = CONTROL_VERSION, .op = CONTROL_INFO};
	struct control_reply reply;
	int error = device_ask(name, &request, DEVICE_REPLY_TIMEOUT_MS, &reply, ret_image_fd);

	if (error || reply.error)
		return error ? error : reply.error;
	*ret = reply.info;
	return 0;
}

int device_info(const char *name, struct control_info *ret, int *ret_image_fd)
{
	CLEANUP(close_fd) int image_fd = -1;
	int error = info_or_error(name, ret, ret_image_fd ? &image_fd : NULL);

	if (!error && ret_image_fd && image_fd < 0)
		error = -EPROTO;
	if (error)
		return device_report_silence(name, error);
	if (ret_image_fd)
		*ret_image_fd = take_fd(&image_fd);
	return CLI_DONE;
}

/* The node of a device, also of one whose server is dead. */
static bool device_has_node(const char *name, const char *node)
{
	char nodes[4][64];
	struct control_info info;
	int loops = control_loops(name, nodes, 4);

	for (int i = 0; i < loops; i++) {
		if (strcmp(nodes[i], node) == 0)
			return true;
	}
	return info_or_error(name, &info, NULL) == 0 && strcmp(info.node, node) == 0;
}

int device_resolve(const char *text, char ret_name[16])
{
	char names[CONTROL_DEVICES_MAX][16];
	int count = device_names(names);
	bool is_node = strchr(text, '/') != NULL;
	CLEANUP(free) char *node = is_node ? realpath(text, NULL) : NULL;

	for (int i = 0; i < count; i++) {
		if (is_node ? device_has_node(names[i], node ? node : text) : strcmp(names[i], text) == 0) {
			memcpy(ret_name, names[i], sizeof(names[i]));
			return CLI_DONE;
		}
	}
	return cli_fail(CLI_NO_DEVICE,
		is_node ? "'%s' is no device of folioswap; 'folioswap list' shows those there are"
			: "no device '%s'; 'folioswap list' shows those there are",
		text);
}
