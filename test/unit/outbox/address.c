/*
 * Which addresses a merchant's webhook may be at.
 *
 * Goal: nothing that is reached only from inside the operator's network, in whatever form it is
 * written, and everything else.
 *
 * Method: a table with the first and the last address of every range, and their neighbours.
 */
#include "outbox/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/attr.h"
#include "lib/test.h"

static bool is_public(const char *text)
{
    struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons(443) };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(443) };
    if (inet_pton(AF_INET, text, &in4.sin_addr) == 1) {
        return idem_address_is_public((const struct sockaddr *)&in4);
    }
    assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
    return idem_address_is_public((const struct sockaddr *)&in6);
}

static const char *const refused[] = {
    "0.0.0.0",
    "0.255.255.255", /* Unspecified, this network. */
    "10.0.0.0",
    "10.255.255.255", /* Private. */
    "172.16.0.0",
    "172.31.255.255", /* Private. */
    "192.168.0.0",
    "192.168.255.255", /* Private. */
    "100.64.0.0",
    "100.127.255.255", /* Carrier grade NAT. */
    "127.0.0.0",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.0.0",
    "169.254.169.254",
    "169.254.255.255",
    "168.63.129.16", /* Of a cloud, though it looks public. */
    "192.0.0.0",
    "192.0.0.255",
    "192.88.99.1",
    "192.0.2.0",
    "192.0.2.255",
    "198.51.100.0",
    "198.51.100.255",
    "203.0.113.0",
    "203.0.113.255",
    "198.18.0.0",
    "198.19.255.255",
    "224.0.0.0",
    "239.255.255.255", /* Multicast. */
    "240.0.0.0",
    "255.255.255.255", /* Reserved, broadcast. */

    "::",
    "::1",
    "fc00::",
    "fd00:ec2::254",
    "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", /* Unique local. */
    "fe80::",
    "fe80::1",
    "febf::1", /* Link-local. */
    "fec0::1",
    "feff::1", /* Site-local. */
    "ff00::",
    "ff02::1",
    "ffff::1", /* Multicast. */
    "2001:db8::",
    "2001:db8:ffff::1",
    "3fff::1",
    "3fff:fff::1", /* Documentation. */
    "2001::1",
    "2001:1ff::1", /* Protocol assignments; Teredo. */
    "2002:7f00:1::1",
    "2002:808:808::1", /* 6to4, whatever is inside. */
    "100::1",
    "1fff::1",
    "4000::1",      /* Given to nobody. */
    "64:ff9b:1::1", /* A translator's, local. */
    "::127.0.0.1",
    "::8.8.8.8", /* IPv4-compatible, given up. */
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:172.16.0.1",
    "::ffff:192.168.1.1",
    "::ffff:169.254.169.254",
    "::ffff:100.64.0.1",
    "::ffff:0.0.0.0",
    "::ffff:224.0.0.1",
    "::ffff:0:127.0.0.1",
    "::ffff:0:8.8.8.8",
    "64:ff9b::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254",
};

static const char *const allowed[] = {
    "1.0.0.0",          "8.8.8.8",          "9.255.255.255",
    "11.0.0.0",         "100.63.255.255",   "100.128.0.0",
    "126.255.255.255",  "128.0.0.0",        "169.253.255.255",
    "169.255.0.0",      "168.63.129.15",    "168.63.129.17",
    "172.15.255.255",   "172.32.0.0",       "192.0.1.0",
    "192.0.1.255",      "192.0.3.0",        "192.167.255.255",
    "192.169.0.0",      "198.17.255.255",   "198.20.0.0",
    "198.51.99.255",    "198.51.101.0",     "203.0.112.255",
    "203.0.114.0",      "223.255.255.255",  "2000::1",
    "2001:200::1",      "2001:db7:ffff::1", "2001:db9::1",
    "2003::1",          "2606:4700::1111",  "2a00:1450:4001::200e",
    "3ffe::1",          "3fff:1000::1",     "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
};

static void what_is_reached_only_from_inside_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(refused); i++) {
        if (is_public(refused[i])) {
            print_error("%s may be posted to\n", refused[i]);
            fail();
        }
    }
}

static void everybody_else_may_be_posted_to(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(allowed); i++) {
        if (!is_public(allowed[i])) {
            print_error("%s is refused\n", allowed[i]);
            fail();
        }
    }
}

static void a_socket_of_another_kind_is_refused(void **state)
{
    (void)state;
    const struct sockaddr_un local = { .sun_family = AF_UNIX, .sun_path = "/run/docker.sock" };
    assert_false(idem_address_is_public((const struct sockaddr *)&local));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_reached_only_from_inside_is_refused),
        cmocka_unit_test(everybody_else_may_be_posted_to),
        cmocka_unit_test(a_socket_of_another_kind_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
