/*
 * IPv4 by what is excluded, after the registry of special purpose addresses (IANA, RFC 6890).
 *
 * IPv6 the other way round: only 2000::/3 is given out at all, so what else there is, and what will
 * be (unique local, link-local, site-local, loopback, multicast), is excluded by not being in it;
 * of it, what is no receiver's own is excluded as well. Addresses that stand for an IPv4 address
 * are judged as that: mapped ones (::ffff:0:0/96) and those of a translator (64:ff9b::/96). Tunnels
 * that carry one inside (6to4, Teredo) are excluded as a whole.
 */
#include "outbox/address.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/attr.h"

struct prefix4 {
    uint32_t address;
    unsigned bits;
};

struct prefix6 {
    uint8_t bytes[16];
    unsigned bits;
};

#define V4(a, b, c, d) \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

static const struct prefix4 excluded4[] = {
    { V4(0, 0, 0, 0), 8 },        /* "This network"; 0.0.0.0 is this machine. */
    { V4(10, 0, 0, 0), 8 },       /* Private (RFC 1918). */
    { V4(100, 64, 0, 0), 10 },    /* Shared by a provider's customers (RFC 6598). */
    { V4(127, 0, 0, 0), 8 },      /* Loopback. */
    { V4(168, 63, 129, 16), 32 }, /* What every machine at Azure has beside it. */
    { V4(169, 254, 0, 0), 16 },   /* Link-local; metadata services. */
    { V4(172, 16, 0, 0), 12 },    /* Private. */
    { V4(192, 0, 0, 0), 24 },     /* Protocol assignments. */
    { V4(192, 0, 2, 0), 24 },     /* Documentation. */
    { V4(192, 88, 99, 0), 24 },   /* Relays of 6to4, given up. */
    { V4(192, 168, 0, 0), 16 },   /* Private. */
    { V4(198, 18, 0, 0), 15 },    /* Benchmarks. */
    { V4(198, 51, 100, 0), 24 },  /* Documentation. */
    { V4(203, 0, 113, 0), 24 },   /* Documentation. */
    { V4(224, 0, 0, 0), 4 },      /* Multicast. */
    { V4(240, 0, 0, 0), 4 },      /* Reserved; broadcast. */
};

static const struct prefix6 mapped = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff }, 96 };
static const struct prefix6 translated = { { 0x00, 0x64, 0xff, 0x9b }, 96 };
static const struct prefix6 given_out = { { 0x20 }, 3 };

static const struct prefix6 excluded6[] = {
    { { 0x20, 0x01, 0x00 }, 23 },       /* Protocol assignments; Teredo. */
    { { 0x20, 0x01, 0x0d, 0xb8 }, 32 }, /* Documentation. */
    { { 0x20, 0x02 }, 16 },             /* 6to4. */
    { { 0x3f, 0xff, 0x00 }, 20 },       /* Documentation. */
};

static bool is_public4(uint32_t address)
{
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(excluded4); i++) {
        uint32_t mask = UINT32_MAX << (32 - excluded4[i].bits);
        if ((address & mask) == excluded4[i].address) {
            return false;
        }
    }
    return true;
}

static bool is_in(const uint8_t bytes[16], const struct prefix6 *prefix)
{
    size_t whole = prefix->bits / 8;
    unsigned rest = prefix->bits % 8;
    unsigned mask = 0xFFU << (8 - rest) & 0xFFU; /* 0 if there is no rest. */
    return memcmp(bytes, prefix->bytes, whole) == 0 &&
           (rest == 0 || (bytes[whole] & mask) == prefix->bytes[whole]);
}

static bool is_public6(const uint8_t bytes[16])
{
    if (is_in(bytes, &mapped) || is_in(bytes, &translated)) {
        return is_public4(V4(bytes[12], bytes[13], bytes[14], bytes[15]));
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(excluded6); i++) {
        if (is_in(bytes, &excluded6[i])) {
            return false;
        }
    }
    return is_in(bytes, &given_out);
}

bool idem_address_is_public(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in4;
        memcpy(&in4, address, sizeof(in4));
        return is_public4(ntohl(in4.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, address, sizeof(in6));
        return is_public6(in6.sin6_addr.s6_addr);
    }
    return false;
}
