// SPDX-License-Identifier: GPL-2.0-or-later
/* The FUSE file's operations: each becomes one request to the device, answered on the same thread. */
#define FUSE_USE_VERSION 31

#include "fuse_file.h"
#include "fuse_session.h"

#include "device.h"
#include "fault.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <linux/falloc.h>
#include <linux/fuse.h>
#include <stdarg.h>
#include <string.h>
#include <sys/statvfs.h>

#ifndef FOPEN_PARALLEL_DIRECT_WRITES
#define FOPEN_PARALLEL_DIRECT_WRITES (1 << 6) /* Linux 6.2; ignored before */
#endif

#define FILE_INODE 2
#define FOR_EVER_S 1e9 /* nothing here changes behind the kernel's back */

static _Thread_local struct fuse_file_thread *this_thread;

void fuse_file_set_thread(struct fuse_file_thread *thread)
{
	this_thread = thread;
}

static void complete(struct request *request, int error)
{
	fuse_req_t fuse = request->transport_data;

	if (error < 0 || (request->op != REQUEST_READ && request->op != REQUEST_WRITE))
		fuse_reply_err(fuse, -error);
	else if (request->op == REQUEST_READ)
		fuse_reply_buf(fuse, request->data, request->length_bytes);
	else
		fuse_reply_write(fuse, request->length_bytes);
}

static void submit(fuse_req_t fuse, enum request_op op, off_t offset, size_t length_bytes, void *data)
{
	struct request request = {
		.op = op,
		.offset_bytes = (uint64_t)offset,
		.length_bytes = length_bytes,
		.data = data,
		.received_ns = this_thread->received_ns,
		.complete = complete,
		.transport_data = fuse,
	};
	int error;

	error = fault_apply(this_thread->fault, &request);
	if (error < 0)
		complete(&request, error);
	else
		device_submit(this_thread->device, this_thread->thread, &request);
}

static void fill_stat(fuse_ino_t inode, struct stat *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->st_ino = inode;
	ret->st_blksize = GRANULE_BYTES;
	if (inode == FUSE_ROOT_ID) {
		ret->st_mode = S_IFDIR | 0500;
		ret->st_nlink = 2;
		return;
	}
	ret->st_mode = S_IFREG | 0600;
	ret->st_nlink = 1;
	ret->st_size = (off_t)device_size_bytes(this_thread->device);
	ret->st_blocks = ret->st_size / 512;
}

/* ---- the tree ---- */

static void op_init(void *userdata, struct fuse_conn_info *connection)
{
	unsigned request_max_bytes = *(const unsigned *)userdata;

	connection->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
					FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_WRITEBACK_CACHE);
	connection->want |= connection->capable & (FUSE_CAP_ASYNC_DIO | FUSE_CAP_ASYNC_READ);
	if (connection->max_write > request_max_bytes)
		connection->max_write = request_max_bytes;
	connection->max_read = request_max_bytes;
	connection->max_readahead = 0;
}

static void op_lookup(fuse_req_t fuse, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = {.ino = FILE_INODE, .attr_timeout = FOR_EVER_S, .entry_timeout = FOR_EVER_S};

	if (parent != FUSE_ROOT_ID || strcmp(name, FUSE_SERVER_FILE) != 0) {
		fuse_reply_err(fuse, ENOENT);
		return;
	}
	fill_stat(FILE_INODE, &entry.attr);
	fuse_reply_entry(fuse, &entry);
}

static void op_getattr(fuse_req_t fuse, fuse_ino_t inode, struct fuse_file_info *info)
{
	struct stat status;

	(void)info;
	fill_stat(inode, &status);
	fuse_reply_attr(fuse, &status, FOR_EVER_S);
}

