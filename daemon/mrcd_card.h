/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_card - what the network cards themselves count
 *
 * What a card drops because it came damaged never reaches us: TCP and queue pairs
 * have it sent again, and all we see is that things are a little slower. The card
 * has counted it. So once a second the files of sysfs that say so are read for
 * each rail, off the loop, for a driver may ask its card and a card may be ill: a
 * reading that hangs holds nobody up, and is waited for.
 *
 * Judged (mrc_health.h) are packets that came damaged and what the card's own
 * transport had to send again, each among all packets. What says nothing of
 * packets (symbol errors, which an idle link has too), or is the host's doing
 * (missed for want of buffers), is told and not judged; link_downed and
 * carrier_changes are judged as flaps, by the paths that leave service.
 *
 * Units:   packets and counts, of all there were; they only grow, and begin anew
 *          when the driver does.
 * Threads: the worker's loop; mrcd_card_read() on any.
 * I/O:     sysfs, by mrcd_card_read() alone.
 */
#ifndef MRCD_CARD_H
#define MRCD_CARD_H

#include <jansson.h>

#include "mrc_health.h"

#define MRCD_CARD_PERIOD_NS MRC_S

/*
 * X(enumerator, its name for people, the file): below the interface or below the
 * RDMA device's port. The first so many are packets, the rest are errors.
 */
#define MRCD_CARD_PACKETS(X)                                                    \
	X(RX_PACKETS, "rx_packets", INTERFACE, "statistics/rx_packets")         \
	X(PORT_RECEIVED, "port_rcv_packets", PORT, "counters/port_rcv_packets") \
	X(PORT_SENT, "port_xmit_packets", PORT, "counters/port_xmit_packets")   \
	X(RXE_RECEIVED, "rcvd_pkts", PORT, "hw_counters/rcvd_pkts")             \
	X(RXE_SENT, "sent_pkts", PORT, "hw_counters/sent_pkts")
#define MRCD_CARD_ERRORS(X)                                                                \
	X(RX_CRC, "rx_crc_errors", INTERFACE, "statistics/rx_crc_errors")                  \
	X(RX_FRAME, "rx_frame_errors", INTERFACE, "statistics/rx_frame_errors")            \
	X(RX_ERRORS, "rx_errors", INTERFACE, "statistics/rx_errors")                       \
	X(RX_MISSED, "rx_missed_errors", INTERFACE, "statistics/rx_missed_errors")         \
	X(TX_ERRORS, "tx_errors", INTERFACE, "statistics/tx_errors")                       \
	X(TX_CARRIER, "tx_carrier_errors", INTERFACE, "statistics/tx_carrier_errors")      \
	X(CARRIER_CHANGES, "carrier_changes", INTERFACE, "carrier_changes")                \
	X(SYMBOL, "symbol_error", PORT, "counters/symbol_error")                           \
	X(RECOVERY, "link_error_recovery", PORT, "counters/link_error_recovery")           \
	X(DOWNED, "link_downed", PORT, "counters/link_downed")                             \
	X(PORT_RCV, "port_rcv_errors", PORT, "counters/port_rcv_errors")                   \
	X(ICRC, "rx_icrc_encapsulated", PORT, "hw_counters/rx_icrc_encapsulated")          \
	X(PACKET_SEQ, "packet_seq_err", PORT, "hw_counters/packet_seq_err")                \
	X(IMPLIED_NAK, "implied_nak_seq_err", PORT, "hw_counters/implied_nak_seq_err")     \
	X(ACK_TIMEOUT, "local_ack_timeout_err", PORT, "hw_counters/local_ack_timeout_err") \
	X(RXE_SEQ, "rcvd_seq_err", PORT, "hw_counters/rcvd_seq_err")                       \
	X(RXE_RETRY, "completer_retry_err", PORT, "hw_counters/completer_retry_err")

enum mrcd_card_counter {
#define ID(id, name, below, file) MRCD_CARD_##id,
	MRCD_CARD_PACKETS(ID) MRCD_CARD_ERRORS(ID)
#undef ID
		MRCD_CARD_COUNTERS,
	MRCD_CARD_ERRORS_FIRST = MRCD_CARD_RX_CRC,
};

/* Where a rail's card is in sysfs. What is not known, or there is none of, is "" or 0. */
struct mrcd_card_place {
	char interface[16];
	unsigned ifindex; /* /sys may be another network namespace's: this says so */
	char device[64];  /* RDMA */
	unsigned port;
};

/* One reading. All 0: there was none. */
struct mrcd_card {
	uint64_t reading;    /* its number, from 1 */
	uint32_t known_bits; /* which counters the card has */
	uint64_t counts[MRCD_CARD_COUNTERS];
};

/* Read all there is below `root` ("/sys") into what is known and counted; `reading` is the caller's. */
void mrcd_card_read(const char *root, const struct mrcd_card_place *place, struct mrcd_card *card);

/* What of it is judged. */
void mrcd_card_judged(const struct mrcd_card *card, struct mrc_health_card *judged_out);

const char *mrcd_card_counter_name(enum mrcd_card_counter counter);
bool mrcd_card_knows(const struct mrcd_card *card, enum mrcd_card_counter counter);

/* Add "card", the errors it counts by name, and what is judged of them; nothing when it counts none. */
void mrcd_card_describe(const struct mrcd_card *card, json_t *object);

/* ---- all rails' cards, once a second ---- */

struct mrcd_worker;
struct mrcd_cards;

/* Begin to read, at once; each reading goes to rail->card. Negative errno: no memory, no thread. */
int mrcd_cards_new(struct mrcd_worker *worker, const char *root, struct mrcd_cards **cards_out);
/* Rails may go now: no more is read, and what is being read goes nowhere. NULL is fine. */
void mrcd_cards_stop(struct mrcd_cards *cards);
/* Waits for readings that are under way. NULL is fine. */
void mrcd_cards_free(struct mrcd_cards *cards);

#endif
