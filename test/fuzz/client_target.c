/*
 * Fuzzes the client's look at URLs against the reader that the request goes through: libcurl's.
 *
 * The input is a URL, or a URL, a zero byte and the Location of an answer to it. Properties, for
 * any URL that we let pass and that libcurl takes:
 *   - libcurl sees the same scheme, host and port, and no name, password or fragment; a host of
 *     digits alone ("127.1") libcurl may spell out;
 *   - what we call private goes by https, or to this machine and nowhere else;
 *   - the origin alone leads to the same place;
 *   - a Location that is taken leads to the same scheme, host and port, and one that is not leaves
 *     nothing behind.
 */
#include "client/target.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "client/inquiry.h"

#include "fuzz/fuzz.h"
#include "fuzz/place.h"

static bool same_place(const struct place *left, const struct place *right)
{
    return strcmp(left->scheme, right->scheme) == 0 && strcasecmp(left->host, right->host) == 0 &&
           strcmp(left->port, right->port) == 0;
}

/* The host as it stands in a URL that was checked. */
static struct idem_str host_written(struct idem_str url)
{
    struct idem_str origin = idem_target_origin(url);
    size_t scheme_len = idem_str_find(origin, ':') + strlen("://");
    struct idem_str host = idem_str_slice(origin, scheme_len, origin.len);
    if (host.data[0] == '[') {
        return idem_str_slice(host, 0, idem_str_find(host, ']') + 1);
    }
    return idem_str_slice(host, 0, idem_str_find(host, ':'));
}

/* Made of nothing but what inet_aton() takes for an address. */
static bool is_number(struct idem_str host)
{
    for (size_t i = 0; i < host.len; i++) {
        if (idem_str_find(IDEM_STR("0123456789abcdefABCDEFxX."), host.data[i]) == 25) {
            return false;
        }
    }
    return true;
}

/* The same address in brackets, however its zeros are written. */
static bool same_address(struct idem_str written, const char *host)
{
    char ours[64];
    char theirs[64];
    struct in6_addr left;
    struct in6_addr right;
    if (written.len < 2 || written.len >= sizeof(ours) || strlen(host) < 2 ||
        strlen(host) >= sizeof(theirs)) {
        return false;
    }
    (void)snprintf(ours, sizeof(ours), "%.*s", (int)written.len - 2, written.data + 1);
    (void)snprintf(theirs, sizeof(theirs), "%.*s", (int)strlen(host) - 2, host + 1);
    return inet_pton(AF_INET6, ours, &left) == 1 && inet_pton(AF_INET6, theirs, &right) == 1 &&
           memcmp(&left, &right, sizeof(left)) == 0;
}

static void check_location(struct idem_str url, struct idem_str location, const struct place *place)
{
    char memory[PLACE_URL_MAX];
    struct idem_buf buf;
    struct place there;
    idem_buf_init(&buf, memory, sizeof(memory) - 1);
    if (!idem_inquiry_resolve(url, location, &buf)) {
        FUZZ_EXPECT(buf.len == 0 && !buf.full);
        return;
    }
    FUZZ_EXPECT(!buf.full && idem_target_check(idem_buf_str(&buf)) == IDEM_TARGET_OK);
    FUZZ_EXPECT(!place_find(idem_buf_str(&buf), &there) || same_place(&there, place));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct idem_str location = { .data = (const char *)data, .len = size };
    struct place place;
    struct place origin;
    if (size >= PLACE_URL_MAX) {
        return 0; /* The copies here are not made for more. */
    }
    struct idem_str url = idem_str_next(&location, '\0');
    if (idem_target_check(url) != IDEM_TARGET_OK || !place_find(url, &place)) {
        return 0;
    }
    struct idem_str written = host_written(url);
    struct idem_str host = idem_str_from(place.host);
    FUZZ_EXPECT(idem_str_equal_nocase(written, host) || is_number(written) ||
                same_address(written, place.host));
    bool tls = strcmp(place.scheme, "https") == 0;
    FUZZ_EXPECT(tls || strcmp(place.scheme, "http") == 0);
    FUZZ_EXPECT(!idem_target_is_private(url) || tls || is_this_machine(place.host));
    FUZZ_EXPECT(place_find(idem_target_origin(url), &origin) && same_place(&origin, &place));
    check_location(url, location, &place);
    return 0;
}
