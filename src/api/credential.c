/*
 * The token itself is compared with nothing and goes nowhere: from here on there is only its
 * SHA-256. All of it comes before anything is looked up (P13).
 */
#include "api/credential.h"

#include "api/header.h"

/* b64token of RFC 6750, 2.1. */
static bool is_token(struct idem_str token)
{
    static const struct idem_str others = { .data = "-._~+/", .len = 6 };
    size_t len = token.len;
    while (len > 0 && token.data[len - 1] == '=') {
        len -= 1;
    }
    for (size_t i = 0; i < len; i++) {
        char byte = token.data[i];
        bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        bool digit = byte >= '0' && byte <= '9';
        if (!letter && !digit && idem_str_find(others, byte) == others.len) {
            return false;
        }
    }
    return len > 0;
}

bool idem_credential_read(struct idem_digester *digester,
                          const struct idem_net_request *request,
                          struct idem_digest *ret_digest,
                          struct idem_fault *ret_fault)
{
    struct idem_str value;
    size_t count = idem_header_find(request, IDEM_STR("Authorization"), &value);
    struct idem_str scheme = idem_str_next(&value, ' ');
    struct idem_str token = idem_str_trim(value);
    if (count != 1 || !idem_str_equal_nocase(scheme, IDEM_STR("Bearer")) || !is_token(token)) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_UNAUTHENTICATED,
                              "There must be one Authorization header with a Bearer token.");
    }
    *ret_digest = idem_digest_sha256(digester, token);
    return true;
}
