/*
 * Signatures of events: t=SECONDS,v1=HEX,v1=HEX,v0=HEX
 *
 * v1 is HMAC-SHA-256 of "SECONDS.BODY" under the endpoint's secret. Several of them stand there
 * while the secret is being changed; other schemes (v0) are ignored, or the weakest would count.
 * Stripe's own libraries look only at the age: an event that was signed for next year would be
 * valid until then. Here the time must be near in both directions. Every v1 is compared with every
 * secret, each in a time that does not depend on where they differ.
 */
#include "provider/signature.h"

#include "base/bug.h"
#include "base/clock.h"

#define SIGNATURES_MAX 8 /* More than a change of secrets makes. */

struct signature {
    int64_t signed_s;
    struct idem_str signed_text; /* As it stands there: that is what was signed. */
    bool has_time;
    struct idem_digest candidates[SIGNATURES_MAX];
    size_t candidate_count;
};

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool hex_read(struct idem_str text, struct idem_digest *ret_digest)
{
    if (text.len != 2 * (size_t)IDEM_DIGEST_SIZE) {
        return false;
    }
    for (size_t i = 0; i < IDEM_DIGEST_SIZE; i++) {
        int high = hex_value(text.data[2 * i]);
        int low = hex_value(text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        ret_digest->bytes[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

/* False: the field is not to be used. What is no v1 of the right form is merely no candidate. */
static bool item_read(struct idem_str item, struct signature *signature)
{
    struct idem_str value = item;
    struct idem_str name = idem_str_next(&value, '=');

    if (idem_str_equal(name, IDEM_STR("t"))) {
        bool first = !signature->has_time;
        signature->has_time = true;
        signature->signed_text = value;
        return first && idem_str_to_i64(value, &signature->signed_s);
    }
    if (!idem_str_equal(name, IDEM_STR("v1")) || signature->candidate_count == SIGNATURES_MAX) {
        return true;
    }
    if (hex_read(value, &signature->candidates[signature->candidate_count])) {
        signature->candidate_count += 1;
    }
    return true;
}

static bool signature_read(struct idem_str field, struct signature *signature)
{
    while (field.len > 0) {
        if (!item_read(idem_str_trim(idem_str_next(&field, ',')), signature)) {
            return false;
        }
    }
    return signature->has_time && signature->candidate_count > 0;
}

static bool is_signed_with(struct idem_digester *digester,
                           struct idem_str secret,
                           const struct signature *signature,
                           struct idem_str body)
{
    bool found = false;

    idem_hmac_begin(digester, secret);
    idem_hmac_add(digester, signature->signed_text);
    idem_hmac_add(digester, IDEM_STR("."));
    idem_hmac_add(digester, body);
    struct idem_digest expected = idem_hmac_end(digester);
    for (size_t i = 0; i < signature->candidate_count; i++) {
        found = idem_digest_equal(expected, signature->candidates[i]) || found;
    }
    return found;
}

enum idem_callback_verdict idem_signature_judge(const struct idem_callback_in *in,
                                                const struct idem_callback_place *place,
                                                struct idem_str name,
                                                int64_t *ret_signed_s)
{
    struct signature signature = { .has_time = false };
    int64_t now_s = in->now_us / IDEM_US_PER_SECOND;
    bool found = false;

    IDEM_ASSERT(place->secret_count > 0);
    if (!signature_read(in->field(in->head, name), &signature)) {
        return IDEM_CALLBACK_FORGED;
    }
    for (size_t i = 0; i < place->secret_count; i++) {
        IDEM_ASSERT(place->secrets[i].len > 0); /* Anybody can sign with an empty one. */
        found = is_signed_with(place->digester, place->secrets[i], &signature, in->body) || found;
    }
    if (!found) {
        return IDEM_CALLBACK_FORGED;
    }
    if (signature.signed_s < now_s - IDEM_SIGNATURE_TOLERANCE_S) {
        return IDEM_CALLBACK_STALE;
    }
    if (signature.signed_s > now_s + IDEM_SIGNATURE_TOLERANCE_S) {
        return IDEM_CALLBACK_FUTURE;
    }
    *ret_signed_s = signature.signed_s;
    return IDEM_CALLBACK_OK;
}
