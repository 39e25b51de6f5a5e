/*
 * The command lines of operators' commands: what may be said, what is asked then, what is made of
 * the answer, and what is said where it cannot be printed.
 *
 * Goal: a line that cannot be understood costs nothing and ends with status 2; any other asks what
 * it says and nothing else; a secret is shown by those who make one; what is refused or not known
 * ends with another status than 0; a value of any bytes is one member of a query.
 *
 * Method: tables of lines and what comes of them. The service is a thread that answers what the
 * test has told it to and keeps what it was asked.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attr.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/evidence.h"
#include "lib/test.h"

#define WORDS_MAX 12
#define TEXT_MAX  8192
#define ID        "01977e3c-5e0a-7cc3-98c4-dc0c0c07398f"
#define OTHER_ID  "01977e3c-5e0a-7cc3-98c4-dc0c0c073990"

/* The service. Whoever runs a command waits for its end, so one thread at a time is here. */
static struct {
    int listener;
    const char *status; /* Of the next answers: "200 OK" ... */
    const char *body;
    char asked[TEXT_MAX]; /* "METHOD path body" of every request, each with a line end. */
} service;

static void ask_keep(char *request)
{
    const char *line_end = strstr(request, " HTTP/1.1\r\n");
    const char *gap = strstr(request, "\r\n\r\n");
    size_t used = strlen(service.asked);
    assert_true(line_end != NULL && gap != NULL);
    (void)snprintf(service.asked + used, sizeof(service.asked) - used, "%.*s%s%s\n",
                   (int)(line_end - request), request, gap[4] != '\0' ? " " : "", gap + 4);
}

/* Reads one request and answers it; false: the listener is closed. */
static bool serve_one(void)
{
    char text[TEXT_MAX];
    size_t len = 0;
    int fd = accept(service.listener, NULL, NULL);
    if (fd < 0) {
        return false;
    }
    for (;;) {
        ssize_t got = recv(fd, text + len, sizeof(text) - 1 - len, 0);
        len += got > 0 ? (size_t)got : 0;
        text[len] = '\0';
        const char *gap = strstr(text, "\r\n\r\n");
        const char *length = strcasestr(text, "\r\nContent-Length: ");
        size_t body_len = length != NULL ? strtoul(length + 18, NULL, 10) : 0;
        if (got <= 0 || (gap != NULL && strlen(gap + 4) >= body_len)) {
            break;
        }
    }
    if (len > 0) {
        ask_keep(text);
    }
    len = (size_t)snprintf(text, sizeof(text),
                           "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
                           "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
                           service.status, strlen(service.body), service.body);
    (void)send(fd, text, len, MSG_NOSIGNAL); /* Who has gone is judged by what it says. */
    return close(fd) == 0;
}

static void *serve(void *context)
{
    while (serve_one()) {
    }
    return context;
}

static pthread_t server;

