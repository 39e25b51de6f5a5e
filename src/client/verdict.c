/*
 * What a run has shown, in words that say two things: what happened to the money, and what to do.
 *
 * The sentence is made once, when the run ends, and kept in the journal: whoever resumes the intent
 * reads what the last run knew.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "client/client_internal.h"

const char *idem_client_outcome_name(enum idem_client_outcome outcome)
{
    switch (outcome) {
    case IDEM_CLIENT_NO_OUTCOME:
        return "none";
    case IDEM_CLIENT_DONE:
        return "done";
    case IDEM_CLIENT_REFUSED:
        return "refused";
    case IDEM_CLIENT_UNKNOWN:
        return "unknown";
    }
    return "none"; /* Not one of ours: from a caller. */
}

const char *idem_client_reason_name(enum idem_client_reason reason)
{
    switch (reason) {
    case IDEM_CLIENT_REASON_NONE:
        return "none";
    case IDEM_CLIENT_ANSWERED:
        return "answered";
    case IDEM_CLIENT_NOT_SENT:
        return "not-sent";
    case IDEM_CLIENT_DEADLINE:
        return "deadline";
    case IDEM_CLIENT_BUDGET:
        return "budget";
    case IDEM_CLIENT_WINDOW:
        return "window";
    case IDEM_CLIENT_ADVISED:
        return "advised";
    case IDEM_CLIENT_STOPPED:
        return "stopped";
    case IDEM_CLIENT_DECIDED:
        return "decided";
    }
    return "none"; /* Not one of ours: from a caller. */
}

void idem_answer_clear(struct idem_client_answer *answer)
{
    free(answer->memory);
    *answer = (struct idem_client_answer){ .memory = NULL };
}

bool idem_answer_keep(struct idem_client_answer *answer,
                      uint16_t status,
                      struct idem_str headers,
                      struct idem_str body)
{
    idem_answer_clear(answer);
    answer->memory = malloc(headers.len + 1 + body.len);
    if (answer->memory == NULL) {
        return false;
    }
    answer->status = status;
    struct idem_buf buf;
    idem_buf_init(&buf, answer->memory, headers.len + 1 + body.len);
    answer->headers = idem_buf_keep(&buf, headers);
    idem_buf_add_char(&buf, '\0');
    answer->body = idem_buf_keep(&buf, body);
    IDEM_ASSERT(!buf.full);
    return true;
}

/* Why no more was sent, as the middle of a sentence. */
static const char *reason_text(enum idem_client_reason reason)
{
    switch (reason) {
    case IDEM_CLIENT_DEADLINE:
        return "the deadline ended";
    case IDEM_CLIENT_BUDGET:
        return "no more repeats were allowed";
    case IDEM_CLIENT_WINDOW:
        return "the server may have forgotten the key by now, so it was not sent again";
    case IDEM_CLIENT_STOPPED:
        return "it was stopped";
    case IDEM_CLIENT_REASON_NONE:
    case IDEM_CLIENT_ANSWERED:
    case IDEM_CLIENT_NOT_SENT:
    case IDEM_CLIENT_ADVISED:
    case IDEM_CLIENT_DECIDED:
        break;
    }
    return "so it was not sent again";
}

static void last_request_add(const struct idem_client_intent *intent, struct idem_buf *buf)
{
    idem_buf_printf(buf, "The last request: %s", intent->why);
    if (intent->last[0] != '\0') {
        idem_buf_printf(buf, " (%s)", intent->last);
    }
}

/* What to do after a refusal that is not for good. */
static const char *again_text(enum idem_client_reason reason)
{
    if (reason == IDEM_CLIENT_ADVISED) {
        return "Run it again when that is put right: it keeps its key. If the request itself is "
               "wrong, correct it under a new key.";
    }
    return reason == IDEM_CLIENT_NOT_SENT ? "Run it again when that is put right: it keeps its key."
                                          : "Run it again later: it keeps its key.";
}

/* What to do about what is not known. */
static const char *unknown_text(enum idem_client_reason reason)
{
    if (reason == IDEM_CLIENT_WINDOW) {
        return "Look for it at the server by its business id before anything new";
    }
    return reason == IDEM_CLIENT_ADVISED
               ? "Look for it at the server by its business id; run the same intent again when the "
                 "cause is gone, never another one in its place"
               : "Run the same intent again, never another one in its place";
}

static void message_refused(const struct idem_client_intent *intent, struct idem_buf *buf)
{
    const struct idem_client_record *record = &intent->record;

    if (record->over) {
        idem_buf_printf(buf, "Nothing happened, and nothing can happen under this key any more. ");
        last_request_add(intent, buf);
        idem_buf_printf(buf, intent->look_first
                                 ? ". Look at what is there first: it may be what was wanted."
                                 : ". Another try takes a new key, or another intent.");
        return;
    }
    idem_buf_printf(buf, record->reason == IDEM_CLIENT_NOT_SENT
                             ? "Nothing was sent, so nothing happened. "
                             : "Nothing happened, and nothing is still on its way. ");
    last_request_add(intent, buf);
    idem_buf_printf(buf, ". %s", again_text(record->reason));
}

