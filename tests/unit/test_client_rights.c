/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_client_rights: what the rules do not allow any more ends, and nothing else. */
#include "client_side_lab.h"

#include "mrcd_client_impl.h"

#define MAY_USE 4711

static int rights_setup(void **state)
{
	struct lab *lab;

	lab_setup(state);
	lab = *state;
	/* prog_open() connects to it. */
	snprintf(lab->services[1].name, sizeof(lab->services[1].name), "x");
	lab->secret_user = MAY_USE;
	return 0;
}

static bool is_root(void)
{
	if (geteuid() != 0)
		print_message("programs of other users take root\n");
	return geteuid() == 0;
}

/* The file says something else now. */
static void rules_change(struct lab *lab)
{
	lab->secret_user = MAY_USE + 1;
	mrcd_client_side_hold_to_rules(lab->worker.clients);
	lab_turn(lab);
}

static uint32_t prog_listen(struct lab *lab, struct prog *prog, const char *service)
{
	struct mrc_cqe cqe;

	prog_request(prog, MRC_ABI_REQ_LISTEN, service, 0, 5);
	lab_turn(lab);
	cqe = prog_expect(prog, MRC_CQE_LISTENING);
	assert_int_equal(cqe.status, MRC_STATUS_OK);
	return cqe.channel;
}

/* Somebody at c wants to speak to it. */
static void lab_call(struct lab *lab, const char *service, uint32_t engine_id)
{
	struct mrc_action incoming = {.kind = MRC_ACT_CH_INCOMING};

	incoming.channel.id = engine_id;
	snprintf(incoming.channel.service, sizeof(incoming.channel.service), "%s", service);
	lab_perform(lab, &peer_c, incoming);
}

static void a_name_goes_to_who_may_offer_it(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev;
	struct prog prog, heir;
	struct mrc_cqe cqe, told;
	uint32_t listener;

	if (!is_root())
		skip();
	prog_attach_as(lab, &prog, "one", MAY_USE);
	listener = prog_listen(lab, &prog, "x");
	prog_listen(lab, &prog, "tea");
	lab_call(lab, "x", 77);
	lab_call(lab, "tea", 78);
	prog_expect(&prog, MRC_CQE_INCOMING);
	cqe = prog_expect(&prog, MRC_CQE_INCOMING);
	rules_change(lab);

	/* Who waited is told that there is no such service; its other one is as it was. */
	assert_int_equal(peer_saw(&peer_c, MRC_EV_CH_REFUSE, &ev), 1);
	assert_int_equal(ev.channel.id, 77);
	assert_int_equal(ev.channel.outcome, MRC_OUT_NO_SERVICE);
	assert_int_equal(prog_expect(&prog, MRC_CQE_CLOSED).status, MRC_STATUS_CLOSED);
	told = prog_expect(&prog, MRC_CQE_UNLISTENED);
	assert_int_equal(told.channel, listener);
	assert_int_equal(told.status, MRC_STATUS_NOT_ALLOWED);
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_ACCEPT, .channel = cqe.channel});
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_CH_ACCEPT, &ev), 1);
	assert_int_equal(ev.channel.id, 78);
	/* The name is free, and what comes now does not come to it. */
	prog_attach(lab, &heir, "two");
	prog_listen(lab, &heir, "x");
	lab_call(lab, "x", 79);
	prog_expect(&heir, MRC_CQE_INCOMING);
	prog_expect_nothing(&prog);
	/* It need not have read that, and may say what it would say. */
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_UNLISTEN, .channel = listener});
	prog_request(&prog, MRC_ABI_REQ_LISTEN, "x", 0, 6);
	lab_turn(lab);
	assert_int_equal(prog_expect(&prog, MRC_CQE_LISTENING).status, MRC_STATUS_NOT_ALLOWED);
	assert_false(prog_is_ended(&prog));
	prog_leave(&heir);
	prog_leave(&prog);
}

