/*
 * The command line of `idem send`: what may be said, and what is refused before anything is sent.
 *
 * Goal: a length of time means what its writer meant or is refused; a header carries neither a
 * credential nor a second line; options that contradict each other are refused; the line that shows
 * how a run stands fits on a terminal and cannot move its cursor; a server's words are shown as
 * words and nothing else; each verdict leads to a next step that its state allows.
 *
 * Method: tables of what is written and what comes of it. Nothing here opens a journal or a socket.
 */
#include <getopt.h>

#include "base/attr.h"
#include "base/json.h"
#include "cli/duration.h"
#include "cli/header_line.h"
#include "cli/send_internal.h"
#include "lib/test.h"

#define WORDS_MAX 12

static void expect_duration(const char *text,
                            bool days,
                            enum idem_duration_fault expected,
                            int64_t expected_ms)
{
    int64_t ms = 0;
    enum idem_duration_fault fault = idem_duration_parse(idem_str_from(text), days, &ms);
    if (fault != expected || ms != expected_ms) {
        fail_msg("'%s': %s, %lld ms", text, idem_duration_fault_text(fault), (long long)ms);
    }
}

static void a_length_of_time_has_a_number_and_a_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool days;
        enum idem_duration_fault fault;
        int64_t ms;
    } rows[] = {
        { "500ms", false, IDEM_DURATION_OK, 500 },
        { "60s", false, IDEM_DURATION_OK, 60000 },
        { "5m", false, IDEM_DURATION_OK, 300000 },
        { "2h", false, IDEM_DURATION_OK, 7200000 },
        { "7d", true, IDEM_DURATION_OK, 604800000 },
        { "007s", false, IDEM_DURATION_OK, 7000 },
        { "366d", true, IDEM_DURATION_OK, 31622400000 },
        { "8784h", false, IDEM_DURATION_OK, 31622400000 },
        { "7d", false, IDEM_DURATION_BAD_UNIT, 0 },
        { "", false, IDEM_DURATION_NO_NUMBER, 0 },
        { "s", false, IDEM_DURATION_NO_NUMBER, 0 },
        { "-5s", false, IDEM_DURATION_NO_NUMBER, 0 },
        { " 5s", false, IDEM_DURATION_NO_NUMBER, 0 },
        { "60", false, IDEM_DURATION_NO_UNIT, 0 },
        { "60 s", false, IDEM_DURATION_BAD_UNIT, 0 },
        { "60S", false, IDEM_DURATION_BAD_UNIT, 0 },
        { "1.5s", false, IDEM_DURATION_BAD_UNIT, 0 },
        { "60sec", false, IDEM_DURATION_BAD_UNIT, 0 },
        { "1h30m", false, IDEM_DURATION_BAD_UNIT, 0 },
        { "0s", false, IDEM_DURATION_ZERO, 0 },
        { "367d", true, IDEM_DURATION_TOO_LONG, 0 },
        { "8785h", false, IDEM_DURATION_TOO_LONG, 0 },
        { "9223372036854775807d", true, IDEM_DURATION_TOO_LONG, 0 },
        { "99999999999999999999ms", false, IDEM_DURATION_TOO_LONG, 0 },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        expect_duration(rows[i].text, rows[i].days, rows[i].fault, rows[i].ms);
    }
}

static void expect_header(struct idem_str line,
                          const char *credential,
                          enum idem_header_fault expected)
{
    enum idem_header_fault fault = idem_header_check(line, credential);
    if (fault != expected) {
        fail_msg("'%.*s': it %s", (int)line.len, line.data, idem_header_fault_text(fault));
    }
}

