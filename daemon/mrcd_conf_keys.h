/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_conf_keys - the one table of configuration keys
 *
 * What a key is called, what it takes, its default, bounds and help: the
 * loader, `mrcd --help-conf` and mrcd.conf(5) all come from this list.
 *
 * Threads: any (the table is constant).
 */
#ifndef MRCD_CONF_KEYS_H
#define MRCD_CONF_KEYS_H

#include <stdio.h>

#include "mrcd_conf.h"
#include "mrcd_conf_unit.h"

/*
 * The sections, in the order in which people read them:
 * X(enumerator, how it is written, what it says of)
 */
#define MRCD_CONF_SECTIONS(X)                                                                  \
	X(TOP, "", "at the top level")                                                         \
	X(RAIL, "rails[]", "of one rail, a local port that carries paths")                     \
	X(PEER, "peers[]", "of one peer host; both hosts must list each other")                \
	X(PATH, "peers[].paths[]", "of one path, a local rail joined with a rail of the peer") \
	X(SERVICE, "services[]", "of one service, and of who may use it")                      \
	X(QUOTA, "quotas[]", "of what programs of some users may take")                        \
	X(CLIENTS, "clients", "what one local program may take")                               \
	X(LIMITS, "limits", "bounds of the connection with one peer")                          \
	X(TIMERS, "timers", "when things are suspected, tried again, given up")                \
	X(METRICS, "metrics", "of what Prometheus and browsers are shown")                     \
	X(LOG, "log", "of the log")

enum mrcd_conf_section {
#define SECTION(id, written, about) MRCD_SECTION_##id,
	MRCD_CONF_SECTIONS(SECTION)
#undef SECTION
		MRCD_SECTION_COUNT
};

enum mrcd_conf_kind {
	MRCD_KIND_NAME,      /* of a host or rail */
	MRCD_KIND_SERVICE,   /* a name or "*" */
	MRCD_KIND_INTERFACE, /* of the network */
	MRCD_KIND_DEVICE,    /* for RDMA, with or without the number of its port */
	MRCD_KIND_NUMERIC,   /* an IPv4 or IPv6 address */
	MRCD_KIND_ADDRESS,   /* the same, or a DNS name */
	MRCD_KIND_DIRECTORY, /* an absolute path */
	MRCD_KIND_USER,      /* of this host, by name */
	MRCD_KIND_COUNT,     /* a whole number from min to max */
	MRCD_KIND_POWER,     /* a power of two from min to max */
	MRCD_KIND_RETRIES,   /* a count, of which 7 has a meaning that is not wanted */
	MRCD_KIND_DURATION,  /* these three: a number with a unit, from min to max */
	MRCD_KIND_SIZE,
	MRCD_KIND_RATE,
	MRCD_KIND_PAGES,      /* a size that is a multiple of 4 KiB */
	MRCD_KIND_HUGE_PAGES, /* whether, or of what size */
	MRCD_KIND_BOOL,
	MRCD_KIND_RAIL_TYPE,
	MRCD_KIND_LOG_LEVEL,
	MRCD_KIND_ENCRYPTION,
	MRCD_KIND_RAIL_REF, /* the name of a rail, stored as its index */
	/* Not scalars; the loader of their section reads them. */
	MRCD_KIND_KEY_FILES,
	MRCD_KIND_USERS,
	MRCD_KIND_GROUPS,
	MRCD_KIND_LIST,
	MRCD_KIND_MAP,
};

#define MRCD_CONF_PAGE_BYTES  4096U
#define MRCD_KEY_FILE_DEFAULT "/etc/mrcd/key"
/* One worker is what the daemon has at present. */
#define MRCD_WORKERS_MAX 1U

/* Where the loader puts a value: a field of the struct that its section fills. */
#define MRCD_AT(type, field) offsetof(struct type, field), sizeof(((struct type *)0)->field)
#define MRCD_AT_NOWHERE      0, 0

#define KIB_                 *1024ULL
#define MIB_                 *1048576ULL
#define GIB_                 *1073741824ULL

