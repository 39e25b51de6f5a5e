/*
 * Which URLs may be sent to.
 *
 * Goal: a URL of which two readers could see different hosts is refused; a credential in one is
 * called that; only this machine, written in full, may be sent to in clear; two URLs are of one
 * origin only if what one may be told may be told to the other.
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
    { "socks5://127.0.0.1:1080", IDEM_TARGET_SCHEME },
    { "socks5h://127.0.0.1:1080", IDEM_TARGET_SCHEME },
    { "127.0.0.1:3128", IDEM_TARGET_SCHEME },
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
    { "https://proxy.example:3128", true },
    { "http://127.0.0.1:3128", true },
    { "http://[::1]:3128", true },
    { "http://localhost:3128", true },
    { "http://proxy.example:3128", false },
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

/* libcurl knows more schemes, for proxies above all. */
static void what_is_neither_http_nor_https_is_not_private(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "",
        "127.0.0.1:3128",
        "localhost",
        "socks5://127.0.0.1:1080",
        "socks5h://localhost:1080",
        "socks4://127.0.0.1",
        "ftp://127.0.0.1/",
        "http:/127.0.0.1/",
    };
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        assert_false(idem_target_is_private(idem_str_from(urls[i])));
    }
}

static const struct {
    const char *left;
    const char *right;
    bool same;
} origins[] = {
    { "https://a.example", "https://a.example", true },
    { "https://a.example/v1/payments?x=y", "https://a.example?z", true },
    { "http://LOCALHOST", "http://localhost", true },
    { "HTTPS://A.Example/x", "https://a.eXAMPLE/X", true },
    { "https://a.example", "https://a.example:443/", true },
    { "https://a.example:0443", "https://a.example", true },
    { "http://a.example:80?x", "http://a.example", true },
    { "https://a.example:8443/", "https://a.example:8443", true },
    { "http://[::1]:80/", "http://[::1]", true },
    { "https://[FE80::1]", "https://[fe80::1]:443", true },
    { "http://a.example", "https://a.example", false },
    { "http://a.example:443", "https://a.example:443", false },
    { "https://a.example:80", "http://a.example:80", false },
    { "https://a.example:80", "https://a.example", false },
    { "http://a.example:443", "http://a.example", false },
    { "https://a.example:8443", "https://a.example", false },
    { "https://a.example:8443", "https://a.example:844", false },
    { "https://a.example", "https://b.example", false },
    { "https://a.example", "https://a.example.", false },
    { "https://a.example.", "https://a.example.", true },
    { "https://a.example", "https://a.example.evil.example", false },
    { "https://a.example", "https://a.example:443.evil.example", false },
    { "http://[::1]", "http://[0::1]", false },
    { "http://[::1]", "http://[::1:80]", false },
    { "http://[::1]", "http://127.0.0.1", false },
    { "http://[::1]", "http://::1", false },
    { "http://localhost", "http://127.0.0.1", false },
    { "https://user@a.example", "https://user@a.example", false },
    { "https://a.example", "https://user:word@a.example", false },
    { "https://a.example", "https://a.example@evil.example", false },
    { "https://a.example", "https://a.example\\@evil.example", false },
    { "https://a.example", "https://a.example:", false },
    { "https://a.example", "https://a.example:65979", false }, /* 443 and 2 to the 16th. */
    { "https://a.example", "//a.example", false },
    { "https://a.example", "/v1", false },
    { "https://a.example", "", false },
    { "", "", false },
    { "ftp://a.example", "ftp://a.example", false },
    { "https://", "https://", false },
};

static void an_origin_is_scheme_host_and_port(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++) {
        struct idem_str left = idem_str_from(origins[i].left);
        struct idem_str right = idem_str_from(origins[i].right);
        if (idem_target_same_origin(left, right) != origins[i].same) {
            print_error("%s, %s\n", origins[i].left, origins[i].right);
        }
        assert_int_equal(idem_target_same_origin(left, right), origins[i].same);
        assert_int_equal(idem_target_same_origin(right, left), origins[i].same);
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
        cmocka_unit_test(what_is_neither_http_nor_https_is_not_private),
        cmocka_unit_test(an_origin_is_scheme_host_and_port),
        cmocka_unit_test(an_origin_ends_where_the_path_begins),
        cmocka_unit_test(every_fault_has_a_sentence_of_its_own),
    };
    return cmocka_run_group_tests_name("client/target", tests, NULL, NULL);
}