static void a_header_is_one_line_and_no_credential(void **state)
{
    (void)state;
    const struct {
        struct idem_str line;
        const char *credential;
        enum idem_header_fault fault;
    } rows[] = {
        { IDEM_STR("Accept: text/plain"), NULL, IDEM_HEADER_OK },
        { IDEM_STR("X-Empty:"), NULL, IDEM_HEADER_OK },
        { IDEM_STR("X-Tab: a\tb"), NULL, IDEM_HEADER_OK },
        { IDEM_STR("X-Name: M\xC3\xBCnchen"), NULL, IDEM_HEADER_OK },
        { IDEM_STR("Authorization-Info: x"), NULL, IDEM_HEADER_OK },
        { IDEM_STR(""), NULL, IDEM_HEADER_NO_COLON },
        { IDEM_STR("Accept"), NULL, IDEM_HEADER_NO_COLON },
        { IDEM_STR(": x"), NULL, IDEM_HEADER_NAME },
        { IDEM_STR("Accept : x"), NULL, IDEM_HEADER_NAME },
        { IDEM_STR("A\r\nB: x"), NULL, IDEM_HEADER_NAME },
        { IDEM_STR("M\xC3\xBCnchen: x"), NULL, IDEM_HEADER_NAME },
        { IDEM_STR("A: x\r\nB: y"), NULL, IDEM_HEADER_VALUE },
        { IDEM_STR("A: x\nB: y"), NULL, IDEM_HEADER_VALUE },
        { IDEM_STR("A: \0"), NULL, IDEM_HEADER_VALUE },
        { IDEM_STR("A: \x7F"), NULL, IDEM_HEADER_VALUE },
        { IDEM_STR("Authorization: Bearer x"), NULL, IDEM_HEADER_CREDENTIAL },
        { IDEM_STR("authorization: Bearer x"), NULL, IDEM_HEADER_CREDENTIAL },
        { IDEM_STR("Proxy-Authorization: x"), NULL, IDEM_HEADER_CREDENTIAL },
        { IDEM_STR("Cookie: x"), NULL, IDEM_HEADER_CREDENTIAL },
        { IDEM_STR("x-api-key: x"), NULL, IDEM_HEADER_CREDENTIAL },
        { IDEM_STR("X-Token: x"), NULL, IDEM_HEADER_OK },
        { IDEM_STR("X-Token: x"), "x-token", IDEM_HEADER_CREDENTIAL },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        expect_header(rows[i].line, rows[i].credential, rows[i].fault);
    }
}

/* Reads `line`, words with single spaces, as the command line behind "idem". */
static void expect_line_read(const char *line, enum idem_exit expected, enum idem_send_way way)
{
    char memory[256];
    char *words[WORDS_MAX + 1] = { NULL };
    struct idem_send_options options;
    int count = 0;
    char *rest = NULL;
    assert_true(strlen(line) < sizeof(memory));
    memcpy(memory, line, strlen(line) + 1);
    for (char *word = strtok_r(memory, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        assert_true(count < WORDS_MAX);
        words[count] = word;
        count += 1;
    }
    optind = 0; /* getopt begins anew. */
    opterr = 0;
    enum idem_exit status = idem_send_options_read(count, words, &options);
    if (status != expected || (status == IDEM_EXIT_OK && options.way != way)) {
        fail_msg("'%s': status %d, way %d", line, (int)status, (int)options.way);
    }
}

static void what_contradicts_itself_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum idem_exit status;
        enum idem_send_way way;
    } rows[] = {
        { "send POST http://a/", IDEM_EXIT_OK, IDEM_SEND_REQUEST },
        { "send --intent n PUT http://a/ --data x --json", IDEM_EXIT_OK, IDEM_SEND_REQUEST },
        { "send PATCH http://a/ --deadline 5m --window 7d", IDEM_EXIT_OK, IDEM_SEND_REQUEST },
        { "send DELETE http://a/ --header A:b --header A:c", IDEM_EXIT_OK, IDEM_SEND_REQUEST },
        { "send --intent n", IDEM_EXIT_OK, IDEM_SEND_RESUME },
        { "send --intent n --new-key --insecure --quiet", IDEM_EXIT_OK, IDEM_SEND_RESUME },
        { "send --pending", IDEM_EXIT_OK, IDEM_SEND_LIST },
        { "send --all --json --journal j", IDEM_EXIT_OK, IDEM_SEND_LIST },
        { "send --forget --intent n", IDEM_EXIT_OK, IDEM_SEND_FORGETTING },
        { "send --forget --older-than 90d --journal j --quiet", IDEM_EXIT_OK,
          IDEM_SEND_FORGETTING },
        { "send --decide happened --note x --intent n", IDEM_EXIT_OK, IDEM_SEND_DECIDING },
        { "send --decide not-happened --note x --intent n --journal j", IDEM_EXIT_OK,
          IDEM_SEND_DECIDING },
        { "send --help", IDEM_EXIT_OK, IDEM_SEND_REQUEST },
        { "send", IDEM_EXIT_USAGE, 0 },
        { "send POST", IDEM_EXIT_USAGE, 0 },
        { "send http://a/ POST", IDEM_EXIT_USAGE, 0 },
        { "send post http://a/", IDEM_EXIT_USAGE, 0 },
        { "send GET http://a/", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ http://b/", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --intent n --intent m", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --data x --data y", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --intent=", IDEM_EXIT_USAGE, 0 },
        { "send --intent=", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --deadline 60", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --deadline 1d", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --header Cookie:x", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --header Token:x --credential-header token", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --credential-header A:", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --new-key", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --pending", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --surprise", IDEM_EXIT_USAGE, 0 },
        { "send --intent n --data x", IDEM_EXIT_USAGE, 0 },
        { "send --intent n --deadline 5m --same-account", IDEM_EXIT_OK, IDEM_SEND_RESUME },
        { "send --intent n --header A:b", IDEM_EXIT_USAGE, 0 },
        { "send --pending --all", IDEM_EXIT_USAGE, 0 },
        { "send --pending --intent n", IDEM_EXIT_USAGE, 0 },
        { "send --forget", IDEM_EXIT_USAGE, 0 },
        { "send --forget --intent n --new-key", IDEM_EXIT_USAGE, 0 },
        { "send --forget --pending --intent n", IDEM_EXIT_USAGE, 0 },
        { "send --decide happened --note x", IDEM_EXIT_USAGE, 0 },
        { "send --decide happened --intent n", IDEM_EXIT_USAGE, 0 },
        { "send --decide perhaps --note x --intent n", IDEM_EXIT_USAGE, 0 },
        { "send --decide happened --note x --intent n --forget", IDEM_EXIT_USAGE, 0 },
        { "send --decide happened --note x --intent n --new-key", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --decide happened --note x --intent n", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --note x", IDEM_EXIT_USAGE, 0 },
        { "send --intent n --note x", IDEM_EXIT_USAGE, 0 },
        { "send --forget --intent n --note x", IDEM_EXIT_USAGE, 0 },
        { "send --forget --intent n --older-than 90d", IDEM_EXIT_USAGE, 0 },
        { "send --forget --older-than 90", IDEM_EXIT_USAGE, 0 },
        { "send --older-than 90d", IDEM_EXIT_USAGE, 0 },
        { "send POST http://a/ --older-than 90d", IDEM_EXIT_USAGE, 0 },
        { "send --all --older-than 90d", IDEM_EXIT_USAGE, 0 },
        { "send --decide happened --note x --older-than 90d", IDEM_EXIT_USAGE, 0 },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        expect_line_read(rows[i].line, rows[i].status, rows[i].way);
    }
}

