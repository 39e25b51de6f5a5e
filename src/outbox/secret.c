/*
 * HMAC-SHA-256 of "idem webhook 1", the id as text and the generation in decimal, a line each,
 * under the effect secret. The first line keeps it apart from everything else that is derived from
 * that secret.
 */
#include "outbox/secret.h"

#include "base/bug.h"
#include "outbox/base64.h"

void idem_webhook_secret(struct idem_digester *digester,
                         struct idem_str effect_secret,
                         const struct idem_webhook *webhook,
                         uint32_t generation,
                         struct idem_digest *ret_secret)
{
    char memory[80];
    struct idem_buf buf;

    IDEM_ASSERT(generation > 0);
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add(&buf, IDEM_STR("idem webhook 1\n"));
    idem_uid_print(webhook->id, &buf);
    idem_buf_add_char(&buf, '\n');
    idem_buf_add_i64(&buf, generation);
    IDEM_ASSERT(!buf.full);
    idem_hmac_begin(digester, effect_secret);
    idem_hmac_add(digester, idem_buf_str(&buf));
    *ret_secret = idem_hmac_end(digester);
}

void idem_webhook_secret_print(const struct idem_digest *secret, struct idem_buf *buf)
{
    idem_buf_add(buf, IDEM_STR("whsec_"));
    idem_base64_add(buf, secret);
}
