/*
 * HMAC is built on the fetched SHA-256: EVP_MAC needs a parameter array and a re-init for each key,
 * which costs more than the two extra blocks here. libcrypto 3.0 takes a hundred bytes at each
 * beginning. If it is not given them there is no sensible continuation, as after a bug, and the
 * process stops likewise: what it left is found as after any other death.
 */
#include "base/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"

#define BLOCK_SIZE 64

struct idem_digester {
    EVP_MD *sha256;
    EVP_MD_CTX *context;
    uint8_t outer_pad[BLOCK_SIZE];
    bool hmac_open;
};

static void must(int rc)
{
    IDEM_ASSERT(rc == 1);
}

void idem_digester_destroy(struct idem_digester *digester)
{
    if (digester == NULL) {
        return;
    }
    OPENSSL_cleanse(digester->outer_pad, sizeof(digester->outer_pad));
    EVP_MD_CTX_free(digester->context);
    EVP_MD_free(digester->sha256);
    free(digester);
}

enum idem_err idem_digester_create(struct idem_digester **ret_digester, struct idem_error *reterr)
{
    struct idem_digester *digester = calloc(1, sizeof(*digester));
    if (digester == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for a digester");
    }
    digester->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    digester->context = EVP_MD_CTX_new();
    if (digester->sha256 == NULL || digester->context == NULL) {
        idem_digester_destroy(digester);
        return idem_error_set(reterr, IDEM_E_SYSTEM, "libcrypto offers no SHA-256");
    }
    *ret_digester = digester;
    return IDEM_OK;
}

static void digest_begin(struct idem_digester *digester)
{
    must(EVP_DigestInit_ex2(digester->context, digester->sha256, NULL));
}

static void digest_add(struct idem_digester *digester, const void *data, size_t size)
{
    must(EVP_DigestUpdate(digester->context, data, size));
}

static struct idem_digest digest_end(struct idem_digester *digester)
{
    struct idem_digest digest;
    unsigned size = 0;
    must(EVP_DigestFinal_ex(digester->context, digest.bytes, &size));
    IDEM_ASSERT(size == sizeof(digest.bytes));
    return digest;
}

struct idem_digest idem_digest_sha256(struct idem_digester *digester, struct idem_str text)
{
    IDEM_ASSERT(!digester->hmac_open);
    digest_begin(digester);
    digest_add(digester, text.data, text.len);
    return digest_end(digester);
}

void idem_hmac_begin(struct idem_digester *digester, struct idem_str key)
{
    uint8_t block[BLOCK_SIZE] = { 0 };
    IDEM_ASSERT(!digester->hmac_open);
    if (key.len > sizeof(block)) {
        struct idem_digest hashed = idem_digest_sha256(digester, key);
        memcpy(block, hashed.bytes, sizeof(hashed.bytes));
    } else if (key.len > 0) {
        memcpy(block, key.data, key.len);
    }
    uint8_t inner_pad[BLOCK_SIZE];
    for (size_t i = 0; i < sizeof(block); i++) {
        inner_pad[i] = block[i] ^ 0x36;
        digester->outer_pad[i] = block[i] ^ 0x5C;
    }
    digest_begin(digester);
    digest_add(digester, inner_pad, sizeof(inner_pad));
    OPENSSL_cleanse(block, sizeof(block));
    OPENSSL_cleanse(inner_pad, sizeof(inner_pad));
    digester->hmac_open = true;
}

void idem_hmac_add(struct idem_digester *digester, struct idem_str text)
{
    IDEM_ASSERT(digester->hmac_open);
    digest_add(digester, text.data, text.len);
}

void idem_hmac_add_field(struct idem_digester *digester, struct idem_str text)
{
    uint8_t size[8];
    for (size_t i = 0; i < sizeof(size); i++) {
        size[i] = (uint8_t)((uint64_t)text.len >> (56 - 8 * i));
    }
    idem_hmac_add(digester, (struct idem_str){ .data = (const char *)size, .len = sizeof(size) });
    idem_hmac_add(digester, text);
}

struct idem_digest idem_hmac_end(struct idem_digester *digester)
{
    IDEM_ASSERT(digester->hmac_open);
    struct idem_digest inner = digest_end(digester);
    digest_begin(digester);
    digest_add(digester, digester->outer_pad, sizeof(digester->outer_pad));
    digest_add(digester, inner.bytes, sizeof(inner.bytes));
    digester->hmac_open = false;
    return digest_end(digester);
}

bool idem_digest_equal(struct idem_digest left, struct idem_digest right)
{
    return CRYPTO_memcmp(left.bytes, right.bytes, sizeof(left.bytes)) == 0;
}

static const char base32_digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

void idem_base32_print(const uint8_t *data, size_t size, size_t len, struct idem_buf *buf)
{
    IDEM_ASSERT(size * 8 >= len * 5);
    uint32_t bits = 0;
    unsigned bit_count = 0;
    size_t next = 0;
    for (size_t i = 0; i < len; i++) {
        if (bit_count < 5) {
            bits = bits << 8 | data[next];
            next += 1;
            bit_count += 8;
        }
        bit_count -= 5;
        idem_buf_add_char(buf, base32_digits[bits >> bit_count & 31]);
    }
}

/* The five bits of `digit`; false: it is not of the alphabet. */
static bool base32_digit(char digit, uint32_t *ret_bits)
{
    const char *at = digit != '\0' ? strchr(base32_digits, digit) : NULL;
    if (at == NULL) {
        return false;
    }
    *ret_bits = (uint32_t)(at - base32_digits);
    return true;
}

bool idem_base32_read(struct idem_str text, uint8_t *ret_data, size_t size)
{
    uint32_t bits = 0;
    unsigned bit_count = 0;
    size_t done = 0;
    for (size_t i = 0; i < text.len && done < size; i++) {
        uint32_t five = 0;
        if (!base32_digit(text.data[i], &five)) {
            return false;
        }
        bits = bits << 5 | five;
        bit_count += 5;
        if (bit_count >= 8) {
            bit_count -= 8;
            ret_data[done] = (uint8_t)(bits >> bit_count & 0xff);
            done += 1;
        }
    }
    return done == size;
}
