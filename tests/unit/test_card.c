/* SPDX-License-Identifier: BSD-2-Clause */
/* What network cards count, read from trees of files (doctor/README.md), and by a worker once a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mrcd_card.h"
#include "mrcd_log.h"
#include "mrcd_worker.h"
#include "tree_lab.h"

#define NET  "sys/class/net/ens1f0np0/"
#define PORT "sys/class/infiniband/mlx5_0/ports/1/"

static const struct mrcd_card_place roce = {.interface = "ens1f0np0",
					    .ifindex = 4,
					    .device = "mlx5_0",
					    .port = 1};

static struct mrcd_card card_of(const char *tree, const struct mrcd_card_place *place)
{
	struct mrcd_card card = {.reading = 9};
	char sys[80];

	snprintf(sys, sizeof(sys), "%s/sys", tree);
	mrcd_card_read(sys, place, &card);
	return card;
}

static void counts_are_those_of_the_interface_and_of_the_port(void **state)
{
	struct mrc_health_card judged;
	struct mrcd_card card;
	char root[64];

	tree_make("roce.tree", root);
	file_set(root, NET "statistics/rx_crc_errors", "70");
	file_set(root, NET "statistics/rx_frame_errors", "5");
	file_set(root, NET "statistics/rx_errors", "4000000000000");
	file_set(root, PORT "counters/port_rcv_errors", "60");
	file_set(root, PORT "counters/symbol_error", "65535");
	file_set(root, PORT "hw_counters/rx_icrc_encapsulated", "3");
	file_set(root, PORT "hw_counters/packet_seq_err", "10");
	file_set(root, PORT "hw_counters/implied_nak_seq_err", "20");
	file_set(root, PORT "hw_counters/local_ack_timeout_err", "30");
	card = card_of(root, &roce);
	assert_int_equal(card.reading, 9);
	assert_true(card.counts[MRCD_CARD_RX_ERRORS] == 4000000000000);
	assert_int_equal(card.counts[MRCD_CARD_SYMBOL], 65535);
	mrcd_card_judged(&card, &judged);
	assert_int_equal(judged.reading, 9);
	assert_int_equal(judged.received, 1004000);
	assert_int_equal(judged.damaged,
			 78); /* a frame that both count is one; symbols are no packets */
	assert_int_equal(judged.sent, 2000000);
	assert_int_equal(judged.resent, 60);
	/* InfiniBand: the port alone knows of damage. */
	file_set(root, PORT "counters/port_rcv_errors", "90");
	card = card_of(root, &roce);
	mrcd_card_judged(&card, &judged);
	assert_int_equal(judged.damaged, 93);
	tree_remove(root);
}

static void what_a_card_does_not_count_is_not_known(void **state)
{
	static const char *const values[] = {"-1", "", "N/A", "12x", "99999999999999999999"};
	struct mrcd_card card;
	char root[64];

	tree_make("roce.tree", root);
	assert_true(mrcd_card_knows(&(struct mrcd_card){.known_bits = 1}, MRCD_CARD_RX_PACKETS));
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		file_set(root, NET "statistics/rx_crc_errors", values[i]);
		card = card_of(root, &roce);
		assert_false(mrcd_card_knows(&card, MRCD_CARD_RX_CRC));
		assert_true(mrcd_card_knows(&card, MRCD_CARD_RX_FRAME));
		assert_true(mrcd_card_knows(&card, MRCD_CARD_SYMBOL));
		assert_false(mrcd_card_knows(&card, MRCD_CARD_RXE_SEQ)); /* soft-RoCE's */
		assert_int_equal(card.counts[MRCD_CARD_RX_CRC], 0);
	}
	tree_remove(root);
}

