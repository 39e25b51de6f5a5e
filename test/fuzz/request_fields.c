/*
 * Fuzzes what a request's other fields are taken to say: Prefer, Content-Digest,
 * Repeatability-First-Sent, traceparent, Authorization, Content-Type.
 *
 * The input is lines "Name: value", an empty line, and the body. Properties, for any bytes:
 *   - Prefer: at most 30 seconds, and only where the word stands; several fields mean the same as
 *     their values in one, with commas between;
 *   - Content-Digest: the true digest of the body, added in a field of its own, changes nothing; a
 *     wrong one, differing in one character, is always a mismatch or the refusal there was already;
 *   - First-Sent: a value that is taken is the very text that its time prints as, and stands once;
 *   - traceparent: what is passed on is one whole field of version 00, of two ids that are not all
 *     zeros;
 *   - Authorization: a token is believed exactly if a second reader, written from RFC 6750, finds
 *     one in the only such field, and then it is the digest of these bytes; one character more,
 *     less or changed is somebody else;
 *   - Content-Type: a body is read only as JSON in UTF-8 and without a coding.
 */
#include <string.h>

#include "api/content.h"
#include "api/credential.h"
#include "api/first_sent.h"
#include "api/header.h"
#include "api/prefer.h"
#include "api/trace.h"
#include "base/date.h"
#include "base/digest.h"
#include "core/limits.h"

#include "fuzz/fuzz.h"

#define TEXT_SIZE   8192
#define BASE64_SIZE 64

static void request_read(struct idem_str text, struct idem_net_request *request)
{
    request->header_count = 0;
    request->body = IDEM_STR("");
    while (text.len > 0) {
        struct idem_str value = idem_str_next(&text, '\n');
        if (value.len == 0) {
            request->body = text.data != NULL ? text : IDEM_STR("");
            return;
        }
        if (request->header_count < IDEM_NET_HEADERS_MAX - 1) { /* Room for one of ours. */
            struct idem_net_header *header = &request->headers[request->header_count++];
            header->name = idem_str_next(&value, ':');
            header->value = idem_str_trim(value);
        }
    }
}

/* All values of a field in one, as RFC 9110, 5.3 lets a proxy do. */
static void request_join(const struct idem_net_request *request,
                         struct idem_str name,
                         struct idem_buf *buf,
                         struct idem_net_request *ret_joined)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (idem_str_equal_nocase(request->headers[i].name, name)) {
            idem_buf_add(buf, buf->len > 0 ? IDEM_STR(", ") : IDEM_STR(""));
            idem_buf_add(buf, request->headers[i].value);
        }
    }
    ret_joined->header_count = 1;
    ret_joined->headers[0] = (struct idem_net_header){ .name = name, .value = idem_buf_str(buf) };
}

static bool has_word(struct idem_str text, struct idem_str word)
{
    for (size_t i = 0; i + word.len <= text.len; i++) {
        if (idem_str_equal_nocase(idem_str_slice(text, i, word.len), word)) {
            return true;
        }
    }
    return false;
}

static void check_prefer(const struct idem_net_request *request)
{
    static char memory[2 * TEXT_SIZE];
    static struct idem_net_request joined;
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    request_join(request, IDEM_STR("Prefer"), &buf, &joined);
    struct idem_prefer prefer = idem_prefer_read(request);
    struct idem_prefer again = idem_prefer_read(&joined);
    struct idem_str all = idem_buf_str(&buf);
    FUZZ_EXPECT(prefer.wait_seconds >= 0 && prefer.wait_seconds <= IDEM_PREFER_WAIT_MAX);
    FUZZ_EXPECT(prefer.wait || prefer.wait_seconds == 0);
    FUZZ_EXPECT(!prefer.wait || has_word(all, IDEM_STR("wait")));
    FUZZ_EXPECT(!prefer.respond_async || has_word(all, IDEM_STR("respond-async")));
    if (idem_str_find(all, '"') == all.len) { /* Else a quote may stay open in one of them. */
        FUZZ_EXPECT(prefer.wait == again.wait && prefer.wait_seconds == again.wait_seconds);
        FUZZ_EXPECT(prefer.respond_async == again.respond_async);
    }
}

