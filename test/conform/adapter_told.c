/*
 * What every adapter must do with what it is told: pages of a listing, and events.
 *
 * Goal: a page is used whole or not at all, and leads on or is the last; an event is believed only
 * as it was signed, near its time, and then names itself and an id of ours.
 *
 * Method: the fixture's pages and event, cut at every place, with one thing spoiled at a time, and
 * with every bit turned. Bodies lie in memory of exactly their size.
 */
#include "conform/adapter.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/digest.h"
#include "lib/test.h"

static const struct adapter_fixture *const fixture = &adapter_fixture;

static void *exact_make(const void *data, size_t size)
{
    void *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

/* `text` with what stands at `place` changed. */
static void text_change(const char *text,
                        const char *place,
                        const struct adapter_change *change,
                        struct idem_buf *buf)
{
    idem_buf_reset(buf);
    idem_buf_add_bytes(buf, text, (size_t)(place - text));
    idem_buf_add(buf, idem_str_from(change->to));
    idem_buf_add(buf, idem_str_from(place + strlen(change->from)));
    assert_false(buf->full);
}

/* Pages. */

static struct idem_listing *listing_make(const char *cursor)
{
    struct idem_listing *listing = calloc(1, sizeof(*listing));
    assert_non_null(listing);
    listing->from_us = (EVENT_NOW_S - 86400) * IDEM_US_PER_SECOND;
    listing->to_us = EVENT_NOW_S * IDEM_US_PER_SECOND;
    (void)snprintf(listing->cursor, sizeof(listing->cursor), "%s", cursor);
    idem_buf_init(&listing->kept, listing->memory, sizeof(listing->memory));
    return listing;
}

static bool page_read(struct idem_listing *listing, uint16_t status, struct idem_str body)
{
    char *copy = exact_make(body.data, body.len);
    const struct idem_wire_answer answer = { .status = status, .body = { copy, body.len } };

    listing->count = 0;
    idem_buf_reset(&listing->kept);
    bool usable = fixture->adapter->list_decode(&answer, listing) && !listing->kept.full;
    free(copy);
    return usable;
}

static void expect_unusable(const struct adapter_page *page, uint16_t status, struct idem_str body)
{
    struct idem_listing *listing = listing_make(page->cursor);
    if (page_read(listing, status, body) || strcmp(listing->cursor, page->cursor) != 0) {
        print_error("%s, page '%s', status %u: used, or its cursor moved:\n%.*s\n",
                    fixture->adapter->name, page->cursor, status, (int)body.len, body.data);
        fail();
    }
    free(listing);
}

static void a_page_is_read_and_leads_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < fixture->page_count; i++) {
        const struct adapter_page *page = &fixture->pages[i];
        struct idem_listing *listing = listing_make(page->cursor);
        assert_true(page_read(listing, 200, idem_str_from(page->body)));
        assert_int_equal(listing->count, page->count);
        assert_int_equal(listing->more, page->more);
        for (size_t j = 0; j < listing->count; j++) {
            assert_true(listing->listed[j].effect_id.len > 0);
            assert_int_equal(listing->listed[j].amount_minor, 10000);
            EXPECT_TEXT(listing->listed[j].currency, "EUR");
        }
        if (page->more) { /* The same page again would go round for ever. */
            assert_string_not_equal(listing->cursor, page->cursor);
            assert_false(page_read(listing, 200, idem_str_from(page->body)));
        }
        free(listing);
    }
}

static void expect_unusable_in_part(const struct adapter_page *page)
{
    struct idem_str body = idem_str_from(page->body);

    for (size_t len = 0; len < body.len; len++) {
        expect_unusable(page, 200, idem_str_slice(body, 0, len));
    }
    for (uint16_t status = 100; status < 600; status++) {
        if (status != 200) {
            expect_unusable(page, status, body);
        }
    }
}

static void a_page_is_used_whole_or_not_at_all(void **state)
{
    (void)state;
    static const char *const foreign[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"data\":[]}",
        "{\"effects\":[]}",
        "<html></html>",
        "{\"error\":{\"type\":\"api_error\"}}",
    };
    for (size_t i = 0; i < fixture->page_count; i++) {
        expect_unusable_in_part(&fixture->pages[i]);
        for (size_t j = 0; j < IDEM_ARRAY_COUNT(foreign); j++) {
            expect_unusable(&fixture->pages[i], 200, idem_str_from(foreign[j]));
        }
    }
}

