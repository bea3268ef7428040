// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Zstandard in fixed workspaces.
 *
 * A stored frame is a zstd frame without what its reader knows already: no
 * magic number, no content size, no check sum.
 *
 *	| 0x00 descriptor | window | block | block | ... | last block |
 *	                             3 bytes: last:1 type:2 size:21, then the bytes
 *
 * A level means one set of parameters, the library's for the largest source of
 * the context, and smaller sources use the same on smaller tables. The library
 * by itself would switch tables at 256, 128 and 16 KiB: no difference that
 * matters up to level 3, but at levels 5 to 18 a 4 KiB source would take 1.3 to
 * 5 times as long for 1-4 % of ratio. Only the window is ours: it always holds
 * the whole source, where a low level's own would stop at 512 KiB.
 */
#include "codec_backends.h"

#include <errno.h>
#include <stdbool.h>

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

enum {
	FRAME_HEADER_BYTES = 2,
	BLOCK_HEADER_BYTES = 3,
	BLOCK_LAST = 1,
	BLOCK_TYPE_RLE = 1,
	WINDOW_LOG_MIN = 10,
	WINDOW_LOG_MAX = 24,
};

/* The window: the smallest power of two that holds the source, 12 .. 24 for 4 KiB .. 16 MiB. */
static ZSTD_compressionParameters parameters_for(int level, size_t src_max_bytes)
{
	ZSTD_compressionParameters parameters = ZSTD_getCParams(level, src_max_bytes, 0);

	parameters.windowLog = 64 - (unsigned)__builtin_clzll(src_max_bytes - 1);
	return parameters;
}

/* With one set of parameters a smaller source never needs more. */
static size_t zstd_compress_workspace_bytes(int level, size_t src_max_bytes)
{
	return ZSTD_estimateCCtxSize_usingCParams(parameters_for(level, src_max_bytes));
}

static void *zstd_compress_init(void *workspace, size_t workspace_bytes, int level, size_t src_max_bytes)
{
	ZSTD_CCtx *context = ZSTD_initStaticCCtx(workspace, workspace_bytes);

	if (!context || ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level)) ||
		ZSTD_isError(ZSTD_CCtx_setCParams(context, parameters_for(level, src_max_bytes))) ||
		ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_format, ZSTD_f_zstd1_magicless)) ||
		ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0)) ||
		ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 0)))
		return NULL;
	return context;
}

/*
 * Starts a new session by itself; the parameters stay and the tables are not
 * cleared, older entries lie outside the window. With the workspace sized for
 * every source a lack of room in dst is all that can fail.
 */
static ssize_t zstd_compress(void *context, int level, const void *src, size_t src_bytes, void *dst, size_t dst_bytes)
{
	size_t written = ZSTD_compress2(context, dst, dst_bytes, src, src_bytes);

	(void)level;
	return ZSTD_isError(written) ? -ENOSPC : (ssize_t)written;
}

static size_t zstd_decompress_workspace_bytes(size_t src_max_bytes)
{
	(void)src_max_bytes; /* decoding goes straight into dst: no window buffer */
	return ZSTD_estimateDCtxSize();
}

static void *zstd_decompress_init(void *workspace, size_t workspace_bytes)
{
	ZSTD_DCtx *context = ZSTD_initStaticDCtx(workspace, workspace_bytes);

	if (!context || ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_format, ZSTD_f_zstd1_magicless)))
		return NULL;
	return context;
}

/*
 * Is it one frame of ours that ends where src ends? The library would take
 * several frames in a row, and looks for skippable and legacy magic numbers in
 * four bytes even where the format has none and fewer are left. None of them
 * begins with our descriptor.
 */
static bool frame_is_ours(const uint8_t *src, size_t src_bytes)
{
	size_t at = FRAME_HEADER_BYTES;
	bool last = false;

	if (src_bytes < FRAME_HEADER_BYTES || src[0] != 0 || (src[1] >> 3) + WINDOW_LOG_MIN > WINDOW_LOG_MAX)
		return false;
	while (!last) {
		uint32_t header;
		size_t stored;

		if (src_bytes - at < BLOCK_HEADER_BYTES)
			return false;
		header = src[at] | (uint32_t)src[at + 1] << 8 | (uint32_t)src[at + 2] << 16;
		at += BLOCK_HEADER_BYTES;
		last = header & BLOCK_LAST;
		stored = (header >> 1 & 3) == BLOCK_TYPE_RLE ? 1 : header >> 3;
		if (stored > src_bytes - at)
			return false;
		at += stored;
	}
	return at == src_bytes;
}

static int zstd_decompress(void *context, const void *src, size_t src_bytes, void *dst, size_t dst_bytes)
{
	if (!frame_is_ours(src, src_bytes))
		return -EBADMSG;
	return ZSTD_decompressDCtx(context, dst, dst_bytes, src, src_bytes) == dst_bytes ? 0 : -EBADMSG;
}

/* Level 0 is the library's word for its default, 3. */
const struct codec_ops codec_zstd_ops = {
	.name = "zstd",
	.id = CODEC_ZSTD,
	.level_name = "level",
	.level_min = -7,
	.level_max = 19,
	.level_default = 3,
	.compress_workspace_bytes = zstd_compress_workspace_bytes,
	.compress_init = zstd_compress_init,
	.compress = zstd_compress,
	.decompress_workspace_bytes = zstd_decompress_workspace_bytes,
	.decompress_init = zstd_decompress_init,
	.decompress = zstd_decompress,
};
