/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts this program's calls of the allocator, those out of shared libraries
 * too: alloc_count() before and after what must not allocate. Include it in one
 * source file of a test; with a sanitizer call alloc_count_init() first.
 */
#ifndef TESTS_ALLOC_COUNT_H
#define TESTS_ALLOC_COUNT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

static atomic_ulong alloc_calls;

static inline unsigned long alloc_count(void)
{
	return atomic_load(&alloc_calls);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
	__has_feature(thread_sanitizer)

/* Of the sanitizers' runtime; gcc has the function but not the header. */
extern int __sanitizer_install_malloc_and_free_hooks(
	void (*on_malloc)(const volatile void *, size_t), void (*on_free)(const volatile void *));

static void alloc_count_on_malloc(const volatile void *pointer, size_t bytes)
{
	(void)pointer;
	(void)bytes;
	atomic_fetch_add(&alloc_calls, 1);
}

static void alloc_count_on_free(const volatile void *pointer)
{
	(void)pointer;
}

static inline void alloc_count_init(void)
{
	if (!__sanitizer_install_malloc_and_free_hooks(alloc_count_on_malloc, alloc_count_on_free))
		abort();
}

#else

/* glibc's own names for what the definitions below stand in front of. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
	atomic_fetch_add(&alloc_calls, 1);
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	atomic_fetch_add(&alloc_calls, 1);
	return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
	atomic_fetch_add(&alloc_calls, 1);
	return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	atomic_fetch_add(&alloc_calls, 1);
	return __libc_memalign(alignment, bytes);
}

static inline void alloc_count_init(void)
{
}

#endif

#endif
