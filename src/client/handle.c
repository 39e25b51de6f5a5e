/*
 * Handles of intents: from a request, from the journal, under a new key.
 *
 * A name is bound to a request as a key is on a server: the same name with other bytes is refused
 * here, before anything leaves. What is compared is what the server would get (and so what it would
 * call another request), and the key if the caller brings one. Deadline and window may change from
 * run to run; the credential must be able to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "client/client_internal.h"
#include "client/request.h"
#include "client/target.h"

#define NOTE_MAX 400

static void text_copy(char *memory, size_t size, struct idem_str text)
{
    IDEM_ASSERT(text.len < size);
    (void)snprintf(memory, size, "%.*s", (int)text.len, text.len > 0 ? text.data : "");
}

/* Takes the record. What it says is shown from now on. */
static void record_take(struct idem_client_intent *intent, struct idem_client_record *record)
{
    idem_client_record_clear(&intent->record);
    intent->record = *record;
    text_copy(intent->name, sizeof(intent->name), record->name);
    text_copy(intent->key, sizeof(intent->key), record->key);
    text_copy(intent->status_url, sizeof(intent->status_url), record->status_url);
    intent->record.status_url = idem_str_from(intent->status_url);
    text_copy(intent->operation_url, sizeof(intent->operation_url), record->operation_url);
    struct idem_buf key_url;
    idem_buf_init(&key_url, intent->key_url, sizeof(intent->key_url) - 1);
    idem_inquiry_key_url(intent->dialect, intent->record.url, &key_url);
    intent->key_url[key_url.full ? 0 : key_url.len] = '\0'; /* A part of an address is none. */
    struct idem_str message = idem_str_slice(record->message, 0, IDEM_CLIENT_MESSAGE_MAX - 1);
    text_copy(intent->message, sizeof(intent->message), message);
    /* Without memory for it there is no answer to show; the journal has it. */
    (void)idem_answer_keep(&intent->answer, record->answer_status, record->answer_headers,
                           record->answer_body);
    intent->sends = 0;
    intent->asks = 0;
    idem_verdict_from_record(intent, record->version > 0);
}

static enum idem_client_err credential_check(const struct idem_client *client,
                                             const struct idem_client_record *record,
                                             const char *credential,
                                             struct idem_client_error *reterr)
{
    struct idem_str line = idem_str_from(credential);
    const struct idem_dialect *dialect = idem_dialect_find(record->dialect);

    if (line.len == 0) {
        return IDEM_CLIENT_OK;
    }
    if (!idem_request_line(line) || line.len >= IDEM_CLIENT_CREDENTIAL) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "the credential is not a header line of less than %d bytes; "
                                "nothing was sent",
                                IDEM_CLIENT_CREDENTIAL);
    }
    const char *why = idem_request_line_objection(dialect, line);
    if (why != NULL) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "the credential cannot be %.*s: %s; nothing was sent",
                                (int)idem_str_find(line, ':'), line.data, why);
    }
    bool near = idem_target_is_private(record->url) && client->proxy_is_near;
    bool sealed = idem_str_starts(record->url, IDEM_STR("https:"));
    if (!client->options.insecure && !near && !sealed) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "the credential would go in clear to another machine: use https, "
                                "or allow it (insecure); nothing was sent");
    }
    return IDEM_CLIENT_OK;
}

/* Takes the record; without success it is the caller's still. */
static enum idem_client_err handle_make(struct idem_client *client,
                                        struct idem_client_record *record,
                                        const char *credential,
                                        struct idem_client_intent **ret_intent,
                                        struct idem_client_error *reterr)
{
    const struct idem_dialect *dialect = idem_dialect_find(record->dialect);

    if (dialect == NULL || !idem_request_is_whole(record)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_JOURNAL,
                                "what the journal has of it cannot be used; nothing was sent");
    }
    enum idem_client_err err = credential_check(client, record, credential, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    struct idem_client_intent *intent = calloc(1, sizeof(*intent));
    if (intent == NULL) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory; nothing was sent");
    }
    intent->client = client;
    intent->dialect = dialect;
    intent->why = "";
    text_copy(intent->credential, sizeof(intent->credential), idem_str_from(credential));
    idem_list_push(&client->intents, &intent->kin);
    record_take(intent, record);
    *ret_intent = intent;
    return IDEM_CLIENT_OK;
}