static int setup(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof(address);
    char url[64];
    (void)state;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    service.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(service.listener, (const struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(service.listener, 4), 0);
    assert_int_equal(getsockname(service.listener, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", ntohs(address.sin_port));
    assert_int_equal(setenv("IDEM_URL", url, 1), 0);
    assert_int_equal(setenv("IDEM_CREDENTIAL", "a-bearer-of-some-operator", 1), 0);
    return pthread_create(&server, NULL, serve, NULL);
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(shutdown(service.listener, SHUT_RDWR), 0);
    assert_int_equal(pthread_join(server, NULL), 0);
    return close(service.listener);
}

static char printed[TEXT_MAX]; /* Both outputs of the last run. */
static bool disk_is_full;      /* For standard output, of the next runs. */

/* Runs it with its outputs caught. */
static enum idem_exit run_caught(enum idem_exit (*run)(int argc, char **argv),
                                 int argc,
                                 char **argv)
{
    FILE *caught = tmpfile();
    int seen[2];
    assert_non_null(caught);
    assert_int_equal(fflush(stdout), 0);
    for (int i = 0; i < 2; i++) {
        seen[i] = dup(STDOUT_FILENO + i);
        assert_true(seen[i] >= 0);
        assert_true(dup2(fileno(caught), STDOUT_FILENO + i) >= 0);
    }
    if (disk_is_full) {
        int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
        assert_true(dup2(full, STDOUT_FILENO) >= 0);
        assert_int_equal(close(full), 0);
    }
    optind = 0; /* getopt begins anew. */
    service.asked[0] = '\0';
    enum idem_exit status = run(argc, argv);
    assert_int_equal(fflush(stdout), 0);
    for (int i = 0; i < 2; i++) {
        assert_true(dup2(seen[i], STDOUT_FILENO + i) >= 0);
        assert_int_equal(close(seen[i]), 0);
    }
    rewind(caught);
    printed[fread(printed, 1, sizeof(printed) - 1, caught)] = '\0';
    assert_int_equal(fclose(caught), 0);
    return status;
}

/* Runs `line`, split at its spaces. */
static enum idem_exit run(const char *line)
{
    static const struct {
        const char *name;
        enum idem_exit (*run)(int argc, char **argv);
    } commands[] = {
        { "cases", idem_cli_cases },     { "webhook", idem_cli_webhook },
        { "outbox", idem_cli_outbox },   { "credential", idem_cli_credential },
        { "list", idem_cli_list },       { "show", idem_cli_show },
        { "resolve", idem_cli_resolve }, { "erase", idem_cli_erase },
        { "status", idem_cli_status },   { "reconcile", idem_cli_reconcile },
    };
    char text[512];
    char *words[WORDS_MAX + 1] = { NULL };
    int count = 0;
    char *rest = NULL;
    (void)snprintf(text, sizeof(text), "%s", line);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        assert_true(count < WORDS_MAX);
        words[count] = word;
        count += 1;
    }
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(commands); i++) {
        if (strcmp(words[0], commands[i].name) == 0) {
            return run_caught(commands[i].run, count, words);
        }
    }
    fail_msg("no such command: %s", line);
    return IDEM_EXIT_OTHER;
}

static void a_line_that_cannot_be_understood_is_refused(void **state)
{
    static const char *const lines[] = {
        "cases lost",
        "cases list more",
        "cases list --state closed",
        "cases --kind stray",
        "cases --lost",
        "cases show",
        "cases show 1",
        "cases show ../operations",
        "cases resolve " ID " --verdict noted",
        "cases resolve " ID " --reason seen",
        "cases resolve --verdict noted --reason seen",
        "cases resolve 1 --verdict noted --reason seen",
        "cases compensate " ID,
        "cases compensate --reason stray",
        "cases compensate 1 --reason stray",
        "cases compensate " ID " " ID " --reason stray",
        "cases resolve " ID " --verdict noted --reason \xFF",
        "webhook",
        "webhook --principal shop",
        "webhook lost",
        "webhook add --principal shop",
        "webhook add --to https://shop.example",
        "webhook add more --principal shop --to https://shop.example",
        "webhook add --principal shop --to https://shop.example --id 1",
        "webhook add --principal shop --to https://shop.example --type payment.paid",
        "webhook add --principal \xFF --to https://shop.example",
        "webhook list more",
        "webhook rotate " ID,
        "webhook rotate --generation 1",
        "webhook disable",
        "webhook enable 1",
        "webhook test ../credentials",
        "outbox lost",
        "outbox --state lost",
        "outbox --webhook 1",
        "outbox replay",
        "outbox replay --webhook " ID,
        "outbox replay --dead",
        "outbox replay --dead --webhook 1",
        "outbox replay --message " ID,
        "outbox replay --message 1 --webhook " ID,
        "outbox replay --message " ID " --dead --webhook " ID,
        "outbox replay --dead --webhook " ID " more",
        "credential",
        "credential lost",
        "credential add",
        "credential revoke 1",
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(lines); i++) {
        print_message("# %s\n", lines[i]);
        assert_int_equal(run(lines[i]), IDEM_EXIT_USAGE);
        assert_string_equal(service.asked, "");
        assert_non_null(strstr(printed, "idem"));
    }
}

#define HOOKS "/v1/admin/webhooks/"

/* A refusal ends it at once, whatever was asked. */
static void a_line_that_can_be_understood_asks_what_it_says(void **state)
{
    static const struct {
        const char *line;
        const char *asked;
    } rows[] = {
        { "cases", "GET /v1/admin/cases" },
        { "cases list --state all --kind no-room", "GET /v1/admin/cases?state=all&kind=no-room" },
        { "cases --state open", "GET /v1/admin/cases?state=open" },
        { "cases show " ID, "GET /v1/admin/cases/" ID },
        { "cases resolve " ID " --verdict succeeded --reason seen --amount 1.00 --currency EUR",
          "POST /v1/admin/cases/" ID "/resolve {\"verdict\":\"succeeded\",\"reason\":\"seen\","
          "\"amount\":\"1.00\",\"currency\":\"EUR\"}" },
        { "cases compensate " ID " --reason stray",
          "POST /v1/admin/cases/" ID "/compensate {\"reason\":\"stray\"}" },
        { "webhook add --principal shop --to https://shop.example/x --id " ID,
          "PUT " HOOKS ID " {\"principal\":\"shop\",\"url\":\"https://shop.example/x\"}" },
        { "webhook add --principal shop --to https://s --type payment.captured --type case.opened "
          "--id " ID,
          "PUT " HOOKS ID " {\"principal\":\"shop\",\"url\":\"https://s\",\"types\":"
          "[\"payment.captured\",\"case.opened\"]}" },
        { "webhook list --principal s/p", "GET /v1/admin/webhooks?principal=s%2Fp" },
        { "webhook rotate " ID " --generation 3",
          "POST " HOOKS ID "/rotate {\"generation\":\"3\"}" },
        { "webhook disable " ID, "POST " HOOKS ID "/disable" },
        { "webhook enable " ID, "POST " HOOKS ID "/enable" },
        { "webhook test " ID, "POST " HOOKS ID "/test" },
        { "outbox", "GET /v1/admin/deliveries" },
        { "outbox list --state dead --webhook " ID " --principal shop",
          "GET /v1/admin/deliveries?state=dead&webhook=" ID "&principal=shop" },
        { "outbox replay --dead --webhook " ID, "GET /v1/admin/deliveries?state=dead&webhook=" ID },
        { "outbox replay --message " OTHER_ID " --webhook " ID,
          "POST /v1/admin/messages/" OTHER_ID "/replay {\"webhook\":\"" ID "\"}" },
        { "outbox replay --message msg_" OTHER_ID " --webhook " ID,
          "POST /v1/admin/messages/" OTHER_ID "/replay {\"webhook\":\"" ID "\"}" },
        { "credential list", "GET /v1/admin/credentials" },
        { "credential revoke " ID, "DELETE /v1/admin/credentials/" ID },
    };
    (void)state;
    service.status = "403 Forbidden";
    service.body = "{\"type\":\"urn:idem:problem:forbidden\",\"title\":\"No\",\"status\":403}";
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].line);
        assert_int_equal(run(rows[i].line), IDEM_EXIT_REFUSED);
        struct idem_str asked = idem_str_from(service.asked);
        EXPECT_TEXT(idem_str_next(&asked, '\n'), rows[i].asked);
        assert_int_equal(asked.len, 0);
    }
}