/* Times are taken and forgotten; size, owner and mode are not for the file's users to change. */
static void op_setattr(fuse_req_t fuse, fuse_ino_t inode, struct stat *wanted, int to_set, struct fuse_file_info *info)
{
	(void)wanted;
	if (to_set & (FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		fuse_reply_err(fuse, EPERM);
	else
		op_getattr(fuse, inode, info);
}

static void op_readdir(fuse_req_t fuse, fuse_ino_t inode, size_t size, off_t offset, struct fuse_file_info *info)
{
	static const char *const names[] = {".", "..", FUSE_SERVER_FILE};
	struct stat status = {0};
	char entries[256];
	size_t used = 0;
	off_t i;

	(void)inode;
	(void)info;
	for (i = offset; i < 3; i++) {
		status.st_ino = i < 2 ? FUSE_ROOT_ID : FILE_INODE;
		status.st_mode = i < 2 ? S_IFDIR : S_IFREG;
		used += fuse_add_direntry(fuse, entries + used, sizeof(entries) - used, names[i], &status, i + 1);
	}
	if (used > size)
		fuse_reply_err(fuse, EINVAL);
	else
		fuse_reply_buf(fuse, entries, used);
}

/* The loop driver takes its discard granularity from here. */
static void op_statfs(fuse_req_t fuse, fuse_ino_t inode)
{
	struct statvfs status = {
		.f_bsize = GRANULE_BYTES,
		.f_frsize = GRANULE_BYTES,
		.f_blocks = device_size_bytes(this_thread->device) / GRANULE_BYTES,
		.f_files = 1,
		.f_namemax = sizeof(FUSE_SERVER_FILE) - 1,
	};

	(void)inode;
	fuse_reply_statfs(fuse, &status);
}

/* ---- the file ---- */

/* Answered by hand: libfuse before 3.15 has no word for parallel direct writes, without which they queue up. */
static void op_open(fuse_req_t fuse, fuse_ino_t inode, struct fuse_file_info *info)
{
	struct fuse_open_out reply = {.open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES};

	(void)info;
	if (inode != FILE_INODE)
		fuse_reply_err(fuse, EISDIR);
	else
		fuse_reply_buf(fuse, (const char *)&reply, sizeof(reply));
}

static void op_read(fuse_req_t fuse, fuse_ino_t inode, size_t size, off_t offset, struct fuse_file_info *info)
{
	uint64_t device_bytes = device_size_bytes(this_thread->device);

	(void)inode;
	(void)info;
	if ((uint64_t)offset >= device_bytes || size == 0) {
		fuse_reply_buf(fuse, NULL, 0);
		return;
	}
	if (size > device_bytes - (uint64_t)offset)
		size = device_bytes - (uint64_t)offset;
	if (size > this_thread->data_bytes)
		fuse_reply_err(fuse, EINVAL);
	else
		submit(fuse, REQUEST_READ, offset, size, this_thread->data);
}

static void op_write(
	fuse_req_t fuse, fuse_ino_t inode, const char *data, size_t size, off_t offset, struct fuse_file_info *info)
{
	(void)inode;
	(void)info;
	submit(fuse, REQUEST_WRITE, offset, size, (void *)(uintptr_t)data);
}

static void op_fallocate(
	fuse_req_t fuse, fuse_ino_t inode, int mode, off_t offset, off_t length, struct fuse_file_info *info)
{
	(void)inode;
	(void)info;
	if (mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) && this_thread->discard)
		submit(fuse, REQUEST_DISCARD, offset, (size_t)length, NULL);
	else if ((mode & ~FALLOC_FL_KEEP_SIZE) == FALLOC_FL_ZERO_RANGE)
		submit(fuse, REQUEST_WRITE_ZEROES, offset, (size_t)length, NULL);
	else
		fuse_reply_err(fuse, EOPNOTSUPP);
}

static void op_fsync(fuse_req_t fuse, fuse_ino_t inode, int data_only, struct fuse_file_info *info)
{
	(void)inode;
	(void)data_only;
	(void)info;
	submit(fuse, REQUEST_FLUSH, 0, 0, NULL);
}

static void op_flush(fuse_req_t fuse, fuse_ino_t inode, struct fuse_file_info *info)
{
	(void)inode;
	(void)info;
	fuse_reply_err(fuse, 0);
}

static const struct fuse_lowlevel_ops operations = {
	.init = op_init,
	.lookup = op_lookup,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readdir = op_readdir,
	.statfs = op_statfs,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.fallocate = op_fallocate,
	.fsync = op_fsync,
	.flush = op_flush,
};

/* libfuse speaks on whatever thread it is on; what matters of it comes back as errors. */
static void drop_log(enum fuse_log_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
}

struct fuse_session *fuse_file_session(struct fuse_args *args, unsigned *request_max_bytes)
{
	fuse_set_log_func(drop_log);
	return fuse_session_new(args, &operations, sizeof(operations), request_max_bytes);
}
