/* SPDX-License-Identifier: BSD-2-Clause */
/* mrcd_service - see mrcd_service.h */
#include "mrcd_service.h"

#include <errno.h>
#include <string.h>

bool mrcd_name_is_valid(const char *name, size_t size_bytes)
{
	size_t len = strnlen(name, size_bytes);

	if (len == size_bytes || len == 0 || len > MRC_NAME_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = name[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '.' && c != '_' && c != '-')
			return false;
	}
	return true;
}

int mrcd_target_parse(const char *target, size_t size_bytes, char host_out[MRC_NAME_MAX + 1],
		      char service_out[MRC_NAME_MAX + 1])
{
	char host[MRC_NAME_MAX + 1] = {0};
	const char *slash = memchr(target, '/', strnlen(target, size_bytes));
	const char *service;
	size_t host_len;

	if (slash == NULL)
		return -EINVAL;
	host_len = (size_t)(slash - target);
	service = slash + 1;
	if (host_len > MRC_NAME_MAX)
		return -EINVAL;
	memcpy(host, target, host_len);
	/* A second slash is no name's character, so that it is found here. */
	if (!mrcd_name_is_valid(host, sizeof(host)) ||
	    !mrcd_name_is_valid(service, size_bytes - host_len - 1))
		return -EINVAL;
	memcpy(host_out, host, sizeof(host));
	memset(service_out, 0, MRC_NAME_MAX + 1);
	memcpy(service_out, service, strlen(service) + 1);
	return 0;
}

static uint32_t bucket_of(const char *name)
{
	uint32_t hash = 2166136261U; /* FNV-1a */

	for (; *name != 0; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619U;
	return hash % MRCD_SERVICE_BUCKETS;
}

int mrcd_services_add(struct mrcd_services *services, struct mrcd_service *service)
{
	struct mrcd_service **head = &services->buckets[bucket_of(service->name)];

	if (mrcd_services_find(services, service->name) != NULL)
		return -EEXIST;
	service->next = *head;
	*head = service;
	services->count++;
	return 0;
}

void mrcd_services_remove(struct mrcd_services *services, struct mrcd_service *service)
{
	struct mrcd_service **at = &services->buckets[bucket_of(service->name)];

	while (*at != service) {
		MRC_ASSERT(*at != NULL);
		at = &(*at)->next;
	}
	*at = service->next;
	service->next = NULL;
	services->count--;
}

struct mrcd_service *mrcd_services_find(const struct mrcd_services *services, const char *name)
{
	struct mrcd_service *service = services->buckets[bucket_of(name)];

	while (service != NULL && strcmp(service->name, name) != 0)
		service = service->next;
	return service;
}
