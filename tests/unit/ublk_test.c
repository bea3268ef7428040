// SPDX-License-Identifier: GPL-2.0-or-later
/* The ublk transport without a driver: what a device is made like, where data lies, the driver's numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <errno.h>

#include <cmocka.h>

#include "transport.h"
#include "ublk_abi.h"
#include "ublk_control.h"
#include "ublk_features.h"
#include "ublk_io.h"
#include "ublk_plan.h"
#include "units.h"

#define NEW_DRIVER ((UINT64_C(1) << 21) - 1) /* Linux 7.3 has 21 features */

static const struct transport_config config = {
	.size_bytes = 3 * GIB + 12288, .unit_bytes = 2 * MIB, .io_threads = 3, .discard = true};

/* Numbers as the kernel's documentation and strace show them. */
static void test_codes(void **state)
{
	(void)state;
	assert_int_equal(UBLK_GET_DEV_INFO, 0x80207502U);
	assert_int_equal(UBLK_ADD_DEV, 0xc0207504U);
	assert_int_equal(UBLK_DEL_DEV, 0xc0207505U);
	assert_int_equal(UBLK_START_DEV, 0xc0207506U);
	assert_int_equal(UBLK_STOP_DEV, 0xc0207507U);
	assert_int_equal(UBLK_SET_PARAMS, 0xc0207508U);
	assert_int_equal(UBLK_START_USER_RECOVERY, 0xc0207510U);
	assert_int_equal(UBLK_END_USER_RECOVERY, 0xc0207511U);
	assert_int_equal(UBLK_GET_FEATURES, 0x80207513U);
	assert_int_equal(UBLK_DEL_DEV_ASYNC, 0x80207514U);
	assert_int_equal(UBLK_SET_SIZE, 0xc0207515U);
	assert_int_equal(UBLK_TRY_STOP_DEV, 0xc0207517U);
	assert_int_equal(UBLK_FETCH, 0xc0107520U);
	assert_int_equal(UBLK_COMMIT_AND_FETCH, 0xc0107521U);
	assert_int_equal(ublk_code(false, UBLK_FETCH), 0xc0107520U);
	assert_int_equal(ublk_code(true, UBLK_FETCH), 0x20);
	assert_int_equal(ublk_code(true, UBLK_END_USER_RECOVERY), 0x11);
}

static void test_features_text(void **state)
{
	char text[200];
	uint64_t features;

	(void)state;
	assert_string_equal(ublk_features_text(0, text, sizeof(text)), "");
	assert_string_equal(
		ublk_features_text(UBLK_FEATURES_FIRST, text, sizeof(text)), "USER_RECOVERY, USER_RECOVERY_REISSUE");
	assert_string_equal(ublk_features_text(NEW_DRIVER, text, 16), "USER_RECOVERY, ");
	assert_int_equal(ublk_features_parse("", &features), 0);
	assert_int_equal(features, 0);
	assert_int_equal(ublk_features_parse("USER_COPY,UPDATE_SIZE", &features), 0);
	assert_int_equal(features, 1 << 7 | 1 << 10);
	features = 5;
	assert_int_equal(ublk_features_parse("USER_COP", &features), -EINVAL);
	assert_int_equal(ublk_features_parse("USER_COPY,", &features), -EINVAL);
	assert_int_equal(ublk_features_parse(",USER_COPY", &features), -EINVAL);
	assert_int_equal(ublk_features_parse("USER_COPY UPDATE_SIZE", &features), -EINVAL);
	assert_int_equal(features, 5);
}

/* What is asked for is no more than the driver has, and never what would need other code here. */
static void test_features_chosen(void **state)
{
	const uint64_t served = 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 12 | 1 << 17 | 1 << 18;
	struct ublk_plan plan = ublk_plan_make(&config, NEW_DRIVER, 0);

	(void)state;
	assert_int_equal(plan.features, served);
	assert_true(ublk_plan_can_take_over(&plan));
	plan = ublk_plan_make(&config, UBLK_FEATURES_FIRST, 0);
	assert_int_equal(plan.features, 1 << 3 | 1 << 4);
	assert_true(ublk_plan_can_take_over(&plan));
	plan = ublk_plan_make(&config, NEW_DRIVER & ~UBLK_USER_RECOVERY, 0);
	assert_int_equal(plan.features, served & ~(1 << 3 | 1 << 4 | 1 << 12));
	assert_false(ublk_plan_can_take_over(&plan));
	plan = ublk_plan_make(&config, NEW_DRIVER & ~UBLK_USER_RECOVERY_REISSUE, 0);
	assert_false(ublk_plan_can_take_over(&plan));
}

