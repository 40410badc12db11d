/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_doctor_mad - what an InfiniBand port could do, and the one it is cabled to
 *
 * sysfs and verbs tell at which width and speed a port runs, and not which it
 * supports. Its subnet management agent tells both (PortInfo; IBA volume 1,
 * 14.2.5.6), and so does that of the port at the other end of the cable: they are
 * asked as ibportstate(8) does, by directed routes of no hop and of one, through
 * /dev/infiniband/umad*. That takes root. Nothing is set.
 *
 * Threads: one.  I/O: the device; some 0.6 s for a question that nobody answers.
 */
#ifndef MRCCTL_DOCTOR_MAD_H
#define MRCCTL_DOCTOR_MAD_H

#include "mrcctl_doctor_facts.h"

#define DOCTOR_MAD_BYTES      256
#define DOCTOR_MAD_DATA_BYTES 64 /* of the attribute in it */

/* Both ends of the links of all InfiniBand rails. */
void doctor_probe_links(struct doctor_facts *facts);

/*
 * The same for one port, by a descriptor that takes and gives what /dev/infiniband/umad*
 * does, and the agent registered there. What is not answered stays unknown.
 */
void doctor_mad_ask_link(int fd, uint32_t agent, struct doctor_rdma *rdma);

/* The attribute PortInfo, of any port. */
void doctor_mad_port_info(const uint8_t data[DOCTOR_MAD_DATA_BYTES],
			  struct doctor_link_end *end_out);

#endif