/* Done at each place where it can be done, one at a time; how many there are. */
static size_t page_spoil(const struct adapter_page *page, const struct adapter_change *spoil)
{
    size_t done = 0;
    const char *place = strstr(page->body, spoil->from);
    char memory[4096];
    struct idem_buf buf;

    idem_buf_init(&buf, memory, sizeof(memory));
    for (; place != NULL; place = strstr(place + 1, spoil->from)) {
        text_change(page->body, place, spoil, &buf);
        expect_unusable(page, 200, idem_buf_str(&buf));
        done += 1;
    }
    return done;
}

static void one_bad_element_spoils_its_page(void **state)
{
    (void)state;
    for (size_t i = 0; i < fixture->spoil_count; i++) {
        size_t done = 0;
        for (size_t j = 0; j < fixture->page_count; j++) {
            done += page_spoil(&fixture->pages[j], &fixture->spoils[i]);
        }
        assert_true(done > 1); /* Not only in the first element. */
    }
}

static void a_listing_is_asked_for_without_its_credential_in_the_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < fixture->page_count; i++) {
        struct idem_listing *listing = listing_make(fixture->pages[i].cursor);
        struct idem_wire_request requests[2];
        char memory[2][4096];
        for (size_t j = 0; j < 2; j++) {
            struct idem_buf buf;
            memset(memory[j], j == 0 ? 0 : 0xa5, sizeof(memory[j]));
            idem_buf_init(&buf, memory[j], sizeof(memory[j]));
            fixture->adapter->list_request(listing, idem_str_from(j == 0 ? "key-one" : "key-two"),
                                           &buf, &requests[j]);
            assert_false(buf.full);
        }
        assert_string_equal(requests[0].method, "GET");
        assert_true(idem_str_equal(requests[0].path, requests[1].path));
        assert_true(idem_str_equal(requests[0].body, requests[1].body));
        free(listing);
    }
}

/* Events. */

static const struct idem_str secrets[IDEM_CALLBACK_SECRETS_MAX] = {
    { .data = "secret-1", .len = 8 },
    { .data = "secret-2", .len = 8 },
    { .data = "secret-3", .len = 8 },
    { .data = "secret-4", .len = 8 },
};

/* What an event is judged with, and what it said. */
struct hearing {
    struct idem_digester *digester;
    char field_memory[1024];
    struct idem_str field;
    char text[IDEM_CALLBACK_BODY_MAX];
    struct idem_evidence evidence;
};

static struct idem_str field_of(const void *head, struct idem_str name)
{
    const struct hearing *hearing = head;
    return idem_str_equal_nocase(name, idem_str_from(fixture->event_field))
               ? hearing->field
               : (struct idem_str){ .len = 0 };
}

static struct hearing *hearing_make(void)
{
    struct hearing *hearing = calloc(1, sizeof(*hearing));
    struct idem_error error;
    assert_non_null(hearing);
    assert_int_equal(idem_digester_create(&hearing->digester, &error), IDEM_OK);
    return hearing;
}

static void hearing_free(struct hearing *hearing)
{
    idem_digester_destroy(hearing->digester);
    free(hearing);
}

static void event_sign(struct hearing *hearing,
                       struct idem_str secret,
                       int64_t signed_s,
                       struct idem_str body)
{
    struct idem_buf buf;
    idem_buf_init(&buf, hearing->field_memory, sizeof(hearing->field_memory));
    fixture->event_sign(hearing->digester, secret, signed_s, body, &buf);
    assert_false(buf.full);
    hearing->field = idem_buf_str(&buf);
}

static enum idem_callback_verdict event_hear(struct hearing *hearing, struct idem_str body)
{
    char *copy = exact_make(body.data, body.len);
    const struct idem_callback_in in = {
        .field = field_of,
        .head = hearing,
        .body = { copy, body.len },
        .now_us = EVENT_NOW_S * IDEM_US_PER_SECOND,
    };
    const struct idem_callback_place place = {
        .digester = hearing->digester,
        .secrets = secrets,
        .secret_count = IDEM_ARRAY_COUNT(secrets),
        .account = IDEM_STR("acct_1"),
        .credential = IDEM_STR("sk_test_1"),
    };
    struct idem_buf buf;