static void every_option_has_its_own_word(void **state)
{
    (void)state;
    for (enum idem_send_word left = 0; left < IDEM_SEND_WORD_COUNT; left++) {
        for (enum idem_send_word right = 0; right < left; right++) {
            assert_string_not_equal(idem_send_word_name(left), idem_send_word_name(right));
        }
    }
}

static void expect_line(const char *name,
                        const struct idem_client_progress *progress,
                        const char *expected)
{
    char memory[80];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_send_progress_text(name, progress, &buf);
    assert_false(buf.full);
    assert_true(buf.len <= 79);
    EXPECT_TEXT(idem_buf_str(&buf), expected);
}

static void the_line_says_try_pause_reason_and_what_is_left(void **state)
{
    (void)state;
    struct idem_client_progress progress = {
        .phase = IDEM_CLIENT_PAUSING,
        .sends = 3,
        .pause_ms = 2190,
        .remaining_ms = 41999,
        .last = "503",
    };
    expect_line("send-name", &progress, "send-name: try 3, waiting 2.1 s after 503, 41 s left");
    progress.last = "";
    progress.pause_ms = -1;
    progress.remaining_ms = -1;
    expect_line("n", &progress, "n: try 3, waiting 0.0 s, 0 s left");
    progress.phase = IDEM_CLIENT_SENDING;
    expect_line("n", &progress, "n: try 3, sending, 0 s left");
    progress.phase = IDEM_CLIENT_ASKING;
    progress.asks = 2;
    expect_line("n", &progress, "n: question 2, asking for the outcome, 0 s left");
    progress.phase = IDEM_CLIENT_QUEUED;
    expect_line("n", &progress, "n: waiting for its turn, 0 s left");
}

static void the_line_is_cut_and_made_safe_for_a_terminal(void **state)
{
    (void)state;
    const struct idem_client_progress progress = {
        .phase = IDEM_CLIENT_PAUSING,
        .sends = UINT32_MAX,
        .pause_ms = INT64_MAX,
        .remaining_ms = INT64_MAX,
        .last = "\x1B[2Jconnection refused by somebody far away",
    };
    char name[IDEM_CLIENT_NAME_MAX + 1];
    for (size_t len = 1; len <= IDEM_CLIENT_NAME_MAX; len++) {
        char memory[80];
        struct idem_buf buf;
        memset(name, 'n', len);
        name[len] = '\0';
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_send_progress_text(name, &progress, &buf);
        assert_false(buf.full);
        assert_true(buf.len <= 79);
        assert_null(memchr(buf.data, 0x1B, buf.len));
    }
}

