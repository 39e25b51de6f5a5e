/*
 * One run of an intent: sends, questions and pauses, one after the other, until the course says
 * END.
 *
 * Nothing here decides. What an exchange means is meaning.c, what follows is course.c; this file
 * gives them the scene as it is at that moment and does what they say. Two guards stand beside
 * them all the same, where a request leaves: the record is durable (its version says so), and the
 * transport lets nothing out at or after the end of the run's time for sending or of the key's
 * window.
 *
 * No retry inside a retry: a call is one request (transport/client.h), a question that fails is a
 * step of the same course, and nobody above repeats a run by itself.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/bug.h"
#include "base/crash.h"
#include "base/date.h"
#include "client/client_internal.h"
#include "client/target.h"

#define RESERVE_MAX_US     (2 * IDEM_US_PER_SECOND) /* Kept of a deadline for questions. */
#define TRY_MIN_US         (50 * IDEM_US_PER_MS)    /* Less is no try. */
#define TRY_USEFUL_US      IDEM_US_PER_SECOND
#define SERVER_WAIT_MAX_US (11 * IDEM_US_PER_SECOND)

static int64_t now_us(const struct idem_client *client)
{
    return idem_clock_mono_us(client->clock);
}

static int64_t least(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

static struct idem_inquiry_from inquiry_from(const struct idem_client_intent *intent)
{
    return (struct idem_inquiry_from){
        .dialect = intent->dialect,
        .url = intent->record.url,
        .operation_url =
            idem_str_from(intent->dialect->has_operations ? intent->operation_url : ""),
        .status_url = intent->record.status_url,
    };
}

static bool can_ask(const struct idem_client_intent *intent)
{
    char memory[IDEM_CLIENT_URL_MAX + 256];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    const struct idem_inquiry_from from = inquiry_from(intent);
    return idem_inquiry_url(&from, &buf) != IDEM_INQUIRY_NONE && !buf.full;
}

/* The part of the deadline in which sends may begin. */
static int64_t send_until_us(const struct idem_client_intent *intent)
{
    if (!can_ask(intent)) {
        return intent->deadline_us;
    }
    return intent->deadline_us - least(intent->record.deadline_us / 10, RESERVE_MAX_US);
}

/*
 * Until when a send may begin. A repeat has a time in which an answer can come: one that is cut off
 * at once would leave doubt where there was none.
 */
static int64_t begin_until_us(const struct idem_client_intent *intent)
{
    int64_t least_us = least(intent->record.deadline_us / 10, TRY_USEFUL_US);
    return send_until_us(intent) - (intent->sends > 0 ? least_us : 0);
}

static struct idem_course_scene scene_make(struct idem_client_intent *intent)
{
    struct idem_client *client = intent->client;
    struct idem_course_scene scene = {
        .now_us = now_us(client),
        .deadline_us = intent->deadline_us,
        .send_until_us = begin_until_us(intent),
        .window_us = intent->window_us,
        .can_ask = can_ask(intent),
        .backoff_first_us = client->options.backoff_first_ms * IDEM_US_PER_MS,
        .backoff_max_us = client->options.backoff_max_ms * IDEM_US_PER_MS,
    };
    scene.budget = !client->options.no_repeats && idem_budget_allows(&client->budget, scene.now_us);
    idem_random_fill(client->random, &scene.dice, sizeof(scene.dice));
    return scene;
}

/* Does what the course says. */
static void move_make(struct idem_client_intent *intent, const struct idem_move *move)
{
    intent->move = *move;
    switch (move->kind) {
    case IDEM_MOVE_SEND:
    case IDEM_MOVE_ASK:
        if (move->repeat) {
            idem_budget_spend(&intent->client->budget, now_us(intent->client));
        }
        intent->due_us = now_us(intent->client) + move->pause_us;
        idem_client_place(intent, move->pause_us > 0 ? IDEM_PLACE_PAUSING : IDEM_PLACE_READY);
        return;
    case IDEM_MOVE_END:
        idem_verdict_settle(intent, move);
        idem_client_place(intent, IDEM_PLACE_ENDED);
        return;
    case IDEM_MOVE_NONE:
        break;
    }
    IDEM_UNREACHABLE();
}

/* Until when the server knows the key, on the clock of this boot. */
static int64_t window_end_us(struct idem_client_intent *intent)
{
    struct idem_client *client = intent->client;
    struct idem_moment now = idem_client_now(client);
    int64_t window =
        intent->record.window_us > 0 ? intent->record.window_us : intent->dialect->window_us;
    int64_t elapsed;
    if (!idem_moment_elapsed(&intent->record.first, &now,
                             idem_client_journal_high_us(client->journal), &elapsed)) {
        return INT64_MIN;
    }
    int64_t left_us = window - elapsed;
    if (intent->record.expires_us > 0) { /* Its server has said when. */
        left_us = least(left_us, intent->record.expires_us - now.wall_us);
    }
    return now.mono_us + left_us;
}

/* begin() has taken it off in the journal. */
static void verdict_forget(struct idem_client_intent *intent)
{
    struct idem_client_record *record = &intent->record;

    idem_answer_clear(&intent->answer);
    intent->message[0] = '\0';
    record->outcome = IDEM_CLIENT_NO_OUTCOME;
    record->reason = IDEM_CLIENT_REASON_NONE;
    record->over = false;
    record->replayed = false;
    record->ended_us = 0;
    record->message = (struct idem_str){ .len = 0 };
    record->answer_status = 0;
    record->answer_headers = (struct idem_str){ .len = 0 };
    record->answer_body = (struct idem_str){ .len = 0 };
    idem_verdict_from_record(intent, true);
}

void idem_run_begin(struct idem_client_intent *intent, bool doubt)
{
    struct idem_client *client = intent->client;

    IDEM_ASSERT(intent->record.version > 0); /* It is in the journal. */
    IDEM_ASSERT(intent->record.doubt);
    IDEM_ASSERT(intent->record.first.wall_us > 0);
    intent->deadline_us = now_us(client) + intent->record.deadline_us;
    intent->window_us = window_end_us(intent);
    intent->stopping = false;
    intent->first_sent_us = intent->record.first.wall_us;
    intent->sends = 0;
    intent->asks = 0;
    intent->why = "no try has ended";
    intent->last[0] = '\0';
    verdict_forget(intent);
    idem_course_begin(&intent->course, doubt);
    idem_budget_earn(&client->budget, now_us(client));

    struct idem_course_scene scene = scene_make(intent);
    struct idem_move move = idem_course_first(&intent->course, &scene);
    move_make(intent, &move);
}

/* Filling in a call. */

static void line_add(struct idem_http_call *call, struct idem_str line)
{
    IDEM_ASSERT(call->header_count < IDEM_HTTP_HEADERS_MAX);
    call->headers[call->header_count] = line;
    call->header_count += 1;
}

/* The line that `buf` has got since `from`. */
static void line_add_from(struct idem_http_call *call, const struct idem_buf *buf, size_t from)
{
    IDEM_ASSERT(!buf->full); /* Its parts have their limits: IDEM_CLIENT_LINES_SIZE. */
    line_add(call, idem_str_slice(idem_buf_str(buf), from, buf->len - from));
}

static bool header_is_given(const struct idem_client_intent *intent, const char *name)
{
    return idem_head_find(intent->record.headers, name).data != NULL;
}

/* What the dialect of idem understands beyond the key. */
static void lines_add_own(const struct idem_client_intent *intent,
                          struct idem_http_call *call,
                          struct idem_buf *buf)
{
    if (intent->dialect->first_sent != NULL) {
        size_t from = buf->len;
        idem_buf_printf(buf, "%s: ", intent->dialect->first_sent);
        idem_date_print_imf(intent->first_sent_us, buf);
        line_add_from(call, buf, from);
    }
    /* The answer that it runs (202, with an address) should come before nobody waits any more. */
    if (intent->dialect->has_operations && call->timeout_us < SERVER_WAIT_MAX_US &&
        !header_is_given(intent, "Prefer")) {
        size_t from = buf->len;
        int64_t wait_s = (call->timeout_us - IDEM_US_PER_SECOND / 2) / IDEM_US_PER_SECOND;
        idem_buf_printf(buf, "Prefer: wait=%d", wait_s > 0 ? (int)wait_s : 0);
        line_add_from(call, buf, from);
    }
}

/* Who asks, and for what. */
static void lines_add_common(const struct idem_client_intent *intent,
                             struct idem_http_call *call,
                             struct idem_buf *buf)
{
    size_t from = buf->len;
    idem_dialect_key_line(intent->dialect, idem_str_from(intent->key), buf);
    line_add_from(call, buf, from);
    if (intent->credential[0] != '\0') {
        line_add(call, idem_str_from(intent->credential));
    }
}

/* Answers are read and kept as they come. Without this line any coding would be acceptable. */
static void line_add_coding(const struct idem_client_intent *intent, struct idem_http_call *call)
{
    if (!header_is_given(intent, "Accept-Encoding")) { /* Of an older intent. */
        line_add(call, IDEM_STR("Accept-Encoding: identity"));
    }
}

static void call_make_send(struct idem_client_slot *slot)
{
    struct idem_client_intent *intent = slot->intent;
    struct idem_http_call *call = &slot->call;
    struct idem_buf buf;

    int len = snprintf(slot->url, sizeof(slot->url), "%.*s", (int)intent->record.url.len,
                       intent->record.url.data);
    IDEM_ASSERT(len > 0 && len < (int)sizeof(slot->url));
    int64_t left_us = send_until_us(intent) - now_us(intent->client);
    call->timeout_us = least(call->timeout_us, left_us > TRY_MIN_US ? left_us : TRY_MIN_US);
    call->not_after_us = least(send_until_us(intent), intent->window_us);
    call->body = intent->record.body;
    if (!intent->course.doubt) { /* What was tried before never left, or did nothing. */
        intent->first_sent_us = idem_clock_wall_us(intent->client->clock);
    }

    idem_buf_init(&buf, slot->lines, sizeof(slot->lines));
    lines_add_common(intent, call, &buf);
    lines_add_own(intent, call, &buf);
    line_add_coding(intent, call);
    struct idem_str lines = intent->record.headers;
    while (lines.len > 0) {
        line_add(call, idem_str_next(&lines, '\n'));
    }
}

static void call_make_ask(struct idem_client_slot *slot)
{
    struct idem_client_intent *intent = slot->intent;
    struct idem_http_call *call = &slot->call;
    struct idem_buf buf;

    idem_buf_init(&buf, slot->url, sizeof(slot->url) - 1);
    const struct idem_inquiry_from from = inquiry_from(intent);
    slot->way = idem_inquiry_url(&from, &buf);
    IDEM_ASSERT(slot->way != IDEM_INQUIRY_NONE && !buf.full); /* can_ask() said so. */
    slot->url[buf.len] = '\0';
    call->method = "GET";
    int64_t left_us = intent->deadline_us - now_us(intent->client);
    call->timeout_us = least(call->timeout_us, left_us > TRY_MIN_US ? left_us : TRY_MIN_US);
    call->not_after_us = now_us(intent->client) + call->timeout_us;
    idem_buf_init(&buf, slot->lines, sizeof(slot->lines));
    if (idem_target_same_origin(idem_str_from(slot->url), intent->record.url)) {
        lines_add_common(intent, call, &buf); /* To nobody else: credential and key open doors. */
    }
    line_add(call, IDEM_STR("Accept: application/json"));
    line_add(call, IDEM_STR("Accept-Encoding: identity"));
}

static const char *method_text(const struct idem_client_intent *intent)
{
    static const char *const methods[] = { "POST", "PUT", "PATCH", "DELETE" };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(methods); i++) {
        if (idem_str_equal(intent->record.method, idem_str_from(methods[i]))) {
            return methods[i];
        }
    }
    IDEM_UNREACHABLE(); /* Checked when the intent was made or read. */
}

