/*
 * A lost answer is not a failure: the request may have been carried out. So the message after the
 * last try says "not known", and the exit status differs from that of a refusal.
 */
#include "cli/session.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bug.h"
#include "base/clock.h"
#include "cli/table.h"

#define URL_DEFAULT        "http://127.0.0.1:8080"
#define TRIES_MAX          4
#define PAUSE_FIRST_US     (200 * IDEM_US_PER_MS)
#define CONNECT_TIMEOUT_US (5 * IDEM_US_PER_SECOND)
#define CALL_TIMEOUT_US    (15 * IDEM_US_PER_SECOND)
#define TEXT_MAX           1024

struct idem_session *idem_session_create(void)
{
    struct idem_session *session = calloc(1, sizeof(*session));
    if (session == NULL) {
        (void)fputs("idem: out of memory\n", stderr);
    }
    return session;
}

void idem_session_destroy(struct idem_session *session)
{
    if (session != NULL) {
        explicit_bzero(session, sizeof(*session));
        free(session);
    }
}

bool idem_session_option(struct idem_session *session, int letter, const char *value)
{
    switch (letter) {
    case IDEM_OPTION_URL:
        session->url = value;
        return true;
    case IDEM_OPTION_CREDENTIAL:
        session->credential_file = value;
        return true;
    case IDEM_OPTION_JSON:
        session->json = true;
        return true;
    case IDEM_OPTION_INSECURE:
        session->insecure = true;
        return true;
    case 'h':
        session->help = true;
        return true;
    default: /* Not an enum: what getopt gives. */
        return false;
    }
}

/* Who asks. The bearer is read when it is needed first. */
static bool credential_load(struct idem_session *session)
{
    if (session->credential[0] != '\0') {
        return true;
    }
    const char *variable = session->credential_file == NULL ? "IDEM_CREDENTIAL" : NULL;
    if (variable != NULL && getenv(variable) == NULL) {
        (void)fputs(
            "idem: who asks? Give --credential-file FILE, or the operator's bearer in "
            "IDEM_CREDENTIAL\n",
            stderr);
        return false;
    }
    struct idem_error error;
    if (idem_secret_word(session->credential_file, variable, session->credential, &error) !=
        IDEM_OK) {
        (void)fprintf(stderr, "idem: %s\n", error.text);
        return false;
    }
    return true;
}

/* True if `url` is https, or http to this machine, by address or as localhost. */
static bool url_is_private(const char *url)
{
    static const char scheme[] = "http://";
    if (strncmp(url, scheme, sizeof(scheme) - 1) != 0) {
        return true;
    }
    const char *host = url + sizeof(scheme) - 1;
    size_t len = strcspn(host, "/?#");
    struct idem_str name = idem_str_slice(idem_str_from(host), 0, len);
    if (idem_str_find(name, '@') < name.len) {
        return false;
    }
    if (!idem_str_starts(name, IDEM_STR("["))) {
        name = idem_str_slice(name, 0, idem_str_find(name, ':'));
    }
    struct in_addr address;
    char text[64];
    (void)snprintf(text, sizeof(text), "%.*s", (int)name.len,
                   name.data); /* Longer is no address. */
    return strcmp(text, "localhost") == 0 || idem_str_starts(name, IDEM_STR("[::1]")) ||
           (inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127);
}

static bool url_make(struct idem_session *session, const char *path)
{
    const char *base = session->url != NULL ? session->url : getenv("IDEM_URL");
    if (base == NULL) {
        base = URL_DEFAULT;
    }
    bool known = strncmp(base, "http://", 7) == 0 || strncmp(base, "https://", 8) == 0;
    if (known && !session->insecure && !url_is_private(base)) {
        (void)fprintf(stderr,
                      "idem: %s: the bearer would go in clear to another machine: use https, or "
                      "--insecure\n",
                      base);
        return false;
    }
    int len = snprintf(session->full_url, sizeof(session->full_url), "%s%s", base, path);
    if (!known || base[strlen(base) - 1] == '/' || len >= (int)sizeof(session->full_url)) {
        (void)fprintf(stderr,
                      "idem: %s: a URL is http:// or https://, without a slash at its end\n", base);
        return false;
    }
    return true;
}

static void pause_us(int64_t us)
{
    struct timespec pause = {
        .tv_sec = (time_t)(us / IDEM_US_PER_SECOND),
        .tv_nsec = (long)(us % IDEM_US_PER_SECOND) * 1000,
    };
    (void)nanosleep(&pause, NULL); /* A signal shortens it, no more. */
}

/* Fills in the call; what it points to is the session's or the caller's. */
static void call_make(struct idem_session *session, const char *method, struct idem_str body)
{
    int len = snprintf(session->authorization, sizeof(session->authorization),
                       "Authorization: Bearer %s", session->credential);
    IDEM_ASSERT(len > 0 && len < (int)sizeof(session->authorization));
    struct idem_http_call *call = &session->call;
    call->method = method;
    call->url = session->full_url;
    call->headers[0] = idem_str_from(session->authorization);
    call->headers[1] = IDEM_STR("Accept: application/json");
    call->headers[2] = IDEM_STR("Content-Type: application/json");
    call->header_count = body.len > 0 ? 3 : 2;
    call->body = body;
    call->connect_timeout_us = CONNECT_TIMEOUT_US;
    call->timeout_us = CALL_TIMEOUT_US;
    call->answer_room = session->answer;
    call->answer_room_size = sizeof(session->answer);
}

