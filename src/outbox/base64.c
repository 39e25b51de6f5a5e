/*
 * libcrypto's encoder; what it writes behind the text, a zero byte, is left out.
 */
#include "outbox/base64.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/bug.h"

#define TEXT_LEN 44 /* Of 32 bytes. */

void idem_base64_add(struct idem_buf *buf, const struct idem_digest *digest)
{
    unsigned char text[TEXT_LEN + 1];
    int len = EVP_EncodeBlock(text, digest->bytes, IDEM_DIGEST_SIZE);
    IDEM_ASSERT(len == TEXT_LEN);
    idem_buf_add_bytes(buf, text, TEXT_LEN);
    OPENSSL_cleanse(text, sizeof(text)); /* It may have been a secret. */
}
