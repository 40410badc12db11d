/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrc_wire - the frame codec, the same on every kind of rail (WIRE.md has the bits)
 *
 * A frame is a header of MRC_WIRE_HDR_BYTES and `body_len` bytes of body. The
 * body of a FRAG is payload; on a rail with direct placement it may have been
 * written by RDMA before, and the frame itself then has no body on the wire
 * (MRC_WIRE_F_DIRECT). All other bodies are control bytes of at most
 * MRC_WIRE_CTL_BYTES_MAX.
 *
 * Decoding is total: any bytes give a header or an error, never anything else.
 *
 * Units:   lengths and offsets in bytes.  Ownership: none.  Threads: any.  I/O, time: none.
 */
#ifndef MRC_WIRE_H
#define MRC_WIRE_H

#include "mrc_base.h"

#define MRC_WIRE_MAGIC         0x4643524dU /* "MRCF" */
#define MRC_WIRE_VERSION       1U /* of the header's form; the protocol's is agreed on, see mrc_hello.h */
#define MRC_WIRE_HDR_BYTES     80U
#define MRC_WIRE_CTL_BYTES_MAX 1024U

enum mrc_wire_type {
	MRC_WIRE_HELLO = 1, /* handshake, both ways; before a path exists */
	MRC_WIRE_AUTH = 2,  /* handshake, the initiator's proof and both epochs */
	MRC_WIRE_PATH_OPEN =
		3,         /* first frame of a path epoch, both ways: what this end's rail is */
	MRC_WIRE_KEYS = 4, /* region or landing space, rail, rkey (rails with direct placement) */
	MRC_WIRE_OPEN = 5, /* CHANNEL_OPEN and its kin carry a control number, see mrc_ctl.h */
	MRC_WIRE_ACCEPT = 6,
	MRC_WIRE_REFUSE = 7,
	MRC_WIRE_CLOSE = 8,
	MRC_WIRE_RESET = 9,
	MRC_WIRE_VOID = 10,
	MRC_WIRE_RTS = 11,  /* channel, msg, msg_len: may I have a landing buffer */
	MRC_WIRE_CTS = 12,  /* channel, msg, addr: here it is */
	MRC_WIRE_FRAG = 13, /* channel, msg, msg_len, offset, addr, payload */
	MRC_WIRE_ACK = 14,  /* per path: epoch and frames taken in; control number taken */
	MRC_WIRE_WANT = 15, /* channel, msg, offset, len: still missing here */
	MRC_WIRE_STATE =
		16, /* channel: delivered, visible, final, settled, credit: absolute facts */
	MRC_WIRE_LEVEL = 17,   /* channel, msg, level, code: one message, out of turn; its note */
	MRC_WIRE_DRAINED = 18, /* channel: we stopped; frames posted per path when we did */
	MRC_WIRE_PROBE = 19, /* carries PORT_STATUS; body may be padding up to the longest frame */
	MRC_WIRE_PROBE_ACK = 20,   /* carries when the probe came and when this was sent */
	MRC_WIRE_PATH_FENCE = 21,  /* path, epoch: I have given it up, fence your end */
	MRC_WIRE_PATH_FENCED = 22, /* path, epoch, count taken in */
	MRC_WIRE_NOP = 23,         /* takes a position and says nothing */
	MRC_WIRE_READY = 24,       /* handshake, the responder's: where its device listens */
	MRC_WIRE_ABOUT = 25,       /* what this end is, for people: mrc_about.h */
	MRC_WIRE_TYPE_END
};

#define MRC_WIRE_F_DIRECT \
	0x0001U                  /* FRAG: payload was written to `addr` by the writer path itself */
#define MRC_WIRE_F_COPY  0x0002U /* FRAG: not the first copy; writer_* names who wrote first */
#define MRC_WIRE_F_EAGER 0x0004U /* FRAG: addr is a landing ring position; else a granted buffer */
#define MRC_WIRE_F_UNCHECKED \
	0x0008U /* OPEN: integrity is off; FRAG of such a channel: body_crc is not set */
