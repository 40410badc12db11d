/* SPDX-License-Identifier: BSD-2-Clause */
#include <poll.h>
#include <unistd.h>

#include "rail_tcp_lab.h"

/* ---- handing over to a device ---- */

static const struct mrcd_tcp *tcp_of(const struct mrcd_rail *rail)
{
	return rail->kind_data;
}

/* A device, as the tcp part sees one; index 0 is a's. */
struct device {
	struct mrcd_tcp_upgrade upgrade;
	bool is_capable;
	uint16_t port;
	uint32_t asked;
	/* What it was handed. */
	uint32_t starts;
	int fd;
	struct mrcd_handshake hs;
	char address[MRCD_ADDRESS_TEXT_BYTES];
	bool is_next_free; /* the path's next attempt could have begun in the call */
};

static bool device_is_capable(void *context)
{
	struct device *device = context;

	device->asked++;
	return device->is_capable;
}

static uint16_t device_port(void *context)
{
	return ((struct device *)context)->port;
}

static void device_start(void *context, int fd, const struct mrcd_handshake *hs,
			 const struct sockaddr_storage *address, socklen_t address_len)
{
	struct device *device = context;

	device->starts++;
	device->fd = fd;
	device->hs = *hs;
	mrcd_tcp_address_text(address, address_len, device->address);
	/* It may fail at once, and the engine then asks for the next. */
	device->is_next_free =
		hs->is_initiator && !mrcd_tcp_attempt_exists(hs->rail->kind_data, hs->peer, 0);
}

static void devices_open(struct fake *f, struct device devices[2])
{
	struct mrcd_tcp *tcp;

	for (int i = 0; i < 2; i++) {
		struct mrcd_rail *rail = &f->worker.rails[i];

		devices[i].upgrade = (struct mrcd_tcp_upgrade){
			.is_capable = device_is_capable,
			.is_required = devices[i].upgrade.is_required,
			.port = device_port,
			.start = device_start,
			.context = &devices[i],
		};
		mrcd_rail_tcp_ops.close(rail);
		assert_int_equal(mrcd_tcp_new(rail, &devices[i].upgrade, &tcp), 0);
		rail->kind_data = tcp;
	}
	f->a->port = port_of(f->b->rail);
}

static void two_devices_get_the_connection_and_a_token(void **state)
{
	struct fake *f = *state;
	struct device devices[2] = {{.is_capable = true}, {.is_capable = true, .port = 4791}};
	struct pollfd pfd = {.events = POLLIN};
	char byte = 'x';

	devices[0].port = 1; /* the initiator's is not said */
	devices_open(f, devices);
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_until(f, devices[0].starts && devices[1].starts);
	fake_settle(f);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(devices[i].starts, 1);
		assert_true(mrcd_handshake_is_done(&devices[i].hs));
		assert_true(devices[i].hs.is_direct_capable);
		assert_int_equal(devices[i].hs.is_initiator, i == 0);
		assert_ptr_equal(devices[i].hs.peer, i ? f->b : f->a);
		assert_int_equal(devices[i].hs.device_port, 4791);
		assert_int_equal(devices[i].hs.auth.path_epoch, 1);
		assert_string_equal(devices[i].address, "127.0.0.1");
		assert_int_equal(tcp_of(&f->worker.rails[i])->inbound_count, 0);
		assert_int_equal(buckets_used(tcp_of(&f->worker.rails[i])), 0);
	}
	assert_true(devices[0].is_next_free);
	assert_memory_equal(devices[0].hs.device_token, devices[1].hs.device_token,
			    MRCD_DEVICE_TOKEN_BYTES);
	/* No link, no word, and the connection lives. */
	assert_int_equal(f->a->ups + f->b->ups + f->a->failures + f->b->failures, 0);
	assert_int_equal(write(devices[0].fd, &byte, 1), 1);
	pfd.fd = devices[1].fd;
	assert_int_equal(poll(&pfd, 1, FAKE_GUARD_S * 1000), 1);
	assert_int_equal(read(pfd.fd, &byte, 1), 1);
	close(devices[0].fd);
	close(devices[1].fd);
}

static void without_a_device_at_both_ends_it_is_a_tcp_link(void **state)
{
	for (int mask = 0; mask < 3; mask++) {
		struct fake *f = *state;
		struct device devices[2] = {{.is_capable = mask & 1, .port = 1},
					    {.is_capable = mask & 2, .port = 2}};

		devices_open(f, devices);
		connect_both(f);
		assert_int_equal(devices[0].starts + devices[1].starts, 0);
		assert_int_equal(f->a->failures + f->b->failures, 0);
		assert_string_equal(f->a->link->ops->kind, "tcp");
		tear_down(state);
		set_up(state);
	}
}

static void it_is_asked_anew_for_each_connection(void **state)
{
	struct fake *f = *state;
	struct device devices[2] = {{.is_capable = true}, {.is_capable = true}};

	/* Its port comes late: not usable before. */
	devices_open(f, devices);
	connect_both(f);
	devices[1].port = 7;
	f->a->link->ops->fence(f->a->link);
	fake_until(f, f->b->downs == 1);
	mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
	fake_until(f, devices[0].starts && devices[1].starts);
	close(devices[0].fd);
	close(devices[1].fd);
}

static void a_rail_of_devices_refuses_what_has_none(void **state)
{
	static const struct {
		bool is_capable[2], is_required[2];
		const char *why; /* as the initiator hears it */
		uint32_t strangers[2];
	} rows[] = {
		{{true, false}, {true, false}, MRCD_WHY_NO_DEVICE_THERE, {1, 1}},
		{{false, true}, {true, false}, MRCD_WHY_NO_DEVICE_HERE, {0, 0}},
		{{false, true}, {false, true}, "closed the connection in the handshake", {0, 1}},
		{{true, false}, {false, true}, "closed the connection in the handshake", {0, 1}},
	};

	for (size_t r = 0; r < MRC_ARRAY_LEN(rows); r++) {
		struct fake *f = *state;
		struct device devices[2] = {{.port = 1}, {.port = 2}};

		for (int i = 0; i < 2; i++) {
			devices[i].is_capable = rows[r].is_capable[i];
			devices[i].upgrade.is_required = rows[r].is_required[i];
		}
		devices_open(f, devices);
		mrcd_rail_tcp_ops.connect(f->a->rail, f->a, 0);
		assert_int_equal(f->a->failures, 0); /* not inside the call */
		fake_until(f, f->a->failures == 1);
		assert_string_equal(f->a->why, rows[r].why);
		fake_until(f, tcp_of(f->b->rail)->inbound_count == 0 &&
				      f->b->rail->strangers == rows[r].strangers[1]);
		assert_int_equal(f->a->rail->strangers, rows[r].strangers[0]);
		assert_int_equal(f->a->ups + f->b->ups, 0);
		assert_int_equal(devices[0].starts + devices[1].starts, 0);
		tear_down(state);
		set_up(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		claim(two_devices_get_the_connection_and_a_token),
		claim(without_a_device_at_both_ends_it_is_a_tcp_link),
		claim(it_is_asked_anew_for_each_connection),
		claim(a_rail_of_devices_refuses_what_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
