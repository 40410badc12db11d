/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrcd_verbs.h"

#include <arpa/inet.h>
#include <stdio.h>

/* Of one lane in Mb/s, by the number in a port's active_speed (InfiniBand specification, PortInfo). */
static uint64_t lane_mbit(uint32_t speed)
{
	switch (speed) {
	case 1:
		return 2500;
	case 2:
		return 5000;
	case 4:
	case 8:
		return 10000;
	case 16:
		return 14000;
	case 32:
		return 25000;
	case 64:
		return 50000;
	case 128:
		return 100000;
	default:
		return 0;
	}
}

static uint32_t lanes_of(uint8_t width)
{
	switch (width) {
	case 1:
		return 1;
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	default:
		return 0;
	}
}

static const char *link_layer_name(const struct mrcd_verbs_device *device)
{
	if (device->context->device->transport_type == IBV_TRANSPORT_IWARP)
		return "iWARP";
	return device->port_now.attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}

static const char *qp_state_name(enum mrcd_verbs_link_state state)
{
	switch (state) {
	case MRCD_VERBS_LINK_AWAITING:
	case MRCD_VERBS_LINK_PREPARING:
	case MRCD_VERBS_LINK_CONNECTING:
		return "connecting";
	case MRCD_VERBS_LINK_WAITING:
	case MRCD_VERBS_LINK_UP:
		return "RTS";
	case MRCD_VERBS_LINK_STOPPING:
	case MRCD_VERBS_LINK_LAST:
	case MRCD_VERBS_LINK_RESETTING:
	case MRCD_VERBS_LINK_STUCK:
		return "ERR";
	case MRCD_VERBS_LINK_QUARANTINE:
	case MRCD_VERBS_LINK_DESTROYING:
		return "RESET";
	}
	return "unknown";
}

static void add_count(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void add_text(json_t *object, const char *key, const char *value)
{
	json_object_set_new(object, key, json_string(value));
}

static void describe_device(const struct mrcd_verbs_device *device, json_t *object)
{
	const struct ibv_port_attr *port = &device->port_now.attr;
	char gid[INET6_ADDRSTRLEN] = "";

	inet_ntop(AF_INET6, device->port_now.gid.raw, gid, sizeof(gid));
	add_text(object, "device", ibv_get_device_name(device->context->device));
	add_count(object, "device_port", device->port);
	add_text(object, "gid", gid);
	if (device->port_now.gid_index >= 0)
		add_count(object, "gid_index", (uint64_t)device->port_now.gid_index);
	add_text(object, "link_layer", link_layer_name(device));
	add_count(object, "active_mtu", 128U << port->active_mtu);
	add_count(object, "width", lanes_of(port->active_width));
	add_count(object, "speed_bits_per_s",
		  lane_mbit(port->active_speed) * lanes_of(port->active_width) * 1000000U);
	add_text(object, "port_state", ibv_port_state_str(port->state));
	add_count(object, "receive_entries", device->entry_count);
	add_count(object, "receive_posted", device->posted_count);
	add_count(object, "receive_held", device->held_count);
	add_count(object, "receive_share", device->share);
	add_count(object, "locked_bytes", mrcd_verbs_device_locked_bytes(device));
}

void mrcd_verbs_describe(const struct mrcd_rail *rail, json_t *object)
{
	const struct mrcd_verbs *verbs = rail->kind_data;
	const struct mrcd_verbs_counters *counters;
	json_t *verbs_object = json_object();

	if (!verbs) {
		json_decref(verbs_object);
		return;
	}
	counters = &verbs->counters;
	if (verbs->device) {
		describe_device(verbs->device, verbs_object);
	} else {
		add_text(verbs_object, "missing", verbs->why);
		json_object_set_new(verbs_object, "found", json_boolean(verbs->is_found));
	}
	add_count(verbs_object, "queue_pairs", verbs->link_count);
	add_count(verbs_object, "work_requests", counters->work_requests);
	add_count(verbs_object, "work_request_bytes", counters->wr_bytes);
	add_count(verbs_object, "writes", counters->writes);
	add_count(verbs_object, "sends", counters->sends);
	add_count(verbs_object, "inline_sends", counters->inline_sends);
	add_count(verbs_object, "doorbells", counters->doorbells);
	add_count(verbs_object, "completions", counters->completions);
	add_count(verbs_object, "receives", counters->receives);
	add_count(verbs_object, "bounces", counters->bounces);
	add_count(verbs_object, "payload_copied", counters->payload_copied);
	add_count(verbs_object, "fences", counters->fences);
	add_count(verbs_object, "flushes", counters->flushes);
	add_count(verbs_object, "errors", counters->errors);
	add_text(verbs_object, "last_error", verbs->last_error);
	json_object_set_new(object, "verbs", verbs_object);
}

void mrcd_verbs_device_name(const struct mrcd_rail *rail, char *device_out, size_t device_bytes,
			    unsigned *port_out)
{
	const struct mrcd_verbs *verbs = rail->kind_data;

	if (!verbs || !verbs->device)
		return;
	snprintf(device_out, device_bytes, "%s",
		 ibv_get_device_name(verbs->device->context->device));
	*port_out = verbs->device->port;
}

void mrcd_verbs_link_describe(const struct mrcd_link *base, json_t *object)
{
	const struct mrcd_verbs_link *link = (const struct mrcd_verbs_link *)base;
	json_t *verbs_object = json_object();

	add_count(verbs_object, "qp_number", link->number);
	add_count(verbs_object, "peer_qp_number", link->peer_number);
	add_text(verbs_object, "qp_state", qp_state_name(link->state));
	add_count(verbs_object, "send_depth", MRCD_VERBS_WRS);
	add_count(verbs_object, "sends_out", link->wrs_out);
	add_count(verbs_object, "inline_bytes", link->inline_bytes);
	add_count(verbs_object, "flushes", link->flushes);
	add_count(verbs_object, "errors", link->errors);
	add_text(verbs_object, "last_error", link->why);
	json_object_set_new(object, "verbs", verbs_object);
}
