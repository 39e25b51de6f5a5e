/*
 * A URL is read here once and by libcurl again, and both must see the same host. So the host is
 * taken only in spellings that leave no choice: letters, digits, '-', '.' and '_', or an address in
 * brackets; a backslash, which some readers take for a slash, is refused everywhere. An address
 * counts as this machine's only when written in full ("127.0.0.1", not "127.1"): what is not
 * recognised is merely not private.
 */
#include "client/target.h"

#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define PORT_MAX    65535
#define OCTET_MAX   255
#define OCTET_COUNT 4
#define LOOPBACK    127
#define PORT_HTTP   80
#define PORT_HTTPS  443

/* The parts of a URL; views into it. */
struct parts {
    bool tls;
    struct idem_str origin;    /* "scheme://authority" */
    struct idem_str authority; /* "host[:port]" */
    struct idem_str host;      /* Brackets included. */
    bool has_port;
    struct idem_str port;
};

static bool starts_nocase(struct idem_str text, struct idem_str prefix)
{
    return idem_str_equal_nocase(idem_str_slice(text, 0, prefix.len), prefix);
}

static size_t authority_len(struct idem_str text)
{
    size_t len = 0;
    while (len < text.len && text.data[len] != '/' && text.data[len] != '?' &&
           text.data[len] != '#') {
        len += 1;
    }
    return len;
}

/* Where the host ends: at the ':' of a port, or at the end. */
static size_t host_len(struct idem_str authority)
{
    if (authority.len > 0 && authority.data[0] == '[') {
        size_t close = idem_str_find(authority, ']');
        return close < authority.len ? close + 1 : authority.len;
    }
    return idem_str_find(authority, ':');
}

/* False: neither scheme. */
static bool split(struct idem_str url, struct parts *ret_parts)
{
    const struct idem_str https = IDEM_STR("https://");
    const struct idem_str http = IDEM_STR("http://");
    bool tls = starts_nocase(url, https);
    if (!tls && !starts_nocase(url, http)) {
        return false;
    }
    size_t scheme_len = tls ? https.len : http.len;
    struct idem_str rest = idem_str_slice(url, scheme_len, url.len);
    struct idem_str authority = idem_str_slice(rest, 0, authority_len(rest));
    size_t len = host_len(authority);
    bool has_port = len < authority.len;
    *ret_parts = (struct parts){
        .tls = tls,
        .origin = idem_str_slice(url, 0, scheme_len + authority.len),
        .authority = authority,
        .host = idem_str_slice(authority, 0, len),
        .has_port = has_port,
        .port = idem_str_slice(authority, len + 1, authority.len),
    };
    return true;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_name_char(char byte)
{
    return is_letter(byte) || is_digit(byte) || byte == '-' || byte == '.' || byte == '_';
}

static bool is_address_char(char byte)
{
    bool hex = is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
    return hex || byte == ':' || byte == '.';
}

static bool host_clean(struct idem_str host)
{
    bool brackets = host.len > 0 && host.data[0] == '[';
    if (brackets && (host.len < 3 || host.data[host.len - 1] != ']')) {
        return false;
    }
    struct idem_str inner = brackets ? idem_str_slice(host, 1, host.len - 2) : host;
    for (size_t i = 0; i < inner.len; i++) {
        bool fits = brackets ? is_address_char(inner.data[i]) : is_name_char(inner.data[i]);
        if (!fits) {
            return false;
        }
    }
    return inner.len > 0;
}

static bool port_clean(const struct parts *parts)
{
    if (!parts->has_port) {
        return true;
    }
    int64_t port = 0;
    return parts->authority.data[parts->host.len] == ':' && idem_str_to_i64(parts->port, &port) &&
           port >= 1 && port <= PORT_MAX;
}

static bool bytes_clean(struct idem_str url)
{
    for (size_t i = 0; i < url.len; i++) {
        char byte = url.data[i];
        if (byte < 0x21 || byte > 0x7E || byte == '\\' || byte == '#') {
            return false;
        }
    }
    return true;
}

enum idem_target_fault idem_target_check(struct idem_str url)
{
    struct parts parts;
    if (!split(url, &parts)) {
        return IDEM_TARGET_SCHEME;
    }
    if (idem_str_find(parts.authority, '@') < parts.authority.len) {
        return IDEM_TARGET_CREDENTIALS;
    }
    if (!bytes_clean(url) || !host_clean(parts.host) || !port_clean(&parts)) {
        return IDEM_TARGET_MALFORMED;
    }
    return IDEM_TARGET_OK;
}

const char *idem_target_fault_text(enum idem_target_fault fault)
{
    switch (fault) {
    case IDEM_TARGET_OK:
        return "can be used";
    case IDEM_TARGET_SCHEME:
        return "is neither http:// nor https://";
    case IDEM_TARGET_MALFORMED:
        return "has no clear host, or a byte or a fragment that cannot be sent";
    case IDEM_TARGET_CREDENTIALS:
        return "has a name or password in it, which would end in logs";
    }
    IDEM_UNREACHABLE();
}

/* Four decimal numbers without leading zeros, the first of them 127. */
static bool is_loopback_v4(struct idem_str host)
{
    size_t dots = 0;
    for (size_t i = 0; i < host.len; i++) {
        dots += host.data[i] == '.' ? 1 : 0;
    }
    for (size_t i = 0; i < OCTET_COUNT; i++) {
        struct idem_str part = idem_str_next(&host, '.');
        int64_t octet = 0;
        bool padded = part.len > 1 && part.data[0] == '0';
        if (padded || !idem_str_to_i64(part, &octet) || octet > OCTET_MAX ||
            (i == 0 && octet != LOOPBACK)) {
            return false;
        }
    }
    return dots == OCTET_COUNT - 1;
}

bool idem_target_is_private(struct idem_str url)
{
    struct parts parts;
    return split(url, &parts) && (parts.tls || is_loopback_v4(parts.host) ||
                                  idem_str_equal(parts.host, IDEM_STR("[::1]")) ||
                                  idem_str_equal_nocase(parts.host, IDEM_STR("localhost")));
}

struct idem_str idem_target_origin(struct idem_str url)
{
    struct parts parts;
    bool http = split(url, &parts);
    IDEM_ASSERT(http);
    return parts.origin;
}

/* Of a checked URL. */
static int64_t port_of(const struct parts *parts)
{
    int64_t port = parts->tls ? PORT_HTTPS : PORT_HTTP;
    bool read = !parts->has_port || idem_str_to_i64(parts->port, &port);
    IDEM_ASSERT(read);
    return port;
}

bool idem_target_same_origin(struct idem_str left, struct idem_str right)
{
    struct parts ours;
    struct parts theirs;
    return idem_target_check(left) == IDEM_TARGET_OK &&
           idem_target_check(right) == IDEM_TARGET_OK && split(left, &ours) &&
           split(right, &theirs) && ours.tls == theirs.tls &&
           idem_str_equal_nocase(ours.host, theirs.host) && port_of(&ours) == port_of(&theirs);
}