/* The journal's record of that name if it is the same request; `asked` otherwise. */
static enum idem_client_err record_choose(struct idem_client *client,
                                          const struct idem_client_request *request,
                                          struct idem_client_record *asked,
                                          struct idem_client_record *ret_record,
                                          struct idem_client_error *reterr)
{
    struct idem_client_record known = { .memory = NULL };
    enum idem_client_err err =
        idem_client_journal_find(client->journal, asked->name, &known, reterr);
    if (err == IDEM_CLIENT_E_UNKNOWN) {
        err = idem_request_check_new(request, reterr);
        if (err == IDEM_CLIENT_OK) {
            *ret_record = *asked;
            asked->memory = NULL;
        }
        return err;
    }
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    const char *difference = idem_request_difference(&known, asked);
    if (difference != NULL) {
        err = idem_client_fail(reterr, IDEM_CLIENT_E_MISMATCH,
                               "the name %.*s belongs to a request with another %s; that one stays "
                               "as it is, and nothing was sent",
                               (int)asked->name.len, asked->name.data, difference);
        idem_client_record_clear(&known);
        return err;
    }
    if (asked->status_url.len > 0) {
        known.status_url = asked->status_url; /* Copied before `asked` goes. */
    }
    known.deadline_us = asked->deadline_us;
    known.window_us = asked->window_us;
    *ret_record = known;
    return IDEM_CLIENT_OK;
}

enum idem_client_err idem_client_intend(struct idem_client *client,
                                        const struct idem_client_request *request,
                                        struct idem_client_intent **ret_intent,
                                        struct idem_client_error *reterr)
{
    const struct idem_dialect *dialect = NULL;
    struct idem_client_record asked = { .memory = NULL };
    struct idem_client_record record = { .memory = NULL };

    enum idem_client_err err = idem_client_is_own(client)
                                   ? idem_request_check(request, &dialect, reterr)
                                   : idem_client_foreign(reterr);
    if (err == IDEM_CLIENT_OK) {
        err = idem_request_record(client, request, dialect, &asked, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = record_choose(client, request, &asked, &record, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        err = handle_make(client, &record, request->credential, ret_intent, reterr);
    }
    if (err != IDEM_CLIENT_OK) {
        idem_client_record_clear(&record);
    }
    idem_client_record_clear(&asked);
    return err;
}

enum idem_client_err idem_client_resume(struct idem_client *client,
                                        const char *name,
                                        const char *credential,
                                        struct idem_client_intent **ret_intent,
                                        struct idem_client_error *reterr)
{
    struct idem_client_record record = { .memory = NULL };
    if (!idem_client_is_own(client)) {
        return idem_client_foreign(reterr);
    }
    enum idem_client_err err =
        idem_client_journal_find(client->journal, idem_str_from(name), &record, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    err = handle_make(client, &record, credential, ret_intent, reterr);
    if (err != IDEM_CLIENT_OK) {
        idem_client_record_clear(&record);
    }
    return err;
}

/* The same request as it stands in the journal, under a key that is made. */
static enum idem_client_err record_copy(struct idem_client_intent *intent,
                                        struct idem_client_record *ret_record,
                                        struct idem_client_error *reterr)
{
    struct idem_client_record known = { .memory = NULL };
    enum idem_client_err err =
        idem_client_journal_find(intent->client->journal, intent->record.name, &known, reterr);
    if (err == IDEM_CLIENT_OK) {
        err = idem_request_rekey(intent->client, &known, ret_record, reterr);
    }
    idem_client_record_clear(&known);
    return err;
}

static enum idem_client_err record_renewed(struct idem_client_intent *intent,
                                           const struct idem_client_request *request,
                                           struct idem_client_record *ret_record,
                                           struct idem_client_error *reterr)
{
    if (request == NULL) {
        return record_copy(intent, ret_record, reterr);
    }
    const struct idem_dialect *dialect = NULL;
    enum idem_client_err err = idem_request_check(request, &dialect, reterr);
    if (err == IDEM_CLIENT_OK) {
        err = idem_request_check_new(request, reterr);
    }
    if (err == IDEM_CLIENT_OK &&
        !idem_str_equal(idem_str_from(request->name), intent->record.name)) {
        err = idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                               "the corrected request has another name; nothing was sent");
    }
    if (err == IDEM_CLIENT_OK && request->key != NULL &&
        idem_str_equal(idem_str_from(request->key), intent->record.key)) {
        err = idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                               "the corrected request has the old key; nothing was sent");
    }
    if (err == IDEM_CLIENT_OK) {
        err = idem_request_record(intent->client, request, dialect, ret_record, reterr);
    }
    return err;
}

/* The intent holds its name's lock. */
static enum idem_client_err renew_locked(struct idem_client_intent *intent,
                                         const struct idem_client_request *request,
                                         struct idem_client_error *reterr)
{
    const char *credential = request != NULL ? request->credential : intent->credential;
    struct idem_client_record record = { .memory = NULL };