/*
 * When another value comes into force, once the file is read again:
 * X(enumerator, what mrcd.conf(5) and --help-conf say of it; "" nothing)
 */
#define MRCD_CONF_TAKEN(X)                                                       \
	X(NOW, "at once")                                                        \
	X(NEXT, "at once, for what begins from then on")                         \
	X(ANEW, "at once, by closing the paths concerned and opening them anew") \
	X(EACH, "") /* as its own keys say */                                    \
	X(RESTART, "waits for a restart")

enum mrcd_conf_taken {
#define TAKEN(id, text) MRCD_TAKEN_##id,
	MRCD_CONF_TAKEN(TAKEN)
#undef TAKEN
};

/*
 * X(section, key, kind, taken, where, default, min, max, help)
 *
 * The default is text that the loader reads like the user's; NULL says that
 * the key is required, "" that the help text tells what happens without it.
 */
/* clang-format off */
#define MRCD_CONF_KEYS(X) \
	X(TOP, "host", NAME, RESTART, MRCD_AT(mrcd_conf, host), "", 0, 0, \
	  "The name of this host, as its peers list it. Not given: the machine's host name.") \
	X(TOP, "runtime-dir", DIRECTORY, RESTART, MRCD_AT(mrcd_conf, runtime_dir), "/run/mrcd", 0, 0, \
	  "Where the sockets mrcd.sock and control.sock are made.") \
	X(TOP, "user", USER, RESTART, MRCD_AT(mrcd_conf, user), "", 0, 0, \
	  "Who the daemon is when root has started it: it keeps what rails want of root's rights and gives up the rest. " \
	  "Not given: mrcd, where there is such a user.") \
	X(TOP, "key-file", KEY_FILES, NEXT, MRCD_AT_NOWHERE, MRCD_KEY_FILE_DEFAULT, 0, 0, \
	  "The key shared with all peers that have none of their own. Two files: the first is used, both are accepted.") \
	X(TOP, "encryption", ENCRYPTION, RESTART, MRCD_AT(mrcd_conf, encryption), "off", 0, 0, \
	  "Whether what travels to peers over TCP is encrypted and authenticated (AES-256-GCM). " \
	  "preferred: where the peer wants it too; required: or not at all, and rails of type auto are tcp then. " \
	  "Writes of RDMA devices are never encrypted.") \
	X(TOP, "listen-port", COUNT, ANEW, MRCD_AT(mrcd_conf, listen_port), "7471", 1, 65535, \
	  "The TCP port of every rail and path that names none.") \
	X(TOP, "workers", COUNT, RESTART, MRCD_AT(mrcd_conf, worker_count), "1", 1, MRCD_WORKERS_MAX, \
	  "Event loops. This build has one.") \
	X(TOP, "rails", LIST, NOW, MRCD_AT_NOWHERE, "[]", 0, MRCD_RAILS_MAX, \
	  "The local ports that carry paths.") \
	X(TOP, "peers", LIST, NOW, MRCD_AT_NOWHERE, "[]", 0, MRCD_PEERS_MAX, \
	  "The other hosts.") \
	X(TOP, "services", LIST, NOW, MRCD_AT_NOWHERE, "[{name: \"*\"}]", 0, MRCD_SERVICES_MAX, \
	  "Who may listen and connect to what. An empty list: root alone.") \
	X(TOP, "quotas", LIST, NOW, MRCD_AT_NOWHERE, "[]", 0, MRCD_QUOTAS_MAX, \
	  "What programs may take, by their user. Who is in no entry may take what clients says.") \
	X(TOP, "clients", MAP, EACH, MRCD_AT_NOWHERE, "{}", 0, 0, "What one local program may take.") \
	X(TOP, "limits", MAP, EACH, MRCD_AT_NOWHERE, "{}", 0, 0, "Bounds of the connection with one peer.") \
	X(TOP, "timers", MAP, EACH, MRCD_AT_NOWHERE, "{}", 0, 0, \
	  "When things are suspected, tried again, given up.") \
	X(TOP, "metrics", MAP, EACH, MRCD_AT_NOWHERE, "{}", 0, 0, "What Prometheus and browsers are shown.") \
	X(TOP, "log", MAP, EACH, MRCD_AT_NOWHERE, "{}", 0, 0, "The log.") \
	\
	X(RAIL, "name", NAME, ANEW, MRCD_AT(mrcd_conf_rail, name), NULL, 0, 0, \
	  "What paths and mrcctl call it.") \
	X(RAIL, "type", RAIL_TYPE, ANEW, MRCD_AT(mrcd_conf_rail, type), "auto", 0, 0, \
	  "tcp: any network interface. " \
	  "verbs: RDMA (RoCE, InfiniBand, iWARP); a peer without it is refused. " \
	  "auto: verbs where the interface has an RDMA device and the peer's rail as well, else tcp.") \
	X(RAIL, "interface", INTERFACE, ANEW, MRCD_AT(mrcd_conf_rail, interface), "", 0, 0, \
	  "The network interface. It may be absent at start. Required unless an address or device is given.") \
	X(RAIL, "address", NUMERIC, ANEW, MRCD_AT(mrcd_conf_rail, address), "", 0, 0, \
	  "The address to listen on and to connect from. Not given: the first of the interface.") \
	X(RAIL, "port", COUNT, ANEW, MRCD_AT(mrcd_conf_rail, port), "", 1, 65535, \
	  "The TCP port to listen on, also of type verbs, whose rails shake hands over TCP. " \
	  "Not given: listen-port. A port of the RDMA device is written behind its name, see device.") \
	X(RAIL, "speed", RATE, NOW, MRCD_AT(mrcd_conf_rail, speed_bits_per_s), "", \
	  1000000ULL, 100000000000000ULL, \
	  "What the rail should carry, to tell a degraded one. Not given: the interface is asked.") \
	X(RAIL, "drained", BOOL, NOW, MRCD_AT(mrcd_conf_rail, is_drained), "false", 0, 0, \
	  "Start with the rail out of service, until mrcctl undrain.") \
	X(RAIL, "device", DEVICE, ANEW, MRCD_AT(mrcd_conf_rail, device), "", 0, 0, \
	  "The RDMA device, as rdma link prints it: mlx5_0/1 is port 1 of mlx5_0. " \
	  "Alone it is enough: the interface is found from it. " \
	  "Not given: the device of the interface or address.") \
	X(RAIL, "ack-timeout", COUNT, ANEW, MRCD_AT(mrcd_conf_rail, ack_timeout), "14", 8, 22, \
	  "How long the RDMA device waits for an acknowledgement: 4.096 us times 2 to this power, so 14 is 67 ms. " \
	  "It bounds how soon a dead queue pair is let go; dead paths are found by the timers, and sooner.") \
	X(RAIL, "retry-count", RETRIES, ANEW, MRCD_AT(mrcd_conf_rail, retry_count), "6", 0, 6, \
	  "How often the RDMA device sends again before it gives a queue pair up. " \
	  "7 is refused: it means for ever on soft-RoCE and hides a dead path.") \
	X(RAIL, "receive-entries", COUNT, ANEW, MRCD_AT(mrcd_conf_rail, receive_entries), "1024", 64, 32768, \
	  "Entries of the receive queue that all paths of an RDMA rail share.") \
	X(RAIL, "receive-entry-bytes", SIZE, ANEW, MRCD_AT(mrcd_conf_rail, receive_entry_bytes), "16KiB", \
	  4 KIB_, 128 KIB_, \
	  "What one of these entries holds of a message. " \
	  "(receive-entries + 384) times this much memory is locked for the rail.") \
	\
	X(PEER, "name", NAME, NOW, MRCD_AT(mrcd_conf_peer, name), NULL, 0, 0, \
	  "The peer's own name for itself (its host key).") \
	X(PEER, "key-file", KEY_FILES, NEXT, MRCD_AT_NOWHERE, "", 0, 0, \
	  "A key for this peer alone. Not given: the global key-file.") \
	X(PEER, "encryption", ENCRYPTION, RESTART, MRCD_AT(mrcd_conf_peer, encryption), "", 0, 0, \
	  "The same for this peer alone. Not given: the global encryption.") \
	X(PEER, "paths", LIST, NOW, MRCD_AT_NOWHERE, NULL, 1, MRC_PATHS_MAX, \
	  "The ways to this peer.") \
	\
	X(PATH, "rail", RAIL_REF, ANEW, MRCD_AT(mrcd_conf_path, rail_index), NULL, 0, 0, \
	  "The local rail, by its name.") \
	X(PATH, "address", ADDRESS, ANEW, MRCD_AT(mrcd_conf_path, address), NULL, 0, 0, \
	  "The address of the peer's rail.") \
	X(PATH, "port", COUNT, ANEW, MRCD_AT(mrcd_conf_path, port), "", 1, 65535, \
	  "The TCP port of the peer's rail. Not given: listen-port.") \
	\
	X(SERVICE, "name", SERVICE, NOW, MRCD_AT(mrcd_conf_service, name), NULL, 0, 0, \
	  "The service, or \"*\" for every one that has no entry of its own.") \
	X(SERVICE, "users", USERS, NOW, MRCD_AT_NOWHERE, "", 0, 256, \
	  "Who may use it, by name or number. Neither users nor groups given: everybody who can open the socket.") \
	X(SERVICE, "groups", GROUPS, NOW, MRCD_AT_NOWHERE, "", 0, 256, \
	  "Whose members may use it as well.") \
	X(SERVICE, "listen-users", USERS, NOW, MRCD_AT_NOWHERE, "", 0, 256, \
	  "Who may offer it. Given, or listen-groups: users and groups do not count for offering it.") \
	X(SERVICE, "listen-groups", GROUPS, NOW, MRCD_AT_NOWHERE, "", 0, 256, \
	  "Whose members may offer it as well.") \
	X(SERVICE, "connect-users", USERS, NOW, MRCD_AT_NOWHERE, "", 0, 256, \
	  "Who may connect to it, on this host and on peers. Given, or connect-groups: users and groups do not count for connecting.") \
	X(SERVICE, "connect-groups", GROUPS, NOW, MRCD_AT_NOWHERE, "", 0, 256, \
	  "Whose members may connect to it as well.") \
	\
	X(QUOTA, "users", USERS, NOW, MRCD_AT_NOWHERE, "", 0, 256, \
	  "Whose programs, by name or number. Neither users nor groups given: all that no entry above this one has.") \
	X(QUOTA, "groups", GROUPS, NOW, MRCD_AT_NOWHERE, "", 0, 256, \
	  "And those of the members of these.") \
	X(QUOTA, "clients-max", COUNT, NEXT, MRCD_AT(mrcd_conf_quota, clients_max), "", 1, 65536, \
	  "Programs of one user attached at once. Not given: clients.clients-max.") \
	X(QUOTA, "channels-max", COUNT, NEXT, MRCD_AT(mrcd_conf_quota, channels_max), "", 1, 65536, \
	  "Channels of one program. Not given: clients.channels-max.") \
	X(QUOTA, "sends-max", COUNT, NEXT, MRCD_AT(mrcd_conf_quota, sends_max), "", 1, 1048576, \
	  "Messages of one program that are under way at once. Not given: clients.sends-max.") \
	X(QUOTA, "send-arena", PAGES, NEXT, MRCD_AT(mrcd_conf_quota, send_arena_bytes), "", 64 KIB_, 1024 GIB_, \
	  "Memory of one program to send from. Not given: clients.send-arena.") \
	X(QUOTA, "landing-arena", PAGES, NEXT, MRCD_AT(mrcd_conf_quota, landing_arena_bytes), "", \
	  64 KIB_, 1024 GIB_, "Memory of one program to receive in. Not given: clients.landing-arena.") \
	X(QUOTA, "in-flight-max", SIZE, NOW, MRCD_AT(mrcd_conf_quota, in_flight_bytes_max), "", 4 KIB_, 1024 GIB_, \
	  "Bytes of one program that are under way at once; a single larger message goes alone. Not given: its send arena is the bound.") \
	X(QUOTA, "weight", COUNT, NEXT, MRCD_AT(mrcd_conf_quota, weight), "", 1, 10000, \
	  "Of one program's turns beside others that send to the same peer: one of 200 sends twice as much as one of 100. Not given: 100.") \
	X(QUOTA, "rate", RATE, NOW, MRCD_AT(mrcd_conf_quota, rate_bits_per_s), "", 1000000ULL, 100000000000000ULL, \
	  "What one program may send on average, also when nobody else sends. Not given: no bound.") \
	\
	X(CLIENTS, "clients-max", COUNT, RESTART, MRCD_AT(mrcd_conf, clients.clients_max), "256", 1, 65536, \
	  "Programs attached at once. Who is attached stays when a restart finds fewer here.") \
	X(CLIENTS, "channels-max", COUNT, NEXT, MRCD_AT(mrcd_conf, clients.channels_max), "256", 1, 65536, \
	  "Channels of one client.") \
	X(CLIENTS, "listeners-max", COUNT, NEXT, MRCD_AT(mrcd_conf, clients.listeners_max), "64", 1, 4096, \
	  "Services that one client offers.") \
	X(CLIENTS, "sends-max", COUNT, NEXT, MRCD_AT(mrcd_conf, clients.sends_max), "8192", 1, 1048576, \
	  "Messages of one client that are under way at once.") \
	X(CLIENTS, "window-messages", POWER, NEXT, MRCD_AT(mrcd_conf, clients.window_messages), "128", 2, 65536, \
	  "Messages of one channel that are under way at once.") \
	X(CLIENTS, "landing-ring", PAGES, NEXT, MRCD_AT(mrcd_conf, clients.landing_ring_bytes), "1MiB", \
	  4 KIB_, 1 GIB_, \
	  "Where one channel's small messages land. At least twice limits.eager-max.") \
	X(CLIENTS, "send-arena", PAGES, NEXT, MRCD_AT(mrcd_conf, clients.send_arena_bytes), "256MiB", \
	  64 KIB_, 1024 GIB_, \
	  "Memory of one client to send from: what it gets unasked, and the most it can ask for.") \
	X(CLIENTS, "landing-arena", PAGES, NEXT, MRCD_AT(mrcd_conf, clients.landing_arena_bytes), "256MiB", \
	  64 KIB_, 1024 GIB_, \
	  "Memory of one client to receive in, likewise. No message can be larger.") \
	X(CLIENTS, "huge-pages", HUGE_PAGES, NEXT, MRCD_AT(mrcd_conf, clients.huge_page_bytes), "no", \
	  64 KIB_, 16 GIB_, \
	  "Make both arenas of huge pages, rounded up to whole ones; yes: of the size that vm.nr_hugepages counts. " \
	  "Where the kernel has too few free a client gets ordinary pages, and the log says how many are needed.") \
	\
	X(LIMITS, "channels-max", COUNT, RESTART, MRCD_AT(mrcd_conf, limits.channels_max), "1024", 1, 65536, \
	  "Channels with one peer. Those that are open stay when a restart finds fewer here.") \
	X(LIMITS, "frames-in-flight-max", POWER, RESTART, MRCD_AT(mrcd_conf, limits.frames_in_flight_max), "1024", \
	  16, 65536, "Frames of one path that are not acknowledged yet.") \
	X(LIMITS, "holds-max", COUNT, RESTART, MRCD_AT(mrcd_conf, limits.holds_max), "64", 1, 65536, \
	  "Fragments that wait for a fence.") \
	X(LIMITS, "ranges-max", COUNT, RESTART, MRCD_AT(mrcd_conf, limits.ranges_max), "4096", 16, 1048576, \
	  "Gaps remembered in messages that are arriving.") \
	X(LIMITS, "eager-max", SIZE, RESTART, MRCD_AT(mrcd_conf, limits.eager_bytes_max), "32KiB", \
	  64, 1 MIB_, "Larger messages ask for room first.") \
	X(LIMITS, "frag-max", SIZE, RESTART, MRCD_AT(mrcd_conf, limits.frag_bytes_max), "128KiB", \
	  4 KIB_, MRC_FRAG_BYTES_MAX, "The largest fragment of a message.") \
	X(LIMITS, "path-window-min", SIZE, RESTART, MRCD_AT(mrcd_conf, limits.path_window_bytes_min), "256KiB", \
	  4 KIB_, 1 GIB_, "Bytes that a path may always have under way. At least frag-max.") \
	X(LIMITS, "path-window-max", SIZE, RESTART, MRCD_AT(mrcd_conf, limits.path_window_bytes_max), "4MiB", \
	  4 KIB_, 4 GIB_, "Bytes that a path may have under way at most.") \
	X(LIMITS, "handshakes-max", COUNT, NOW, MRCD_AT(mrcd_conf, handshakes_max), "64", 1, 4096, \
	  "Connections to one rail that have not proved the key yet.") \
	\
	X(TIMERS, "suspect-floor", DURATION, NOW, MRCD_AT(mrcd_conf, limits.suspect_floor_ns), "1ms", \
	  100 * MRC_US, 1 * MRC_S, "A path is not suspected before it has been late by this much.") \
	X(TIMERS, "suspect-ceiling", DURATION, NOW, MRCD_AT(mrcd_conf, limits.suspect_ceiling_ns), "200ms", \
	  1 * MRC_MS, 10 * MRC_S, "And is suspected when it is late by this much, however slow it was.") \
	X(TIMERS, "probe-interval", DURATION, NOW, MRCD_AT(mrcd_conf, limits.probe_interval_ns), "20ms", \
	  1 * MRC_MS, 10 * MRC_S, "Between probes of an idle path.") \
	X(TIMERS, "probe-count", COUNT, NOW, MRCD_AT(mrcd_conf, limits.probe_count), "3", 1, 100, \
	  "Probes that must be answered before a path carries data.") \
	X(TIMERS, "peer-silent", DURATION, NOW, MRCD_AT(mrcd_conf, limits.peer_silent_ns), "10s", \
	  100 * MRC_MS, 600 * MRC_S, "All paths are given up when all were silent for this long.") \
	X(TIMERS, "backoff-min", DURATION, NOW, MRCD_AT(mrcd_conf, limits.backoff_min_ns), "5ms", \
	  1 * MRC_MS, 10 * MRC_S, "The first wait before a path is connected again.") \
	X(TIMERS, "backoff-max", DURATION, NOW, MRCD_AT(mrcd_conf, limits.backoff_max_ns), "1s", \
	  1 * MRC_MS, 300 * MRC_S, "The longest.") \
	X(TIMERS, "revive", DURATION, NOW, MRCD_AT(mrcd_conf, limits.revive_ns), "500ms", \
	  1 * MRC_MS, 60 * MRC_S, "For this long a suspected path may come back by itself.") \
	X(TIMERS, "hold-good", DURATION, NOW, MRCD_AT(mrcd_conf, limits.hold_good_ns), "1s", \
	  10 * MRC_MS, 600 * MRC_S, "A path that carried data for this long begins its waits anew.") \
	X(TIMERS, "handshake-timeout", DURATION, NEXT, MRCD_AT(mrcd_conf, handshake_timeout_ns), "2s", \
	  100 * MRC_MS, 60 * MRC_S, "For connecting and proving the key.") \
	X(TIMERS, "spin", DURATION, NOW, MRCD_AT(mrcd_conf, spin_ns), "100us", \
	  0, 10 * MRC_MS, "Look for work for this long before sleeping, while it pays (of verbs: always). 0: sleep at once.") \
	\
	X(METRICS, "enabled", BOOL, NOW, MRCD_AT(mrcd_conf, metrics.is_enabled), "true", 0, 0, \
	  "Answer over HTTP: metrics for Prometheus at /metrics, a status page at /. " \
	  "One message in many is traced for the metrics of stages, a hundred a second at most.") \
	X(METRICS, "address", NUMERIC, NOW, MRCD_AT(mrcd_conf, metrics.address), "127.0.0.1", 0, 0, \
	  "The address to answer at. One that other hosts can reach is refused without public.") \
	X(METRICS, "port", COUNT, NOW, MRCD_AT(mrcd_conf, metrics.port), "9471", 1, 65535, \
	  "The TCP port to answer at. While it is taken the daemon goes on without, and tries again.") \
	X(METRICS, "public", BOOL, NOW, MRCD_AT(mrcd_conf, metrics.is_public), "false", 0, 0, \
	  "Allow an address that is not a loopback one. Whoever reaches it reads the names of " \
	  "rails, peers and services, without a password or encryption. Nobody can change anything by it.") \
	X(METRICS, "name", ADDRESS, NOW, MRCD_AT(mrcd_conf, metrics.name), "", 0, 0, \
	  "A DNS name by which browsers and Prometheus ask, besides numeric addresses, localhost and " \
	  "this host's names. Other names are refused, so that no web page elsewhere reads what is shown here.") \
	\
	X(LOG, "level", LOG_LEVEL, NOW, MRCD_AT(mrcd_conf, log_level), "info", 0, 0, \
	  "What is written: this and all that is worse.")
