/*
 * The token itself is compared with nothing: its SHA-256 is compared with every configured digest,
 * each in constant time, and the search does not end at a match. All of it comes before anything is
 * looked up (P13).
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

const struct idem_credential *idem_credential_find(const struct idem_api_options *options,
                                                   struct idem_digester *digester,
                                                   const struct idem_net_request *request,
                                                   struct idem_fault *ret_fault)
{
    struct idem_str value;
    size_t count = idem_header_find(request, IDEM_STR("Authorization"), &value);
    struct idem_str scheme = idem_str_next(&value, ' ');
    struct idem_str token = idem_str_trim(value);
    if (count != 1 || !idem_str_equal_nocase(scheme, IDEM_STR("Bearer")) || !is_token(token)) {
        (void)idem_fault_set(ret_fault, IDEM_PROBLEM_UNAUTHENTICATED,
                             "There must be one Authorization header with a Bearer token.");
        return NULL;
    }
    struct idem_digest digest = idem_digest_sha256(digester, token);
    const struct idem_credential *found = NULL;
    for (size_t i = 0; i < options->credential_count; i++) {
        bool equal = idem_digest_equal(options->credentials[i].secret_sha256, digest);
        found = equal ? &options->credentials[i] : found;
    }
    if (found == NULL) {
        (void)idem_fault_set(ret_fault, IDEM_PROBLEM_UNAUTHENTICATED,
                             "The bearer token is not known.");
    }
    return found;
}

bool idem_credential_grants(const struct idem_credential *credential, struct idem_str entry)
{
    for (size_t i = 0; i < credential->provider_count; i++) {
        if (idem_str_equal(credential->providers[i], entry)) {
            return true;
        }
    }
    return false;
}
