/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mrcctl_doctor_checks - the table of what mrcctl doctor looks for, and what it found
 *
 * One line of DOCTOR_CHECKS is one check: its id, how grave a finding is, the
 * function that judges, and for people a title, why it matters and what to do.
 * mrcctl-doctor(1) is made from the same lines. A judge reads the facts and
 * nothing else, says what it found by doctor_found(), and by doctor_unchecked()
 * what it could not judge: a check that was not done never passes in silence.
 *
 * Ownership: texts are copied.
 * Threads:   one.  I/O: none.
 */
#ifndef MRCCTL_DOCTOR_CHECKS_H
#define MRCCTL_DOCTOR_CHECKS_H

#include "mrcctl_doctor_facts.h"

enum doctor_severity { DOCTOR_NOTE, DOCTOR_WARNING, DOCTOR_ERROR };

/*
 * X(id, severity, judge, title, why, what to do)
 *
 * ERROR: something does not work, or will not when it is needed. WARNING: it
 * works worse than it could. NOTE: worth knowing; it does not count.
 */
/* clang-format off */
#define DOCTOR_CHECKS(X) \
	X("rail-carrier", ERROR, doctor_judge_carrier, \
	  "a rail has no carrier", \
	  "It carries nothing, and with each rail that is down fewer are left for the next failure.", \
	  "Look at the cable, the transceiver and the port at the other end; mrcctl drain tells the daemon that it is meant.") \
	X("driver-silent", WARNING, doctor_judge_driver, \
	  "a driver does not answer", \
	  "The card's firmware may hang: its speed and state are not known, and whoever asks the kernel for interfaces waits.", \
	  "Look for the driver's messages in the kernel's log; drain the rail, and reset or exchange the card.") \
	X("peer-down", ERROR, doctor_judge_peer_down, \
	  "a peer is not reached", \
	  "Programs here that talk to it wait, and no channel to it can be opened.", \
	  "See that its daemon runs (mrcctl status there), and that addresses, ports and keys of the two files agree; its log and ours have the reasons.") \
	X("path-down", ERROR, doctor_judge_path_down, \
	  "a path is not in service", \
	  "Messages go by the other paths, with less room and less to fall back on.", \
	  "The other findings of this rail may say why; the daemon's log has the last reason.") \
	X("rail-drained", NOTE, doctor_judge_drained, \
	  "a rail is drained", \
	  "An operator took it out of service, and it stays out until somebody gives it back.", \
	  "Give it back when the work on it is done.") \
	X("rail-drill", NOTE, doctor_judge_drill, \
	  "a rail is in a drill", \
	  "It fails because somebody wants it to, here or at a peer, and is given back by itself.", \
	  "Nothing needs to be done; what else is found of this rail may be the drill's.") \
	X("host-drained", WARNING, doctor_judge_host_drained, \
	  "this host is being drained", \
	  "No program here can open a channel or offer a service, and none of another host can reach one.", \
	  "Give it back when the maintenance is done.") \
	X("configuration", WARNING, doctor_judge_configuration, \
	  "the configuration file has errors", \
	  "The daemon goes on with what was in force before, for its programs; started with none of them it would not start.", \
	  "Mend the file, and have it read again.") \
	X("peer-drained", NOTE, doctor_judge_peer_drained, \
	  "a peer is being drained", \
	  "It takes no new channels; those that are open go on.", \
	  "Nothing needs to be done here; mrcctl undrain --host there ends it.") \
	X("path-degraded", WARNING, doctor_judge_degraded, \
	  "a path does far less than its siblings, or is about to fail", \
	  "It is used for what it still delivers, which is less than it was bought for.", \
	  "Compare mrcctl paths with the switch's counters; exchange cable or transceiver.") \
	X("rail-speed", WARNING, doctor_judge_speed, \
	  "rails run at different speeds", \
	  "Often one of them came up slower than it should: a bad cable, a port or a switch with another setting.", \
	  "Make them equal; where they are meant to differ say so by speed: in the configuration of each rail.") \
	X("rail-slow", WARNING, doctor_judge_slow, \
	  "a rail runs below what it could", \
	  "Cable, transceiver or the other end made it settle for less, and nothing else says so.", \
	  "Look at the cable and at what the other end offers.") \
	X("rail-mtu", WARNING, doctor_judge_rail_mtu, \
	  "rails have different MTUs", \
	  "The rail with the small one needs more packets, interrupts and processor time for the same bytes.", \
	  "Give all rails the largest MTU that their switches take.") \
	X("rail-numa", NOTE, doctor_judge_numa, \
	  "rails hang on different NUMA nodes", \
	  "The daemon has one worker: what a rail of another node brings crosses between the sockets.", \
	  "Use ports of one node where the machine has them.") \
	X("rail-type", WARNING, doctor_judge_type, \
	  "rails use different kinds of links or queue pairs", \
	  "One that fell back to TCP costs copies and processor time that its siblings do not; RoCE and iWARP fail and slow down in different ways.", \
	  "Say type: tcp or type: verbs in the configuration where a fall-back is meant; else see why the device is missing, or use cards of one kind.") \
	X("mtu-peer", WARNING, doctor_judge_mtu_peer, \
	  "the two ends of a path have different MTUs", \
	  "Long packets of one end vanish at the other without a word, or all are cut to the smaller size.", \
	  "Set the same MTU at both ends and on the switch between them.") \
	X("mtu-path", ERROR, doctor_judge_mtu_path, \
	  "packets as long as the MTU do not get through", \
	  "Small ones pass, so the path comes up; long ones vanish and everything waits for what never comes.", \
	  "Set an MTU that every switch on the way takes, at both ends.") \
	X("crosswise", ERROR, doctor_judge_crosswise, \
	  "rails are cabled crosswise", \
	  "Names and cables disagree: who pulls or drains one rail hits another, and paths may not come up at all.", \
	  "Exchange the two cables at one end, or the two addresses.") \
	X("one-network", WARNING, doctor_judge_one_network, \
	  "rails share one network", \
	  "One switch or VLAN that fails takes them all: they are several cables but one fate.", \
	  "Give each rail a switch, or at least a VLAN, of its own; two cables to one peer want no switch.") \
	X("shared-device", WARNING, doctor_judge_shared_device, \
	  "rails share one port", \
	  "They are names for one cable: together they carry what one carries, and fail together.", \
	  "One rail for each port; a bond is one rail, or better its ports are one rail each.") \
	X("shared-card", NOTE, doctor_judge_shared_card, \
	  "rails are ports of one card", \
	  "A card that fails, or whose slot is too narrow, takes them both.", \
	  "Use ports of two cards where there are.") \
	X("route", ERROR, doctor_judge_route, \
	  "the kernel would send a rail's traffic by another interface", \
	  "A rail that is not bound to its interface then loads another rail and fails with that one.", \
	  "Mend the routes: each rail a subnet of its own, or a rule by source address.") \
	X("rp-filter", ERROR, doctor_judge_rp_filter, \
	  "the kernel drops what arrives on a rail", \
	  "rp_filter is strict and the way back leads by another interface: packets are dropped without a word.", \
	  "Set rp_filter to 2 or 0 for the interface, or mend the routes.") \
	X("arp-flux", WARNING, doctor_judge_arp_flux, \
	  "an interface answers for another rail's address", \
	  "The peer may send one rail's traffic down another one: two rails become one, and nobody is told.", \
	  "Set arp_ignore to 1 and arp_announce to 2 at the end that answers.") \
	X("address", ERROR, doctor_judge_address, \
	  "a rail's address is not on its interface", \
	  "It can neither listen nor connect there.", \
	  "Add the address, or name the right interface in the configuration.") \
	X("ipoib", WARNING, doctor_judge_ipoib, \
	  "a rail sends TCP over InfiniBand (IPoIB)", \
	  "That is a fraction of what the port does by RDMA, at many times the processor time.", \
	  "Give the rail type: verbs, and see that its device is there.") \
	X("rdma-missing", ERROR, doctor_judge_rdma_missing, \
	  "a rail of type verbs has no RDMA device that it can use", \
	  "It carries nothing until there is one.", \
	  "Load the driver, then restart the daemon: the unit settles at the start what may be opened.") \
	X("rdma-gid", ERROR, doctor_judge_gid, \
	  "a rail uses a GID of the wrong kind or place", \
	  "RoCE v1 is not routed and most switches do not know it; a GID of another interface sends by that one.", \
	  "See that the rail's address is on the interface of its device, and that the device offers RoCE v2.") \
	X("rdma-port", ERROR, doctor_judge_rdma_port, \
	  "the port of an RDMA device is not ACTIVE", \
	  "Nothing can be sent by it.", \
	  "Bring the interface up; on InfiniBand see that a subnet manager runs.") \
	X("rdma-width", WARNING, doctor_judge_width, \
	  "an InfiniBand link is narrower or slower than both its ends support", \
	  "A bad contact in one lane makes the link come up with fewer or slower ones, for a fraction of its rate.", \
	  "Take the cable out and in again, then exchange it; where a width or speed is switched off, ibportstate switches it on.") \
	X("pci-link", WARNING, doctor_judge_pci, \
	  "a card's PCIe link is slower or narrower than it could be", \
	  "The slot, a riser or bad contact bounds the rail below its wire.", \
	  "Move the card to a wider slot or reseat it.") \
	X("subnet-manager", ERROR, doctor_judge_subnet, \
	  "an InfiniBand port has no LID or no subnet manager", \
	  "Without a LID nothing reaches it; without a manager the next change of the fabric finds nobody.", \
	  "Start a subnet manager (opensm) on one host of the fabric, or on the switch.") \
	X("roce-lossless", WARNING, doctor_judge_lossless, \
	  "a RoCE rail has neither flow control nor ECN", \
	  "Each packet a full switch drops is sent again by go-back-N after a timeout: a small loss costs most of the rate.", \
	  "Switch on PFC for the priority in use or ECN, at both ends and on the switches.") \
	X("roce-dscp", WARNING, doctor_judge_dscp, \
	  "RoCE traffic is not marked", \
	  "With DSCP 0 it queues with everything else, outside the class that flow control protects.", \
	  "Set the type of service that rdma_cm gives its connections.") \
	X("errors-rising", WARNING, doctor_judge_rising, \
	  "counters of trouble rise", \
	  "Links that damage or lose packets seldom get better by themselves.", \
	  "Look at the cable and transceiver of the rail; run doctor again with more --seconds.") \
	X("memlock", ERROR, doctor_judge_memlock, \
	  "the daemon may not lock the memory that its RDMA rails need", \
	  "Registering arenas or receive entries fails, and those rails stay down or copy.", \
	  "Start the daemon with LimitMEMLOCK=infinity or with CAP_IPC_LOCK, as the unit does.") \
	X("huge-pages", WARNING, doctor_judge_huge_pages, \
	  "huge pages are configured and the kernel has too few free", \
	  "New programs get ordinary pages.", \
	  "Give the kernel more of them.") \
	X("port-open", WARNING, doctor_judge_ports, \
	  "a port is open to other hosts without a key", \
	  "Who reaches it needs to prove nothing.", \
	  "Bind it to a loopback address, or have a firewall in front.") \
	X("clock-apart", WARNING, doctor_judge_wall, \
	  "the two hosts' time of day differs", \
	  "Logs of the two hosts cannot be put side by side when something has gone wrong.", \
	  "See that both follow a time server (chronyc tracking, timedatectl).") \
	X("clock-drift", WARNING, doctor_judge_drift, \
	  "a host's clock runs at the wrong speed", \
	  "Timers and delays measured there are wrong by as much.", \
	  "See that both follow a time server; a clock source that drifts so much is broken (dmesg, clocksource).") \
	X("version-mrcd", WARNING, doctor_judge_version_mrcd, \
	  "a peer runs another mrcd", \
	  "It works as far as the older one goes; what the newer one mends is not mended.", \
	  "Bring both to the same version.") \
	X("version-firmware", WARNING, doctor_judge_version_firmware, \
	  "the same kind of card has different firmware at the two ends", \
	  "Faults and speed then differ between rails that look alike.", \
	  "Bring both to the same firmware.") \
	X("version-kernel", NOTE, doctor_judge_version_kernel, \
	  "a peer runs another kernel", \
	  "When two hosts behave differently this is the first thing to know.", \
	  "Nothing needs to be done; keep the hosts alike where you can.") \
	X("version-rdma-core", NOTE, doctor_judge_version_rdma_core, \
	  "a peer has another rdma-core", \
	  "When RDMA behaves differently on two hosts this is the first thing to know.", \
	  "Nothing needs to be done; keep the hosts alike where you can.")