    enum idem_client_err err = record_renewed(intent, request, &record, reterr);
    if (err == IDEM_CLIENT_OK) {
        err = credential_check(intent->client, &record, credential, reterr);
    }
    if (err != IDEM_CLIENT_OK) {
        idem_client_record_clear(&record);
        return err;
    }
    /* Everything else of it is as of a key that nobody has used. */
    record.id = intent->record.id;
    record.version = intent->record.version;
    err = idem_client_journal_renew(intent->client->journal, &record, reterr);
    if (err != IDEM_CLIENT_OK) {
        idem_client_record_clear(&record);
        return err;
    }
    if (request != NULL) {
        text_copy(intent->credential, sizeof(intent->credential), idem_str_from(credential));
    }
    intent->dialect = idem_dialect_find(record.dialect);
    record_take(intent, &record);
    return IDEM_CLIENT_OK;
}

enum idem_client_err idem_client_renew(struct idem_client_intent *intent,
                                       const struct idem_client_request *request,
                                       struct idem_client_error *reterr)
{
    struct idem_client_journal *journal = intent->client->journal;

    if (!idem_client_is_own(intent->client)) {
        return idem_client_foreign(reterr);
    }
    if (intent->place != IDEM_PLACE_NONE || idem_client_runs(intent->client, intent->record.name)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_BUSY, "%s is being run", intent->name);
    }
    if (!intent->verdict.renewable) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_REFUSED,
                                "no new key for %s: only after a verdict that nothing happened, "
                                "and its verdict is %s; nothing was sent",
                                intent->name, idem_client_outcome_name(intent->record.outcome));
    }
    enum idem_client_err err = idem_client_journal_lock(journal, intent->record.name, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    /* The name lives in the record that is replaced. */
    err = renew_locked(intent, request, reterr);
    idem_client_journal_unlock(journal, idem_str_from(intent->name));
    return err;
}

/* The name's lock is held. */
static enum idem_client_err decide_locked(struct idem_client *client,
                                          struct idem_client_record *record,
                                          bool happened,
                                          struct idem_client_error *reterr)
{
    if (record->over || record->first.wall_us == 0) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_REFUSED, "%s: there is nothing to decide",
                                record->over ? "it is over" : "it was never run");
    }
    record->outcome = happened ? IDEM_CLIENT_DONE : IDEM_CLIENT_REFUSED;
    record->reason = IDEM_CLIENT_DECIDED;
    record->over = true;
    record->doubt = false;
    record->answer_status = 0; /* What the server said was not the end of it. */
    record->answer_headers = (struct idem_str){ .len = 0 };
    record->answer_body = (struct idem_str){ .len = 0 };
    record->ended_us = idem_verdict_end_us(client, record);
    return idem_client_journal_end(client->journal, &record, 1, reterr);
}