static void slot_free(struct idem_client_slot *slot)
{
    struct idem_client *client = slot->intent->client;
    slot->intent->slot = NULL;
    slot->intent = NULL;
    idem_list_push(&client->idle, &slot->node);
}

/* What came of a request or question, given to the course. */
static void reading_take(struct idem_client_intent *intent,
                         struct idem_reading reading,
                         bool unsent)
{
    bool asked = intent->move.kind == IDEM_MOVE_ASK;
    struct idem_course_scene scene = scene_make(intent);
    scene.unsent = unsent;
    intent->why = reading.why;
    intent->look_first = reading.look_first;
    struct idem_move move = idem_course_next(&intent->course, &scene, reading, asked);
    if (intent->stopping && move.kind != IDEM_MOVE_END) {
        move = idem_course_cut(&intent->course, false, IDEM_CLIENT_STOPPED);
    }
    move_make(intent, &move);
}

void idem_run_go(struct idem_client_intent *intent, struct idem_client_slot *slot)
{
    struct idem_client *client = intent->client;
    struct idem_http_call *call = &slot->call;
    bool asking = intent->move.kind == IDEM_MOVE_ASK;

    idem_list_remove(&client->idle, &slot->node);
    slot->intent = intent;
    slot->way = IDEM_INQUIRY_NONE;
    intent->slot = slot;
    *call = (struct idem_http_call){
        .method = method_text(intent),
        .url = slot->url,
        .connect_timeout_us = client->options.connect_timeout_ms * IDEM_US_PER_MS,
        .timeout_us = client->options.try_timeout_ms * IDEM_US_PER_MS,
        .answer_room = slot->answer_room,
        .answer_room_size = client->options.answer_max,
        .head_room = slot->head_room,
        .head_room_size = sizeof(slot->head_room),
    };
    if (asking) {
        call_make_ask(slot);
    } else {
        call_make_send(slot);
    }
    if (idem_http_client_submit(client->http, call) != IDEM_OK) { /* There is a place for it. */
        slot_free(slot);
        reading_take(intent,
                     (struct idem_reading){ .meaning = IDEM_MEANING_TURNED_AWAY,
                                            .next = IDEM_NEXT_STOP,
                                            .why = "its headers cannot be sent" },
                     true);
        return;
    }
    intent->sends += asking ? 0 : 1;
    intent->asks += asking ? 1 : 0;
    idem_client_place(intent, IDEM_PLACE_BUSY);
}

