/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_conf - the configuration, read from YAML, checked whole
 *
 * mrcd_conf_load() either answers a complete, valid configuration or says in
 * one line per error where (file:line), which key, what was wrong and what is
 * allowed. The table of keys, defaults, bounds and help texts is one X-macro
 * list (mrcd_conf_keys.h); mrcd.conf(5) is made from it.
 *
 * Units: after loading, nanoseconds, bytes and bits per second only.
 */
#ifndef MRCD_CONF_H
#define MRCD_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mrc_conn.h"
#include "mrcd_creds.h"

#define MRCD_RAILS_MAX     16U
#define MRCD_PEERS_MAX     4096U
#define MRCD_SERVICES_MAX  1024U
#define MRCD_QUOTAS_MAX    256U
#define MRCD_KEYS_MAX      2U
#define MRCD_KEY_BYTES_MIN 16U
#define MRCD_KEY_BYTES_MAX 256U
#define MRCD_KEY_ID_BYTES  (12U + 1U)

struct mrcd_key {
	uint8_t bytes[MRCD_KEY_BYTES_MAX];
	uint32_t len_bytes;
	char id[MRCD_KEY_ID_BYTES]; /* its fingerprint, in hexadecimal digits (mrcd_auth_key_id()) */
	char file[128];             /* as the configuration names it; the end of a longer name */
};

/* Of what travels to a peer over TCP. */
enum mrcd_encryption { MRCD_ENCRYPTION_OFF, MRCD_ENCRYPTION_PREFERRED, MRCD_ENCRYPTION_REQUIRED };

enum mrcd_rail_type { MRCD_RAIL_TCP, MRCD_RAIL_VERBS, MRCD_RAIL_AUTO };

struct mrcd_conf_rail {
	char name[MRC_NAME_MAX + 1];
	enum mrcd_rail_type type;
	char interface[16];        /* "" when only an address is given */
	char address[64];          /* numeric IPv4 or IPv6; "" : the interface's first */
	uint16_t port;             /* to listen on; default listen-port */
	uint64_t speed_bits_per_s; /* nominal; 0: ask the interface */
	bool is_drained;           /* starts drained */
	/* Types verbs and auto. */
	char device[64];              /* "": the one of the interface or address */
	uint8_t device_port;          /* 0: any */
	uint8_t ack_timeout;          /* of the queue pair: 4.096 us * 2^this; 14 */
	uint8_t retry_count;          /* 0 to 6; 6 */
	uint32_t receive_entries;     /* of the shared receive queue: 1024 */
	uint64_t receive_entry_bytes; /* of body in each: 16 KiB */
};

struct mrcd_conf_path {
	uint32_t rail_index;
	char address[256]; /* of the peer's rail: numeric, or a DNS name */
	uint16_t port;
};

struct mrcd_conf_peer {
	char name[MRC_NAME_MAX + 1];
	struct mrcd_conf_path paths[MRC_PATHS_MAX];
	uint8_t path_count;
	struct mrcd_key keys[MRCD_KEYS_MAX]; /* own key-file(s), else the global */
	uint32_t key_count;
	enum mrcd_encryption encryption; /* its own, else the global */
};

/* Users of this host, some of them. */
struct mrcd_conf_who {
	uid_t *users; /* owned */
	uint32_t user_count;
	gid_t *groups; /* owned */
	uint32_t group_count;
	bool is_open; /* neither users nor groups given: everybody */
};

enum mrcd_use { MRCD_USE_LISTEN, MRCD_USE_CONNECT };
#define MRCD_USES 2

struct mrcd_conf_service {
	char name[MRC_NAME_MAX + 1];        /* "*" : any not named otherwise */
	struct mrcd_conf_who any;           /* may listen and connect */
	struct mrcd_conf_who of[MRCD_USES]; /* the same for one of the two, where it is not open */
};

/* What a client of these users may take. 0: what `clients` says, or no bound. */
struct mrcd_conf_quota {
	struct mrcd_conf_who who;
	uint32_t clients_max; /* attached at once, of one user */
	uint32_t channels_max;
	uint32_t sends_max;
	uint64_t send_arena_bytes;
	uint64_t landing_arena_bytes;
	uint64_t in_flight_bytes_max;
	uint64_t rate_bits_per_s;
	uint32_t weight; /* of its turns beside others: MRC_WEIGHT_DEFAULT */
};