static void a_new_webhook_has_an_id_of_its_own(void **state)
{
    static const char line[] = "webhook add --principal shop --to https://shop.example";
    char first[TEXT_MAX];
    (void)state;
    service.status = "403 Forbidden";
    service.body = "{}";
    assert_int_equal(run(line), IDEM_EXIT_REFUSED);
    (void)snprintf(first, sizeof(first), "%s", service.asked);
    assert_int_equal(run(line), IDEM_EXIT_REFUSED);
    assert_int_equal(strlen(first), strlen(service.asked));
    assert_string_not_equal(first, service.asked);
}

static void whoever_makes_a_secret_sees_it(void **state)
{
    static const char *const lines[] = {
        "webhook add --principal shop --to https://shop.example --id " ID,
        "webhook rotate " ID " --generation 1",
        "webhook add --principal shop --to https://shop.example --json --id " ID,
    };
    (void)state;
    service.status = "200 OK";
    service.body = "{\"id\":\"" ID
                   "\",\"principal\":\"shop\",\"url\":\"https://shop.example\",\"types\":"
                   "[\"payment.captured\"],\"generation\":1,\"secret\":\"whsec_c2VjcmV0\"}";
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(lines); i++) {
        assert_int_equal(run(lines[i]), IDEM_EXIT_OK);
        const char *secret = strstr(printed, "whsec_c2VjcmV0");
        assert_non_null(secret);
        assert_null(strstr(secret + 1, "whsec_"));
        assert_non_null(strstr(printed, ID));
    }
    assert_int_equal(run("webhook disable " ID), IDEM_EXIT_OK);
    assert_null(strstr(printed, "whsec_"));
}