#define MRC_WIRE_F_VISIBLE \
	0x0010U /* FRAG: the sender waits for VISIBLE; with PLACED: see WIRE.md */
#define MRC_WIRE_F_UNORDERED 0x0020U /* OPEN: channel delivers as messages become whole */
#define MRC_WIRE_F_PLACED    0x0040U /* FRAG: the sender waits for PLACED */
#define MRC_WIRE_F_PROVE \
	0x0080U /* PROBE: it seems to damage data; send a PROOF before the answer */
#define MRC_WIRE_F_PROOF 0x0100U /* PROBE: padding that was asked for; not answered */
#define MRC_WIRE_F_TRACED \
	0x0200U /* FRAG: its moments are wanted; LEVEL: the body begins with them */
#define MRC_WIRE_F_ALL 0x03ffU

/* In PORT_STATUS (PROBE's addr), whose lower bits are paths: the speaker's host is being drained. */
#define MRC_WIRE_HOST_DRAINING (1ULL << 63)
/* And from this bit on, one for each path: the speaker has it fail, as a drill. */
#define MRC_WIRE_DRILLED_SHIFT 32

struct mrc_wire_hdr {
	uint8_t type; /* enum mrc_wire_type */
	uint16_t flags;
	uint32_t conn_epoch;
	uint32_t path_epoch;
	uint16_t writer_path; /* path id */
	uint32_t writer_epoch;
	uint32_t channel;
	uint32_t body_len; /* bytes that follow this header, or that were written directly */
	uint64_t msg;      /* message number on the channel; control number; path id */
	uint64_t offset;   /* of the fragment in its message */
	uint64_t msg_len;  /* of the whole message */
	uint64_t addr;     /* landing address: ring position or buffer offset */
	uint64_t arg;      /* by type, see WIRE.md */
	uint32_t body_crc; /* CRC32C of the body */
};

/* Writes exactly MRC_WIRE_HDR_BYTES, header checksum included. */
void mrc_wire_encode(const struct mrc_wire_hdr *hdr, mrc_crc32c_fn crc32c,
		     uint8_t out[MRC_WIRE_HDR_BYTES]);

/*
 * -EBADMSG  wrong magic or version: not one of us
 * -EILSEQ   header checksum wrong: damaged on the way; the path epoch is over
 * -EPROTO   a field is out of range: a broken peer
 * On error *hdr_out is unspecified.
 */
int mrc_wire_decode(const uint8_t in[MRC_WIRE_HDR_BYTES], mrc_crc32c_fn crc32c,
		    struct mrc_wire_hdr *hdr_out);

/* Does the body follow on the wire (true), or was it written directly or absent (false)? */
bool mrc_wire_has_body(const struct mrc_wire_hdr *hdr);

const char *mrc_wire_type_name(uint8_t type);

/* Little-endian cursor for control bodies. `ok` turns false at the first overrun and stays so. */
struct mrc_cursor {
	uint8_t *at;
	uint8_t *end;
	bool ok;
};

void mrc_put_u8(struct mrc_cursor *c, uint8_t v);
void mrc_put_u16(struct mrc_cursor *c, uint16_t v);
void mrc_put_u32(struct mrc_cursor *c, uint32_t v);
void mrc_put_u64(struct mrc_cursor *c, uint64_t v);
void mrc_put_bytes(struct mrc_cursor *c, const void *data, size_t len);
uint8_t mrc_get_u8(struct mrc_cursor *c);
uint16_t mrc_get_u16(struct mrc_cursor *c);
uint32_t mrc_get_u32(struct mrc_cursor *c);
uint64_t mrc_get_u64(struct mrc_cursor *c);
void mrc_get_bytes(struct mrc_cursor *c, void *data_out, size_t len);

#endif