/* clang-format on */

struct doctor_report;

struct doctor_check {
	const char *id;
	enum doctor_severity severity;
	void (*judge)(const struct doctor_facts *facts, struct doctor_report *report);
	const char *title;
	const char *why;
	const char *what_to_do;
};

#define DOCTOR_COUNT_(...) +1 /* NOLINT(bugprone-macro-parentheses): one more term of a sum */
enum { DOCTOR_CHECK_COUNT = 0 DOCTOR_CHECKS(DOCTOR_COUNT_) };
#undef DOCTOR_COUNT_

extern const struct doctor_check doctor_checks[DOCTOR_CHECK_COUNT];

/* One thing that was found, or that could not be judged (then `seen` says why). */
struct doctor_finding {
	const struct doctor_check *check; /* in the table */
	char subject[160];                /* "rail r1 to b" */
	char seen[320];
	char command[200]; /* to type; "": there is none */
};

struct doctor_report {
	const struct doctor_check *check; /* that is being judged */
	struct doctor_finding *findings;  /* ours */
	size_t finding_count;
	struct doctor_finding *unchecked; /* ours */
	size_t unchecked_count;
};

/* Judge all. *report_out is freed by doctor_report_fini(). */
void doctor_judge(const struct doctor_facts *facts, struct doctor_report *report_out);
void doctor_report_fini(struct doctor_report *report);
size_t doctor_report_count(const struct doctor_report *report, enum doctor_severity severity);

/*
 * The current check found this. What is not printable ASCII becomes '?', for
 * peers and drivers chose some of it. command NULL: there is none to type.
 */
void doctor_found(struct doctor_report *report, const char *subject, const char *command,
		  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The current check could not be done for this subject, for this reason. */
void doctor_unchecked(struct doctor_report *report, const char *subject, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

const char *doctor_severity_name(enum doctor_severity severity);

#define DOCTOR_JUDGE_(id, severity, judge, ...) \
	void judge(const struct doctor_facts *facts, struct doctor_report *report);
DOCTOR_CHECKS(DOCTOR_JUDGE_)
#undef DOCTOR_JUDGE_

#endif
