/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The features of the ublk driver that matter here: their names, and what is lost without them. */
#ifndef UBLKDEV_UBLK_FEATURES_H
#define UBLKDEV_UBLK_FEATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ublk_feature {
	const char *name; /* as in the kernel's documentation, without UBLK_F_; NULL ends the list */
	uint64_t bit;
	const char *without; /* what follows where it is missing; a part of a sentence */
	bool is_missed;      /* worth another kernel */
};

extern const struct ublk_feature ublk_features[];

/* "USER_RECOVERY, USER_COPY": those of the list that are in features. Returns text; "" is none. */
const char *ublk_features_text(uint64_t features, char *text, size_t text_bytes);

/* Reads "USER_COPY,UPDATE_SIZE". Returns 0 or -EINVAL: a word that is none of the names. */
int ublk_features_parse(const char *text, uint64_t *ret);

#endif
