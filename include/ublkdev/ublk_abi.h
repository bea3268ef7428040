/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is said to the kernel's ublk driver: numbers and layouts, as far as they
 * are used here. The C library's own header (Linux 6.1 in Debian 12) lacks most
 * of it, so nothing depends on that one.
 *
 *   /dev/ublk-control   commands about devices: struct ublk_control_words in the second half of a 128-byte SQE
 *   /dev/ublkcN         one device's server: requests are fetched and answered by struct ublk_io_words in the SQE,
 *                       described by struct ublk_request in memory that the kernel shares, one per queue and tag
 *   /dev/ublkbN         the block device
 */
#ifndef UBLKDEV_UBLK_ABI_H
#define UBLKDEV_UBLK_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* ---- features: bits of what a driver can do and a device was made with ---- */

#define UBLK_COMPLETE_IN_TASK (UINT64_C(1) << 1)
#define UBLK_NEED_GET_DATA (UINT64_C(1) << 2)
#define UBLK_USER_RECOVERY (UINT64_C(1) << 3)         /* a device outlives its server; its I/O waits for the next */
#define UBLK_USER_RECOVERY_REISSUE (UINT64_C(1) << 4) /* and what the dead one had not answered is asked again */
#define UBLK_CMD_IOCTL_ENCODE (UINT64_C(1) << 6)      /* operation codes as of ioctl(2), not plain numbers */
#define UBLK_USER_COPY (UINT64_C(1) << 7)             /* data by pread and pwrite of /dev/ublkcN, no buffer per tag */
#define UBLK_UPDATE_SIZE (UINT64_C(1) << 10)
#define UBLK_QUIESCE (UINT64_C(1) << 12) /* UBLK_QUIESCE_DEV: a server can be relieved with nothing in execution */
#define UBLK_SAFE_STOP_DEV (UINT64_C(1) << 17)     /* UBLK_TRY_STOP_DEV: not while somebody has it open */
#define UBLK_NO_AUTO_PART_SCAN (UINT64_C(1) << 18) /* starting it reads nothing */

/* What Linux 6.1 has, which cannot be asked. */
#define UBLK_FEATURES_FIRST \
	(UBLK_COMPLETE_IN_TASK | UBLK_NEED_GET_DATA | UBLK_USER_RECOVERY | UBLK_USER_RECOVERY_REISSUE)

/* ---- /dev/ublk-control ---- */

struct ublk_control_words {
	uint32_t id;
	uint16_t queue; /* UBLK_NO_QUEUE */
	uint16_t bytes; /* of the buffer */
	uint64_t address;
	uint64_t value;
	uint16_t path_bytes; /* for users that are not root */
	uint16_t reserved_16;
	uint32_t reserved_32;
};
_Static_assert(sizeof(struct ublk_control_words) == 32, "in the 80 bytes of a large SQE");

#define UBLK_NO_QUEUE UINT16_MAX
#define UBLK_ANY_ID UINT32_MAX

/* Number and direction: before Linux 6.4 the number alone is the operation code. */
#define UBLK_CODE_R_(number) _IOR('u', number, struct ublk_control_words)
#define UBLK_CODE_WR_(number) _IOWR('u', number, struct ublk_control_words)

#define UBLK_GET_DEV_INFO UBLK_CODE_R_(0x02)
#define UBLK_ADD_DEV UBLK_CODE_WR_(0x04)
#define UBLK_DEL_DEV UBLK_CODE_WR_(0x05)   /* waits until nobody has the block device open */
#define UBLK_START_DEV UBLK_CODE_WR_(0x06) /* value: the server's process */
#define UBLK_STOP_DEV UBLK_CODE_WR_(0x07)
#define UBLK_SET_PARAMS UBLK_CODE_WR_(0x08)
#define UBLK_START_USER_RECOVERY UBLK_CODE_WR_(0x10)
#define UBLK_END_USER_RECOVERY UBLK_CODE_WR_(0x11) /* value: the server's process */
#define UBLK_GET_FEATURES UBLK_CODE_R_(0x13)       /* from 6.5 on */
#define UBLK_DEL_DEV_ASYNC UBLK_CODE_R_(0x14)      /* goes with its last user */
#define UBLK_SET_SIZE UBLK_CODE_WR_(0x15)          /* value: 512-byte sectors */
/*
 * value: milliseconds to wait until each queue has a tag without a request. No tag is given to the server any more; those
 * it has without a request end with -ENODEV, the others once they are answered.
 */