/*
 * An answer names where it can be asked for: kept, so that it can be after a crash too. Only where
 * the dialect has operations the client itself asks there; else it is for a person.
 */
static void location_keep(struct idem_client_intent *intent, const struct idem_signal *signal)
{
    struct idem_buf buf;
    char memory[IDEM_CLIENT_URL_MAX + 1];

    idem_buf_init(&buf, memory, sizeof(memory) - 1);
    if (signal->status != 202 || signal->location.len == 0 ||
        !idem_inquiry_resolve(intent->record.url, signal->location, &buf) || buf.full ||
        idem_str_equal(idem_buf_str(&buf), idem_str_from(intent->operation_url))) {
        return;
    }
    (void)snprintf(intent->operation_url, sizeof(intent->operation_url), "%.*s", (int)buf.len,
                   memory);
    intent->record.operation_url = idem_str_from(intent->operation_url);
    idem_client_note_due(intent);
}

/* "503 unavailable", "connection refused": for the progress line. */
static void last_set(struct idem_client_intent *intent,
                     const struct idem_http_call *call,
                     const char *code)
{
    if (call->verdict == IDEM_HTTP_ANSWERED) {
        (void)snprintf(intent->last, sizeof(intent->last), "%d%s%.*s", call->status,
                       code[0] != '\0' ? " " : "", IDEM_CLIENT_LAST_MAX / 2, code);
        return;
    }
    (void)snprintf(intent->last, sizeof(intent->last), "%.*s", IDEM_CLIENT_LAST_MAX - 1,
                   call->detail);
}

