/*
 * wire.h - a port: one process's end of the wire to the provider.
 *
 * A request that left belongs to the wire, and arrives, or not, whether its process lives or not.
 * Not one byte leaves after `not_after_us`; what has not left when its process dies never will.
 */
#ifndef IDEM_SIM_WIRE_H
#define IDEM_SIM_WIRE_H

#include "provider/port.h"

struct sim_instance;
struct sim_port;
struct sim_provider;

/* Lives as long as the run. */
struct sim_port *sim_port_open(struct sim_provider *provider, struct sim_instance *instance);
struct idem_port *sim_port_base(struct sim_port *port);

/* Its process is dead: every call ends. */
void sim_port_die(struct sim_port *port);

#endif /* IDEM_SIM_WIRE_H */
