/*
 * A set-associative table: the scope is an HMAC, so its first bytes choose a set evenly.
 *
 * A slot holds the intent as it stood when it became final, with its text in the slot's own memory.
 * Answers that do not fit are simply not kept: the store has them.
 */
#include "engine/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"

#define WAYS            4
#define SLOT_MEMORY_MAX 1536

struct slot {
    struct idem_intent intent; /* state NONE: empty. Only answer text is kept. */
    uint64_t used;             /* The cache's tick at the last use. */
    struct idem_buf kept;
    char memory[SLOT_MEMORY_MAX];
};

struct idem_cache {
    struct slot *slots;
    size_t set_count;
    uint64_t tick;
};

enum idem_err idem_cache_create(size_t slots_max, struct idem_cache **ret_cache)
{
    struct idem_cache *cache = calloc(1, sizeof(*cache));
    if (cache == NULL) {
        return IDEM_E_SYSTEM;
    }
    cache->set_count = slots_max / WAYS;
    if (cache->set_count > 0) {
        cache->slots = calloc(cache->set_count * WAYS, sizeof(*cache->slots));
        if (cache->slots == NULL) {
            free(cache);
            return IDEM_E_SYSTEM;
        }
    }
    *ret_cache = cache;
    return IDEM_OK;
}

void idem_cache_destroy(struct idem_cache *cache)
{
    if (cache != NULL) {
        free(cache->slots);
        free(cache);
    }
}

static bool same_scope(const struct idem_scope *left, const struct idem_scope *right)
{
    return memcmp(left->bytes, right->bytes, sizeof(left->bytes)) == 0;
}

static struct slot *set_of(struct idem_cache *cache, const struct idem_scope *scope)
{
    uint64_t hash = 0;
    memcpy(&hash, scope->bytes, sizeof(hash));
    return &cache->slots[hash % cache->set_count * WAYS];
}

static struct slot *find(struct idem_cache *cache, const struct idem_scope *scope)
{
    if (cache->set_count == 0) {
        return NULL;
    }
    struct slot *set = set_of(cache, scope);
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].intent.state != IDEM_INTENT_NONE && same_scope(&set[i].intent.scope, scope)) {
            return &set[i];
        }
    }
    return NULL;
}

static struct slot *oldest(struct slot *set)
{
    struct slot *victim = &set[0];
    for (size_t i = 1; i < WAYS; i++) {
        if (set[i].used < victim->used) {
            victim = &set[i];
        }
    }
    return victim;
}

void idem_cache_put(struct idem_cache *cache, const struct idem_outcome *outcome)
{
    const struct idem_intent *intent = &outcome->intent;
    bool is_answer = idem_intent_is_final(intent->state) && intent->answer.status != 0;
    if (cache->set_count == 0 || !is_answer) {
        return;
    }
    if (intent->answer.headers.len + intent->answer.body.len > SLOT_MEMORY_MAX) {
        return;
    }
    struct slot *slot = find(cache, &intent->scope);
    if (slot != NULL) {
        return; /* It cannot have changed. */
    }
    slot = oldest(set_of(cache, &intent->scope));
    slot->intent = *intent;
    slot->intent.effect = (struct idem_effect){ .kind = intent->effect.kind };
    slot->intent.principal = (struct idem_str){ .data = NULL, .len = 0 };
    slot->intent.key = slot->intent.principal;
    idem_buf_init(&slot->kept, slot->memory, sizeof(slot->memory));
    slot->intent.answer.headers = idem_buf_keep(&slot->kept, intent->answer.headers);
    slot->intent.answer.body = idem_buf_keep(&slot->kept, intent->answer.body);
    IDEM_ASSERT(!slot->kept.full);
    cache->tick += 1;
    slot->used = cache->tick;
}

void idem_cache_drop(struct idem_cache *cache, const struct idem_scope *scope)
{
    struct slot *slot = find(cache, scope);
    if (slot != NULL) {
        *slot = (struct slot){ .used = 0 };
    }
}

enum idem_cache_verdict idem_cache_get(struct idem_cache *cache,
                                       const struct idem_command *command,
                                       int64_t now_us,
                                       struct idem_outcome *ret_outcome)
{
    IDEM_ASSERT(command->kind == IDEM_COMMAND_ACCEPT);
    struct slot *slot = find(cache, &command->scope);
    if (slot == NULL || now_us >= slot->intent.expires_us) {
        return IDEM_CACHE_MISS;
    }
    if (slot->intent.problem != IDEM_PROBLEM_ABANDONED) {
        const struct idem_fingerprint *offered =
            idem_accept_fingerprint(&command->accept, &slot->intent.fingerprint);
        if (offered == NULL) {
            return IDEM_CACHE_MISS;
        }
        if (!idem_digest_equal(offered->digest, slot->intent.fingerprint.digest)) {
            return IDEM_CACHE_REUSED;
        }
    }
    cache->tick += 1;
    slot->used = cache->tick;
    ret_outcome->release = (struct idem_release){ .kind = IDEM_RELEASE_REPLY, .replayed = true };
    ret_outcome->intent = slot->intent;
    idem_buf_init(&ret_outcome->kept, ret_outcome->memory, sizeof(ret_outcome->memory));
    struct idem_answer *answer = &ret_outcome->intent.answer;
    answer->headers = idem_buf_keep(&ret_outcome->kept, answer->headers);
    answer->body = idem_buf_keep(&ret_outcome->kept, answer->body);
    return IDEM_CACHE_REPLAY;
}