enum idem_client_err idem_client_decide(struct idem_client *client,
                                        const char *name,
                                        bool happened,
                                        const char *note,
                                        struct idem_client_error *reterr)
{
    struct idem_str text = idem_str_from(note);
    if (!idem_request_text(text, NOTE_MAX)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_INVALID,
                                "a note has 1 to %d bytes of UTF-8 without control characters",
                                NOTE_MAX);
    }
    struct idem_str title = idem_str_from(name);
    if (!idem_client_is_own(client)) {
        return idem_client_foreign(reterr);
    }
    if (idem_client_runs(client, title)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_BUSY, "%s is being run", name);
    }
    enum idem_client_err err = idem_client_journal_lock(client->journal, title, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    struct idem_client_record record = { .memory = NULL };
    err = idem_client_journal_find(client->journal, title, &record, reterr);
    if (err == IDEM_CLIENT_OK) {
        char message[IDEM_CLIENT_MESSAGE_MAX];
        int len =
            snprintf(message, sizeof(message), "%s. A person has found that out: %s",
                     happened ? "It happened" : "Nothing happened, and nothing can any more", note);
        record.message = (struct idem_str){ .data = message, .len = (size_t)len };
        err = decide_locked(client, &record, happened, reterr);
        idem_client_record_clear(&record);
    }
    idem_client_journal_unlock(client->journal, title);
    return err;
}

enum idem_client_err idem_client_set_times(struct idem_client_intent *intent,
                                           int64_t deadline_ms,
                                           int64_t window_ms,
                                           struct idem_client_error *reterr)
{
    enum idem_client_err err = idem_request_times(deadline_ms, window_ms, reterr);
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    if (intent->place != IDEM_PLACE_NONE) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_BUSY, "%s is being run", intent->name);
    }
    if (deadline_ms > 0) {
        intent->record.deadline_us = deadline_ms * IDEM_US_PER_MS;
    }
    if (window_ms > 0) {
        intent->record.window_us = window_ms * IDEM_US_PER_MS;
    }
    return IDEM_CLIENT_OK;
}

void idem_client_same_account(struct idem_client_intent *intent)
{
    intent->same_account = true;
}

void idem_client_release(struct idem_client_intent *intent)
{
    if (intent == NULL) {
        return;
    }
    IDEM_ASSERT(intent->place == IDEM_PLACE_NONE || intent->place == IDEM_PLACE_FINISHED);
    idem_client_place(intent, IDEM_PLACE_NONE);
    idem_list_remove(&intent->client->intents, &intent->kin);
    idem_answer_clear(&intent->answer);
    idem_client_record_clear(&intent->record);
    explicit_bzero(intent->credential, sizeof(intent->credential));
    free(intent);
}

const struct idem_client_verdict *idem_client_verdict(const struct idem_client_intent *intent)
{
    return &intent->verdict;
}

const char *idem_client_name(const struct idem_client_intent *intent)
{
    return intent->name;
}

const char *idem_client_key(const struct idem_client_intent *intent)
{
    return intent->key;
}

void idem_client_progress(const struct idem_client_intent *intent,
                          struct idem_client_progress *ret_progress)
{
    static const enum idem_client_phase phases[IDEM_PLACE_COUNT] = {
        [IDEM_PLACE_READY] = IDEM_CLIENT_QUEUED,
        [IDEM_PLACE_BUSY] = IDEM_CLIENT_SENDING,
        [IDEM_PLACE_PAUSING] = IDEM_CLIENT_PAUSING,
    };
    int64_t now_us = idem_clock_mono_us(intent->client->clock);
    bool pausing = intent->place == IDEM_PLACE_PAUSING;
    bool asking = intent->place == IDEM_PLACE_BUSY && intent->move.kind == IDEM_MOVE_ASK;
    enum idem_client_phase phase = asking ? IDEM_CLIENT_ASKING : phases[intent->place];
    int64_t pause_us = pausing && intent->due_us > now_us ? intent->due_us - now_us : 0;
    int64_t left_us = intent->deadline_us > now_us ? intent->deadline_us - now_us : 0;

    *ret_progress = (struct idem_client_progress){
        .phase = phase,
        .sends = intent->sends,
        .asks = intent->asks,
        .pause_ms = pause_us / IDEM_US_PER_MS,
        .remaining_ms = phase == IDEM_CLIENT_RESTING ? 0 : left_us / IDEM_US_PER_MS,
        .last = intent->last,
    };
}