#define UBLK_QUIESCE_DEV UBLK_CODE_WR_(0x16)
#define UBLK_TRY_STOP_DEV UBLK_CODE_WR_(0x17)      /* -EBUSY while somebody has it open */

enum ublk_state {
	UBLK_DEAD, /* there is no block device (any more) */
	UBLK_LIVE,
	UBLK_QUIESCED, /* no server: I/O waits */
	UBLK_FAILING,
};

/* Of UBLK_ADD_DEV, which answers with what came of it, and UBLK_GET_DEV_INFO. */
struct ublk_info {
	uint16_t queues;
	uint16_t depth;
	uint16_t state; /* enum ublk_state */
	uint16_t request_desc_bytes;
	uint32_t request_max_bytes;
	uint32_t id;
	int32_t server; /* -1: none */
	uint32_t reserved_32;
	uint64_t features;
	uint64_t cookie; /* the server's own: not looked at by the kernel */
	uint32_t owner_uid;
	uint32_t owner_gid;
	uint64_t reserved_64[2];
};
_Static_assert(sizeof(struct ublk_info) == 64, "the kernel's layout");

#define UBLK_PARAMS_BASIC 1
#define UBLK_PARAMS_DISCARD 2

struct ublk_params {
	uint32_t bytes; /* UBLK_PARAMS_BYTES */
	uint32_t types; /* UBLK_PARAMS_... */
	/* basic */
	uint32_t attributes; /* 1 read-only, 2 rotational, 4 volatile cache, 8 FUA */
	uint8_t logical_block_shift;
	uint8_t physical_block_shift;
	uint8_t io_opt_shift;
	uint8_t io_min_shift;
	uint32_t max_sectors;
	uint32_t chunk_sectors;
	uint64_t size_sectors;
	uint64_t virt_boundary_mask;
	/* discard */
	uint32_t discard_alignment;
	uint32_t discard_granularity_bytes;
	uint32_t max_discard_sectors;
	uint32_t max_write_zeroes_sectors;
	uint16_t max_discard_segments;
	uint16_t reserved_16;
};
#define UBLK_PARAMS_BYTES (offsetof(struct ublk_params, reserved_16) + sizeof(uint16_t))
_Static_assert(offsetof(struct ublk_params, discard_alignment) == 40 && UBLK_PARAMS_BYTES == 60, "the kernel's layout");

/* ---- /dev/ublkcN ---- */

struct ublk_io_words {
	uint16_t queue;
	uint16_t tag;
	int32_t result;   /* of the last request, in bytes, or -errno */
	uint64_t address; /* of the next one's data; 0 with UBLK_USER_COPY */
};
_Static_assert(sizeof(struct ublk_io_words) == 16, "in the 16 bytes of a small SQE");

#define UBLK_FETCH _IOWR('u', 0x20, struct ublk_io_words)
#define UBLK_COMMIT_AND_FETCH _IOWR('u', 0x21, struct ublk_io_words)

#define UBLK_DEPTH_MAX 4096U
#define UBLK_REQUEST_LIMIT_BYTES (UINT32_C(1) << 25) /* no request is larger */

enum ublk_op {
	UBLK_OP_READ,
	UBLK_OP_WRITE,
	UBLK_OP_FLUSH,
	UBLK_OP_DISCARD,
	UBLK_OP_WRITE_ZEROES = 5,
};

#define UBLK_SECTOR_SHIFT 9

/* Read-only memory of the kernel: queue q at q * ublk_descs_stride_bytes() of /dev/ublkcN, one per tag. */
struct ublk_request {
	uint32_t op_flags; /* enum ublk_op in the lowest byte */
	uint32_t sectors;
	uint64_t first_sector;
	uint64_t address;
};
_Static_assert(sizeof(struct ublk_request) == 24, "the kernel's layout");

/*
 * A request's data as an offset of /dev/ublkcN, for pread (writes) and pwrite (reads):
 *
 *   0x80000000 + | 52 .. 41 queue | 40 .. 25 tag | 24 .. 0 byte |
 */
static inline int64_t ublk_copy_offset(unsigned queue, unsigned tag)
{
	return (int64_t)(UINT64_C(0x80000000) + ((uint64_t)queue << 41) + ((uint64_t)tag << 25));
}

#endif
