/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include "mrcd_lookout.h"

#define BELLS 40 /* more than one look takes */

struct bell {
	struct mrcd_lookout_source source; /* first */
	int fd;
	bool is_read;
	uint32_t found;
};

static void on_readable(struct mrcd_lookout_source *source)
{
	struct bell *bell = (struct bell *)source;
	uint64_t count;

	bell->found++;
	if (bell->is_read)
		assert_int_equal(read(bell->fd, &count, sizeof(count)), sizeof(count));
}

static void bell_open(struct bell *bell, bool is_read)
{
	*bell = (struct bell){
		.source.on_readable = on_readable,
		.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
		.is_read = is_read,
	};
	assert_true(bell->fd >= 0);
}

static void ring(const struct bell *bell)
{
	uint64_t one = 1;

	assert_int_equal(write(bell->fd, &one, sizeof(one)), sizeof(one));
}

static void only_what_can_be_read_is_found(void **state)
{
	struct mrcd_lookout *lookout;
	struct bell a, b;

	(void)state;
	bell_open(&a, true);
	bell_open(&b, true);
	assert_int_equal(mrcd_lookout_new(&lookout), 0);
	assert_int_equal(mrcd_lookout_take(lookout), 0); /* nobody is there */
	mrcd_lookout_add(lookout, a.fd, &a.source, false);
	mrcd_lookout_add(lookout, b.fd, &b.source, false);
	assert_int_equal(mrcd_lookout_take(lookout), 0);
	ring(&b);
	assert_int_equal(mrcd_lookout_take(lookout), 1);
	assert_int_equal(a.found, 0);
	assert_int_equal(b.found, 1);
	assert_int_equal(mrcd_lookout_take(lookout), 0);
	close(a.fd);
	close(b.fd);
	mrcd_lookout_free(lookout);
}

static void what_nobody_reads_is_found_once_for_each_write(void **state)
{
	struct mrcd_lookout *lookout;
	struct bell edge, level;

	(void)state;
	bell_open(&edge, false);
	bell_open(&level, false);
	assert_int_equal(mrcd_lookout_new(&lookout), 0);
	mrcd_lookout_add(lookout, edge.fd, &edge.source, true);
	mrcd_lookout_add(lookout, level.fd, &level.source, false);
	ring(&edge);
	ring(&level);
	for (int i = 0; i < 3; i++)
		mrcd_lookout_take(lookout);
	assert_int_equal(edge.found, 1);
	assert_int_equal(level.found, 3);
	ring(&edge);
	mrcd_lookout_take(lookout);
	assert_int_equal(edge.found, 2);
	close(edge.fd);
	close(level.fd);
	mrcd_lookout_free(lookout);
}

static void who_is_removed_is_not_found(void **state)
{
	struct mrcd_lookout *lookout;
	struct bell a;

	(void)state;
	bell_open(&a, true);
	assert_int_equal(mrcd_lookout_new(&lookout), 0);
	mrcd_lookout_add(lookout, a.fd, &a.source, false);
	ring(&a);
	mrcd_lookout_remove(lookout, a.fd);
	assert_int_equal(mrcd_lookout_take(lookout), 0);
	assert_int_equal(a.found, 0);
	mrcd_lookout_remove(lookout, a.fd); /* a second time is nothing */
	mrcd_lookout_add(lookout, a.fd, &a.source, false);
	assert_int_equal(mrcd_lookout_take(lookout), 1);
	close(a.fd);
	mrcd_lookout_free(lookout);
}

static void more_than_one_look_takes_are_all_found(void **state)
{
	struct mrcd_lookout *lookout;
	struct bell bells[BELLS];
	uint32_t found = 0, looks = 0, count;

	(void)state;
	assert_int_equal(mrcd_lookout_new(&lookout), 0);
	for (int i = 0; i < BELLS; i++) {
		bell_open(&bells[i], true);
		mrcd_lookout_add(lookout, bells[i].fd, &bells[i].source, false);
		ring(&bells[i]);
	}
	while ((count = mrcd_lookout_take(lookout)) > 0) {
		found += count;
		looks++;
	}
	assert_int_equal(found, BELLS);
	assert_true(looks > 1); /* who looks has other things to do between */
	for (int i = 0; i < BELLS; i++) {
		assert_int_equal(bells[i].found, 1);
		close(bells[i].fd);
	}
	mrcd_lookout_free(lookout);
}

static void without_one_nothing_is_added(void **state)
{
	struct bell a;

	(void)state;
	bell_open(&a, true);
	mrcd_lookout_add(NULL, a.fd, &a.source, false);
	mrcd_lookout_remove(NULL, a.fd);
	mrcd_lookout_free(NULL);
	close(a.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_can_be_read_is_found),
		cmocka_unit_test(what_nobody_reads_is_found_once_for_each_write),
		cmocka_unit_test(who_is_removed_is_not_found),
		cmocka_unit_test(more_than_one_look_takes_are_all_found),
		cmocka_unit_test(without_one_nothing_is_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
