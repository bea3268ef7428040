// SPDX-License-Identifier: GPL-2.0-or-later
/* The null codec: what the others are measured against, and what raw storage costs. */
#include "codec_backends.h"

#include <errno.h>
#include <string.h>

static size_t copy_compress_workspace_bytes(int level, size_t src_max_bytes)
{
	(void)level;
	(void)src_max_bytes;
	return 0;
}

static ssize_t copy_compress(void *context, int level, const void *src, size_t src_bytes, void *dst, size_t dst_bytes)
{
	(void)context;
	(void)level;
	if (src_bytes > dst_bytes)
		return -ENOSPC;
	memcpy(dst, src, src_bytes);
	return (ssize_t)src_bytes;
}

static int copy_decompress(void *context, const void *src, size_t src_bytes, void *dst, size_t dst_bytes)
{
	(void)context;
	if (src_bytes != dst_bytes)
		return -EBADMSG;
	memcpy(dst, src, src_bytes);
	return 0;
}

const struct codec_ops codec_copy_ops = {
	.name = "copy",
	.id = CODEC_COPY,
	.compress_workspace_bytes = copy_compress_workspace_bytes,
	.compress = copy_compress,
	.decompress = copy_decompress,
};
