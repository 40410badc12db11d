/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_doctor_facts - what mrcctl doctor knows of this host, its rails and its peers
 *
 * Gathered once by several readers (the daemon, sysfs and procfs, probes), then
 * judged by functions that read nothing else (mrcctl_doctor_checks.h). A number
 * that nobody could read is DOCTOR_UNKNOWN, a text that nobody could read is
 * empty; where a reader knows why, it says so in a `why`.
 *
 * Texts come from the daemon, from peers and from drivers: none is printed
 * before doctor_found() has made it printable.
 *
 * Units:     as the names say; MTUs in bytes.
 * Ownership: arrays are the facts'; the rest is in them.
 * Threads:   one.
 */
#ifndef MRCCTL_DOCTOR_FACTS_H
#define MRCCTL_DOCTOR_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOCTOR_UNKNOWN      (-1) /* of what is never below 0 otherwise */
#define DOCTOR_NAME_BYTES   64
#define DOCTOR_TEXT_BYTES   96
#define DOCTOR_WHY_BYTES    160
#define DOCTOR_RAILS_MAX    16
#define DOCTOR_COUNTERS_MAX 64
#define DOCTOR_PORTS_MAX    32
#define DOCTOR_MAC_BYTES    6
#define DOCTOR_CHASSIS_MAX  4 /* neighbours that a rail heard by LLDP */

enum doctor_answer { DOCTOR_NOT_ASKED, DOCTOR_YES, DOCTOR_NO };

/* A counter of trouble, read twice. */
struct doctor_counter {
	char name[DOCTOR_NAME_BYTES];
	uint64_t first, second;
};

struct doctor_mac {
	bool is_known;
	uint8_t bytes[DOCTOR_MAC_BYTES];
};

/*
 * One end of an InfiniBand link: what it can, may and does, as masks. Widths have
 * the bits of PortInfo (1X, 4X, 8X, 12X, 2X from bit 0 on); speeds those of
 * LinkSpeed (SDR, DDR, QDR) and from bit 4 on those of LinkSpeedExt (FDR, EDR,
 * HDR, NDR).
 */
struct doctor_link_end {
	bool is_known;
	uint8_t widths_supported, widths_enabled, width_active;
	uint8_t speeds_supported, speeds_enabled, speed_active;
};

/* The RDMA port of a rail. Names are those of sysfs. */
struct doctor_rdma {
	char device[DOCTOR_NAME_BYTES]; /* "": the rail has none */
	char missing[DOCTOR_WHY_BYTES]; /* the daemon's reason for having none */
	bool is_found;                  /* there is one, and the daemon cannot use it: missing */
	int64_t locked_bytes;           /* that the daemon has locked for it; without programs' */
	int port;
	char link_layer[24]; /* "InfiniBand", "Ethernet" */
	char state[32];      /* "4: ACTIVE" */
	char phys_state[32]; /* "5: LinkUp" */
	char rate[64];       /* "100 Gb/sec (4X EDR)" */
	int64_t lid, sm_lid; /* InfiniBand */
	char gid[48];        /* that the daemon uses, numeric */
	int64_t gid_index;
	char gid_type[24];      /* "RoCE v2" */
	char gid_interface[16]; /* of that index */
	int64_t tos;            /* that rdma_cm gives its connections; RoCE */
	struct doctor_link_end own,
		other;                   /* InfiniBand: of the port and of its cable's other end */
	char link_why[DOCTOR_WHY_BYTES]; /* why neither is known */
	uint64_t packets[2];             /* sent and received, at both readings; 0: not told */
};

struct doctor_rail {
	/* From the daemon. */
	char name[DOCTOR_NAME_BYTES];
	char type[8]; /* configured: "tcp", "verbs", "auto" */
	char interface[16];
	char address[64];
	int64_t port;
	bool is_drained;
	char drill[12]; /* "down", "silence", "slow", or "peer": a peer's; "": in none */
	bool has_carrier;
	int64_t driver_silent_ns;            /* so long it has owed the daemon an answer */
	int64_t speed_configured_bits_per_s; /* 0: not configured */
	int64_t receive_bytes;               /* of its receive entries, as configured */
	char driver[32];                     /* "mlx5_core" */
	char firmware[48];

	/* From sysfs and procfs. */
	bool is_read; /* the interface is there and was read */
	int64_t ifindex;
	int64_t is_up; /* 0: somebody took it down here */
	int64_t mtu;
	int64_t speed_bits_per_s;
	int64_t numa_node;
	int64_t hardware; /* ARPHRD_ */
	struct doctor_mac mac;
	char lower[16];         /* the interface that carries it; "": itself */
	char bond[16];          /* the bond, team or bridge it is a port of */
	char pci[24];           /* "0000:3b:00.0" */
	char pci_speed[32];     /* "8.0 GT/s PCIe" */
	char pci_speed_max[32]; /* of device and slot, the smaller */
	int64_t pci_width, pci_width_max;
	int64_t arp_ignore, rp_filter; /* in force: the larger of its own and "all" */
	int64_t address_is_here;       /* 1: the address is on the interface; 0: not */
	int64_t prefix_bits;           /* of that address */
	struct doctor_rdma rdma;
	struct doctor_counter counters[DOCTOR_COUNTERS_MAX];
	size_t counter_count;

	/* Asked of the kernel. */
	int64_t speed_max_bits_per_s;                        /* of the modes it supports */
	int64_t pfc_priorities;                              /* mask of priorities with PFC */
	int64_t has_pause;                                   /* 1: global pause */
	int64_t has_ecn;                                     /* 1: on some priority */
	char chassis[DOCTOR_CHASSIS_MAX][DOCTOR_TEXT_BYTES]; /* heard by LLDP */
	size_t chassis_count;
	char lldp_why[DOCTOR_WHY_BYTES]; /* why none was listened for */
};

