/*
 * Which URLs may be sent to.
 *
 * Goal: a URL of which two readers could see different hosts is refused; a credential in one is
 * called that; only this machine, written in full, may be sent to in clear.
 *
 * Method: tables of addresses, most of them from the ways in which URL readers are known to differ.
 */
#include "client/target.h"

#include "lib/test.h"

static const struct {
    const char *url;
    enum idem_target_fault fault;
} checks[] = {
    { "https://api.example.com/v1/payments", IDEM_TARGET_OK },
    { "HTTPS://API.example.com", IDEM_TARGET_OK },
    { "http://127.0.0.1:8080/x?y=z&a=%40", IDEM_TARGET_OK },
    { "http://[::1]:8080/", IDEM_TARGET_OK },
    { "https://a_b-c.example", IDEM_TARGET_OK },
    { "https://example.com?x", IDEM_TARGET_OK },
    { "https://example.com/a@b", IDEM_TARGET_OK },
    { "https://example.com:65535/", IDEM_TARGET_OK },
    { "", IDEM_TARGET_SCHEME },
    { "example.com", IDEM_TARGET_SCHEME },
    { "ftp://example.com", IDEM_TARGET_SCHEME },
    { "file:///etc/passwd", IDEM_TARGET_SCHEME },
    { "https:/example.com", IDEM_TARGET_SCHEME },
    { "https:example.com", IDEM_TARGET_SCHEME },
    { " https://example.com", IDEM_TARGET_SCHEME },
    { "https://user@example.com/", IDEM_TARGET_CREDENTIALS },
    { "https://user:pass word@example.com/", IDEM_TARGET_CREDENTIALS },
    { "https://good.example:80@evil.example/", IDEM_TARGET_CREDENTIALS },
    { "https://good.example\\@evil.example/", IDEM_TARGET_CREDENTIALS },
    { "https://", IDEM_TARGET_MALFORMED },
    { "https:///path", IDEM_TARGET_MALFORMED },
    { "https://?x", IDEM_TARGET_MALFORMED },
    { "https://:443/", IDEM_TARGET_MALFORMED },
    { "https://example.com:/", IDEM_TARGET_MALFORMED },
    { "https://example.com:0/", IDEM_TARGET_MALFORMED },
    { "https://example.com:65536/", IDEM_TARGET_MALFORMED },
    { "https://example.com:80:90/", IDEM_TARGET_MALFORMED },
    { "https://example.com:+80/", IDEM_TARGET_MALFORMED },
    { "https://example.com/a b", IDEM_TARGET_MALFORMED },
    { "https://example.com/a\tb", IDEM_TARGET_MALFORMED },
    { "https://example.com/a\r\nHost: evil", IDEM_TARGET_MALFORMED },
    { "https://example.com/#part", IDEM_TARGET_MALFORMED },
    { "https://example.com#part", IDEM_TARGET_MALFORMED },
    { "https://example.com\\evil/", IDEM_TARGET_MALFORMED },
    { "https://example.com/\\evil", IDEM_TARGET_MALFORMED },
    { "https://ex\xC3\xA4mple.com/", IDEM_TARGET_MALFORMED },
    { "https://ex%61mple.com/", IDEM_TARGET_MALFORMED },
    { "https://a,b/", IDEM_TARGET_MALFORMED },
    { "https://[::1/", IDEM_TARGET_MALFORMED },
    { "https://[::1]x:80/", IDEM_TARGET_MALFORMED },
    { "https://[]/", IDEM_TARGET_MALFORMED },
    { "https://[fe80::1%25eth0]/", IDEM_TARGET_MALFORMED },
    { "https://::1/", IDEM_TARGET_MALFORMED },
};

static void a_url_is_clear_or_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        enum idem_target_fault fault = idem_target_check(idem_str_from(checks[i].url));
        if (fault != checks[i].fault) {
            print_error("\"%s\" %s\n", checks[i].url, idem_target_fault_text(fault));
        }
        assert_int_equal(fault, checks[i].fault);
    }
}

static void no_byte_outside_visible_ascii_passes(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        char url[] = "https://example.com/a?b";
        url[sizeof(url) - 2] = (char)byte;
        struct idem_str text = { .data = url, .len = sizeof(url) - 1 };
        bool clean = byte >= 0x21 && byte <= 0x7E && byte != '\\' && byte != '#';
        assert_int_equal(idem_target_check(text) == IDEM_TARGET_OK, clean);
    }
}

static const struct {
    const char *url;
    bool is_private;
} privacies[] = {
    { "https://api.example.com/", true },
    { "http://127.0.0.1/", true },
    { "http://127.255.255.254:80", true },
    { "http://[::1]:8080/", true },
    { "http://localhost/", true },
    { "http://LocalHost:1/", true },
    { "http://api.example.com/", false },
    { "http://127.0.0.1.example.com/", false },
    { "http://127.example.com/", false },
    { "http://127.1/", false },
    { "http://127.0.0.256/", false },
    { "http://127.0.0.01/", false },
    { "http://127.0.0.1./", false },
    { "http://128.0.0.1/", false },
    { "http://0127.0.0.1/", false },
    { "http://2130706433/", false },
    { "http://0.0.0.0/", false },
    { "http://[::]/", false },
    { "http://[::ffff:127.0.0.1]/", false },
    { "http://localhost.example.com/", false },
    { "http://localhost./", false },
    { "http://notlocalhost/", false },
};

static void only_this_machine_is_private_in_clear(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(privacies) / sizeof(privacies[0]); i++) {
        struct idem_str url = idem_str_from(privacies[i].url);
        assert_int_equal(idem_target_check(url), IDEM_TARGET_OK);
        if (idem_target_is_private(url) != privacies[i].is_private) {
            print_error("%s\n", privacies[i].url);
        }
        assert_int_equal(idem_target_is_private(url), privacies[i].is_private);
    }
}

static void an_origin_ends_where_the_path_begins(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        { "https://a.example/v1", "https://a.example" },
        { "https://a.example:8443?x/", "https://a.example:8443" },
        { "http://[::1]:1/a", "http://[::1]:1" },
        { "http://a.example", "http://a.example" },
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        EXPECT_TEXT(idem_target_origin(idem_str_from(pairs[i][0])), pairs[i][1]);
    }
}

static void every_fault_has_a_sentence_of_its_own(void **state)
{
    (void)state;
    for (unsigned i = IDEM_TARGET_OK; i < IDEM_TARGET_CREDENTIALS; i++) {
        const char *text = idem_target_fault_text((enum idem_target_fault)i);
        const char *other = idem_target_fault_text((enum idem_target_fault)(i + 1));
        assert_string_not_equal(text, other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_is_clear_or_is_refused),
        cmocka_unit_test(no_byte_outside_visible_ascii_passes),
        cmocka_unit_test(only_this_machine_is_private_in_clear),
        cmocka_unit_test(an_origin_ends_where_the_path_begins),
        cmocka_unit_test(every_fault_has_a_sentence_of_its_own),
    };
    return cmocka_run_group_tests_name("client/target", tests, NULL, NULL);
}