static void only_money_that_went_back_is_a_compensation(void **state)
{
    static const struct {
        const char *body;
        enum idem_exit status;
    } rows[] = {
        { "{\"endpoint\":\"refunds.create\",\"state\":\"succeeded\"}", IDEM_EXIT_OK },
        { "{\"endpoint\":\"refunds.create\",\"state\":\"failed\"}", IDEM_EXIT_REFUSED },
        { "{\"endpoint\":\"refunds.create\",\"state\":\"failed\",\"problem\":\"state-conflict\"}",
          IDEM_EXIT_REFUSED },
        { "{\"endpoint\":\"refunds.create\",\"state\":\"unknown\"}", IDEM_EXIT_UNKNOWN },
        { "{\"endpoint\":\"refunds.create\",\"state\":\"processing\"}", IDEM_EXIT_UNKNOWN },
        { "{\"endpoint\":\"refunds.create\"}", IDEM_EXIT_UNKNOWN },
    };
    (void)state;
    service.status = "200 OK";
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].body);
        service.body = rows[i].body;
        assert_int_equal(run("cases compensate " ID " --reason stray"), rows[i].status);
        assert_non_null(strstr(printed, "refunds.create"));
        bool conflict = strstr(rows[i].body, "state-conflict") != NULL;
        assert_int_equal(strstr(printed, "nothing left to give back") != NULL, conflict);
        assert_true(!conflict || strstr(printed, "the provider refused") == NULL);
    }
}

static void a_case_is_a_line_with_its_operation(void **state)
{
    (void)state;
    service.status = "200 OK";
    service.body =
        "{\"cases\":[{\"id\":\"" ID
        "\",\"principal\":\"shop\",\"endpoint\":\"payments.create\","
        "\"state\":\"failed\",\"provider\":\"sandbox\",\"amount\":\"1.00\",\"currency\":\"EUR\","
        "\"case\":{\"id\":\"" OTHER_ID
        "\",\"kind\":\"contradiction\",\"opened\":"
        "\"2026-11-29T09:00:00.000000Z\",\"detail\":\"done after\\u001b[2J\",\"decided\":null}}],"
        "\"next\":null}";
    assert_int_equal(run("cases"), IDEM_EXIT_OK);
    static const char *const words[] = { OTHER_ID, ID,         "contradiction", "failed",
                                         "shop",   "1.00 EUR", "sandbox",       "done after?[2J" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(words); i++) {
        print_message("# %s\n", words[i]);
        assert_non_null(strstr(printed, words[i]));
    }
    service.body = "{\"cases\":[],\"next\":null}";
    assert_int_equal(run("cases"), IDEM_EXIT_OK);
    assert_string_equal(printed, "");
}