/* An answer that cannot be kept was not read. */
static const struct idem_reading no_memory = {
    .meaning = IDEM_MEANING_UNSURE,
    .next = IDEM_NEXT_ASK,
    .why = "there was no memory for the answer",
};

static struct idem_reading send_read(struct idem_client_intent *intent,
                                     const struct idem_http_call *call)
{
    struct idem_signal signal;
    int64_t wall_us = idem_clock_wall_us(intent->client->clock);

    idem_signal_read(intent->dialect, idem_str_from(intent->key), call, wall_us, &signal);
    last_set(intent, call, signal.code);
    if (call->verdict == IDEM_HTTP_ANSWERED && signal.echoed != IDEM_SAID_NO) {
        if (!idem_answer_keep(&intent->answer, call->status, call->head, call->answer)) {
            return no_memory;
        }
        intent->record.replayed = signal.replayed == IDEM_SAID_YES;
        if (signal.expires_in_us > 0) { /* Of this run's sends, too. */
            intent->record.expires_us = wall_us + signal.expires_in_us;
            intent->window_us =
                least(intent->window_us, now_us(intent->client) + signal.expires_in_us);
        }
        location_keep(intent, &signal);
    }
    return idem_meaning_of(intent->dialect, &signal);
}

/*
 * By the business id: whatever is there, it says nothing about this key. It is for a person, and is
 * not kept: beside a verdict it would look like the intent's answer.
 */