static void a_name_is_not_cut_inside_a_character(void **state)
{
    (void)state;
    static const char euros[] =
        "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC"
        "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC"
        "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC"
        "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC"
        "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC"
        "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC";
    const struct idem_client_progress progress = { .phase = IDEM_CLIENT_QUEUED, .last = "" };
    for (size_t before = 0; before < 4; before++) {
        char name[IDEM_CLIENT_NAME_MAX + 1];
        int len = snprintf(name, sizeof(name), "%.*s%s", (int)before, "nnn", euros);
        assert_in_range(len, 80, sizeof(name) - 1);
        char memory[80];
        struct idem_buf buf;
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_send_progress_text(name, &progress, &buf);
        assert_true(idem_utf8_valid(idem_buf_str(&buf)));
    }
}

static void text_that_is_not_utf8_is_still_json(void **state)
{
    (void)state;
    const struct {
        struct idem_str text;
        const char *json;
    } rows[] = {
        { IDEM_STR(""), "\"\"" },
        { IDEM_STR("a\"b\n"), "\"a\\\"b\\n\"" },
        { IDEM_STR("M\xC3\xBCnchen"), "\"M\xC3\xBCnchen\"" },
        { IDEM_STR("a\xFF\"\\\nb"), "\"a????b\"" },
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        char memory[64];
        struct idem_buf buf;
        idem_buf_init(&buf, memory, sizeof(memory));
        idem_send_json_text(&buf, rows[i].text);
        EXPECT_TEXT(idem_buf_str(&buf), rows[i].json);
    }
}

static const struct {
    const char *body;
    const char *text;
    bool look_first;
} words_rows[] = {
    { "{\"title\":\"No\",\"detail\":\"Too late\"}", "No: Too late", false },
    { "{\"detail\":\"Too late\"}", "Too late", false },
    { "{\"error\":{\"message\":\"Your card was declined.\"}}", "Your card was declined.", false },
    { "{\"status\":422,\"message\":\"Required field\"}", "Required field", false },
    { "{\"message\":\"Bad\",\"details\":[{\"description\":\"No amount\"}]}", "Bad: No amount",
      false },
    { "{\"title\":\"a\\n\\u001B[2Jb\\u0000c\"}", "a ?[2Jb?c", false },
    { "{\"title\":\"T\",\"type\":\"urn:idem:problem:order-exists\",\"retry\":\"query\"}", "T",
      true },
    { "{\"title\":\"T\",\"type\":\"urn:idem:problem:declined\",\"retry\":\"new-key\"}", "T",
      false },
    { "{\"title\":\"T\",\"type\":\"urn:other:problem\",\"retry\":\"query\"}", "T", false },
    { "{\"title\":7,\"error\":\"no\",\"details\":[],\"message\":null}", "", false },
    { "{\"error\":{\"message\":{}},\"details\":[[]]}", "", false },
    { "{\"title\":\"\"}", "", false },
    { "[\"title\"]", "", false },
    { "\"title\"", "", false },
    { "<html>no</html>", "", false },
    { "", "", false },
};

static void expect_words(const char *body, const char *text, bool look_first)
{
    struct idem_send_words words;
    idem_send_words_read(idem_str_from(body), &words);
    if (strcmp(words.text, text) != 0 || words.look_first != look_first) {
        fail_msg("%s: '%s', %d", body, words.text, words.look_first);
    }
}

static void a_servers_words_are_one_line_of_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(words_rows); i++) {
        expect_words(words_rows[i].body, words_rows[i].text, words_rows[i].look_first);
    }
}

static void a_servers_words_have_a_limit(void **state)
{
    (void)state;
    static const char middle[] = "\",\"detail\":\"";
    for (size_t len = IDEM_SEND_SAID_MAX - 8; len <= IDEM_SEND_SAID_MAX + 8; len++) {
        char body[2 * IDEM_SEND_SAID_MAX + 128];
        struct idem_buf buf;
        struct idem_send_words words;
        idem_buf_init(&buf, body, sizeof(body));
        idem_buf_add(&buf, IDEM_STR("{\"title\":\""));
        for (size_t i = 0; i < len; i++) {
            idem_buf_add_char(&buf, 't');
        }
        idem_buf_add(&buf, idem_str_from(middle));
        idem_buf_add(&buf, IDEM_STR("end\"}"));
        assert_false(buf.full);
        idem_send_words_read(idem_buf_str(&buf), &words);
        size_t shown = strlen(words.text);
        bool both = shown == len + strlen(": end");
        assert_true(both || shown == len || strcmp(words.text, "end") == 0);
    }
}