static void help_is_given_where_it_is_asked_for(void **state)
{
    static const char *const lines[] = {
        "cases --help",     "cases -h",       "cases list --help",     "cases compensate --help",
        "webhook --help",   "webhook add -h", "webhook test --help",   "outbox --help",
        "outbox replay -h", "credential -h",  "credential add --help",
    };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(lines); i++) {
        print_message("# %s\n", lines[i]);
        assert_int_equal(run(lines[i]), IDEM_EXIT_OK);
        assert_int_equal(strncmp(printed, "usage: idem ", 12), 0);
    }
}

#define LOOKED "the output could not be written; nothing was changed"
#define ACTED  "the output could not be written; what the service had taken by then is done"

/* Which member a command needs does not matter here: all of them stand in one answer. */
static void what_is_not_written_is_said(void **state)
{
    static const struct {
        const char *line;
        const char *words;
    } rows[] = {
        { "cases --help", LOOKED },
        { "cases list --help", LOOKED },
        { "credential add --help", LOOKED },
        { "list", LOOKED },
        { "list --json", LOOKED },
        { "show " ID, LOOKED },
        { "show " ID " --json", LOOKED },
        { "show --payment " ID, LOOKED },
        { "cases", LOOKED },
        { "cases show " ID, LOOKED },
        { "status --json", LOOKED },
        { "webhook list", LOOKED },
        { "outbox", LOOKED },
        { "credential list", LOOKED },
        { "reconcile --provider p --from 2026-11-29 --to 2026-11-30 --dry-run", LOOKED },
        { "status --end-restored --reason known", ACTED },
        { "resolve " ID " --verdict noted --reason seen", ACTED },
        { "cases resolve " ID " --verdict noted --reason seen", ACTED },
        { "cases compensate " ID " --reason stray", ACTED },
        { "erase " ID " --reason asked", ACTED },
        { "erase --payment " ID " --reason asked", ACTED },
        { "webhook add --principal shop --to https://shop.example", ACTED },
        { "webhook rotate " ID " --generation 1", ACTED },
        { "webhook disable " ID, ACTED },
        { "webhook enable " ID, ACTED },
        { "webhook test " ID, ACTED },
        { "outbox replay --message " OTHER_ID " --webhook " ID, ACTED },
        { "outbox replay --dead --webhook " ID, ACTED },
        { "credential add --principal shop", ACTED },
        { "credential revoke " ID, ACTED },
    };
    (void)state;
    service.status = "200 OK";
    service.body =
        "{\"next\":null,\"state\":\"succeeded\",\"effects\":[],\"complete\":true,"
        "\"operations\":[{\"id\":\"" ID "\"}],\"cases\":[{\"case\":{\"id\":\"" ID
        "\"}}],"
        "\"deliveries\":[{\"message\":\"" ID "\"}],\"webhooks\":[{\"id\":\"" ID
        "\"}],"
        "\"credentials\":[{\"id\":\"" ID "\"}],\"time_to_truth\":{},\"restored\":false}";
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].line);
        disk_is_full = true;
        enum idem_exit status = run(rows[i].line);
        disk_is_full = false;
        print_message("# %s\n", printed);
        assert_int_equal(status, IDEM_EXIT_OTHER);
        const char *words = strstr(printed, rows[i].words);
        assert_non_null(words);
        assert_null(strstr(words + 1, "the output could not be written"));
    }
}

static void what_may_have_been_done_counts_as_a_change(void **state)
{
    static const struct {
        const char *status;
        const char *method;
        bool changed;
    } rows[] = {
        { "200 OK", "POST", true },
        { "200 OK", "GET", false },
        { "403 Forbidden", "POST", false },
        { "500 Internal Server Error", "POST", true },
        { "503 Service Unavailable", "POST", true },
        { "500 Internal Server Error", "GET", false },
    };
    (void)state;
    service.body = "{}";
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        struct idem_session *session = idem_session_create();
        assert_non_null(session);
        print_message("# %s %s\n", rows[i].method, rows[i].status);
        service.status = rows[i].status;
        (void)idem_session_ask(session, rows[i].method, "/v1/admin/x", IDEM_STR(""));
        assert_int_equal(session->changed, rows[i].changed);
        idem_session_destroy(session);
    }
}

