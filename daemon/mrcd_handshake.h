/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_handshake - prove the shared key and agree on epochs, before a link exists
 *
 * A state machine without sockets: bytes in, bytes out (mrc_hello.h has the
 * frames). It asks for exactly the bytes of the next part, so what follows the
 * handshake in a stream is left where it is.
 *
 *	initiator: mrcd_handshake_begin(), send `out`
 *	responder: mrcd_handshake_await()
 *	both:      while (!mrcd_handshake_is_done(hs)) {
 *			   receive up to mrcd_handshake_want(hs) bytes;
 *			   mrcd_handshake_take(hs, bytes, count);
 *			   send `out`, out_len bytes; out_len = 0;
 *		   }
 *
 * Until the proof is verified nothing but this struct is held for the caller.
 *
 * Ownership: embedded in the kind's slot for one connection attempt.
 * Threads:   the worker's loop.  I/O, time: none, but for the log.
 */
#ifndef MRCD_HANDSHAKE_H
#define MRCD_HANDSHAKE_H

#include "mrcd_auth.h"
#include "mrcd_log.h"
#include "mrcd_rail.h"

#define MRCD_HANDSHAKE_BYTES_MAX (MRC_WIRE_HDR_BYTES + MRC_HELLO_BODY_BYTES + MRC_HELLO_MAC_BYTES)
#define MRCD_DEVICE_TOKEN_BYTES  MRC_HELLO_MAC_BYTES

/* What this end's rail has of a device, when the handshake begins. */
struct mrcd_handshake_device {
	bool is_required; /* refuse when not both ends can take direct writes */
	bool is_usable;
	uint16_t port; /* the responder says it in READY; 0: as if not usable. Initiator: unused */
};

/* What a refusal for encryption says. */
#define MRCD_WHY_OPEN_VERBS "encryption is required, and rails of type verbs have none"
#define MRCD_WHY_OPEN_HERE  "requires encryption, and this host has it off"
#define MRCD_WHY_OPEN_THERE "has encryption off, and this host requires it"

/* What a refusal for the device says. */
#define MRCD_WHY_NO_DEVICE_HERE  "this rail's device is not usable now"
#define MRCD_WHY_NO_DEVICE_THERE "this rail is of type verbs and the other end has no RDMA device"

/* Why somebody was turned away: one rate-limited log line for each kind. */
enum mrcd_refusal {
	MRCD_REFUSAL_NONE,
	MRCD_REFUSAL_MAGIC,   /* does not speak our protocol */
	MRCD_REFUSAL_DAMAGED, /* a checksum was wrong */
	MRCD_REFUSAL_FIELD,   /* a field is out of range */
	MRCD_REFUSAL_NAME,    /* not the host, or not for the host, it should be */
	MRCD_REFUSAL_SELF,    /* our own words came back */
	MRCD_REFUSAL_KEY,     /* does not prove the key */
	MRCD_REFUSAL_EPOCHS,  /* concludes other epochs than we do */
	MRCD_REFUSAL_DEVICE,  /* a rail that is to have a device at both ends has not */
	MRCD_REFUSAL_OPEN,    /* one of the two requires encryption, which is not to be had */
	MRCD_REFUSAL_TIMEOUT, /* half open for too long */
	MRCD_REFUSAL_CROWDED, /* too many at once: this one was the oldest */
	MRCD_REFUSAL_CLOSED,  /* went away before it was done */
	MRCD_REFUSAL_STALE,   /* nobody's fault: things moved on meanwhile */
	MRCD_REFUSAL_COUNT
};

enum mrcd_handshake_state {
	MRCD_HANDSHAKE_HELLO, /* waiting for the other's HELLO */
	MRCD_HANDSHAKE_AUTH,  /* responder: waiting for the initiator's proof */
	MRCD_HANDSHAKE_READY, /* initiator, both ends capable: waiting for where to connect */
	MRCD_HANDSHAKE_DONE,
	MRCD_HANDSHAKE_REFUSED,
};

struct mrcd_handshake {
	struct mrcd_rail *rail;
	struct mrcd_peer *peer; /* responder: NULL until its HELLO named one */
	uint8_t path_index;
	bool is_initiator;
	bool is_direct_capable; /* this end; once both HELLOs are known: both */
	bool is_direct_required;
	enum mrcd_handshake_state state;
	char source[64]; /* the other's address, as text */

	struct mrc_hello ours, theirs;
	struct mrc_auth auth; /* after DONE: the epochs */
	/* After DONE, when both ends are capable: where the responder's device listens, and what
	 * the initiator has to bring there. Nobody else can compute it, and no other handshake. */
	uint16_t device_port; /* responder: from the beginning */
	uint8_t device_token[MRCD_DEVICE_TOKEN_BYTES];
	/* After DONE: what follows is in records (mrcd_seal.h), by these secrets; to be wiped. */
	bool is_sealed;
	uint8_t secret_out[MRCD_AUTH_SECRET_BYTES], secret_in[MRCD_AUTH_SECRET_BYTES];
	char key_id[MRCD_KEY_ID_BYTES]; /* after DONE: of the key that both have proved */
	uint8_t hello_i[MRC_HELLO_BODY_BYTES];
	uint8_t hello_r[MRC_HELLO_BODY_BYTES];

	uint8_t in[MRCD_HANDSHAKE_BYTES_MAX]; /* one frame, as far as it came */
	uint32_t in_len;
	uint8_t out[MRCD_HANDSHAKE_BYTES_MAX]; /* to be sent; the caller sets out_len to 0 then */
	uint32_t out_len;

	enum mrcd_refusal refusal; /* after an error */
	const char *why;           /* static text */
};

/* device NULL: the rail has none. */
void mrcd_handshake_begin(struct mrcd_handshake *hs, struct mrcd_rail *rail, struct mrcd_peer *peer,
			  uint8_t path_index, const char *source,
			  const struct mrcd_handshake_device *device);
void mrcd_handshake_await(struct mrcd_handshake *hs, struct mrcd_rail *rail, const char *source,
			  const struct mrcd_handshake_device *device);

/* How many bytes the next step takes at most; 0 when it is over. */
uint32_t mrcd_handshake_want(const struct mrcd_handshake *hs);

/*
 * Take in bytes of the other, at most mrcd_handshake_want(). Afterwards `out`
 * may hold an answer.
 *
 * 0        go on, or done
 * -EACCES  refused: `refusal` and `why` say it; close the connection
 */
int mrcd_handshake_take(struct mrcd_handshake *hs, const void *data, uint32_t len_bytes);

static inline bool mrcd_handshake_is_done(const struct mrcd_handshake *hs)
{
	return hs->state == MRCD_HANDSHAKE_DONE;
}

/* The log's patience with strangers, one for each kind. Embedded in what a rail's kind keeps. */
struct mrcd_strangers {
	struct mrcd_log_limit limits[MRCD_REFUSAL_COUNT];
};

void mrcd_strangers_init(struct mrcd_strangers *strangers);
/* Count a refused connection (STALE is none) and say so, not too often. */
void mrcd_strangers_note(struct mrcd_strangers *strangers, struct mrcd_rail *rail,
			 enum mrcd_refusal refusal, const char *source, const char *why);

#endif
