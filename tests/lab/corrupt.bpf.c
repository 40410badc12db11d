/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * corrupt - damage what travels on a rail, where its receiver's veth takes it in
 *
 * A veth leaves the TCP checksum uncomputed, so the kernel hands the damage to
 * whoever reads the socket: as a faulty switch or NIC would that damages a
 * packet after it was checked. tests/lab/corrupt.sh loads this and gives orders.
 *
 * To damage a part of a frame (proto/WIRE.md) it follows each TCP stream from
 * frame to frame, from its SYN on. Of a stream that was there before, or of
 * which something was lost, it looks for the magic, and touches nothing before
 * two frames have followed one another. What TCP sends again it leaves alone:
 * the receiver may have it already, and then nobody would see the damage. So
 * each flip counted is one bit that arrives wrong.
 *
 * One skb carries up to 64 KiB, many segments: chances are per segment, and for
 * headers per header.
 *
 * Units:     bytes; positions in an skb count from the first byte of TCP payload.
 * Threads:   one flow's packets are taken to come one after another.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define MAGIC          0x4643524dU /* "MRCF" */
#define HEADER_BYTES   80U
#define BODY_BYTES_MAX 262144U
#define TYPE_HELLO     1
#define TYPE_AUTH      2
#define TYPE_FRAG      13
#define TYPE_PROBE     19
#define TYPE_READY     24
#define FLAG_UNCHECKED 0x0008U
#define TRUSTED        2U /* headers in a row */
#define SCAN_BYTES     64U
#define STEPS_MAX      4096 /* an skb of the shortest frames takes half of them */

/* What is damaged: bits of corrupt_order.kinds. tests/lab/corrupt.sh has the same. */
#define KIND_PAYLOAD   0x01U /* bodies of FRAG */
#define KIND_PROBE     0x02U /* bodies of PROBE */
#define KIND_CONTROL   0x04U /* bodies of all others */
#define KIND_HEADER    0x08U
#define KIND_HANDSHAKE 0x10U /* headers and bodies of HELLO, AUTH and READY */
#define KIND_ANY       0x20U /* any byte of a TCP stream, whatever it is */

struct corrupt_order {
	__u32 kinds; /* 0: nothing */
	__u32 one_in;
	__u64 flips_until; /* damage ends when so many were made; 0: never */
};

struct corrupt_counts {
	__u64 segments;  /* that were looked at, with payload and not sent before */
	__u64 frames;    /* whose header was found */
	__u64 flips;     /* bits that arrive wrong */
	__u64 frags_hit; /* FRAGs with one flip or more in the body */
	__u64 headers_hit;
	__u64 flips_failed; /* the kernel would not have it written */
	__u64 streams_lost; /* times a stream could not be followed */
};

struct flow_key {
	__u32 from;
	__u16 from_port, to_port;
};

struct flow {
	__u32 seq_next;   /* first byte not seen yet */
	__u32 header_seq; /* where the next header begins, when trust is not 0 */
	__u32 trust;      /* headers found where they had to be */
	__u8 type;        /* of the frame before that header */
	__u8 is_hit;      /* and it was counted as damaged */
	__u8 tail;        /* 1: a byte behind its payload, which is no payload */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct corrupt_order);
	__uint(max_entries, 1);
} corrupt_order SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct corrupt_counts);
	__uint(max_entries, 1);
} corrupt_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct flow_key);
	__type(value, struct flow);
	__uint(max_entries, 1024);
} corrupt_flows SEC(".maps");

/* The beginning of a frame, as proto/WIRE.md has it. */
struct header {
	__u32 magic;
	__u8 version;
	__u8 type;
	__u16 flags;
	__u32 conn_epoch, path_epoch;
	__u16 writer_path, reserved;
	__u32 writer_epoch, channel;
	__u32 body_len;
};

/* One skb on its way. */
struct walk {
	struct __sk_buff *skb;
	struct corrupt_order *order;
	struct corrupt_counts *counts;
	struct flow *flow;
	__u32 payload_at;  /* in the skb */
	__u32 segment_len; /* of a full one */
	__u32 seq;         /* of position 0 */
	__u32 pos, len;
};

