/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_conf_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

struct address {
	int family;
	struct in_addr v4;
	struct in6_addr v6;
	const char *zone; /* in the text, with its %; "" when there is none */
};

static void address_parse(const char *text, struct address *out)
{
	const char *percent = strchr(text, '%');
	char bare[INET6_ADDRSTRLEN];

	memset(out, 0, sizeof(*out));
	out->family = AF_UNSPEC;
	out->zone = percent ? percent : "";
	if (!percent && inet_pton(AF_INET, text, &out->v4) == 1) {
		out->family = AF_INET;
		return;
	}
	if (percent) {
		size_t len = (size_t)(percent - text);

		if (len >= sizeof(bare) || !percent[1] || strlen(percent + 1) >= IFNAMSIZ ||
		    strpbrk(percent + 1, "%/ "))
			return;
		memcpy(bare, text, len);
		bare[len] = 0;
		text = bare;
	}
	if (inet_pton(AF_INET6, text, &out->v6) == 1)
		out->family = AF_INET6;
}

int mrcd_address_family(const char *text)
{
	struct address address;

	address_parse(text, &address);
	return address.family;
}

int mrcd_address_canonical(const char *text, char *out, size_t size)
{
	char bare[INET6_ADDRSTRLEN];
	struct address address;
	const void *bytes;

	address_parse(text, &address);
	if (address.family == AF_UNSPEC)
		return -EINVAL;
	bytes = address.family == AF_INET ? (const void *)&address.v4 : (const void *)&address.v6;
	inet_ntop(address.family, bytes, bare, sizeof(bare));
	if (strlen(bare) + strlen(address.zone) >= size)
		return -ENAMETOOLONG;
	snprintf(out, size, "%s%s", bare, address.zone);
	return 0;
}

bool mrcd_address_is_host(const char *text)
{
	struct address address;
	uint32_t v4;

	address_parse(text, &address);
	if (address.family == AF_INET6)
		return !IN6_IS_ADDR_UNSPECIFIED(&address.v6) && !IN6_IS_ADDR_MULTICAST(&address.v6);
	v4 = ntohl(address.v4.s_addr);
	return address.family == AF_INET && v4 >> 24 != 0 && v4 >> 28 != 0xe &&
	       v4 != INADDR_BROADCAST;
}

static bool is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool mrcd_address_is_loopback(const char *text)
{
	struct address address;

	address_parse(text, &address);
	if (address.family == AF_INET)
		return ntohl(address.v4.s_addr) >> 24 == IN_LOOPBACKNET;
	return address.family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address.v6);
}

bool mrcd_address_is_dns_name(const char *text)
{
	bool is_number = true; /* the label so far */
	size_t label_len = 0;
	size_t len = strlen(text);

	if (len > 0 && text[len - 1] == '.')
		len--; /* a name from the root */
	if (len == 0 || len > 253)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '.') {
			if (label_len == 0 || text[i - 1] == '-')
				return false;
			label_len = 0;
			is_number = true;
			continue;
		}
		if (!is_letter_or_digit(c) && c != '_' && (c != '-' || label_len == 0))
			return false;
		is_number = is_number && c >= '0' && c <= '9';
		if (++label_len > 63)
			return false;
	}
	return label_len > 0 && text[len - 1] != '-' && !is_number;
}
