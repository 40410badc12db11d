/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_hello - the handshake that opens a path: what is said, and what follows from it
 *
 *   initiator -> responder  HELLO (who I am, what I hold)
 *   responder -> initiator  HELLO (the same, and its proof over both)
 *   initiator -> responder  AUTH  (its proof over both, and the epochs that follow)
 *   responder -> initiator  READY (only when both ends place directly: where its device listens)
 *
 * The initiator of every path of a pair of hosts is the one whose name sorts
 * first; so connections never cross. Both proofs are HMAC-SHA256 with the
 * shared key over a role byte, both HELLO bodies and, in AUTH, the epochs
 * (DESIGN 7.13); computing them is the embedder's business.
 *
 * Versions: a HELLO says which ones its speaker knows and what else it can do.
 * Both ends conclude the same from that, and the proofs cover it: nobody between
 * them can make two new daemons speak as old ones. Version 1 had no place for it
 * and refuses what it does not know, so it stands where version 1 takes any
 * bytes: in the second half of the nonce, behind a mark.
 *
 * I/O, time: none.
 */
#ifndef MRC_HELLO_H
#define MRC_HELLO_H

#include "mrc_wire.h"

#define MRC_HELLO_NONCE_BYTES 32U
#define MRC_HELLO_FRESH_BYTES 16U /* of the nonce, its beginning: random in every version */
#define MRC_HELLO_MAC_BYTES   32U
#define MRC_HELLO_BODY_BYTES  208U /* encoded, without the proof */
#define MRC_AUTH_BODY_BYTES   16U  /* encoded, without the proof */
#define MRC_HELLO_NONCE_AT    160U /* in the encoded body */

/* Of the protocol; the form of a frame's header has a number of its own (MRC_WIRE_VERSION). */
#define MRC_HELLO_VERSION_MIN 1U /* the oldest that is spoken here */
#define MRC_HELLO_VERSION_MAX 2U /* 2: as 1, and versions and features are agreed on */

/*
 * Features. Records on streams: the speaker can and wants to; and will not do without. A host that
 * says neither sends and takes frames in the open.
 */
#define MRC_FEATURE_ENCRYPTION          (1U << 0)
#define MRC_FEATURE_ENCRYPTION_REQUIRED (1U << 1)
/* Each end may tell the other what it is: frame ABOUT. */
#define MRC_FEATURE_ABOUT (1U << 2)
/* That a host is drained is said in PORT_STATUS, and as the outcome of a REFUSE. */
#define MRC_FEATURE_HOST_DRAIN (1U << 3)
/* Which paths fail on purpose is said in PORT_STATUS. */
#define MRC_FEATURE_DRILL (1U << 4)

struct mrc_hello {
	char host[MRC_NAME_MAX + 1];          /* the speaker's */
	char to_host[MRC_NAME_MAX + 1];       /* whom it believes to speak to */
	uint64_t boot_id;                     /* of the speaker's run of state */
	uint64_t peer_boot_id;                /* known to the speaker; 0: none */
	uint32_t conn_epoch;                  /* held; 0: none */
	uint32_t conn_epoch_last;             /* highest ever held with this peer */
	uint32_t path_epoch_last;             /* highest known for this path */
	uint16_t path_id;                     /* of the path, as the initiator numbers them */
	uint16_t is_direct_capable;           /* the speaker's rail can take RDMA writes */
	uint8_t nonce[MRC_HELLO_NONCE_BYTES]; /* fresh */
	uint8_t version_min, version_max;     /* that the speaker knows; 1 and 1: it does not say */
	uint32_t features;                    /* that the speaker offers, version 2 and later */
};

struct mrc_auth {
	uint32_t conn_epoch;
	uint32_t path_epoch;
	/* Not on the wire: the conn epochs the two HELLOs named as held; 0: none. */
	uint32_t held_by_initiator;
	uint32_t held_by_responder;
	/* Not on the wire either: what both speak on this path epoch; version 0: they have none in common. */
	uint8_t version;
	uint32_t features;
};

/* A speaker whose version_max is at most 1 has a nonce of random bytes alone, as version 1 had. */
void mrc_hello_encode(const struct mrc_hello *hello, uint8_t out[MRC_HELLO_BODY_BYTES]);
/*
 * -EPROTO: a name without end or with bytes other than [A-Za-z0-9._-], reserved bits set, or
 * versions that cannot be. Of the nonce the first MRC_HELLO_FRESH_BYTES are what the speaker drew.
 */
int mrc_hello_decode(const uint8_t in[MRC_HELLO_BODY_BYTES], struct mrc_hello *hello_out);
void mrc_auth_encode(const struct mrc_auth *auth, uint8_t out[MRC_AUTH_BODY_BYTES]);
int mrc_auth_decode(const uint8_t in[MRC_AUTH_BODY_BYTES], struct mrc_auth *auth_out);

/* What both ends conclude from the two HELLOs; symmetric. */
void mrc_hello_conclude(const struct mrc_hello *initiator, const struct mrc_hello *responder,
			struct mrc_auth *auth_out);

/*
 * Is what follows the handshake sealed? `is_direct`: both can place directly, which wins
 * unless one of the two requires encryption. -EACCES: one requires it and the other does not want it.
 */
int mrc_hello_encryption(const struct mrc_hello *a, const struct mrc_hello *b, bool is_direct,
			 bool *is_sealed_out);
static inline bool mrc_hello_requires_encryption(const struct mrc_hello *hello)
{
	return (hello->features & MRC_FEATURE_ENCRYPTION_REQUIRED) != 0;
}

/* True when the host called `a` opens the paths between `a` and `b`. */
bool mrc_hello_is_initiator(const char *a, const char *b);

#endif