static __always_inline __u32 least(__u32 x, __u32 y)
{
	return x < y ? x : y;
}

static __always_inline int is_handshake(__u8 type)
{
	return type == TYPE_HELLO || type == TYPE_AUTH || type == TYPE_READY;
}

static __always_inline __u32 kind_of_body(__u8 type)
{
	if (is_handshake(type))
		return KIND_HANDSHAKE;
	if (type == TYPE_FRAG)
		return KIND_PAYLOAD;
	return type == TYPE_PROBE ? KIND_PROBE : KIND_CONTROL;
}

/* Roll the die, and flip one bit of positions [start, end). 1: it was flipped. */
static __always_inline int maybe_flip(struct walk *w, __u32 start, __u32 end)
{
	const struct corrupt_order *order = w->order;
	__u32 at;
	__u8 byte;

	if (end <= start || (order->flips_until && w->counts->flips >= order->flips_until))
		return 0;
	if (order->one_in > 1 && bpf_get_prandom_u32() % order->one_in)
		return 0;
	at = w->payload_at + start + bpf_get_prandom_u32() % (end - start);
	if (bpf_skb_load_bytes(w->skb, at, &byte, 1) < 0)
		goto err;
	byte ^= 1U << (bpf_get_prandom_u32() & 7);
	/* no flag: the checksum stays what it was */
	if (bpf_skb_store_bytes(w->skb, at, &byte, 1, 0) < 0)
		goto err;
	__sync_fetch_and_add(&w->counts->flips, 1);
	return 1;
err:
	__sync_fetch_and_add(&w->counts->flips_failed, 1);
	return 0;
}

static __always_inline void lose(struct walk *w)
{
	w->flow->trust = 0;
	__sync_fetch_and_add(&w->counts->streams_lost, 1);
}

/* Look for the next magic. */
static __always_inline void step_scan(struct walk *w)
{
	__u8 bytes[SCAN_BYTES];

	if (w->len - w->pos < HEADER_BYTES ||
	    bpf_skb_load_bytes(w->skb, w->payload_at + w->pos, bytes, sizeof(bytes)) < 0) {
		w->pos = w->len;
		return;
	}
	for (__u32 i = 0; i + 4 <= SCAN_BYTES; i++) {
		if (bytes[i] == 'M' && bytes[i + 1] == 'R' && bytes[i + 2] == 'C' &&
		    bytes[i + 3] == 'F') {
			w->pos += i;
			w->flow->trust = 1;
			w->flow->header_seq = w->seq + w->pos;
			return;
		}
	}
	w->pos += SCAN_BYTES - 3;
}

static __always_inline void step_header(struct walk *w)
{
	struct flow *flow = w->flow;
	struct header header;
	__u32 kind;

	if (w->len - w->pos < HEADER_BYTES ||
	    bpf_skb_load_bytes(w->skb, w->payload_at + w->pos, &header, sizeof(header)) < 0) {
		lose(w); /* it goes on in the next skb: too rare to be worth following */
		w->pos = w->len;
		return;
	}
	if (header.magic != MAGIC || header.version != 1 || header.reserved ||
	    header.body_len > BODY_BYTES_MAX) {
		lose(w);
		w->pos++;
		return;
	}
	__sync_fetch_and_add(&w->counts->frames, 1);
	flow->trust = least(flow->trust + 1, TRUSTED + 1);
	flow->type = header.type;
	flow->is_hit = 0;
	flow->tail = header.type == TYPE_FRAG && header.flags & FLAG_UNCHECKED && header.body_len;
	flow->header_seq = w->seq + w->pos + HEADER_BYTES + header.body_len + flow->tail;
	kind = is_handshake(header.type) ? KIND_HANDSHAKE : KIND_HEADER;
	if (flow->trust > TRUSTED && w->order->kinds & kind &&
	    maybe_flip(w, w->pos, w->pos + HEADER_BYTES))
		__sync_fetch_and_add(&w->counts->headers_hit, 1);
	w->pos += HEADER_BYTES;
}

