/*
 * Found by an open table over the first bytes of the digest, then compared whole in constant time.
 * The place depends on the digest of what the caller sent, and nobody can choose a token whose
 * SHA-256 comes near a stored one, so the time it takes tells nothing about what is stored. The
 * table is never more than half full; removing builds it anew, which is rare and small.
 *
 * The configuration's stand first in it: a secret that is in both is the configuration's.
 *
 * A store that was filled under a higher limit has more than there are places. Which of them count
 * is then a matter of their order, so whenever one of the store's goes, all are read again.
 */
#include "api/credentials.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"

#define STORED_DEFAULT 1024
#define STORED_MOST    16384 /* Places fit 16 bits, with those of the configuration. */

/* ---- the index ---- */

static size_t slot_first(const struct idem_credentials *table, struct idem_digest digest)
{
    size_t start = 0;
    memcpy(&start, digest.bytes, sizeof(start));
    return start & (table->index_size - 1);
}

static const struct idem_caller *at(const struct idem_credentials *table, uint16_t place)
{
    size_t i = (size_t)place - 1;
    return i < table->configured_count ? &table->configured[i]
                                       : &table->stored[i - table->configured_count];
}

static void index_add(struct idem_credentials *table, struct idem_digest digest, size_t place)
{
    size_t slot = slot_first(table, digest);
    while (table->index[slot] != 0) {
        slot = (slot + 1) & (table->index_size - 1);
    }
    table->index[slot] = (uint16_t)(place + 1);
}

static void index_build(struct idem_credentials *table)
{
    memset(table->index, 0, table->index_size * sizeof(*table->index));
    for (size_t i = 0; i < table->configured_count; i++) {
        index_add(table, table->configured[i].secret_sha256, i);
    }
    for (size_t i = 0; i < table->stored_count; i++) {
        index_add(table, table->stored[i].secret_sha256, table->configured_count + i);
    }
}

const struct idem_caller *idem_credentials_find(const struct idem_credentials *table,
                                                struct idem_digest secret_sha256)
{
    size_t slot = slot_first(table, secret_sha256);
    while (table->index[slot] != 0) {
        const struct idem_caller *caller = at(table, table->index[slot]);
        if (idem_digest_equal(caller->secret_sha256, secret_sha256)) {
            return caller;
        }
        slot = (slot + 1) & (table->index_size - 1);
    }
    return NULL;
}

/* ---- memory ---- */

void idem_credentials_free(struct idem_credentials *table)
{
    free(table->accounts.all);
    free(table->configured);
    free(table->spare);
    free(table->stored);
    free(table->index);
    *table = (struct idem_credentials){ 0 };
}

enum idem_err idem_credentials_init(struct idem_credentials *table,
                                    const struct idem_api_options *options,
                                    struct idem_error *reterr)
{
    size_t stored_max = options->credentials_max > 0 ? options->credentials_max : STORED_DEFAULT;
    if (stored_max > STORED_MOST) {
        return idem_error_set(reterr, IDEM_E_INVALID, "credentials_max is above %d", STORED_MOST);
    }
    *table = (struct idem_credentials){
        .rules = options->rules,
        .stored_max = stored_max,
        .index_size = 1,
    };
    /* While the configuration's are replaced both lists hold accounts, and visits old ones. */
    const size_t places = 2 * (size_t)IDEM_API_CONFIGURED_MAX + stored_max;
    while (table->index_size < 2 * places) {
        table->index_size *= 2;
    }
    table->accounts.max = places + options->requests_max;
    table->accounts.all = calloc(table->accounts.max, sizeof(*table->accounts.all));
    table->configured = calloc(IDEM_API_CONFIGURED_MAX, sizeof(*table->configured));
    table->spare = calloc(IDEM_API_CONFIGURED_MAX, sizeof(*table->spare));
    table->stored = calloc(stored_max, sizeof(*table->stored));
    table->index = calloc(table->index_size, sizeof(*table->index));
    if (table->accounts.all == NULL || table->configured == NULL || table->spare == NULL ||
        table->stored == NULL || table->index == NULL) {
        idem_credentials_free(table);
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for %zu credentials", stored_max);
    }
    return IDEM_OK;
}

/* ---- grants ---- */

static void grant(const struct idem_credentials *table,
                  struct idem_caller *caller,
                  struct idem_str entry)
{
    caller->every_provider = caller->every_provider || idem_str_equal(entry, IDEM_STR("*"));
    for (size_t i = 0; i < table->rules->provider_count; i++) {
        if (idem_str_equal(table->rules->providers[i].entry, entry)) {
            caller->providers |= UINT32_C(1) << i;
        }
    }
}

/* ---- the configuration's ---- */

static enum idem_err configured_check(const struct idem_credential *credentials,
                                      size_t count,
                                      struct idem_error *reterr)
{
    if (count >= IDEM_API_CONFIGURED_MAX) {
        return idem_error_set(reterr, IDEM_E_LIMIT, "more than %d credentials",
                              IDEM_API_CONFIGURED_MAX - 1);
    }
    for (size_t i = 0; i < count; i++) {
        size_t len = credentials[i].principal.len;
        if (len == 0 || len > IDEM_PRINCIPAL_MAX) {
            return idem_error_set(reterr, IDEM_E_INVALID,
                                  "a credential's principal is not 1 to %d bytes long",
                                  IDEM_PRINCIPAL_MAX);
        }
    }
    return IDEM_OK;
}

