/*
 * The id and the time stand in the head and in what is signed, so they are written once and taken
 * from there.
 */
#include "outbox/signature.h"

#include <openssl/crypto.h>

#include "base/bug.h"
#include "outbox/base64.h"
#include "outbox/secret.h"

/* What follows the colon of a line. */
static struct idem_str line_value(struct idem_str line)
{
    (void)idem_str_next(&line, ':');
    return idem_str_trim(line);
}

static struct idem_str line_from(const struct idem_buf *buf, size_t start)
{
    return idem_str_slice(idem_buf_str(buf), start, SIZE_MAX);
}

static void signature_add(const struct idem_signer *signer,
                          const struct idem_signed *what,
                          const struct idem_str lines[IDEM_SIGNATURE_LINES_COUNT],
                          uint32_t generation,
                          struct idem_buf *buf)
{
    struct idem_digest secret;
    idem_webhook_secret(signer->digester, signer->effect_secret, what->webhook, generation,
                        &secret);
    idem_hmac_begin(signer->digester, (struct idem_str){ .data = (const char *)secret.bytes,
                                                         .len = sizeof(secret.bytes) });
    idem_hmac_add(signer->digester, line_value(lines[0]));
    idem_hmac_add(signer->digester, IDEM_STR("."));
    idem_hmac_add(signer->digester, line_value(lines[1]));
    idem_hmac_add(signer->digester, IDEM_STR("."));
    idem_hmac_add(signer->digester, what->body);
    struct idem_digest signature = idem_hmac_end(signer->digester);
    OPENSSL_cleanse(&secret, sizeof(secret));
    idem_buf_add(buf, IDEM_STR("v1,"));
    idem_base64_add(buf, &signature);
}

static bool overlap_lasts(const struct idem_webhook *webhook, int64_t now_us)
{
    return webhook->generation > 1 && now_us - webhook->rotated_us < IDEM_ROTATION_OVERLAP_US;
}

void idem_signature_lines(const struct idem_signer *signer,
                          const struct idem_signed *what,
                          struct idem_buf *buf,
                          struct idem_str ret_lines[IDEM_SIGNATURE_LINES_COUNT])
{
    uint32_t generation = what->webhook->generation;
    IDEM_ASSERT(generation > 0);
    IDEM_ASSERT(buf->max - buf->len >= IDEM_SIGNATURE_LINES_SIZE);

    size_t start = buf->len;
    idem_buf_add(buf, IDEM_STR("webhook-id: msg_"));
    idem_uid_print(what->message_id, buf);
    ret_lines[0] = line_from(buf, start);

    start = buf->len;
    idem_buf_add(buf, IDEM_STR("webhook-timestamp: "));
    idem_buf_add_i64(buf, what->now_us / IDEM_US_PER_SECOND);
    ret_lines[1] = line_from(buf, start);

    start = buf->len;
    idem_buf_add(buf, IDEM_STR("webhook-signature: "));
    signature_add(signer, what, ret_lines, generation, buf);
    if (overlap_lasts(what->webhook, what->now_us)) {
        idem_buf_add_char(buf, ' ');
        signature_add(signer, what, ret_lines, generation - 1, buf);
    }
    ret_lines[2] = line_from(buf, start);
    IDEM_ASSERT(!buf->full);
}
