/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon is killed at each of the system calls that it makes while it hands
 * over, and the next one at each of those that it makes while it takes over. A
 * program that is attached goes on with whoever comes then, or it is told: there
 * is no call at which it would wait for somebody who has nothing of it.
 */
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "handover_lab.h"

/*
 * Every third one, for the sake of a busy machine: the n-th takes n turns of two processes.
 * MRC_KILL_STRIDE=1 in the environment is all of them.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRIDE 13
#else
#define STRIDE 3
#endif
#define CALLS_MAX 5000U

/* Where the part begins in which the process may be killed; its first stop. */
static void child_is_ready(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(77);
	raise(SIGSTOP);
}

static void child_leaves(struct manager *m, int ready_fd)
{
	struct mrcd_handover *handover;
	struct mrcd_worker *worker;
	uint32_t done = 0;

	/* No assertion of cmocka's: it would go on with the tests in here. */
	manager_hears_later = true;
	if (mrcd_worker_new(&m->conf, &worker) < 0 || mrcd_worker_start(worker, -1, NULL) < 0 ||
	    write(ready_fd, "", 1) != 1)
		_exit(1);
	while (mrcd_client_side_count(worker->clients) == 0)
		event_base_loop(worker->base, EVLOOP_ONCE);
	child_is_ready();
	if (mrcd_handover_begin(worker, on_done, &done, &handover) < 0)
		_exit(1);
	while (done == 0)
		event_base_loop(worker->base, EVLOOP_ONCE);
	mrcd_handover_free(handover);
	mrcd_worker_free(worker);
	_exit(0);
}

static void child_takes(struct manager *m)
{
	struct mrcd_heritage *heritage;
	struct mrcd_worker *worker;

	manager_hears_later = true;
	child_is_ready();
	heritage = mrcd_heritage_open(m->fds, m->count, &m->conf);
	for (uint32_t i = 0; i < m->count; i++)
		close(m->fds[i]);
	if (heritage == NULL || mrcd_worker_new(&m->conf, &worker) < 0 ||
	    mrcd_heritage_apply(heritage, worker) < 0 ||
	    mrcd_worker_start(worker, -1, heritage) < 0)
		_exit(1);
	mrcd_heritage_free(heritage);
	_exit(0);
}

/*
 * Let it run to its n-th stop at a system call, counted from 0 (it stops before and after each),
 * and kill it there. False: it ended before.
 */
static bool kill_at(pid_t pid, uint32_t n)
{
	uint32_t calls = 0;
	int status;

	for (;;) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status)) {
			if (WEXITSTATUS(status) == 77) {
				print_message("this process may not trace its children\n");
				exit(77);
			}
			assert_int_equal(WEXITSTATUS(status), 0);
			return false;
		}
		assert_true(WIFSTOPPED(status));
		if (calls++ == n) {
			kill(pid, SIGKILL);
			assert_int_equal(waitpid(pid, &status, 0), pid);
			assert_true(WIFSIGNALED(status));
			return true;
		}
		assert_true(calls < CALLS_MAX);
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
	}
}

/* Whatever has become of the daemon: the program goes on with the next one (true), or is told. */
static bool goes_on_or_is_told(struct manager *m, const struct prog *prog, uint32_t n)
{
	struct mrcd_heritage *heritage = NULL;
	struct mrcd_worker *worker;
	bool is_served;

	while (manager_hear(m, MSG_DONTWAIT))
		;
	if (m->count > 0)
		heritage = mrcd_heritage_open(m->fds, m->count, &m->conf);
	manager_forget(m);
	if (heritage == NULL) {
		if (!prog_is_ended(prog))
			fail_msg("killed at stop %u: the program waits for nobody", n);
		return false;
	}
	assert_int_equal(mrcd_worker_new(&m->conf, &worker), 0);
	assert_int_equal(mrcd_heritage_apply(heritage, worker), 0);
	assert_int_equal(mrcd_worker_start(worker, -1, heritage), 0);
	mrcd_heritage_free(heritage);
	is_served = !prog_is_ended(prog) && prog_is_served(prog, worker);
	if (!is_served)
		fail_msg("killed at stop %u: the next daemon has it and does not serve it", n);
	mrcd_worker_free(worker);
	assert_true(prog_is_ended(prog));
	return true;
}

static uint32_t stride(void)
{
	const char *wish = getenv("MRC_KILL_STRIDE");

	return wish != NULL && atoi(wish) > 0 ? (uint32_t)atoi(wish) : STRIDE;
}

static pid_t fork_quietly(void)
{
	fflush(NULL);
	return fork();
}

static void whoever_hands_over_may_be_killed(void **state)
{
	struct manager *m = *state;
	uint32_t went_on = 0, told = 0, n = 0;
	bool was_killed;

	do {
		int ready[2];
		struct prog prog = {.fd = -1};
		char byte;
		pid_t pid;

		assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
		pid = fork_quietly();
		assert_true(pid >= 0);
		if (pid == 0)
			child_leaves(m, ready[1]);
		assert_int_equal(read(ready[0], &byte, 1), 1);
		prog_ask(m, &prog, "one");
		assert_true(prog_hear(&prog, 0));
		was_killed = kill_at(pid, n);
		if (goes_on_or_is_told(m, &prog, n))
			went_on++;
		else
			told++;
		prog_leave(&prog);
		close(ready[0]);
		close(ready[1]);
		n += stride();
	} while (was_killed);
	print_message("of %u kills %u were too early to leave anything\n", went_on + told - 1,
		      told);
	/* Some came before it was left, and some after; and the last run was not disturbed. */
	assert_true(told > 0);
	assert_true(went_on > 1);
}

static void whoever_takes_over_may_be_killed(void **state)
{
	struct manager *m = *state;
	uint32_t went_on = 0, told = 0, n = 0;
	bool was_killed;

	do {
		struct mrcd_worker *worker;
		struct prog prog = {.fd = -1};
		pid_t pid;

		manager_here = m;
		worker = worker_start(m);
		prog_attach(m, worker, &prog, "one");
		worker_leave(worker);
		assert_int_equal(m->count, 1);
		pid = fork_quietly();
		assert_true(pid >= 0);
		if (pid == 0)
			child_takes(m);
		was_killed = kill_at(pid, n);
		if (goes_on_or_is_told(m, &prog, n))
			went_on++;
		else
			told++;
		prog_leave(&prog);
		n += stride();
	} while (was_killed);
	print_message("of %u kills %u came before anything was taken\n", went_on + told - 1,
		      went_on);
	assert_true(told > 1);
	assert_true(went_on > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whoever_hands_over_may_be_killed, setup_alone,
						teardown),
		cmocka_unit_test_setup_teardown(whoever_takes_over_may_be_killed, setup_alone,
						teardown),
	};

	return cmocka_run_group_tests_name("handover_killed", tests, NULL, NULL);
}
