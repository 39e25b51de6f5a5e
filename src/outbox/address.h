/*
 * address.h - which addresses of the internet a merchant's webhook may be at.
 *
 * A merchant names a host, and idem posts to it from inside the operator's network. Whatever is
 * reached only from there (this machine, private and link-local networks, the metadata service of a
 * cloud) must not be posted to. A name can be given another address at any time, so the answer is
 * about an address, and is asked for the one that is about to be connected to. Pure.
 */
#ifndef IDEM_OUTBOX_ADDRESS_H
#define IDEM_OUTBOX_ADDRESS_H

#include <stdbool.h>

struct sockaddr;

/* Globally reachable, and one receiver's. Anything that is neither IPv4 nor IPv6 is not. */
bool idem_address_is_public(const struct sockaddr *address);

#endif /* IDEM_OUTBOX_ADDRESS_H */