/* The money has not gone back: that is worse than a disk that is full. */
static void what_is_not_written_hides_no_other_status(void **state)
{
    char text[TEXT_MAX];
    (void)state;
    service.status = "200 OK";
    service.body = text;
    for (int len = 0; len <= 6000; len += 6000) { /* Kept for a while, and written at once. */
        (void)snprintf(text, sizeof(text),
                       "{\"state\":\"failed\",\"endpoint\":\"refunds.create\"%*s}", len, "");
        disk_is_full = true;
        enum idem_exit status = run("cases compensate " ID " --reason stray --json");
        disk_is_full = false;
        assert_int_equal(status, IDEM_EXIT_REFUSED);
        assert_non_null(strstr(printed, ACTED));
        assert_non_null(strstr(printed, "the provider refused"));
    }
}

static void a_list_that_is_none_of_ours_ends(void **state)
{
    char many[TEXT_MAX] = "{\"next\":null,\"operations\":[{}";
    static const struct {
        const char *body;
        const char *words;
    } rows[] = {
        { "{\"operations\":[],\"next\":\"1\"}", "does not come to an end" },
        { "{\"operations\":[]}", "not one of this version" },
        { "{\"operations\":[{\"id\":\"" ID "\"}]}", "not one of this version" },
        { "{\"operations\":[{\"id\":\"" ID "\"}],\"next\":\"\"}", "not one of this version" },
        { "{\"operations\":{},\"next\":null}", "not one of this version" },
        { "{\"cases\":[],\"next\":null}", "not one of this version" },
        { "{\"operations\":[1],\"next\":null}", "not one of this version" },
    };
    (void)state;
    service.status = "200 OK";
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(rows); i++) {
        print_message("# %s\n", rows[i].body);
        service.body = rows[i].body;
        assert_int_equal(run("list"), IDEM_EXIT_OTHER);
        assert_non_null(strstr(printed, rows[i].words));
        assert_true(strlen(service.asked) < 200);
        assert_int_equal(run("erase --payment " ID " --reason asked"), IDEM_EXIT_OTHER);
        assert_non_null(strstr(printed, rows[i].words));
        assert_null(strstr(service.asked, "erase"));
    }
    for (int i = 0; i < 200; i++) {
        (void)strcat(many, ",{}"); /* It fits. */
    }
    (void)strcat(many, "]}");
    service.body = many;
    assert_int_equal(run("list"), IDEM_EXIT_OTHER);
    assert_non_null(strstr(printed, "not one of this version"));
    assert_int_equal(run("list --json"), IDEM_EXIT_OK); /* No table is filled. */
}

static void an_answer_that_is_none_of_ours_ends_nothing_else(void **state)
{
    (void)state;
    service.status = "200 OK";
    service.body = "{\"operations\":[],\"time_to_truth\":[]}";
    assert_int_equal(run("status"), IDEM_EXIT_OTHER);
    assert_non_null(strstr(printed, "not one of this version"));
    service.body = "{\"next\":1,\"effect\":[],\"attempts\":[1],\"timeline\":{},\"cases\":\"\"}";
    assert_int_equal(run("show " ID), IDEM_EXIT_OK);
}

static void two_formats_are_one_too_many(void **state)
{
#define PERIOD "reconcile --provider p --from 2026-11-29 --to 2026-11-30 "
    static const char *const lines[] = { PERIOD "--json --format csv",
                                         PERIOD "--format table --json" };
    (void)state;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(lines); i++) {
        assert_int_equal(run(lines[i]), IDEM_EXIT_USAGE);
        assert_string_equal(service.asked, "");
        assert_non_null(strstr(printed, "--json is --format json, and not --format "));
    }
    service.status = "200 OK";
    service.body = "{\"effects\":[],\"complete\":true,\"next\":null}";
    assert_int_equal(run(PERIOD "--json --format json"), IDEM_EXIT_OK);
}