    idem_buf_init(&buf, hearing->text, sizeof(hearing->text));
    hearing->evidence = (struct idem_evidence){ .amount_minor = -1 };
    enum idem_callback_verdict verdict =
        fixture->adapter->callbacks->verify(&in, &place, &buf, &hearing->evidence);
    assert_true(verdict < IDEM_CALLBACK_NO_ENTRY);
    if (verdict == IDEM_CALLBACK_OK) {
        assert_true(hearing->evidence.event_id.len > 0);
        assert_true(hearing->evidence.effect_id.len > 0);
        assert_true(hearing->evidence.outcome > IDEM_OUTCOME_NONE);
        assert_true(hearing->evidence.outcome < IDEM_OUTCOME_COUNT);
    }
    free(copy);
    return verdict;
}

static void expect_verdict(struct hearing *hearing,
                           struct idem_str body,
                           enum idem_callback_verdict expected,
                           size_t place)
{
    enum idem_callback_verdict verdict = event_hear(hearing, body);
    if (verdict != expected) {
        print_error("%s, place %zu: expected %s, got %s, signed '%.*s':\n%.*s\n",
                    fixture->adapter->name, place, idem_callback_verdict_name(expected),
                    idem_callback_verdict_name(verdict), (int)hearing->field.len,
                    hearing->field.data, (int)body.len, body.data);
        fail();
    }
}

static void each_of_several_secrets_is_enough(void **state)
{
    (void)state;
    struct hearing *hearing = hearing_make();
    struct idem_str body = idem_str_from(fixture->event);
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(secrets); i++) {
        event_sign(hearing, secrets[i], EVENT_NOW_S, body);
        expect_verdict(hearing, body, IDEM_CALLBACK_OK, i);
    }
    assert_int_equal(hearing->evidence.outcome, IDEM_OUTCOME_SUCCESS);
    assert_int_equal(hearing->evidence.amount_minor, 10000);
    event_sign(hearing, IDEM_STR("secret-5"), EVENT_NOW_S, body);
    expect_verdict(hearing, body, IDEM_CALLBACK_FORGED, 5);
    event_sign(hearing, IDEM_STR(""), EVENT_NOW_S, body);
    expect_verdict(hearing, body, IDEM_CALLBACK_FORGED, 6);
    hearing->field = (struct idem_str){ .len = 0 };
    expect_verdict(hearing, body, IDEM_CALLBACK_FORGED, 7);
    hearing_free(hearing);
}

static void a_bit_that_is_turned_is_a_forgery(void **state)
{
    (void)state;
    struct hearing *hearing = hearing_make();
    struct idem_str body = idem_str_from(fixture->event);
    char *turned = exact_make(body.data, body.len);
    event_sign(hearing, secrets[0], EVENT_NOW_S, body);
    for (size_t bit = 0; bit < 8 * body.len; bit++) {
        turned[bit / 8] = (char)(turned[bit / 8] ^ 1 << bit % 8);
        expect_verdict(hearing, (struct idem_str){ turned, body.len }, IDEM_CALLBACK_FORGED, bit);
        turned[bit / 8] = body.data[bit / 8];
    }
    for (size_t bit = 0; bit < 8 * hearing->field.len; bit++) {
        char *byte = &hearing->field_memory[bit / 8];
        char before = *byte;
        *byte = (char)(before ^ 1 << bit % 8);
        expect_verdict(hearing, body, IDEM_CALLBACK_FORGED, bit);
        *byte = before;
    }
    free(turned);
    hearing_free(hearing);
}

/* Signed as they are: only their form is wrong. */
static void a_part_of_an_event_says_nothing(void **state)
{
    (void)state;
    struct hearing *hearing = hearing_make();
    struct idem_str body = idem_str_from(fixture->event);
    for (size_t len = 0; len < body.len; len++) {
        struct idem_str part = idem_str_slice(body, 0, len);
        event_sign(hearing, secrets[0], EVENT_NOW_S, part);
        expect_verdict(hearing, part, IDEM_CALLBACK_UNREADABLE, len);
    }
    event_sign(hearing, secrets[0], EVENT_NOW_S, body);
    struct idem_str whole = hearing->field;
    for (size_t len = 0; len < whole.len; len++) {
        char *exact = exact_make(whole.data, len);
        hearing->field = (struct idem_str){ exact, len };
        expect_verdict(hearing, body, IDEM_CALLBACK_FORGED, len);
        free(exact);
    }
    hearing_free(hearing);
}

