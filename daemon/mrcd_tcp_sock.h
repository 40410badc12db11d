/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcd_tcp_sock - TCP sockets that belong to one rail: its interface, its address
 *
 * Threads: any; nothing blocks.
 */
#ifndef MRCD_TCP_SOCK_H
#define MRCD_TCP_SOCK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "mrcd_conf.h"

/* Room for "fe80::1234:5678:9abc:def0%interface-name". */
#define MRCD_ADDRESS_TEXT_BYTES 64U

/*
 * A listening socket, non-blocking. The address need not exist yet; an
 * interface that is named must (-ENODEV). Other errors are of bind and listen.
 */
int mrcd_tcp_listen(const struct mrcd_conf_rail *conf, const struct sockaddr_storage *own,
		    socklen_t own_len);

/* Begin to connect from the rail's own address, any port. Answers the socket or an error. */
int mrcd_tcp_connect(const struct mrcd_conf_rail *conf, const struct sockaddr_storage *own,
		     socklen_t own_len, const struct sockaddr_storage *to, socklen_t to_len);

/* What a link's socket is set to, on both sides; the longest silence of the kernel's in ms. */
void mrcd_tcp_tune(int fd, unsigned user_timeout_ms);

/* Segments a connection has sent, and of those sent again (TCP_INFO). False: the kernel does not say. */
bool mrcd_tcp_resends(int fd, uint64_t *sent_out, uint64_t *resent_out);

/* Close and have the peer told at once, whatever is still queued. */
void mrcd_tcp_abort(int fd);
/*
 * Before mrcd_tcp_abort(), of a link that is mute or has no carrier: nothing more
 * is sent. A reset into a pulled cable arrives nowhere, but makes the kernel ask
 * for the neighbour's address, once a second; and who connects when the cable is
 * back waits for that.
 */
void mrcd_tcp_hush(int fd);

/* The address as text, without port. */
void mrcd_tcp_address_text(const struct sockaddr_storage *address, socklen_t len,
			   char text[MRCD_ADDRESS_TEXT_BYTES]);

#endif