static void test_sizes(void **state)
{
	struct transport_config large = config;
	struct ublk_plan plan = ublk_plan_make(&config, NEW_DRIVER, 0);

	(void)state;
	assert_int_equal(plan.depth, 64);
	assert_int_equal(plan.request_max_bytes, 2 * MIB);
	large.unit_bytes = 16 * MIB;
	assert_int_equal(ublk_plan_make(&large, NEW_DRIVER, 0).request_max_bytes, 16 * MIB);
	/* A buffer per tag: few, and none larger than a huge page. */
	plan = ublk_plan_make(&large, UBLK_FEATURES_FIRST, 0);
	assert_int_equal(plan.request_max_bytes, 2 * MIB);
	assert_int_equal(plan.depth, 8);
	large.unit_bytes = 64 * KIB;
	assert_int_equal(ublk_plan_make(&large, UBLK_FEATURES_FIRST, 0).request_max_bytes, 64 * KIB);
	assert_int_equal(ublk_plan_make(&large, NEW_DRIVER, 1).depth, 1);
	assert_int_equal(ublk_plan_make(&large, NEW_DRIVER, 4096).depth, 4096);
	assert_int_equal(ublk_plan_make(&large, NEW_DRIVER, 5000).depth, 4096);
}

static void check_params(const struct ublk_params *params, unsigned unit_shift)
{
	assert_int_equal(params->bytes, 60);
	assert_int_equal(params->attributes, 0);
	assert_int_equal(params->logical_block_shift, 12);
	assert_int_equal(params->physical_block_shift, 12);
	assert_int_equal(params->io_min_shift, 12);
	assert_int_equal(params->io_opt_shift, unit_shift);
	assert_int_equal(params->max_sectors, (1U << unit_shift) / 512);
	assert_int_equal(params->chunk_sectors, (1U << unit_shift) / 512);
	assert_int_equal(params->virt_boundary_mask, 0);
}

static void test_params(void **state)
{
	struct transport_config other = config;
	struct ublk_plan plan = ublk_plan_make(&config, NEW_DRIVER, 0);
	struct ublk_params params = ublk_plan_params(&plan, &config);

	(void)state;
	check_params(&params, 21);
	assert_int_equal(params.types, 3);
	assert_int_equal(params.size_sectors, 6291480);
	assert_int_equal(params.discard_granularity_bytes, 4096);
	assert_int_equal(params.max_discard_segments, 1);
	assert_true(params.max_discard_sectors >= 2 * MIB / 512); /* swap gives whole clusters back */
	assert_true(params.max_write_zeroes_sectors >= 2 * MIB / 512);
	other.discard = false;
	other.unit_bytes = 16 * MIB;
	plan = ublk_plan_make(&other, NEW_DRIVER, 0);
	params = ublk_plan_params(&plan, &other);
	check_params(&params, 24);
	assert_int_equal(params.types, 1);
	assert_int_equal(params.max_discard_sectors, 0);
	assert_int_equal(params.max_write_zeroes_sectors, 0);
}

static void test_accept(void **state)
{
	struct ublk_plan plan = ublk_plan_make(&config, NEW_DRIVER, 0);
	struct ublk_info info = ublk_plan_info(&plan, 77);
	struct ublk_plan before = plan;

	(void)state;
	assert_int_equal(info.cookie, 77);
	assert_int_equal(info.id, UINT32_MAX);
	assert_int_equal(info.queues, 3);
	/* As many queues as CPUs; features nobody asked for; some that were not granted. */
	info.queues = 2;
	info.features = (info.features | 1 << 13 | 1) & ~UBLK_USER_RECOVERY_REISSUE;
	assert_int_equal(ublk_plan_accept(&plan, &info), 0);
	assert_int_equal(plan.queues, 2);
	assert_int_equal(plan.features, before.features & ~UBLK_USER_RECOVERY_REISSUE);
	assert_false(ublk_plan_can_take_over(&plan));
	/* The buffers stand and fall with these. */
	info.features &= ~UBLK_USER_COPY;
	assert_int_equal(ublk_plan_accept(&plan, &info), -EOPNOTSUPP);
	info = ublk_plan_info(&before, 77);
	info.request_max_bytes *= 2;
	assert_int_equal(ublk_plan_accept(&plan, &info), -EOPNOTSUPP);
	info = ublk_plan_info(&before, 77);
	info.depth++;
	assert_int_equal(ublk_plan_accept(&plan, &info), -EOPNOTSUPP);
	info = ublk_plan_info(&before, 77);
	info.queues = 0;
	assert_int_equal(ublk_plan_accept(&plan, &info), -EOPNOTSUPP);
}