static void a_value_is_one_member_of_a_query(void **state)
{
    char memory[64];
    struct idem_buf path;
    (void)state;
    idem_buf_init(&path, memory, sizeof(memory));
    idem_buf_add(&path, IDEM_STR("/list"));
    idem_path_member(&path, "state", NULL);
    EXPECT_TEXT(idem_buf_str(&path), "/list");
    idem_path_member(&path, "a", "x-._~Z9");
    idem_path_member(&path, "b", "&c=1 #%\xC3\xBC?");
    idem_path_member(&path, "c", "");
    EXPECT_TEXT(idem_buf_str(&path), "/list?a=x-._~Z9&b=%26c%3D1%20%23%25%C3%BC%3F&c=");
    assert_true(idem_path_end(&path));
    assert_string_equal(memory, "/list?a=x-._~Z9&b=%26c%3D1%20%23%25%C3%BC%3F&c=");
}

static void a_path_that_is_too_long_is_refused(void **state)
{
    char memory[16];
    struct idem_buf path;
    (void)state;
    idem_buf_init(&path, memory, sizeof(memory));
    idem_buf_add(&path, IDEM_STR("/list"));
    idem_path_member(&path, "principal", "shop");
    assert_false(idem_path_end(&path));
}

static void evidence_goes_into_a_body_as_it_was_said(void **state)
{
    char memory[256];
    struct idem_buf body;
    struct idem_arguments arguments = { .word = NULL };
    (void)state;
    arguments.own[IDEM_EVIDENCE_VERDICT - IDEM_OPTION_OWN] = "succeeded";
    assert_false(idem_evidence_given(&arguments));
    arguments.own[IDEM_EVIDENCE_REASON - IDEM_OPTION_OWN] = "seen \"there\"";
    assert_true(idem_evidence_given(&arguments));
    arguments.own[IDEM_EVIDENCE_AMOUNT - IDEM_OPTION_OWN] = "100.00";
    arguments.own[IDEM_EVIDENCE_CURRENCY - IDEM_OPTION_OWN] = "CNY";
    arguments.own[IDEM_EVIDENCE_REFERENCE - IDEM_OPTION_OWN] = "T-1";
    idem_buf_init(&body, memory, sizeof(memory));
    assert_true(idem_evidence_body(&arguments, &body));
    EXPECT_TEXT(idem_buf_str(&body),
                "{\"verdict\":\"succeeded\",\"reason\":\"seen \\\"there\\\"\",\"amount\":"
                "\"100.00\",\"currency\":\"CNY\",\"reference\":\"T-1\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_that_cannot_be_understood_is_refused),
        cmocka_unit_test(a_line_that_can_be_understood_asks_what_it_says),
        cmocka_unit_test(a_new_webhook_has_an_id_of_its_own),
        cmocka_unit_test(whoever_makes_a_secret_sees_it),
        cmocka_unit_test(only_money_that_went_back_is_a_compensation),
        cmocka_unit_test(a_case_is_a_line_with_its_operation),
        cmocka_unit_test(help_is_given_where_it_is_asked_for),
        cmocka_unit_test(what_is_not_written_is_said),
        cmocka_unit_test(what_may_have_been_done_counts_as_a_change),
        cmocka_unit_test(what_is_not_written_hides_no_other_status),
        cmocka_unit_test(a_list_that_is_none_of_ours_ends),
        cmocka_unit_test(an_answer_that_is_none_of_ours_ends_nothing_else),
        cmocka_unit_test(two_formats_are_one_too_many),
        cmocka_unit_test(a_value_is_one_member_of_a_query),
        cmocka_unit_test(a_path_that_is_too_long_is_refused),
        cmocka_unit_test(evidence_goes_into_a_body_as_it_was_said),
    };
    return cmocka_run_group_tests_name("cli/command", tests, setup, teardown);
}