/* Where it can be looked at, terminated; "": nowhere. */
static const char *asked_at(const struct idem_client_intent *intent)
{
    const struct idem_inquiry_places places = {
        .operation_url = idem_str_from(intent->operation_url),
        .status_url = idem_str_from(intent->status_url),
        .key_url = idem_str_from(intent->key_url),
    };
    return idem_inquiry_best(&places).data; /* One of the three, whole. */
}

static void message_unknown(const struct idem_client_intent *intent, struct idem_buf *buf)
{
    const struct idem_client_record *record = &intent->record;
    const char *url = asked_at(intent);

    idem_buf_printf(buf, "It may have happened, or may still. ");
    last_request_add(intent, buf);
    idem_buf_printf(buf, "; %s. ", reason_text(record->reason));
    idem_buf_printf(buf, "%s", unknown_text(record->reason));
    if (url[0] != '\0') {
        idem_buf_printf(buf, "; it can be asked for at %s%s", url,
                        url == intent->key_url ? ", with the key in its header" : "");
    }
    idem_buf_printf(buf, ".");
}

static void message_make(struct idem_client_intent *intent)
{
    struct idem_buf buf;
    idem_buf_init(&buf, intent->message, sizeof(intent->message) - 1);

    switch (intent->record.outcome) {
    case IDEM_CLIENT_DONE:
        idem_buf_printf(&buf, "Done (%d): %s.", intent->answer.status, intent->why);
        break;
    case IDEM_CLIENT_REFUSED:
        message_refused(intent, &buf);
        break;
    case IDEM_CLIENT_UNKNOWN:
        message_unknown(intent, &buf);
        break;
    case IDEM_CLIENT_NO_OUTCOME:
        break;
    }
    if (buf.full) { /* A long address: it stands in status_url as well. */
        idem_buf_reset(&buf);
        idem_buf_printf(&buf, "%s: %s.",
                        intent->record.outcome == IDEM_CLIENT_UNKNOWN
                            ? "It may have happened, or may still; run the same intent again"
                            : "The server has answered",
                        intent->why);
    }
    intent->message[buf.len] = '\0';
}

int64_t idem_verdict_end_us(struct idem_client *client, const struct idem_client_record *record)
{
    int64_t end_us = idem_client_now(client).wall_us;
    int64_t high_us = idem_client_journal_high_us(client->journal);
    end_us = end_us > high_us ? end_us : high_us;
    return end_us > record->begun_us ? end_us : record->begun_us;
}

void idem_verdict_settle(struct idem_client_intent *intent, const struct idem_move *move)
{
    struct idem_client_record *record = &intent->record;

    IDEM_ASSERT(move->kind == IDEM_MOVE_END);
    IDEM_ASSERT(move->outcome != IDEM_CLIENT_NO_OUTCOME);
    IDEM_ASSERT(move->outcome != IDEM_CLIENT_REFUSED || move->over || !intent->course.doubt);
    idem_client_note_done(intent); /* What ends is written whole. */
    record->outcome = move->outcome;
    record->reason = move->reason;
    record->over = move->over;
    record->doubt = move->outcome == IDEM_CLIENT_UNKNOWN;
    record->answer_status = intent->answer.status;
    record->answer_headers = intent->answer.headers;
    record->answer_body = intent->answer.body;
    record->operation_url = idem_str_from(intent->operation_url);
    message_make(intent);
    record->message = idem_str_from(intent->message);
    record->ended_us = idem_verdict_end_us(intent->client, record);
}

void idem_verdict_from_record(struct idem_client_intent *intent, bool recorded)
{
    const struct idem_client_record *record = &intent->record;

    intent->verdict = (struct idem_client_verdict){
        .outcome = record->outcome,
        .reason = record->reason,
        .message = intent->message,
        .renewable = record->outcome == IDEM_CLIENT_REFUSED && recorded,
        .over = record->over,
        .replayed = record->replayed,
        .recorded = recorded,
        .status_url = asked_at(intent),
        .status = intent->answer.status,
        .headers = intent->answer.headers.data != NULL ? intent->answer.headers.data : "",
        .body = intent->answer.body.data != NULL ? intent->answer.body.data : "",
        .body_size = intent->answer.body.len,
        .key_expires_ms = record->expires_us / IDEM_US_PER_MS,
        .sends = intent->sends,
        .asks = intent->asks,
    };
}