/* Every tag's data lies within its thread's buffers; with a buffer for each, none overlap. */
static void check_buffers(const struct ublk_plan *plan)
{
	size_t request_bytes = plan->request_max_bytes, end = 0;

	for (unsigned queue = 0; queue < plan->queues; queue++) {
		size_t begin = ublk_plan_buffers_before(plan, queue);

		assert_int_equal(begin, end);
		end = ublk_plan_buffers_before(plan, queue + 1);
		assert_int_equal(
			end - begin, plan->features & UBLK_USER_COPY ? request_bytes : plan->depth * request_bytes);
		for (unsigned tag = 0; tag < plan->depth; tag++)
			assert_int_equal(ublk_plan_buffer_offset(plan, tag),
				plan->features & UBLK_USER_COPY ? 0 : tag * request_bytes);
	}
	/* Threads beyond the queues have nothing to do. */
	assert_int_equal(ublk_plan_buffers_before(plan, plan->threads), end);
}

static void test_buffers(void **state)
{
	static const uint64_t drivers[] = {NEW_DRIVER, NEW_DRIVER & ~UBLK_USER_COPY, UBLK_FEATURES_FIRST};
	struct transport_config many = config;

	(void)state;
	for (unsigned i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		for (many.io_threads = 1; many.io_threads <= 32; many.io_threads++) {
			struct ublk_plan plan = ublk_plan_make(&many, drivers[i], 0);

			assert_int_equal(plan.queues, many.io_threads);
			assert_int_equal(plan.threads, many.io_threads);
			check_buffers(&plan);
			plan.queues = (uint16_t)(plan.queues / 2 + 1); /* fewer CPUs */
			check_buffers(&plan);
		}
}

/* The driver takes queue, tag and byte out of the offset by shifting. */
static void test_copy_offset(void **state)
{
	(void)state;
	assert_int_equal(ublk_copy_offset(0, 0), 0x80000000);
	for (unsigned queue = 0; queue < 4096; queue += 65)
		for (unsigned tag = 0; tag < 4096; tag += 13) {
			uint64_t offset = (uint64_t)ublk_copy_offset(queue, tag) + UBLK_REQUEST_LIMIT_BYTES - 1;

			offset -= 0x80000000;
			assert_int_equal(offset >> 41 & 4095, queue);
			assert_int_equal(offset >> 25 & 65535, tag);
			assert_int_equal(offset & 0x1ffffff, UBLK_REQUEST_LIMIT_BYTES - 1);
		}
}

static void test_result(void **state)
{
	struct ublk_request desc = {.sectors = 0};

	(void)state;
	assert_int_equal(ublk_plan_result(&desc), 0);
	desc.sectors = 8;
	assert_int_equal(ublk_plan_result(&desc), 4096);
	desc.sectors = 32768;
	assert_int_equal(ublk_plan_result(&desc), 16 * MIB);
	desc.sectors = INT32_MAX / 512;
	assert_int_equal(ublk_plan_result(&desc), 0x7ffffe00);
	desc.sectors++;
	assert_int_equal(ublk_plan_result(&desc), INT32_MAX);
	desc.sectors = UINT32_MAX;
	assert_int_equal(ublk_plan_result(&desc), INT32_MAX);
}

static void test_io_entry(void **state)
{
	const struct ublk_io_words words = {.queue = 5, .tag = 4095, .result = -EIO, .address = 0x123456789abc};
	struct io_uring_sqe sqe;

	(void)state;
	memset(&sqe, 0xff, sizeof(sqe));
	ublk_io_fill(&sqe, 9, UBLK_FETCH, &words);
	assert_int_equal(sqe.opcode, 46);
	assert_int_equal(sqe.fd, 9);
	assert_int_equal(sqe.flags, 0);
	assert_int_equal(sqe.cmd_op, 0xc0107520U);
	assert_memory_equal((const uint8_t *)&sqe + 48, &words, 16);
	assert_int_equal(ublk_io_queue(sqe.user_data), 5);
	assert_int_equal(ublk_io_tag(sqe.user_data), 4095);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_features_text),
		cmocka_unit_test(test_features_chosen),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_params),
		cmocka_unit_test(test_accept),
		cmocka_unit_test(test_buffers),
		cmocka_unit_test(test_copy_offset),
		cmocka_unit_test(test_result),
		cmocka_unit_test(test_io_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
