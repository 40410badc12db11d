/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_resolve.h"

#include <errno.h>
#include <event2/dns.h>
#include <event2/util.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mrcd_resolve {
	struct mrcd_resolver *resolver; /* the owner */
	struct mrcd_resolve *next;
	struct evdns_getaddrinfo_request *request; /* libevent's; NULL: it has answered */
	struct event *answer;                      /* ours; takes an early answer to the loop */
	mrcd_resolve_fn on_done;
	void *context;
	struct sockaddr_storage address;
	socklen_t address_len;
	const char *why;
	bool is_cancelled;
};

struct mrcd_resolver {
	struct event_base *base;    /* the worker's */
	struct evdns_base *dns;     /* ours; NULL: made at the next question */
	struct mrcd_resolve *asked; /* ours */
	bool is_reload_wanted;
};

int mrcd_resolver_new(struct event_base *base, struct mrcd_resolver **resolver_out)
{
	struct mrcd_resolver *resolver = calloc(1, sizeof(*resolver));

	if (!resolver)
		return -ENOMEM;
	resolver->base = base;
	*resolver_out = resolver;
	return 0;
}

static void question_free(struct mrcd_resolve *question)
{
	struct mrcd_resolve **at = &question->resolver->asked;

	while (*at && *at != question)
		at = &(*at)->next;
	if (*at)
		*at = question->next;
	event_free(question->answer);
	free(question);
}

void mrcd_resolver_free(struct mrcd_resolver *resolver)
{
	if (!resolver)
		return;
	/* With fail_requests 0 libevent forgets its requests without a call back. */
	if (resolver->dns)
		evdns_base_free(resolver->dns, 0);
	while (resolver->asked)
		question_free(resolver->asked);
	free(resolver);
}

static void on_answer(evutil_socket_t fd, short what, void *context)
{
	struct mrcd_resolve *question = context;
	mrcd_resolve_fn on_done = question->on_done;
	void *on_done_context = question->context;
	struct sockaddr_storage address = question->address;
	socklen_t address_len = question->address_len;
	const char *why = question->why;
	bool is_cancelled = question->is_cancelled;

	question_free(question);
	if (!is_cancelled)
		on_done(on_done_context, &address, address_len, why);
}

static void on_addrinfo(int result, struct evutil_addrinfo *list, void *context)
{
	struct mrcd_resolve *question = context;

	question->request = NULL;
	if (result == 0 && list && list->ai_addrlen <= sizeof(question->address)) {
		memcpy(&question->address, list->ai_addr, list->ai_addrlen);
		question->address_len = list->ai_addrlen;
	} else {
		question->why = result ? evutil_gai_strerror(result) : "the name has no address";
		question->resolver->is_reload_wanted = true;
	}
	if (list)
		evutil_freeaddrinfo(list);
	/* libevent may answer from inside the question, and its own state is in use here. */
	event_active(question->answer, EV_TIMEOUT, 0);
}

static int dns_make(struct mrcd_resolver *resolver)
{
	if (resolver->dns && resolver->is_reload_wanted && !resolver->asked) {
		evdns_base_free(resolver->dns, 0);
		resolver->dns = NULL;
	}
	if (resolver->dns)
		return 0;
	resolver->is_reload_wanted = false;
	resolver->dns = evdns_base_new(resolver->base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (!resolver->dns)
		return -ENOMEM;
	/* A host without the file has no servers, and names in /etc/hosts all the same. */
	evdns_base_resolv_conf_parse(resolver->dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
	return 0;
}

int mrcd_resolve_name(struct mrcd_resolver *resolver, const char *name, uint16_t port, int family,
		      mrcd_resolve_fn on_done, void *context, struct mrcd_resolve **question_out)
{
	struct evutil_addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
	struct mrcd_resolve *question;
	char service[8];

	if (dns_make(resolver) < 0)
		return -ENOMEM;
	question = calloc(1, sizeof(*question));
	if (!question)
		return -ENOMEM;
	question->resolver = resolver;
	question->on_done = on_done;
	question->context = context;
	question->answer = event_new(resolver->base, -1, 0, on_answer, question);
	if (!question->answer) {
		free(question);
		return -ENOMEM;
	}
	question->next = resolver->asked;
	resolver->asked = question;

	snprintf(service, sizeof(service), "%u", port);
	question->request =
		evdns_getaddrinfo(resolver->dns, name, service, &hints, on_addrinfo, question);
	*question_out = question;
	return 0;
}

void mrcd_resolve_cancel(struct mrcd_resolve *question)
{
	question->is_cancelled = true;
	/* The cancelled request still answers, later; the question lives until then. */
	if (question->request)
		evdns_getaddrinfo_cancel(question->request);
}

int mrcd_resolve_numeric(const char *text, uint16_t port, struct sockaddr_storage *address_out,
			 socklen_t *len_out)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
	};
	struct addrinfo *list;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(text, service, &hints, &list) != 0)
		return -EINVAL;
	memset(address_out, 0, sizeof(*address_out));
	memcpy(address_out, list->ai_addr, list->ai_addrlen);
	*len_out = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}
