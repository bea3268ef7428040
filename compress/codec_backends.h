/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The backends as codec.c's table lists them; nobody else names one. */
#ifndef COMPRESS_CODEC_BACKENDS_H
#define COMPRESS_CODEC_BACKENDS_H

#include "codec.h"

extern const struct codec_ops codec_copy_ops;
extern const struct codec_ops codec_lz4_ops;
extern const struct codec_ops codec_lz4hc_ops;
extern const struct codec_ops codec_zstd_ops;

/* lz4 and lz4hc write one format. See codec_ops.decompress. */
int codec_lz4_decompress(void *context, const void *src, size_t src_bytes, void *dst, size_t dst_bytes);

#endif