/* A reload asks by itself. */
static void another_configuration_is_held_against_what_clients_have(void **state)
{
	struct lab *lab = *state;
	struct mrc_event_in ev;
	struct pipe_end end;
	struct prog prog;
	uint32_t listener;

	if (!is_root())
		skip();
	prog_attach_as(lab, &prog, "one", MAY_USE);
	listener = prog_listen(lab, &prog, "x");
	prog_listen(lab, &prog, "tea");
	end = prog_open(lab, &prog, "b");
	lab->secret_user = MAY_USE + 1;
	mrcd_client_side_configure(lab->worker.clients);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_CLOSE, &ev), 1);
	assert_int_equal(ev.channel.id, end.engine_id);
	assert_int_equal(prog_expect(&prog, MRC_CQE_UNLISTENED).channel, listener);
	assert_int_equal(lab_number(lab, "one", "listeners"), 1);
	prog_leave(&prog);
}

/* An older program would not know the entry, and one that reads nothing has no room for it. */
static void who_cannot_be_told_is_not(void **state)
{
	struct lab *lab = *state;
	struct prog older, deaf;
	struct mrcd_client *client;

	if (!is_root())
		skip();
	prog_attach_as(lab, &older, "older", MAY_USE);
	prog_listen(lab, &older, "x");
	client = lab->worker.clients->clients[0];
	assert_string_equal(client->name, "older");
	client->abi_version = 1;
	rules_change(lab);
	prog_expect_nothing(&older);
	lab->secret_user = MAY_USE;
	prog_attach_as(lab, &deaf, "deaf", MAY_USE);
	prog_request(&deaf, MRC_ABI_REQ_LISTEN, "x", 0, 5);
	lab_turn(lab);
	client = lab->worker.clients->clients[1];
	assert_int_equal(client->answers_unread, 1);
	/* What it asks for itself still finds room. */
	client->answers_unread = MRCD_ANSWERS_MAX / 2;
	rules_change(lab);
	assert_int_equal(client->answers_unread, MRCD_ANSWERS_MAX / 2);
	assert_int_equal(client->listener_count, 0);
	client->answers_unread = 1;
	prog_expect(&deaf, MRC_CQE_LISTENING);
	prog_expect_nothing(&deaf);
	prog_leave(&deaf);
	prog_leave(&older);
}

static void a_channel_is_closed_as_if_its_program_had_done_so(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end, other;
	struct mrc_event_in ev;
	struct prog prog, root;
	struct mrc_cqe cqe;

	if (!is_root())
		skip();
	prog_attach_as(lab, &prog, "one", MAY_USE);
	prog_attach(lab, &root, "root");
	end = prog_open(lab, &prog, "b");
	other = prog_open(lab, &root, "c");
	prog_send(&prog, &end, 1);
	lab_turn(lab);
	rules_change(lab);
	/* The engine has it, so it is settled first. */
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 1);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_CLOSE, &ev), 1);
	assert_int_equal(ev.channel.id, end.engine_id);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_ABORT, NULL), 0);
	prog_send(&prog, &end, 2);
	lab_turn(lab);
	cqe = prog_expect(&prog, MRC_CQE_SENT);
	assert_int_equal(cqe.user_data, 2);
	assert_int_equal(cqe.status, MRC_STATUS_CLOSED);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_SEND, NULL), 1);
	/* Once is enough, and nobody else is touched: root may do all. */
	mrcd_client_side_hold_to_rules(lab->worker.clients);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_CLOSE, NULL), 1);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_CH_CLOSE, NULL), 0);
	prog_send(&root, &other, 3);
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_SEND, NULL), 1);
	prog_leave(&root);
	prog_leave(&prog);
}

