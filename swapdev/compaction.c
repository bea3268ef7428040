// SPDX-License-Identifier: GPL-2.0-or-later
/* The thread that compacts when it is told to. */
#include "compaction.h"

#include "store.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STACK_BYTES (128 * 1024)

struct compaction {
	struct store *store;
	pthread_t thread;
	int event_fd;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t wake;
	bool wanted;
	bool leaving;
	uint64_t timeout_ns;
	struct compaction_state state;
};

static void raise_event(struct compaction *compaction)
{
	eventfd_write(compaction->event_fd, 1);
}

static void on_progress(void *argument, uint64_t done_bytes, uint64_t total_bytes)
{
	struct compaction *compaction = argument;

	pthread_mutex_lock(&compaction->lock);
	compaction->state.done_bytes = done_bytes;
	compaction->state.total_bytes = total_bytes;
	pthread_mutex_unlock(&compaction->lock);
	raise_event(compaction);
}

/* With the lock held; compacts without it. */
static void run_one(struct compaction *compaction)
{
	uint64_t timeout_ns = compaction->timeout_ns;
	int result;

	compaction->wanted = false;
	pthread_mutex_unlock(&compaction->lock);
	result = store_compact(compaction->store, timeout_ns, on_progress, compaction);
	pthread_mutex_lock(&compaction->lock);
	compaction->state.running = false;
	compaction->state.result = result;
	raise_event(compaction);
}

static void *compaction_main(void *argument)
{
	struct compaction *compaction = argument;

	pthread_mutex_lock(&compaction->lock);
	while (!compaction->leaving) {
		if (compaction->wanted)
			run_one(compaction);
		else
			pthread_cond_wait(&compaction->wake, &compaction->lock);
	}
	pthread_mutex_unlock(&compaction->lock);
	return NULL;
}

static int start_thread(struct compaction *compaction)
{
	pthread_attr_t attributes;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	error = pthread_create(&compaction->thread, &attributes, compaction_main, compaction);
	pthread_attr_destroy(&attributes);
	if (error)
		return -error;
	pthread_setname_np(compaction->thread, "compaction");
	return 0;
}

int compaction_create(struct compaction **ret, struct store *store)
{
	struct compaction *compaction = calloc(1, sizeof(*compaction));
	int error;

	if (!compaction)
		return -ENOMEM;
	compaction->store = store;
	compaction->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (compaction->event_fd < 0) {
		error = -errno;
		free(compaction);
		return error;
	}
	pthread_mutex_init(&compaction->lock, NULL);
	pthread_cond_init(&compaction->wake, NULL);
	error = start_thread(compaction);
	if (error < 0) {
		close(compaction->event_fd);
		free(compaction);
		return error;
	}
	*ret = compaction;
	return 0;
}

void compaction_destroy(struct compaction *compaction)
{
	if (!compaction)
		return;
	pthread_mutex_lock(&compaction->lock);
	compaction->leaving = true;
	pthread_cond_signal(&compaction->wake);
	pthread_mutex_unlock(&compaction->lock);
	pthread_join(compaction->thread, NULL);
	pthread_cond_destroy(&compaction->wake);
	pthread_mutex_destroy(&compaction->lock);
	close(compaction->event_fd);
	free(compaction);
}

int compaction_event_fd(const struct compaction *compaction)
{
	return compaction->event_fd;
}

int compaction_start(struct compaction *compaction, uint64_t timeout_ns)
{
	int error = -EBUSY;

	pthread_mutex_lock(&compaction->lock);
	if (!compaction->state.running) {
		compaction->state = (struct compaction_state){.running = true};
		compaction->wanted = true;
		compaction->timeout_ns = timeout_ns;
		pthread_cond_signal(&compaction->wake);
		error = 0;
	}
	pthread_mutex_unlock(&compaction->lock);
	return error;
}

void compaction_get(struct compaction *compaction, struct compaction_state *ret)
{
	pthread_mutex_lock(&compaction->lock);
	*ret = compaction->state;
	pthread_mutex_unlock(&compaction->lock);
}

/* Cleared before it is looked at: what comes in between is seen now or raises it again. */
void compaction_take_event(struct compaction *compaction, struct compaction_state *ret)
{
	eventfd_t count;

	eventfd_read(compaction->event_fd, &count);
	compaction_get(compaction, ret);
}
