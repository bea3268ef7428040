/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file that holds the image: unnamed, on a private tmpfs that is attached
 * nowhere and never swapped, so its pages stay in RAM whoever maps them, also
 * when nobody does. It exists as long as a descriptor of it is open.
 */
#ifndef SWAPDEV_IMAGEFILE_H
#define SWAPDEV_IMAGEFILE_H

#include <stdbool.h>

/*
 * Returns a descriptor of an empty file. Where tmpfs knows no noswap (before
 * Linux 6.4) it is a memfd, and *ret_swappable true. Else -errno.
 */
int imagefile_create(bool *ret_swappable);

/* The same file, opened anew for reading only: what other programs are given. Returns a descriptor or -errno. */
int imagefile_reopen_readonly(int image_fd);

#endif