/* One segment's worth of a body, of which `left` bytes are to come. */
static __always_inline void step_body(struct walk *w, __u32 left)
{
	struct flow *flow = w->flow;
	__u32 end = w->pos + least(least(left - flow->tail, w->len - w->pos), w->segment_len);

	if (left == flow->tail) {
		w->pos++;
		return;
	}
	if (flow->trust > TRUSTED && w->order->kinds & kind_of_body(flow->type) &&
	    maybe_flip(w, w->pos, end) && !flow->is_hit) {
		flow->is_hit = 1;
		if (flow->type == TYPE_FRAG)
			__sync_fetch_and_add(&w->counts->frags_hit, 1);
	}
	w->pos = end;
}

static long step(__u32 index, void *context)
{
	struct walk *w = context;
	__u32 left;

	(void)index;
	if (w->pos >= w->len)
		return 1;
	if (w->order->kinds & KIND_ANY) {
		__u32 end = w->pos + least(w->len - w->pos, w->segment_len);

		maybe_flip(w, w->pos, end);
		w->pos = end;
		return 0;
	}
	left = w->flow->header_seq - (w->seq + w->pos);
	if (!w->flow->trust)
		step_scan(w);
	else if (left > 0)
		step_body(w, left);
	else
		step_header(w);
	return 0;
}

/* What has been seen of this stream. `seq` is that of this packet. */
static __always_inline struct flow *flow_find(const struct iphdr *ip, const struct tcphdr *tcp,
					      __u32 seq)
{
	struct flow_key key = {ip->saddr, tcp->source, tcp->dest};
	struct flow *flow = bpf_map_lookup_elem(&corrupt_flows, &key);

	if (!flow || tcp->syn) {
		struct flow fresh = {
			.seq_next = seq + tcp->syn,
			.header_seq = seq + tcp->syn,
			.trust = tcp->syn ? TRUSTED : 0,
		};

		bpf_map_update_elem(&corrupt_flows, &key, &fresh, BPF_ANY);
		flow = bpf_map_lookup_elem(&corrupt_flows, &key);
	}
	return flow;
}

SEC("tc/corrupt")
int corrupt(struct __sk_buff *skb)
{
	struct walk w = {.skb = skb};
	__u32 zero = 0, seen;
	struct iphdr ip;
	struct tcphdr tcp;

	w.order = bpf_map_lookup_elem(&corrupt_order, &zero);
	w.counts = bpf_map_lookup_elem(&corrupt_counts, &zero);
	if (!w.order || !w.counts || bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) < 0 ||
	    ip.version != 4 || ip.protocol != IPPROTO_TCP)
		return TC_ACT_OK;
	w.payload_at = ETH_HLEN + ip.ihl * 4;
	if (bpf_skb_load_bytes(skb, w.payload_at, &tcp, sizeof(tcp)) < 0)
		return TC_ACT_OK;
	w.payload_at += tcp.doff * 4;
	w.len = ETH_HLEN + bpf_ntohs(ip.tot_len);
	w.len = w.len > w.payload_at ? w.len - w.payload_at : 0;
	w.seq = bpf_ntohl(tcp.seq);
	w.flow = flow_find(&ip, &tcp, w.seq);
	if (!w.flow || tcp.syn || !w.len)
		return TC_ACT_OK;

	seen = w.flow->seq_next - w.seq; /* so many bytes of it were sent before */
	if ((__s32)seen < 0) {
		lose(&w); /* something is missing in front of it */
		seen = 0;
	}
	if (seen >= w.len)
		return TC_ACT_OK;
	w.pos = seen;
	w.segment_len = skb->gso_segs > 1 ? skb->gso_size : w.len;
	if (!w.segment_len)
		return TC_ACT_OK;
	__sync_fetch_and_add(&w.counts->segments,
			     (w.len - seen + w.segment_len - 1) / w.segment_len);
	bpf_loop(STEPS_MAX, step, &w, 0);
	w.flow->seq_next = w.seq + w.len;
	return TC_ACT_OK;
}

char corrupt_license[] SEC("license") = "Dual BSD/GPL";