static void spare_add(struct idem_credentials *table,
                      size_t place,
                      const struct idem_credential *credential)
{
    struct idem_caller *caller = &table->spare[place];
    *caller = (struct idem_caller){
        .secret_sha256 = credential->secret_sha256,
        .role = credential->is_operator ? IDEM_ROLE_OPERATOR : IDEM_ROLE_MERCHANT,
        .account = idem_account_take(&table->accounts, credential->principal),
    };
    IDEM_ASSERT(caller->account != NULL); /* There is room for two lists: see the init. */
    for (size_t i = 0; i < credential->provider_count; i++) {
        grant(table, caller, credential->providers[i]);
    }
}

enum idem_err idem_credentials_configure(struct idem_credentials *table,
                                         const struct idem_credential *credentials,
                                         size_t count,
                                         struct idem_digest bootstrap_sha256,
                                         struct idem_error *reterr)
{
    static const struct idem_digest none = { 0 };
    enum idem_err err = configured_check(credentials, count, reterr);
    if (err != IDEM_OK) {
        return err;
    }
    for (size_t i = 0; i < count; i++) {
        spare_add(table, i, &credentials[i]);
    }
    size_t total = count;
    if (!idem_digest_equal(bootstrap_sha256, none)) {
        const struct idem_credential bootstrap = {
            .secret_sha256 = bootstrap_sha256,
            .principal = IDEM_STR("bootstrap"),
            .is_operator = true,
        };
        spare_add(table, total, &bootstrap);
        total += 1;
    }
    for (size_t i = 0; i < table->configured_count; i++) {
        idem_account_give(table->configured[i].account);
    }
    struct idem_caller *old = table->configured;
    table->configured = table->spare;
    table->configured_count = total;
    table->spare = old;
    index_build(table);
    return IDEM_OK;
}

/* ---- the store's ---- */

void idem_credentials_read_begin(struct idem_credentials *table)
{
    table->missed = false;
    table->again = false;
}

void idem_credentials_read_end(struct idem_credentials *table)
{
    table->complete = true;
    table->crowded = table->missed;
}

bool idem_credentials_may_miss(const struct idem_credentials *table)
{
    return !table->complete || table->crowded;
}

static size_t place_of(const struct idem_credentials *table, struct idem_uid id)
{
    size_t i = 0;
    while (i < table->stored_count && !idem_uid_equal(table->stored[i].id, id)) {
        i += 1;
    }
    return i;
}

const struct idem_caller *idem_credentials_by_id(const struct idem_credentials *table,
                                                 struct idem_uid id)
{
    size_t place = place_of(table, id);
    return place < table->stored_count ? &table->stored[place] : NULL;
}

bool idem_credentials_promise(struct idem_credentials *table)
{
    if (table->stored_count + table->promised >= table->stored_max) {
        return false;
    }
    table->promised += 1;
    return true;
}

void idem_credentials_forgo(struct idem_credentials *table)
{
    IDEM_ASSERT(table->promised > 0);
    table->promised -= 1;
}

/* Copies what fits; what is longer than anything written here is left out. */
static size_t keep(char *memory, size_t max, struct idem_str text)
{
    struct idem_buf buf;
    idem_buf_init(&buf, memory, max);
    idem_buf_add(&buf, text);
    return buf.len;
}

/* A row that was edited by hand must not stop the service, and may not pass for another one. */
static bool is_ours(const struct idem_credential_row *row)
{
    return !idem_uid_is_zero(row->id) && row->principal.len > 0 &&
           row->principal.len <= IDEM_PRINCIPAL_MAX;
}

void idem_credentials_put(struct idem_credentials *table, const struct idem_credential_row *row)
{
    if (row->revoked_us != 0 || !is_ours(row) || place_of(table, row->id) < table->stored_count) {
        return;
    }
    if (table->stored_count + table->promised >= table->stored_max) {
        table->missed = true;
        table->crowded = true;
        return;
    }
    struct idem_caller *caller = &table->stored[table->stored_count];
    *caller = (struct idem_caller){
        .secret_sha256 = row->secret_sha256,
        .id = row->id,
        .role = row->role,
        .account = idem_account_take(&table->accounts, row->principal),
        .created_us = row->created_us,
    };
    IDEM_ASSERT(caller->account != NULL);
    caller->label_len = keep(caller->label, sizeof(caller->label), row->label);
    caller->created_by_len = keep(caller->created_by, sizeof(caller->created_by), row->created_by);
    struct idem_str rest = row->providers;
    while (rest.len > 0) {
        grant(table, caller, idem_str_next(&rest, ' '));
    }
    table->stored_count += 1;
    index_add(table, caller->secret_sha256, table->configured_count + table->stored_count - 1);
}

void idem_credentials_remove(struct idem_credentials *table, struct idem_uid id)
{
    size_t place = place_of(table, id);
    table->removals += 1;
    table->again = table->again || table->crowded;
    if (place == table->stored_count) {
        return;
    }
    idem_account_give(table->stored[place].account);
    table->stored_count -= 1;
    table->stored[place] = table->stored[table->stored_count];
    index_build(table);
}

struct idem_str idem_caller_label(const struct idem_caller *caller)
{
    return (struct idem_str){ .data = caller->label, .len = caller->label_len };
}

struct idem_str idem_caller_created_by(const struct idem_caller *caller)
{
    return (struct idem_str){ .data = caller->created_by, .len = caller->created_by_len };
}
