/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcctl_session.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES        256
#define ENVIRON_BYTES_MAX (256U * 1024U)
#define PARENTS_MAX       64

/* "CLIENT PORT SERVER PORT" */
static bool mrcctl_session_parse(const char *text, char address_out[MRCCTL_SESSION_TEXT_BYTES])
{
	return sscanf(text, "%*s %*s %45s %*s", address_out) == 1;
}

static bool mrcctl_session_of(const char *proc, pid_t pid,
			      char address_out[MRCCTL_SESSION_TEXT_BYTES])
{
	static const char name[] = "SSH_CONNECTION=";
	char path[PATH_BYTES], *text;
	bool is_found = false;
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/%d/environ", proc, (int)pid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	text = malloc(ENVIRON_BYTES_MAX + 1);
	len = text != NULL ? fread(text, 1, ENVIRON_BYTES_MAX, file) : 0;
	fclose(file);
	for (size_t at = 0; at < len && !is_found; at += strlen(text + at) + 1) {
		text[len] = '\0';
		if (strncmp(text + at, name, sizeof(name) - 1) == 0)
			is_found = mrcctl_session_parse(text + at + sizeof(name) - 1, address_out);
	}
	free(text);
	return is_found;
}

/* 0: it has none, or it is not known. */
static pid_t mrcctl_session_parent(const char *proc, pid_t pid)
{
	char path[PATH_BYTES], line[128];
	int parent = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d/status", proc, (int)pid);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, "PPid:", 5) == 0)
			parent = (int)strtol(line + 5, NULL, 10);
	}
	fclose(file);
	return parent;
}

bool mrcctl_session_find(const char *proc, pid_t pid, char address_out[MRCCTL_SESSION_TEXT_BYTES])
{
	for (int i = 0; i < PARENTS_MAX && pid > 0; i++) {
		if (mrcctl_session_of(proc, pid, address_out))
			return true;
		pid = mrcctl_session_parent(proc, pid);
	}
	return false;
}

bool mrcctl_session_is_over(const char *proc, pid_t pid, const char *interface,
			    char address_out[MRCCTL_SESSION_TEXT_BYTES])
{
	struct ifaddrs *list;
	bool is_over = false;

	if (!mrcctl_session_find(proc, pid, address_out) || getifaddrs(&list) < 0)
		return false;
	for (const struct ifaddrs *ifa = list; ifa != NULL; ifa = ifa->ifa_next) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(void *)ifa->ifa_addr;
		const struct sockaddr_in *in4 = (const struct sockaddr_in *)(void *)ifa->ifa_addr;
		char text[INET6_ADDRSTRLEN] = "";
		size_t len;

		if (ifa->ifa_addr == NULL || strcmp(ifa->ifa_name, interface) != 0)
			continue;
		if (in4->sin_family == AF_INET)
			inet_ntop(AF_INET, &in4->sin_addr, text, sizeof(text));
		else if (in6->sin6_family == AF_INET6)
			inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
		/* A link-local one is told with its interface: fe80::1%eth0. */
		len = strcspn(address_out, "%");
		is_over = is_over || (text[0] != '\0' && strlen(text) == len &&
				      strncmp(text, address_out, len) == 0);
	}
	freeifaddrs(list);
	return is_over;
}