/* RFC 4648, 4, of a SHA-256: ten groups and a padded one. */
static struct idem_str base64(struct idem_digest digest, char *memory)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct idem_buf buf;
    idem_buf_init(&buf, memory, BASE64_SIZE);
    for (size_t bit = 0; bit < (size_t)IDEM_DIGEST_SIZE * 8; bit += 6) {
        unsigned value = 0;
        for (size_t k = bit; k < bit + 6; k++) {
            unsigned byte = k / 8 < IDEM_DIGEST_SIZE ? digest.bytes[k / 8] : 0;
            value = value * 2 + (byte >> (7 - k % 8) & 1);
        }
        idem_buf_add_char(&buf, letters[value]);
    }
    idem_buf_add_char(&buf, '=');
    return idem_buf_str(&buf);
}

static enum idem_problem digest_verdict(const struct idem_net_request *request)
{
    struct idem_fault fault = { .problem = IDEM_PROBLEM_NONE };
    bool good = idem_content_digest_check(request, &fault);
    FUZZ_EXPECT(good == (fault.problem == IDEM_PROBLEM_NONE));
    FUZZ_EXPECT(good || fault.problem == IDEM_PROBLEM_HEADER_INVALID ||
                fault.problem == IDEM_PROBLEM_DIGEST_MISMATCH);
    return fault.problem;
}

static struct idem_digester *digester;

static void check_digest(struct idem_net_request *request)
{
    char base64_memory[BASE64_SIZE];
    char memory[2 * BASE64_SIZE];
    struct idem_buf buf;
    enum idem_problem before = digest_verdict(request);

    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add(&buf, IDEM_STR("sha-256=:"));
    idem_buf_add(&buf, base64(idem_digest_sha256(digester, request->body), base64_memory));
    idem_buf_add_char(&buf, ':');
    struct idem_net_header *added = &request->headers[request->header_count++];
    *added =
        (struct idem_net_header){ .name = IDEM_STR("content-digest"), .value = idem_buf_str(&buf) };
    FUZZ_EXPECT(digest_verdict(request) == before);
    size_t at = sizeof("sha-256=:") - 1 + request->body.len % 43;
    memory[at] = memory[at] == 'A' ? 'B' : 'A';
    enum idem_problem after = digest_verdict(request);
    FUZZ_EXPECT(after == (before == IDEM_PROBLEM_NONE ? IDEM_PROBLEM_DIGEST_MISMATCH : before));
    request->header_count -= 1;
}

static void check_first_sent(const struct idem_net_request *request)
{
    char memory[64];
    struct idem_buf buf;
    struct idem_fault fault = { .problem = IDEM_PROBLEM_NONE };
    struct idem_str value;
    int64_t first_sent_us = -1;
    size_t count = idem_header_find(request, IDEM_STR("Repeatability-First-Sent"), &value);
    if (!idem_first_sent_read(request, &first_sent_us, &fault)) {
        FUZZ_EXPECT(count > 0 && fault.problem == IDEM_PROBLEM_HEADER_INVALID);
        return;
    }
    FUZZ_EXPECT(count <= 1 && (count == 0) == (first_sent_us == 0));
    if (count == 1) {
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_date_print_imf(first_sent_us, &buf);
        FUZZ_EXPECT(!buf.full && idem_str_equal(idem_buf_str(&buf), value));
    }
}

static bool all_zeros(struct idem_str text)
{
    size_t zeros = 0;
    while (zeros < text.len && text.data[zeros] == '0') {
        zeros += 1;
    }
    return zeros == text.len;
}

static void check_trace(const struct idem_net_request *request)
{
    struct idem_str value;
    struct idem_str trace = idem_trace_read(request);
    if (trace.len == 0) {
        return;
    }
    FUZZ_EXPECT(idem_header_find(request, IDEM_STR("traceparent"), &value) == 1);
    FUZZ_EXPECT(idem_str_equal(trace, value) && trace.len == IDEM_TRACE_MAX);
    for (size_t i = 0; i < trace.len; i++) {
        bool dash = i == 2 || i == 35 || i == 52;
        FUZZ_EXPECT(dash ? trace.data[i] == '-'
                         : idem_str_find(IDEM_STR("0123456789abcdef"), trace.data[i]) < 16);
    }
    FUZZ_EXPECT(idem_str_starts(trace, IDEM_STR("00-")));
    FUZZ_EXPECT(!all_zeros(idem_str_slice(trace, 3, 32)));
    FUZZ_EXPECT(!all_zeros(idem_str_slice(trace, 36, 16)));
}

