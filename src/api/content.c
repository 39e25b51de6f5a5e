/*
 * A digest is compared in its written form: the body's digest is encoded as base64 and must equal
 * what stands between the colons. So there is no decoder here, and an encoding with other padding
 * bits, which RFC 4648 lets a decoder refuse, does not match.
 */
#include "api/content.h"

#include <openssl/evp.h>

#include "api/header.h"
#include "base/bug.h"

#define BASE64_SHA512_MAX 96 /* 64 bytes are 88 characters; EVP adds a terminator. */

static bool charset_is_utf8(struct idem_str parameter)
{
    struct idem_str rest = parameter;
    struct idem_str name = idem_str_trim(idem_str_next(&rest, '='));
    struct idem_str value = idem_str_trim(rest);
    if (value.len >= 2 && value.data[0] == '"' && value.data[value.len - 1] == '"') {
        value = idem_str_slice(value, 1, value.len - 2);
    }
    return idem_str_equal_nocase(name, IDEM_STR("charset")) &&
           idem_str_equal_nocase(value, IDEM_STR("utf-8"));
}

static bool type_is_json(struct idem_str value)
{
    struct idem_str rest = value;
    struct idem_str type = idem_str_trim(idem_str_next(&rest, ';'));
    if (!idem_str_equal_nocase(type, IDEM_CONTENT_JSON)) {
        return false;
    }
    while (rest.len > 0) {
        if (!charset_is_utf8(idem_str_next(&rest, ';'))) {
            return false;
        }
    }
    return true;
}

bool idem_content_type_check(const struct idem_net_request *request, struct idem_fault *ret_fault)
{
    struct idem_str value;
    size_t count = idem_header_find(request, IDEM_STR("Content-Encoding"), &value);
    if (count > 1 || (count == 1 && !idem_str_equal_nocase(value, IDEM_STR("identity")))) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_MEDIA_TYPE,
                              "Bodies are taken without a Content-Encoding.");
    }
    count = idem_header_find(request, IDEM_STR("Content-Type"), &value);
    if (count == 0 && request->body.len == 0) {
        return true;
    }
    if (count != 1 || !type_is_json(value)) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_MEDIA_TYPE,
                              "Content-Type must be application/json, in UTF-8.");
    }
    return true;
}

static bool digest_matches(struct idem_str body, const EVP_MD *algorithm, struct idem_str value)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    int rc = EVP_Digest(body.data, body.len, digest, &size, algorithm, NULL);
    IDEM_ASSERT(rc == 1); /* On memory that is there; nothing else can be done. */

    unsigned char text[BASE64_SHA512_MAX];
    int len = EVP_EncodeBlock(text, digest, (int)size);
    IDEM_ASSERT(len > 0 && (size_t)len < sizeof(text));
    struct idem_str expected = { .data = (const char *)text, .len = (size_t)len };
    return idem_str_equal(value, expected);
}

/* One member `name=:base64:`, parameters ignored. */
static bool member_check(struct idem_str body, struct idem_str member, struct idem_fault *ret_fault)
{
    struct idem_str rest = member;
    struct idem_str name = idem_str_next(&rest, '=');
    const EVP_MD *algorithm = NULL;
    if (idem_str_equal(name, IDEM_STR("sha-256"))) {
        algorithm = EVP_sha256();
    }
    if (idem_str_equal(name, IDEM_STR("sha-512"))) {
        algorithm = EVP_sha512();
    }
    if (algorithm == NULL && name.len > 0) {
        return true;
    }
    struct idem_str value = idem_str_trim(idem_str_next(&rest, ';'));
    if (algorithm == NULL || value.len < 2 || value.data[0] != ':' ||
        value.data[value.len - 1] != ':') {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_HEADER_INVALID,
                              "Content-Digest is not a list of algorithm=:base64:.");
    }
    if (!digest_matches(body, algorithm, idem_str_slice(value, 1, value.len - 2))) {
        return idem_fault_set(ret_fault, IDEM_PROBLEM_DIGEST_MISMATCH,
                              "The %.*s of the body that arrived is another one.", (int)name.len,
                              name.data);
    }
    return true;
}

static bool field_check(struct idem_str body, struct idem_str field, struct idem_fault *ret_fault)
{
    struct idem_str member;
    while (idem_header_list_next(&field, &member)) {
        if (!member_check(body, member, ret_fault)) {
            return false;
        }
    }
    return true;
}

bool idem_content_digest_check(const struct idem_net_request *request, struct idem_fault *ret_fault)
{
    for (size_t i = 0; i < request->header_count; i++) {
        const struct idem_net_header *header = &request->headers[i];
        if (idem_str_equal_nocase(header->name, IDEM_STR("Content-Digest")) &&
            !field_check(request->body, header->value, ret_fault)) {
            return false;
        }
    }
    return true;
}
