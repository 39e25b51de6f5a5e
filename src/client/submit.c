/*
 * Runs begin: locks, one durable write for all of them, then their courses.
 *
 * What is settled, DONE or REFUSED for good, needs neither: it ends with what the journal has, if
 * that is still what the handle shows.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/crash.h"
#include "client/client_internal.h"

/* Why these cannot run now; OK: they can. */
static enum idem_client_err submit_check(struct idem_client *client,
                                         struct idem_client_intent *const *intents,
                                         size_t count,
                                         struct idem_client_error *reterr)
{
    if (!idem_client_is_own(client)) {
        return idem_client_foreign(reterr);
    }
    if (count > IDEM_CLIENT_RUNS_MAX - idem_client_running(client)) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_LIMIT,
                                "more than %d intents at once; nothing was sent",
                                IDEM_CLIENT_RUNS_MAX);
    }
    const struct idem_client_intent *busy = NULL;
    size_t marked = 0;
    while (marked < count && busy == NULL) {
        struct idem_client_intent *intent = intents[marked];
        IDEM_ASSERT(intent->client == client);
        bool free = intent->place == IDEM_PLACE_NONE && !intent->listed &&
                    !idem_client_runs(client, intent->record.name);
        busy = free ? NULL : intent;
        intent->listed = true; /* A second one in this list is found by it. */
        marked += 1;
    }
    for (size_t i = 0; i < marked; i++) {
        intents[i]->listed = false;
    }
    return busy == NULL
               ? IDEM_CLIENT_OK
               : idem_client_fail(reterr, IDEM_CLIENT_E_BUSY,
                                  "%s is being run already; nothing more was sent", busy->name);
}

/* The records that have to be written before they run; the locks of their names are taken. */
struct entrants {
    struct idem_client *client;
    struct idem_client_record **records;
    struct idem_client_intent **intents;
    size_t count;
};

static void entrants_unlock(struct entrants *entrants)
{
    for (size_t i = 0; i < entrants->count; i++) {
        idem_client_journal_unlock(entrants->client->journal, entrants->records[i]->name);
    }
}

/* The journal has its last word. A verdict that could not be written is found out again. */
static bool is_settled(const struct idem_client_intent *intent)
{
    return intent->record.over && intent->verdict.recorded;
}

static enum idem_client_err entrants_lock(struct entrants *entrants,
                                          struct idem_client_intent *const *intents,
                                          size_t count,
                                          struct idem_client_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        if (is_settled(intents[i])) {
            continue;
        }
        enum idem_client_err err =
            idem_client_journal_lock(entrants->client->journal, intents[i]->record.name, reterr);
        if (err != IDEM_CLIENT_OK) {
            entrants_unlock(entrants);
            return err;
        }
        entrants->intents[entrants->count] = intents[i];
        entrants->records[entrants->count] = &intents[i]->record;
        entrants->count += 1;
    }
    return IDEM_CLIENT_OK;
}

/* Something of this key may have been carried out. A key that was brought: by its owner. */
static bool known_before(const struct idem_client_record *record)
{
    return record->doubt || !record->key_own;
}

/*
 * A key counts within an account. Under another account's credential the same request would be
 * carried out again, and a refusal would say nothing of what was sent before.
 */
static enum idem_client_err asker_take(struct idem_client_intent *intent,
                                       struct idem_client_error *reterr)
{
    struct idem_client_record *record = &intent->record;
    char asker[sizeof(record->asker)];

    idem_client_journal_asker(intent->client->journal, record->key,
                              idem_str_from(intent->credential), asker);
    bool other = strcmp(asker, record->asker) != 0;
    if (other && record->first.wall_us > 0 && known_before(record) && !intent->same_account) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_REFUSED,
                                "%s was sent with another credential, and what became of it is not "
                                "known. With the credential of another account it could be done "
                                "twice: use the old one, or say that the new one is the same "
                                "account's. Nothing was sent",
                                intent->name);
    }
    memcpy(record->asker, asker, sizeof(asker));
    return IDEM_CLIENT_OK;
}

/* Durable, with their doubt; what was known before is in the intents' courses. */
static enum idem_client_err entrants_write(struct entrants *entrants,
                                           struct idem_client_error *reterr)
{
    struct idem_moment now = idem_client_now(entrants->client);