static const struct {
    enum idem_client_outcome outcome;
    enum idem_client_reason reason;
    enum idem_send_hint hint;
    uint16_t status;
    bool over;
    bool look_first;
} hint_rows[] = {
    { IDEM_CLIENT_DONE, IDEM_CLIENT_ANSWERED, IDEM_SEND_HINT_NONE, 201, true, false },
    { IDEM_CLIENT_DONE, IDEM_CLIENT_DECIDED, IDEM_SEND_HINT_NONE, 503, true, false },
    { IDEM_CLIENT_REFUSED, IDEM_CLIENT_ANSWERED, IDEM_SEND_HINT_NEW_KEY, 402, true, false },
    { IDEM_CLIENT_REFUSED, IDEM_CLIENT_ANSWERED, IDEM_SEND_HINT_LOOK, 409, true, true },
    { IDEM_CLIENT_REFUSED, IDEM_CLIENT_DECIDED, IDEM_SEND_HINT_NEW_KEY, 409, true, false },
    { IDEM_CLIENT_REFUSED, IDEM_CLIENT_ADVISED, IDEM_SEND_HINT_CORRECT, 400, false, false },
    { IDEM_CLIENT_REFUSED, IDEM_CLIENT_ADVISED, IDEM_SEND_HINT_CORRECT, 413, false, false },
    { IDEM_CLIENT_REFUSED, IDEM_CLIENT_ADVISED, IDEM_SEND_HINT_CORRECT, 308, false, false },
    { IDEM_CLIENT_REFUSED, IDEM_CLIENT_ADVISED, IDEM_SEND_HINT_REPAIR, 401, false, false },
    { IDEM_CLIENT_REFUSED, IDEM_CLIENT_ADVISED, IDEM_SEND_HINT_REPAIR, 403, false, false },
    { IDEM_CLIENT_REFUSED, IDEM_CLIENT_ADVISED, IDEM_SEND_HINT_REPAIR, 404, false, false },
    { IDEM_CLIENT_REFUSED, IDEM_CLIENT_NOT_SENT, IDEM_SEND_HINT_LATER, 0, false, false },
    { IDEM_CLIENT_REFUSED, IDEM_CLIENT_DEADLINE, IDEM_SEND_HINT_LATER, 429, false, false },
    { IDEM_CLIENT_REFUSED, IDEM_CLIENT_STOPPED, IDEM_SEND_HINT_LATER, 0, false, false },
    { IDEM_CLIENT_UNKNOWN, IDEM_CLIENT_DEADLINE, IDEM_SEND_HINT_GO_ON, 503, false, false },
    { IDEM_CLIENT_UNKNOWN, IDEM_CLIENT_ADVISED, IDEM_SEND_HINT_FIND_OUT, 200, false, false },
    { IDEM_CLIENT_UNKNOWN, IDEM_CLIENT_WINDOW, IDEM_SEND_HINT_DECIDE, 0, false, false },
};

static void expect_hint(size_t row)
{
    const struct idem_client_verdict verdict = {
        .outcome = hint_rows[row].outcome,
        .reason = hint_rows[row].reason,
        .over = hint_rows[row].over,
        .status = hint_rows[row].status,
    };
    enum idem_send_hint hint = idem_send_hint_choose(&verdict, hint_rows[row].look_first);
    if (hint != hint_rows[row].hint) {
        fail_msg("row %zu: %d", row, (int)hint);
    }
}

static void a_verdict_leads_to_what_its_state_allows(void **state)
{
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(hint_rows); i++) {
        expect_hint(i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_length_of_time_has_a_number_and_a_unit),
        cmocka_unit_test(a_header_is_one_line_and_no_credential),
        cmocka_unit_test(what_contradicts_itself_is_refused),
        cmocka_unit_test(every_option_has_its_own_word),
        cmocka_unit_test(the_line_says_try_pause_reason_and_what_is_left),
        cmocka_unit_test(the_line_is_cut_and_made_safe_for_a_terminal),
        cmocka_unit_test(a_name_is_not_cut_inside_a_character),
        cmocka_unit_test(text_that_is_not_utf8_is_still_json),
        cmocka_unit_test(a_servers_words_are_one_line_of_text),
        cmocka_unit_test(a_servers_words_have_a_limit),
        cmocka_unit_test(a_verdict_leads_to_what_its_state_allows),
    };
    return cmocka_run_group_tests_name("send", tests, NULL, NULL);
}