/* /sys may show another network namespace, with another card of that name. */
static void another_interface_of_that_name_is_not_read(void **state)
{
	struct mrcd_card_place place = roce;
	struct mrcd_card card;
	char root[64];

	tree_make("roce.tree", root);
	place.ifindex = 5;
	card = card_of(root, &place);
	assert_false(mrcd_card_knows(&card, MRCD_CARD_RX_CRC));
	assert_true(mrcd_card_knows(&card, MRCD_CARD_SYMBOL));
	place.device[0] = '\0';
	assert_int_equal(card_of(root, &place).known_bits, 0);
	strcpy(place.interface, "nowhere");
	assert_int_equal(card_of(root, &place).known_bits, 0);
	place.interface[0] = '\0';
	assert_int_equal(card_of(root, &place).known_bits, 0);
	tree_remove(root);
}

static void errors_are_told_by_the_kernel_s_names(void **state)
{
	json_t *object = json_object(), *errors;
	struct mrcd_card card;
	char root[64];

	tree_make("roce.tree", root);
	mrcd_card_describe(&(struct mrcd_card){.known_bits = 1}, object); /* packets alone */
	assert_null(json_object_get(object, "card"));
	file_set(root, PORT "counters/link_downed", "4");
	file_set(root, NET "statistics/rx_crc_errors", "7");
	card = card_of(root, &roce);
	mrcd_card_describe(&card, object);
	errors = json_object_get(object, "card");
	assert_int_equal(json_integer_value(json_object_get(errors, "link_downed")), 4);
	assert_int_equal(json_integer_value(json_object_get(errors, "carrier_changes")), 2);
	assert_non_null(json_object_get(errors, "rx_crc_errors"));
	assert_null(json_object_get(errors, "rx_packets"));
	assert_null(json_object_get(errors, "rcvd_seq_err"));
	assert_int_equal(json_integer_value(json_object_get(object, "card_damaged")), 7);
	json_decref(object);
	tree_remove(root);
}

/* ---- a worker's rails ---- */

static void read_until(struct mrcd_worker *worker, uint64_t reading)
{
	while (worker->rails[0].card.reading < reading)
		assert_int_equal(event_base_loop(worker->base, EVLOOP_ONCE), 0);
}

static void rails_have_what_their_cards_counted_last(void **state)
{
	static struct mrcd_conf conf = {.rail_count = 2, .host = "a", .runtime_dir = "/nowhere"};
	struct mrcd_worker *worker;
	struct mrcd_cards *cards;
	uint64_t first;
	char root[64], sys[80];

	mrcd_log_init(LOG_CRIT);
	tree_make("roce.tree", root);
	snprintf(sys, sizeof(sys), "%s/sys", root);
	strcpy(conf.rails[0].name, "r0");
	strcpy(conf.rails[0].interface, "ens1f0np0");
	strcpy(conf.rails[1].name, "r1");
	strcpy(conf.rails[1].interface, "nowhere");
	assert_int_equal(mrcd_worker_new(&conf, &worker), 0);
	worker->rails[0].ifindex = 4;
	assert_int_equal(mrcd_cards_new(worker, sys, &cards), 0);
	read_until(worker, 1);
	first = worker->rails[0].card.reading;
	assert_int_equal(worker->rails[0].card.counts[MRCD_CARD_RX_CRC], 0);
	file_set(root, NET "statistics/rx_crc_errors", "12");
	read_until(worker, first + 1);
	assert_int_equal(worker->rails[0].card.counts[MRCD_CARD_RX_CRC], 12);
	assert_int_equal(worker->rails[1].card.reading, 0); /* it has none */
	mrcd_cards_free(cards);
	/* What is being read when rails go is nobody's. */
	worker->rails[0].card = (struct mrcd_card){0};
	assert_int_equal(mrcd_cards_new(worker, sys, &cards), 0);
	mrcd_cards_stop(cards);
	mrcd_cards_free(cards);
	assert_int_equal(worker->rails[0].card.reading, 0);
	mrcd_worker_free(worker);
	tree_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_those_of_the_interface_and_of_the_port),
		cmocka_unit_test(what_a_card_does_not_count_is_not_known),
		cmocka_unit_test(another_interface_of_that_name_is_not_read),
		cmocka_unit_test(errors_are_told_by_the_kernel_s_names),
		cmocka_unit_test(rails_have_what_their_cards_counted_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