    enum idem_client_err err = IDEM_CLIENT_OK;
    for (size_t i = 0; i < entrants->count; i++) {
        struct idem_client_intent *intent = entrants->intents[i];
        intent->before = intent->record;
        if (err == IDEM_CLIENT_OK) {
            err = asker_take(intent, reterr);
        }
        intent->record.doubt = true;
        intent->record.begun_us = now.wall_us;
        /* Without doubt nothing of this key is anywhere: this is its first run. */
        if (intent->record.first.wall_us == 0 || !known_before(&intent->before)) {
            intent->record.first = now;
        }
    }
    idem_crash_point("client-begin-before");
    if (err == IDEM_CLIENT_OK) {
        err = idem_client_journal_begin(entrants->client->journal, entrants->records,
                                        entrants->count, reterr);
    }
    if (err == IDEM_CLIENT_OK) {
        idem_crash_point("client-begin-durable");
        return IDEM_CLIENT_OK;
    }
    for (size_t i = 0; i < entrants->count; i++) {
        entrants->intents[i]->record = entrants->intents[i]->before;
    }
    entrants_unlock(entrants);
    return err;
}

static void entrants_begin(struct entrants *entrants)
{
    for (size_t i = 0; i < entrants->count; i++) {
        struct idem_client_intent *intent = entrants->intents[i];
        idem_run_begin(intent, known_before(&intent->before));
    }
}

/* What this handle shows as settled is still what the journal has. */
static enum idem_client_err settled_check(const struct idem_client *client,
                                          const struct idem_client_intent *intent,
                                          struct idem_client_error *reterr)
{
    struct idem_client_record record = { .memory = NULL };
    enum idem_client_err err =
        idem_client_journal_find(client->journal, intent->record.name, &record, reterr);
    if (err != IDEM_CLIENT_OK && err != IDEM_CLIENT_E_UNKNOWN) {
        return err;
    }
    if (err == IDEM_CLIENT_E_UNKNOWN) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_UNKNOWN,
                                "%s: " IDEM_CLIENT_FORGOTTEN ". Nothing was sent", intent->name);
    }
    bool same = record.id == intent->record.id && record.version == intent->record.version;
    idem_client_record_clear(&record);
    if (!same) {
        return idem_client_fail(reterr, IDEM_CLIENT_E_BUSY,
                                "%s was changed since this handle was made; release it and take it "
                                "again. Nothing was sent",
                                intent->name);
    }
    return IDEM_CLIENT_OK;
}

static enum idem_client_err submit_all(struct entrants *entrants,
                                       struct idem_client_intent *const *intents,
                                       size_t count,
                                       struct idem_client_error *reterr)
{
    enum idem_client_err err = IDEM_CLIENT_OK;
    for (size_t i = 0; i < count && err == IDEM_CLIENT_OK; i++) {
        err = is_settled(intents[i]) ? settled_check(entrants->client, intents[i], reterr)
                                     : IDEM_CLIENT_OK;
    }
    if (err == IDEM_CLIENT_OK) {
        err = entrants_lock(entrants, intents, count, reterr);
    }
    if (err == IDEM_CLIENT_OK && entrants->count > 0) {
        err = entrants_write(entrants, reterr);
    }
    if (err != IDEM_CLIENT_OK) {
        return err;
    }
    entrants_begin(entrants);
    for (size_t i = 0; i < count; i++) {
        if (intents[i]->place == IDEM_PLACE_NONE) { /* Over: its verdict is there. */
            idem_client_place(intents[i], IDEM_PLACE_FINISHED);
        }
    }
    idem_client_arm(entrants->client);
    return IDEM_CLIENT_OK;
}

enum idem_client_err idem_client_submit(struct idem_client *client,
                                        struct idem_client_intent *const *intents,
                                        size_t count,
                                        struct idem_client_error *reterr)
{
    enum idem_client_err err = submit_check(client, intents, count, reterr);
    if (err != IDEM_CLIENT_OK || count == 0) {
        return err;
    }
    struct entrants entrants = {
        .client = client,
        .records = calloc(count, sizeof(struct idem_client_record *)),
        .intents = calloc(count, sizeof(struct idem_client_intent *)),
    };
    if (entrants.records == NULL || entrants.intents == NULL) {
        err = idem_client_fail(reterr, IDEM_CLIENT_E_SYSTEM, "out of memory; nothing was sent");
    } else {
        err = submit_all(&entrants, intents, count, reterr);
    }
    free(entrants.records);
    free(entrants.intents);
    return err;
}