/* What the peer says of its end of a path (WIRE.md, ABOUT). */
struct doctor_about {
	bool is_known;
	char rail[DOCTOR_NAME_BYTES];
	char kind[24];
	int64_t mtu;
	int64_t speed_bits_per_s;
	struct doctor_mac mac;
	char version[48];
	char kernel[DOCTOR_TEXT_BYTES];
	char rdma_core[48];
	char driver[32];
	char firmware[48];
};

struct doctor_path {
	/* From the daemon. */
	size_t peer; /* index */
	size_t rail; /* index */
	char address[64];
	char state[24];
	char reason[24];
	char link[8];    /* of what is up: "tcp", "verbs" */
	char health[24]; /* "good", or the word for what it is */
	char health_why[256];
	uint64_t state_age_ns;
	bool is_connected;
	bool is_drilled; /* here or by the peer */
	struct doctor_about about;
	struct doctor_counter counters[8];
	size_t counter_count;

	/* Probed. */
	int family;               /* of the address; 0: a name, which is not probed */
	char route_interface[16]; /* by which the kernel would send there; "": see route_error */
	int route_error;          /* 0, or an errno */
	enum doctor_answer route_asked;
	enum doctor_answer is_let_in; /* rp_filter lets its packets in on this rail */
	enum doctor_answer answers_small, answers_full;
	int64_t probe_mtu;
	char probe_why[DOCTOR_WHY_BYTES];         /* why it was not probed for its MTU */
	enum doctor_answer arp[DOCTOR_RAILS_MAX]; /* asked on that rail: who has this address? */
	struct doctor_mac arp_mac[DOCTOR_RAILS_MAX];
	char arp_why[DOCTOR_WHY_BYTES];
};

struct doctor_peer {
	char name[DOCTOR_NAME_BYTES];
	char state[24];
	bool is_met; /* some path was up once */
	bool is_draining;
	/* Two readings of its clock: offset to ours and how wrong that may be. */
	enum doctor_answer has_clock;
	int64_t clock_offset_ns[2];
	uint64_t clock_error_ns[2];
	uint64_t clock_apart_ns; /* between those readings */
	/* Its time of day less ours. */
	enum doctor_answer has_wall;
	int64_t wall_apart_ns;
};

/* A port that the daemon listens on, and that is no rail's. */
struct doctor_port {
	char address[64];
	int port;
	bool is_loopback;
};

struct doctor_facts {
	char host[DOCTOR_NAME_BYTES];
	char version[48];
	char kernel[DOCTOR_TEXT_BYTES];
	char rdma_core[48];
	int64_t pid;
	int64_t draining_ns;    /* this host is being drained for so long; 0: it is not */
	int64_t is_conf_former; /* 1: the file has errors, what is in force is from before */
	int64_t memlock_bytes;  /* DOCTOR_UNKNOWN; INT64_MAX: no limit */
	int64_t memlock_need_bytes;
	int64_t may_lock;        /* 1: the daemon has CAP_IPC_LOCK */
	int64_t may_bind;        /* 1: it binds sockets to interfaces */
	int64_t huge_page_bytes; /* configured; 0: none */
	bool is_any_huge_page;   /* of the size that the machine prefers */
	int64_t huge_pages_free, huge_pages_all;
	int64_t arena_bytes; /* of one client, both */
	bool are_ports_read;
	char ports_why[DOCTOR_WHY_BYTES];
	struct doctor_port ports[DOCTOR_PORTS_MAX];
	size_t port_count;
	double seconds; /* between the two readings; 0: there was one */

	struct doctor_rail rails[DOCTOR_RAILS_MAX];
	size_t rail_count;
	struct doctor_peer *peers;
	size_t peer_count;
	struct doctor_path *paths;
	size_t path_count;
};

/* All unknown, nothing in it. */
void doctor_facts_init(struct doctor_facts *facts);
void doctor_facts_fini(struct doctor_facts *facts);

/* One more, all unknown. The pointer is good until the next one is added. Running out of memory aborts. */
struct doctor_rail *doctor_facts_rail_add(struct doctor_facts *facts);
struct doctor_peer *doctor_facts_peer_add(struct doctor_facts *facts);
struct doctor_path *doctor_facts_path_add(struct doctor_facts *facts);

/* For so long that it is worth a word, and is not asked by us as well. */
static inline bool doctor_is_driver_silent(const struct doctor_rail *rail)
{
	return rail->driver_silent_ns >= 5000000000;
}

/* Its index, or SIZE_MAX. */
size_t doctor_facts_rail_find(const struct doctor_facts *facts, const char *name);
size_t doctor_facts_peer_find(const struct doctor_facts *facts, const char *name);

/* There is an RDMA device for it, also when the daemon cannot use it. */
bool doctor_has_device(const struct doctor_rail *rail);
/* RoCE or InfiniBand: it has a device whose port says so. */
bool doctor_is_roce(const struct doctor_rail *rail);
bool doctor_is_infiniband(const struct doctor_rail *rail);

/*
 * Note a counter's value: as the first reading, or as the second of one that was
 * there. A counter beyond the bound, or new in the second reading, is dropped.
 */
void doctor_counter_note(struct doctor_counter *counters, size_t counters_max, size_t *count,
			 const char *name, uint64_t value, bool is_second);

/* Copies what fits, always ended. */
void doctor_text_set(char *text, size_t text_bytes, const char *from);

#endif
