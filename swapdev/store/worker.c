// SPDX-License-Identifier: GPL-2.0-or-later
/* Compression threads: close what is due, then be the janitor, then sleep. */
#include "store_internal.h"

#include "schedule.h"

#define STACK_BYTES (128 * 1024)
/* How soon to look again for work that was left for a quieter moment, or that found no room. */
#define LATER_NS (100 * UINT64_C(1000000))
#define STARVED_NS (5 * UINT64_C(1000000))
/* How much nicer than I/O threads: reads come first. Beside full-rate writes on one CPU their p99 was 25 to 40 ms without. */
#define NICER 5

int thread_create(pthread_t *ret, void *(*main)(void *), void *argument, const char *name)
{
	pthread_attr_t attributes;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	error = pthread_create(ret, &attributes, main, argument);
	pthread_attr_destroy(&attributes);
	if (!error)
		pthread_setname_np(*ret, name);
	return error;
}

void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
}

void cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns)
{
	const struct timespec deadline = {
		.tv_sec = (time_t)(deadline_ns / 1000000000), .tv_nsec = (long)(deadline_ns % 1000000000)};

	pthread_cond_timedwait(cond, lock, &deadline);
}

static void count_cpu(struct worker *worker)
{
	struct timespec cpu;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	__atomic_store_n(&worker->stats->cpu_ns,
		worker->cpu_base_ns + (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec, __ATOMIC_RELAXED);
}

static void worker_sleep(struct worker *worker)
{
	struct store *store = worker->store;
	struct staging *staging = &store->staging;
	uint64_t nap_ns;

	pthread_mutex_lock(&staging->lock);
	nap_ns = close_next_due_ns(store, worker->slice_ns);
	if (nap_ns > LATER_NS && janitor_has_later_work(store))
		nap_ns = LATER_NS;
	if (atomic_load(&store->starved))
		nap_ns = STARVED_NS;
	if (!atomic_load(&store->stopping) && nap_ns == UINT64_MAX)
		pthread_cond_wait(&staging->work, &staging->lock);
	else if (!atomic_load(&store->stopping) && nap_ns)
		cond_wait_until(&staging->work, &staging->lock, worker->slice_ns + nap_ns);
	pthread_mutex_unlock(&staging->lock);
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;
	struct store *store = worker->store;

	schedule_nicer(NICER);
	if (!store_await_turn(store))
		return NULL;
	worker->cpu_base_ns = stats_load(&worker->stats->cpu_ns);
	while (!atomic_load(&store->stopping)) {
		bool starved = atomic_load(&store->starved);

		worker->slice_ns = clock_ns();
		/* Closing again at once what found no room would only burn time: the janitor first, then a short sleep. */
		if (!starved && close_step(store, worker))
			continue;
		if (janitor_step(store, worker))
			continue;
		room_update_gauges(store);
		count_cpu(worker);
		worker_sleep(worker);
		if (starved) {
			worker->slice_ns = clock_ns();
			close_step(store, worker);
		}
	}
	return NULL;
}

int workers_start(struct store *store)
{
	for (unsigned i = 0; i < store->image.super->compress_threads; i++) {
		int error = thread_create(&store->worker[i].thread, worker_main, &store->worker[i], "fs-compress");

		if (error)
			return -error;
		store->workers_started++;
	}
	return 0;
}

void workers_stop(struct store *store)
{
	pthread_mutex_lock(&store->staging.lock);
	pthread_cond_broadcast(&store->staging.work);
	pthread_cond_broadcast(&store->staging.slot_free);
	pthread_mutex_unlock(&store->staging.lock);
	while (store->workers_started)
		pthread_join(store->worker[--store->workers_started].thread, NULL);
}