static struct idem_reading business_read(const struct idem_http_call *call)
{
    bool shown = call->verdict == IDEM_HTTP_ANSWERED && call->status / 100 == 2;
    return (struct idem_reading){
        .meaning = IDEM_MEANING_UNSURE,
        .next = shown ? IDEM_NEXT_STOP : IDEM_NEXT_ASK,
        .why = shown ? "something is there under the business id, for a person to look at"
                     : "the question by business id was not answered",
        .retry_after_us = call->retry_after_us,
    };
}

static struct idem_reading ask_read(struct idem_client_intent *intent,
                                    const struct idem_http_call *call,
                                    enum idem_inquiry_way way)
{
    last_set(intent, call, "to a question");
    if (way == IDEM_INQUIRY_BUSINESS) {
        return business_read(call);
    }
    /* As long as the answer: what is unescaped does not grow. */
    char *memory = malloc(call->answer.len + 1);
    if (memory == NULL) {
        return no_memory;
    }
    struct idem_buf buf;
    idem_buf_init(&buf, memory, call->answer.len + 1);
    struct idem_inquiry_answer answer = { .status = 0 };
    struct idem_reading reading =
        idem_inquiry_read(intent->dialect, idem_str_from(intent->key), call, &buf, &answer);
    intent->record.replayed = answer.status != 0;
    if (answer.status != 0 &&
        !idem_answer_keep(&intent->answer, answer.status, answer.headers, answer.body)) {
        reading = no_memory;
    }
    free(memory);
    return reading;
}

void idem_run_answered(struct idem_client_intent *intent)
{
    struct idem_client_slot *slot = intent->slot;
    const struct idem_http_call *call = &slot->call;
    bool asked = intent->move.kind == IDEM_MOVE_ASK;

    IDEM_ASSERT(call->verdict != IDEM_HTTP_NONE);
    idem_crash_point("client-answered");
    struct idem_reading reading =
        asked ? ask_read(intent, call, slot->way) : send_read(intent, call);
    bool unsent = call->verdict == IDEM_HTTP_NOT_SENT;
    slot_free(slot);
    reading_take(intent, reading, unsent);
}

void idem_run_wake(struct idem_client_intent *intent)
{
    if (now_us(intent->client) >= intent->deadline_us) {
        idem_run_cut(intent, IDEM_CLIENT_DEADLINE);
        return;
    }
    idem_client_place(intent, IDEM_PLACE_READY);
}

void idem_run_cut(struct idem_client_intent *intent, enum idem_client_reason reason)
{
    IDEM_ASSERT(intent->place != IDEM_PLACE_BUSY || intent->slot == NULL);
    struct idem_move move = idem_course_cut(&intent->course, false, reason);
    move_make(intent, &move);
}

int64_t idem_run_due_us(const struct idem_client_intent *intent)
{
    return intent->place == IDEM_PLACE_PAUSING ? least(intent->due_us, intent->deadline_us)
                                               : intent->deadline_us;
}