/* Signed well, and with one thing missing or odd: unreadable, ignored, or of unknown outcome. */
static void an_event_claims_nothing_unless_it_says_all(void **state)
{
    (void)state;
    struct hearing *hearing = hearing_make();
    assert_true(fixture->event_spoil_count > 0);
    for (size_t i = 0; i < fixture->event_spoil_count; i++) {
        const struct adapter_change *spoil = &fixture->event_spoils[i];
        const char *place = strstr(fixture->event, spoil->from);
        char memory[4096];
        struct idem_buf buf;
        assert_non_null(place);
        idem_buf_init(&buf, memory, sizeof(memory));
        text_change(fixture->event, place, spoil, &buf);
        event_sign(hearing, secrets[0], EVENT_NOW_S, idem_buf_str(&buf));
        if (event_hear(hearing, idem_buf_str(&buf)) == IDEM_CALLBACK_OK &&
            hearing->evidence.outcome != IDEM_OUTCOME_UNKNOWN) {
            print_error("%s: still %s with '%s' made '%s'\n", fixture->adapter->name,
                        idem_outcome_kind_name(hearing->evidence.outcome), spoil->from, spoil->to);
            fail();
        }
    }
    hearing_free(hearing);
}

static void an_event_is_of_its_time(void **state)
{
    (void)state;
    const int64_t far_s = fixture->tolerance_s + 1;
    const struct {
        int64_t later_s;
        enum idem_callback_verdict verdict;
    } times[] = {
        { -fixture->tolerance_s, IDEM_CALLBACK_OK },
        { fixture->tolerance_s, IDEM_CALLBACK_OK },
        { -far_s, IDEM_CALLBACK_STALE },
        { far_s, IDEM_CALLBACK_FUTURE },
    };
    struct hearing *hearing = hearing_make();
    struct idem_str body = idem_str_from(fixture->event);
    for (size_t i = 0; i < (fixture->tolerance_s > 0 ? IDEM_ARRAY_COUNT(times) : 0); i++) {
        event_sign(hearing, secrets[1], EVENT_NOW_S + times[i].later_s, body);
        expect_verdict(hearing, body, times[i].verdict, i);
    }
    event_sign(hearing, IDEM_STR("secret-5"), EVENT_NOW_S - far_s, body);
    expect_verdict(hearing, body, IDEM_CALLBACK_FORGED, 4); /* The signature comes first. */
    hearing_free(hearing);
}

static void only_what_is_durable_is_taken(void **state)
{
    (void)state;
    const struct idem_callback_reply *replies = fixture->adapter->callbacks->replies;
    assert_in_range(replies[IDEM_CALLBACK_TAKEN].status, 200, 299);
    assert_in_range(replies[IDEM_CALLBACK_REFUSED].status, 400, 599);
    assert_in_range(replies[IDEM_CALLBACK_LATER].status, 500, 599);
}

int main(void)
{
    const struct CMUnitTest pages[] = {
        cmocka_unit_test(a_page_is_read_and_leads_on),
        cmocka_unit_test(a_page_is_used_whole_or_not_at_all),
        cmocka_unit_test(one_bad_element_spoils_its_page),
        cmocka_unit_test(a_listing_is_asked_for_without_its_credential_in_the_path),
    };
    const struct CMUnitTest events[] = {
        cmocka_unit_test(each_of_several_secrets_is_enough),
        cmocka_unit_test(a_bit_that_is_turned_is_a_forgery),
        cmocka_unit_test(a_part_of_an_event_says_nothing),
        cmocka_unit_test(an_event_claims_nothing_unless_it_says_all),
        cmocka_unit_test(an_event_is_of_its_time),
        cmocka_unit_test(only_what_is_durable_is_taken),
    };
    bool lists = fixture->adapter->list_decode != NULL;
    bool hears = fixture->adapter->callbacks != NULL;
    if (lists != (fixture->page_count > 0) || hears != (fixture->event != NULL)) {
        (void)fprintf(stderr, "the fixture leaves out what the adapter has\n");
        return 1;
    }
    int failed = lists ? cmocka_run_group_tests_name("conform_pages", pages, NULL, NULL) : 0;
    return hears ? failed + cmocka_run_group_tests_name("conform_events", events, NULL, NULL)
                 : failed;
}