/* One that came in is its program's by the right to offer the service, not by that to connect. */
static void a_channel_that_came_in_goes_with_the_right_to_listen(void **state)
{
	struct lab *lab = *state;
	struct pipe_end end = {.peer = &peer_c, .engine_id = 77};
	struct mrc_event_in accept = {0};
	struct prog prog;

	if (!is_root())
		skip();
	/* The rule for both is open; that of one use is the one that changes. */
	lab->services[1].any = (struct mrcd_conf_who){.is_open = true};
	lab->services[1].of[MRCD_USE_LISTEN] =
		(struct mrcd_conf_who){.users = &lab->secret_user, .user_count = 1};
	prog_attach_as(lab, &prog, "one", MAY_USE);
	prog_listen(lab, &prog, "x");
	lab_call(lab, "x", end.engine_id);
	end.id = prog_expect(&prog, MRC_CQE_INCOMING).channel;
	prog_submit(&prog, (struct mrc_sqe){.op = MRC_SQE_ACCEPT, .channel = end.id});
	lab_turn(lab);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_CH_ACCEPT, &accept), 1);
	end.cookie = accept.channel.cookie;
	lab_perform(lab, &peer_c, act_channel(MRC_ACT_CH_UP, &end));
	prog_expect(&prog, MRC_CQE_CONNECTED);
	prog_open(lab, &prog, "b"); /* which it may as before */
	rules_change(lab);
	assert_int_equal(peer_saw(&peer_c, MRC_EV_CH_CLOSE, NULL), 1);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_CLOSE, NULL), 0);
	prog_leave(&prog);
}

/* Beforehand: what each would lose by a file that is not in force yet. */
static int on_loss(void *context, const struct mrcd_client_loss *loss)
{
	struct mrcd_client_loss *sum = context;

	assert_string_equal(loss->client, "one");
	assert_int_equal(loss->uid, MAY_USE);
	assert_int_equal(loss->pid, getpid());
	sum->client = loss->client;
	sum->services += loss->services;
	sum->channels += loss->channels;
	return 0;
}

static int stop(void *context, const struct mrcd_client_loss *loss)
{
	return -ENOMEM;
}

static void what_would_be_lost_is_known_beforehand(void **state)
{
	struct lab *lab = *state;
	struct mrcd_client_loss sum = {0};
	struct mrcd_conf fresh = lab->conf;
	uid_t other = MAY_USE + 1;
	struct mrcd_conf_service services[2];
	struct prog prog, root;

	if (!is_root())
		skip();
	assert_int_equal(fresh.service_count, MRC_ARRAY_LEN(services));
	memcpy(services, fresh.services, sizeof(services));
	fresh.services = services;
	services[1].any = (struct mrcd_conf_who){.users = &other, .user_count = 1};
	prog_attach_as(lab, &prog, "one", MAY_USE);
	prog_attach(lab, &root, "root");
	prog_listen(lab, &prog, "x");
	prog_listen(lab, &prog, "tea");
	prog_open(lab, &prog, "b");
	prog_open(lab, &prog, "c");
	prog_open(lab, &root, "c");
	assert_int_equal(mrcd_client_side_each_loss(lab->worker.clients, &lab->conf, on_loss, &sum),
			 0);
	assert_null(sum.client);
	assert_int_equal(mrcd_client_side_each_loss(lab->worker.clients, &fresh, on_loss, &sum), 0);
	assert_int_equal(sum.services, 1);
	assert_int_equal(sum.channels, 2);
	assert_int_equal(mrcd_client_side_each_loss(lab->worker.clients, &fresh, stop, NULL),
			 -ENOMEM);
	/* Nothing has happened by it. */
	lab_turn(lab);
	prog_expect_nothing(&prog);
	assert_int_equal(peer_saw(&peer_b, MRC_EV_CH_CLOSE, NULL), 0);
	prog_leave(&root);
	prog_leave(&prog);
}

#define rights_test(name) cmocka_unit_test_setup_teardown(name, rights_setup, lab_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		rights_test(what_would_be_lost_is_known_beforehand),
		rights_test(a_name_goes_to_who_may_offer_it),
		rights_test(another_configuration_is_held_against_what_clients_have),
		rights_test(who_cannot_be_told_is_not),
		rights_test(a_channel_is_closed_as_if_its_program_had_done_so),
		rights_test(a_channel_that_came_in_goes_with_the_right_to_listen),
	};

	return cmocka_run_group_tests_name("client_rights", tests, NULL, NULL);
}