/* clang-format on */

struct mrcd_conf_key {
	enum mrcd_conf_section section;
	const char *name;
	enum mrcd_conf_kind kind;
	enum mrcd_conf_taken taken; /* by a reload: mrcd_plan.h */
	size_t offset;              /* of the field */
	size_t size_bytes;          /* of the field; 0: none */
	const char *default_text;
	uint64_t min, max; /* of a number; of how many entries a list has */
	const char *help;
};

#define KEY(...) +1 /* NOLINT(bugprone-macro-parentheses): one more term of a sum */
enum { MRCD_CONF_KEY_COUNT = 0 MRCD_CONF_KEYS(KEY) };
#undef KEY

/* In the order of the list: the keys of a section are neighbours. */
extern const struct mrcd_conf_key mrcd_conf_keys[MRCD_CONF_KEY_COUNT];

/* The key of that name in that section, or NULL. */
const struct mrcd_conf_key *mrcd_conf_key_find(enum mrcd_conf_section section, const char *name);
/* The key that was probably meant, or NULL. */
const struct mrcd_conf_key *mrcd_conf_key_nearest(enum mrcd_conf_section section, const char *name);
/* All keys of a section: "name, users, groups". */
const char *mrcd_conf_keys_list(enum mrcd_conf_section section, char *out, size_t size);
/* When a reload brings another value of it into force, for people; "": as its own keys say. */
const char *mrcd_conf_key_taken(const struct mrcd_conf_key *key);
/* What the key takes, for people: "100us to 1s", "true, false". */
#define MRCD_CONF_ALLOWED_BYTES 160
const char *mrcd_conf_key_allowed(const struct mrcd_conf_key *key,
				  char out[MRCD_CONF_ALLOWED_BYTES]);

const char *mrcd_conf_section_written(enum mrcd_conf_section section);
const char *mrcd_conf_section_about(enum mrcd_conf_section section);

/* A number's unit; false when the key does not take a number. */
bool mrcd_conf_kind_unit(enum mrcd_conf_kind kind, enum mrcd_unit *unit_out);

/* -EINVAL when there is no such word. Levels are syslog's. */
int mrcd_conf_log_level(const char *text, int *level_out);

/* The table as text, or the part of one section as mdoc(7), for mrcd.conf(5). */
void mrcd_conf_keys_write(FILE *out);
void mrcd_conf_keys_write_mdoc(FILE *out, enum mrcd_conf_section section);

#endif