/* The answer said nothing about this request yet: no answer, or "not now". */
static bool is_worth_another_try(const struct idem_http_call *call)
{
    return call->verdict != IDEM_HTTP_ANSWERED || call->status == 503 || call->status == 429;
}

/* It may have been done: it left and nothing came back, or the service does not know either. */
static bool leaves_doubt(const struct idem_http_call *call)
{
    return call->verdict == IDEM_HTTP_UNKNOWN ||
           (call->verdict == IDEM_HTTP_ANSWERED && call->status == 503);
}

/* Nothing of it was done, by no try. */
static bool is_refused(const struct idem_session *session)
{
    const struct idem_http_call *call = &session->call;
    return !session->doubt && (call->verdict == IDEM_HTTP_NOT_SENT ||
                               (call->verdict == IDEM_HTTP_ANSWERED && call->status / 100 == 4));
}

static bool call_run(struct idem_session *session)
{
    int64_t pause = PAUSE_FIRST_US;
    session->doubt = false;
    for (int i = 0; i < TRIES_MAX; i++) {
        struct idem_error error;
        if (idem_call_wait(&session->call, &error) != IDEM_OK) {
            (void)fprintf(stderr, "idem: %s\n", error.text);
            return false;
        }
        session->doubt = session->doubt || leaves_doubt(&session->call);
        if (!is_worth_another_try(&session->call) || i == TRIES_MAX - 1) {
            break;
        }
        pause_us(pause);
        pause *= 2;
    }
    return true;
}

static bool document_read(struct idem_session *session)
{
    struct idem_json_fault fault;
    idem_json_init(&session->document, session->tokens, IDEM_SESSION_TOKENS);
    return idem_json_parse(&session->document, session->call.answer, &fault) &&
           session->document.tokens[0].kind == IDEM_JSON_OBJECT;
}

/* A member of the problem, as it may be shown on a terminal. */
static const char *problem_text(const struct idem_session *session,
                                const char *name,
                                char *memory,
                                size_t max)
{
    struct idem_buf buf;
    idem_buf_init(&buf, memory, max - 1);
    size_t index = idem_json_member(&session->document, 0, idem_str_from(name));
    if (index != 0 && session->document.tokens[index].kind == IDEM_JSON_STRING) {
        idem_json_unescape(&session->document, index, &buf);
    }
    memory[buf.full ? 0 : buf.len] = '\0';
    idem_terminal_safe(memory, strlen(memory));
    return memory;
}

/* Says what is wrong, and gives the exit status. */
static enum idem_exit fault_say(struct idem_session *session)
{
    const struct idem_http_call *call = &session->call;
    if (session->doubt && is_worth_another_try(call)) {
        (void)fprintf(stderr,
                      "idem: %s: %s. It is not known whether this was done: repeat the command.\n",
                      call->url, call->detail[0] != '\0' ? call->detail : "no final answer came");
        return IDEM_EXIT_UNKNOWN;
    }
    if (call->verdict == IDEM_HTTP_NOT_SENT) {
        (void)fprintf(stderr, "idem: %s: %s. Nothing was sent.\n", call->url, call->detail);
        return IDEM_EXIT_OTHER;
    }
    if (!document_read(session)) {
        (void)fprintf(stderr,
                      "idem: %s: status %d, and no answer of idem's: is this the service?\n",
                      call->url, call->status);
        return IDEM_EXIT_OTHER;
    }
    char title[TEXT_MAX];
    char detail[TEXT_MAX];
    (void)fprintf(stderr, "idem: %s (%d). %s\n",
                  problem_text(session, "title", title, sizeof(title)), call->status,
                  problem_text(session, "detail", detail, sizeof(detail)));
    return IDEM_EXIT_REFUSED;
}

enum idem_exit idem_session_ask(struct idem_session *session,
                                const char *method,
                                const char *path,
                                struct idem_str body)
{
    if (!url_make(session, path) || !credential_load(session)) {
        return IDEM_EXIT_USAGE;
    }
    call_make(session, method, body);
    if (!call_run(session)) {
        return IDEM_EXIT_OTHER;
    }
    bool done = session->call.verdict == IDEM_HTTP_ANSWERED && session->call.status / 100 == 2;
    session->changed |= strcmp(method, "GET") != 0 && !is_refused(session);
    if (done && document_read(session)) {
        return IDEM_EXIT_OK;
    }
    return fault_say(session);
}

enum idem_exit idem_session_print_json(const struct idem_session *session)
{
    struct idem_str text = session->call.answer;
    while (text.len > 0 && text.data[text.len - 1] == '\n') {
        text.len -= 1;
    }
    bool printed = fwrite(text.data, 1, text.len, stdout) == text.len && putchar('\n') != EOF;
    return printed ? IDEM_EXIT_OK : IDEM_EXIT_OTHER;
}