/* ---- who asks, and in what ---- */

static bool is_token_byte(char byte)
{
    static const char others[] = "-._~+/";
    bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    bool digit = byte >= '0' && byte <= '9';
    return letter || digit || (byte != '\0' && strchr(others, byte) != NULL);
}

/* The token of the only field; data NULL: there is none that is one. */
static struct idem_str token_reread(struct idem_str value)
{
    struct idem_str none = { .data = NULL };
    struct idem_str scheme = idem_str_slice(value, 0, 7);
    struct idem_str token = idem_str_trim(idem_str_slice(value, 7, value.len));
    size_t end = 0;
    while (end < token.len && is_token_byte(token.data[end])) {
        end += 1;
    }
    bool some = end > 0 && idem_str_equal_nocase(scheme, IDEM_STR("bearer "));
    while (end < token.len && token.data[end] == '=') {
        end += 1;
    }
    return some && end == token.len ? token : none;
}

static bool digests_equal(struct idem_digest left, struct idem_digest right)
{
    return memcmp(left.bytes, right.bytes, IDEM_DIGEST_SIZE) == 0;
}

static void check_credential(const struct idem_net_request *request)
{
    char changed[TEXT_SIZE + 1];
    struct idem_str value;
    struct idem_digest digest;
    struct idem_fault fault = { .problem = IDEM_PROBLEM_NONE };
    size_t count = idem_header_find(request, IDEM_STR("Authorization"), &value);
    bool taken = idem_credential_read(digester, request, &digest, &fault);
    struct idem_str token = token_reread(value);
    FUZZ_EXPECT(taken == (count == 1 && token.data != NULL));
    FUZZ_EXPECT(taken || fault.problem == IDEM_PROBLEM_UNAUTHENTICATED);
    if (!taken) {
        return;
    }
    FUZZ_EXPECT(digests_equal(digest, idem_digest_sha256(digester, token)));
    memcpy(changed, token.data, token.len);
    changed[token.len] = '=';
    struct idem_str other = { .data = changed, .len = token.len + 1 };
    FUZZ_EXPECT(!digests_equal(digest, idem_digest_sha256(digester, other)));
    other.len = token.len - 1;
    FUZZ_EXPECT(!digests_equal(digest, idem_digest_sha256(digester, other)));
    other.len = token.len;
    changed[request->body.len % token.len] ^= 1;
    FUZZ_EXPECT(!digests_equal(digest, idem_digest_sha256(digester, other)));
}

static void check_type(const struct idem_net_request *request)
{
    struct idem_str type;
    struct idem_str coding;
    struct idem_fault fault = { .problem = IDEM_PROBLEM_NONE };
    size_t types = idem_header_find(request, IDEM_STR("Content-Type"), &type);
    size_t codings = idem_header_find(request, IDEM_STR("Content-Encoding"), &coding);
    if (!idem_content_type_check(request, &fault)) {
        FUZZ_EXPECT(fault.problem == IDEM_PROBLEM_MEDIA_TYPE && fault.len > 0);
        return;
    }
    FUZZ_EXPECT(codings == 0 ||
                (codings == 1 && idem_str_equal_nocase(coding, IDEM_STR("identity"))));
    FUZZ_EXPECT(types == 1 || (types == 0 && request->body.len == 0));
    struct idem_str media = idem_str_trim(idem_str_next(&type, ';'));
    FUZZ_EXPECT(types == 0 || idem_str_equal_nocase(media, IDEM_STR("application/json")));
    FUZZ_EXPECT(type.len == 0 || has_word(type, IDEM_STR("utf-8")));
    FUZZ_EXPECT(!has_word(type, IDEM_STR("utf-16")) && !has_word(type, IDEM_STR("latin")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct idem_net_request request;
    if (size > TEXT_SIZE) {
        return 0;
    }
    request_read((struct idem_str){ .data = (const char *)data, .len = size }, &request);
    FUZZ_EXPECT(digester != NULL || idem_digester_create(&digester, NULL) == IDEM_OK);
    check_credential(&request);
    check_type(&request);
    check_prefer(&request);
    check_digest(&request);
    check_first_sent(&request);
    check_trace(&request);
    return 0;
}
