/*
 * Scope and effect id.
 *
 * Goal: one (principal, endpoint, key) has one scope and one effect id, for ever, and they are what
 * docs/fingerprint.md says: a restored store and the provider's memory must meet.
 *
 * Method: the vectors of that page, which were made by an independent program.
 */
#include "api/scope.h"

#include "api/api.h"
#include "lib/test.h"

#define SECRET IDEM_STR("effect-secret-0123456789abcdefgh")

static struct idem_digester *digester;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(idem_digester_create(&digester, NULL), IDEM_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    idem_digester_destroy(digester);
    return 0;
}

static void the_vectors_of_the_page_hold(void **state)
{
    static const struct {
        const char *principal;
        const char *endpoint;
        const char *key;
        const char *scope;
        const char *tail;
    } rows[] = {
        { "alice", "payments.create", "order-17", "45c3af15e8e7a9df0528e65455c3a1f3",
          "8q1ty5f8wymxy198wsa5bgx1yc" },
        { "alice", "payments.capture", "order-17", "85d106d9aef96c22a17fbdde7dd8e970",
          "gq8gdpdez5p258bzqqf7vp79e3" },
        { "bob", "payments.create", "order-17", "29c52d09099e9ed6c450ca95da01d177",
          "572jt289ktfddh2gsaaxm0ehey" },
        { "alice", "", "order-17", "62e678f56cd75f7fd0e57f8af2ffa991",
          "cbk7hxbctxfqzm75fy5f5zx9j7" },
        { "a", "lice", "k", "955bd7f97afebbaa78abdcf005eee25c", "jndxfybtztxtmy5bvkr0bvq2bh" },
        { "al", "ice", "k", "f0c01b09528a100a0459b8f6dc1209ca", "y301p2ajh880m12sq3vdr4g9sa" },
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        const struct idem_scope_of of = {
            .principal = idem_str_from(rows[i].principal),
            .endpoint = idem_str_from(rows[i].endpoint),
            .key = idem_str_from(rows[i].key),
        };
        struct idem_scope_names names = idem_scope_make(digester, SECRET, &of);
        char memory[64];
        struct idem_buf buf;
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_buf_add_hex(&buf, names.scope.bytes, sizeof(names.scope.bytes));
        EXPECT_TEXT(idem_buf_str(&buf), rows[i].scope);
        EXPECT_TEXT(((struct idem_str){ names.tail, sizeof(names.tail) }), rows[i].tail);
    }
}

static void the_secret_is_named_by_its_check(void **state)
{
    (void)state;
    struct idem_digest check = idem_api_effect_secret_check(digester, SECRET);
    char memory[64];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add_hex(&buf, check.bytes, sizeof(check.bytes));
    EXPECT_TEXT(idem_buf_str(&buf),
                "41dd4cef7101831bf273da2dbf89cb336db4e6948112632224e327573e641ae8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_page_hold),
        cmocka_unit_test(the_secret_is_named_by_its_check),
    };
    return cmocka_run_group_tests_name("api/scope", tests, setup, teardown);
}