struct mrcd_conf_client_limits {
	uint32_t clients_max;         /* 256 */
	uint32_t channels_max;        /* of one client: 256 */
	uint32_t listeners_max;       /* of one client: 64 */
	uint32_t sends_max;           /* outstanding, of one client: 8192 */
	uint32_t window_messages;     /* of one channel, power of two: 128 */
	uint64_t landing_ring_bytes;  /* of one channel: 1 MiB; at least twice eager-max */
	uint64_t send_arena_bytes;    /* default and bound per client: 256 MiB */
	uint64_t landing_arena_bytes; /* 256 MiB */
	uint64_t huge_page_bytes;     /* of arenas; 0: ordinary pages; see mrcd_memfd_new() */
};

/* Over HTTP. */
struct mrcd_conf_metrics {
	bool is_enabled;
	bool is_public;   /* an address that others can reach is meant so */
	char address[64]; /* numeric */
	uint16_t port;
	char name[256]; /* one more that may be asked for; "": none */
};

struct mrcd_conf {
	char host[MRC_NAME_MAX + 1];
	char runtime_dir[108 - 16];
	char user[MRC_NAME_MAX + 1]; /* to become when started by root; "": mrcd, if there is one */
	uint16_t listen_port;
	uint32_t worker_count;
	enum mrcd_encryption encryption; /* of peers that say nothing else */
	int log_level;                   /* syslog numbers */
	uint64_t handshake_timeout_ns;   /* 2 s */
	uint32_t handshakes_max;         /* pending inbound per rail: 64 */
	uint64_t spin_ns;                /* look for work before sleeping: 100 us */
	struct mrcd_conf_rail rails[MRCD_RAILS_MAX];
	uint32_t rail_count;
	struct mrcd_conf_peer *peers; /* owned; peer_count */
	uint32_t peer_count;
	struct mrcd_conf_service *services; /* owned */
	uint32_t service_count;
	struct mrcd_conf_client_limits clients;
	struct mrcd_conf_quota *quotas; /* owned */
	uint32_t quota_count;
	struct mrc_limits limits; /* the engine's */
	struct mrcd_conf_metrics metrics;
	char file[512]; /* where it was read from */
	char *text;     /* owned; all that was read, NULL: not from a file */
	size_t text_bytes;
	bool is_former; /* the file has errors: this is what was in force before (mrcd_conf_load_copy) */
};

/* Receives one finished error line, without newline. */
typedef void (*mrcd_conf_error_fn)(void *context, const char *line);

/*
 * Load and check. On success *conf_out is the caller's, freed by
 * mrcd_conf_free(). -EINVAL: errors were reported; -ENOENT, -EACCES, -EIO: the
 * file could not be read (reported too).
 */
int mrcd_conf_load(const char *file, mrcd_conf_error_fn on_error, void *context,
		   struct mrcd_conf **conf_out);
void mrcd_conf_free(struct mrcd_conf *conf);

/* What the file said, for the daemon after this one: a sealed memfd, the caller's. Negative errno. */
int mrcd_conf_copy(const struct mrcd_conf *conf);
/*
 * As mrcd_conf_load(), but from such a copy of `file`; key files and names of users are looked
 * up as they are now. The descriptor stays the caller's.
 */
int mrcd_conf_load_copy(const char *file, int fd, mrcd_conf_error_fn on_error, void *context,
			struct mrcd_conf **conf_out);

/* How many paths go over the rail of this name. */
uint32_t mrcd_conf_rail_paths(const struct mrcd_conf *conf, const char *name);

/* The rule for a service: its own entry, else "*", else NULL (nobody). */
const struct mrcd_conf_service *mrcd_conf_service(const struct mrcd_conf *conf, const char *name);
/* Is a process with these credentials among them? */
bool mrcd_conf_who_has(const struct mrcd_conf_who *who, const struct mrcd_creds *creds);
/* May such a process use the service so? root always may. */
bool mrcd_conf_service_allows(const struct mrcd_conf_service *service, enum mrcd_use use,
			      const struct mrcd_creds *creds);
/* What such a client may take: the first entry that has it, completed from `clients`. */
void mrcd_conf_quota(const struct mrcd_conf *conf, const struct mrcd_creds *creds,
		     struct mrcd_conf_quota *quota_out);

/* Write the sample configuration / the man page's key table to stdout (mrcd --help-conf). */
void mrcd_conf_print_keys(void);

#endif
