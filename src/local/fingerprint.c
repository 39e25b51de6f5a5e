/*
 * Fingerprints of requests. A plain digest and not one under a secret: it lies in the caller's own
 * database beside the caller's own rows, and every language can make the same one of bytes.
 */
#include "idem/fingerprint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/json.h"
#include "local/fail.h"

#define JSON_SIZE_MAX ((size_t)1048576)

/* The tape and the canonical form behind it, in one piece. */
struct desk {
    struct idem_json_token *tokens;
    size_t tokens_max;
    char *form;
    size_t form_max;
};

static enum idem_local_err digest(struct idem_str text,
                                  struct idem_local_fingerprint *ret_fingerprint,
                                  struct idem_local_error *reterr)
{
    struct idem_digester *digester = NULL;
    struct idem_error error;
    if (idem_digester_create(&digester, &error) != IDEM_OK) {
        return idem_local_fail(reterr, IDEM_LOCAL_E_SYSTEM, "%s", error.text);
    }
    struct idem_digest made = idem_digest_sha256(digester, text);
    idem_digester_destroy(digester);
    static_assert(sizeof(made.bytes) == sizeof(ret_fingerprint->bytes), "the whole of it");
    memcpy(ret_fingerprint->bytes, made.bytes, sizeof(made.bytes));
    return IDEM_LOCAL_OK;
}

static enum idem_local_err json_digest(struct idem_str text,
                                       const struct desk *desk,
                                       struct idem_local_fingerprint *ret_fingerprint,
                                       struct idem_local_error *reterr)
{
    struct idem_json json;
    struct idem_json_fault fault;
    struct idem_buf form;
    idem_json_init(&json, desk->tokens, desk->tokens_max);
    idem_buf_init(&form, desk->form, desk->form_max);
    if (!idem_json_parse(&json, text, &fault)) {
        return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                               "this is not strict JSON: %s at byte %zu", fault.what, fault.offset);
    }
    if (!idem_json_canonical(&json, NULL, 0, &form)) {
        return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                               "this JSON has a number whose exponent is out of any range");
    }
    return digest(idem_buf_str(&form), ret_fingerprint, reterr);
}

enum idem_local_err idem_local_fingerprint_json(const char *text,
                                                size_t size,
                                                struct idem_local_fingerprint *ret_fingerprint,
                                                struct idem_local_error *reterr)
{
    if (text == NULL || ret_fingerprint == NULL || size > JSON_SIZE_MAX) {
        return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID,
                               "a fingerprint needs JSON of at most %zu bytes", JSON_SIZE_MAX);
    }
    struct desk desk = { .tokens_max = size / 2 + 1, .form_max = 2 * size + 1 };
    desk.tokens = calloc(desk.tokens_max, sizeof(*desk.tokens));
    desk.form = malloc(desk.form_max);
    enum idem_local_err err =
        desk.tokens != NULL && desk.form != NULL
            ? json_digest((struct idem_str){ .data = text, .len = size }, &desk, ret_fingerprint,
                          reterr)
            : idem_local_fail(reterr, IDEM_LOCAL_E_SYSTEM, "no memory to read the JSON");
    free(desk.form);
    free(desk.tokens);
    return err;
}

enum idem_local_err idem_local_fingerprint_bytes(const void *bytes,
                                                 size_t size,
                                                 struct idem_local_fingerprint *ret_fingerprint,
                                                 struct idem_local_error *reterr)
{
    if ((bytes == NULL && size > 0) || ret_fingerprint == NULL) {
        return idem_local_fail(reterr, IDEM_LOCAL_E_INVALID, "a fingerprint needs bytes");
    }
    const struct idem_str text = { .data = size > 0 ? bytes : "", .len = size };
    return digest(text, ret_fingerprint, reterr);
}
