/*
 * SHA-256, HMAC-SHA-256 and base32.
 *
 * Goal: the published vectors come out, since every stored fingerprint and effect id rests on them.
 *
 * Method: FIPS 180-4 examples (with the empty text), RFC 4231 test cases 1 to 4, 6 and 7 (5 is cut
 * to 128 bits, which we do not do), each HMAC also added byte by byte.
 */
#include "base/digest.h"

#include "lib/test.h"

static struct idem_digester *digester;

static int digester_set_up(void **state)
{
    (void)state;
    return idem_digester_create(&digester, NULL) == IDEM_OK ? 0 : -1;
}

static int digester_tear_down(void **state)
{
    (void)state;
    idem_digester_destroy(digester);
    idem_digester_destroy(NULL);
    return 0;
}

static void expect_digest(struct idem_digest digest, const char *hex)
{
    struct idem_buf buf;
    char memory[2 * IDEM_DIGEST_SIZE];
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add_hex(&buf, digest.bytes, sizeof(digest.bytes));
    EXPECT_TEXT(idem_buf_str(&buf), hex);
}

static void sha256_gives_the_published_digests(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *hex;
    } rows[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        expect_digest(idem_digest_sha256(digester, idem_str_from(rows[i].text)), rows[i].hex);
    }
    static char million[1000000];
    memset(million, 'a', sizeof(million));
    expect_digest(idem_digest_sha256(digester, (struct idem_str){ million, sizeof(million) }),
                  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

#define TEN(byte)     byte byte byte byte byte byte byte byte byte byte
#define TWENTY(byte)  TEN(byte) TEN(byte)
#define FIFTY(byte)   TWENTY(byte) TWENTY(byte) TEN(byte)
#define KEY_131_BYTES FIFTY("\xaa") FIFTY("\xaa") TWENTY("\xaa") TEN("\xaa") "\xaa"

static void hmac_gives_the_published_codes(void **state)
{
    (void)state;
    const struct {
        struct idem_str key;
        struct idem_str text;
        const char *hex;
    } rows[] = {
        { IDEM_STR(TWENTY("\x0b")), IDEM_STR("Hi There"),
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
        { IDEM_STR("Jefe"), IDEM_STR("what do ya want for nothing?"),
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
        { IDEM_STR(TWENTY("\xaa")), IDEM_STR(FIFTY("\xdd")),
          "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
        { IDEM_STR("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13"
                   "\x14\x15\x16\x17\x18\x19"),
          IDEM_STR(FIFTY("\xcd")),
          "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
        { IDEM_STR(KEY_131_BYTES),
          IDEM_STR("Test Using Larger Than Block-Size Key - Hash Key First"),
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
        { IDEM_STR(KEY_131_BYTES),
          IDEM_STR("This is a test using a larger than block-size key and a larger than block-size "
                   "data. The key needs to be hashed before being used by the HMAC algorithm."),
          "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        idem_hmac_begin(digester, rows[i].key);
        idem_hmac_add(digester, rows[i].text);
        expect_digest(idem_hmac_end(digester), rows[i].hex);

        idem_hmac_begin(digester, rows[i].key);
        for (size_t j = 0; j < rows[i].text.len; j++) {
            idem_hmac_add(digester, idem_str_slice(rows[i].text, j, 1));
        }
        expect_digest(idem_hmac_end(digester), rows[i].hex);
    }
}

static struct idem_digest code_of_fields(struct idem_str first, struct idem_str second)
{
    idem_hmac_begin(digester, IDEM_STR("key"));
    idem_hmac_add_field(digester, first);
    idem_hmac_add_field(digester, second);
    return idem_hmac_end(digester);
}

static void fields_do_not_run_together(void **state)
{
    (void)state;
    struct idem_digest code = code_of_fields(IDEM_STR("ab"), IDEM_STR("c"));
    assert_true(idem_digest_equal(code, code_of_fields(IDEM_STR("ab"), IDEM_STR("c"))));
    assert_false(idem_digest_equal(code, code_of_fields(IDEM_STR("a"), IDEM_STR("bc"))));
    assert_false(idem_digest_equal(code, code_of_fields(IDEM_STR("abc"), IDEM_STR(""))));
    assert_false(idem_digest_equal(code, code_of_fields(IDEM_STR(""), IDEM_STR("abc"))));

    idem_hmac_begin(digester, IDEM_STR("key"));
    idem_hmac_add(digester, IDEM_STR("\0\0\0\0\0\0\0\2ab\0\0\0\0\0\0\0\1c"));
    assert_true(idem_digest_equal(code, idem_hmac_end(digester)));
}

static void digests_differ_in_any_byte(void **state)
{
    (void)state;
    struct idem_digest digest = idem_digest_sha256(digester, IDEM_STR("abc"));
    assert_true(idem_digest_equal(digest, digest));
    for (size_t i = 0; i < IDEM_DIGEST_SIZE; i++) {
        struct idem_digest other = digest;
        other.bytes[i] ^= 1;
        assert_false(idem_digest_equal(digest, other));
    }
}

static void base32_takes_five_bits_a_character(void **state)
{
    (void)state;
    static const struct {
        uint8_t data[10];
        size_t size;
        size_t len;
        const char *text;
    } rows[] = {
        { { 0 }, 0, 0, "" },
        { { 0 }, 5, 8, "00000000" },
        { { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF }, 5, 8, "zzzzzzzz" },
        { { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF }, 5, 3, "zzz" },
        { { 0xF8 }, 1, 1, "z" },
        { { 0x00, 0x44, 0x32, 0x14, 0xC7 }, 5, 8, "01234567" },
        { { 0x42, 0x54, 0xB6, 0x35, 0xCF }, 5, 8, "89abcdef" },
        { { 0x84, 0x65, 0x3A, 0x56, 0xD7 }, 5, 8, "ghjkmnpq" },
        { { 0xC6, 0x75, 0xBE, 0x77, 0xDF }, 5, 8, "rstvwxyz" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_buf buf;
        char memory[8];
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_base32_print(rows[i].data, rows[i].size, rows[i].len, &buf);
        EXPECT_TEXT(idem_buf_str(&buf), rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_gives_the_published_digests),
        cmocka_unit_test(hmac_gives_the_published_codes),
        cmocka_unit_test(fields_do_not_run_together),
        cmocka_unit_test(digests_differ_in_any_byte),
        cmocka_unit_test(base32_takes_five_bits_a_character),
    };
    return cmocka_run_group_tests_name("base/digest", tests, digester_set_up, digester_tear_down);
}
