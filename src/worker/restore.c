/*
 * One provider after the other, one page at a time.
 *
 *   LOOKING --the store said where its payments are--> WAITING
 *                                                         |
 *                          what may still arrive has arrived
 *                                                         |
 *                  +--every provider was read-- ASKING <--+-- page done, or not answered --+
 *                  |                              |                                        |
 *                ENDING                           '--port--> LISTING --answered--> TELLING-+
 *                  |
 *                  '--mark is durable--> OVER
 *
 * What is certain here:
 *   - the listing is read only after everything that a process on the lost store sent has arrived
 *     or never will: lease, timeout and settling time of the slowest provider after this start. The
 *     end of what is read is taken then, so nothing that happened is later than it;
 *   - clocks here and there may differ by CLOCK_MARGIN_US in either direction: what is read begins
 *     that much before the copy's newest record, and ends that much after now, by this machine's
 *     clock or by the store's, which may be a server's: by the later one;
 *   - a clock that once ran ahead hides nothing: a newest record that lies behind the system's own
 *     time is not believed, and one that lies further behind it than clocks may be apart means that
 *     nobody knows when the copy was made, so that everything is listed;
 *   - effects are told in the order in which they happened, over all pages: a page that goes back
 *     in time is not used, and when the store did not take one, it and all behind it on the page
 *     are told again, because what they found then was not what had happened before them;
 *   - a page counts as done when each of its effects is durable here. Their text is borrowed from
 *     the page, which stays until then;
 *   - a process that dies in between begins again from the start: the same evidence leads to the
 *     same stub;
 *   - the mode is ended only after every provider was read to its end, and never by this worker if
 *     one of them cannot be listed, if payments are at an account that is not configured any more,
 *     or if effects may be listed under ids that do not name a scope.
 */
#include "worker/restore.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"

#define CLOCK_MARGIN_US  (600 * IDEM_US_PER_SECOND) /* How far clocks may be apart. */
#define TASKS_MAX        32
#define ASK_FIRST_US     IDEM_US_PER_SECOND        /* After a page that was not answered ... */
#define ASK_MAX_US       (60 * IDEM_US_PER_SECOND) /* ... doubling up to this. */
#define REFUSED_PAUSE_US IDEM_US_PER_SECOND        /* After the store did not take something. */
#define NONE_REFUSED     SIZE_MAX

enum restore_state {
    RESTORE_LOOKING = 0, /* The store is asked where its payments are. */
    RESTORE_WAITING,
    RESTORE_ASKING,
    RESTORE_LISTING, /* The port has the listing. */
    RESTORE_TELLING, /* Its effects are on their way into the store. */
    RESTORE_ENDING,
    RESTORE_OVER, /* Nothing more to do: the mode is over, or an operator's to end. */
};

/* One effect on its way. */
struct telling {
    struct idem_task task;
    bool busy;
    size_t index; /* Of its effect on the page. */
};

struct idem_restore {
    struct idem_restore_options options;
    enum restore_state state;
    bool stopped;
    int64_t begin_at_us; /* Monotonic. */
    int64_t begins_us;   /* Wall, by the store's clock: nothing arrives any more. */
    int64_t to_us;       /* Wall: what happened from here on is not of the lost store. */

    struct idem_read look;
    bool looking;
    struct idem_list done_looks;

    size_t provider; /* Which is read. */
    struct idem_listing listing;
    char cursor[IDEM_LISTING_CURSOR_MAX]; /* Of the page that is read. */
    int64_t ask_at_us;                    /* Monotonic. */
    int64_t ask_pause_us;                 /* The last pause; 0: the last page was answered. */
    int64_t asked_us;                     /* Wall: when the page was asked for. */
    int64_t last_us; /* When the last effect of this provider's former pages happened. */

    size_t told;    /* Effects of the page that were submitted, */
    size_t counted; /* and how many of them for the first time. */
    size_t refused; /* The first one that the store did not take; NONE_REFUSED. */
    struct telling tellings[TASKS_MAX];
    size_t busy_count;
    int64_t again_at_us; /* Monotonic: when what was not taken runs again. */
    struct idem_list done_tellings;

    struct idem_task mark;
    bool marking;
    struct idem_list done_marks;
    struct idem_restore_stats stats;
};

static int64_t mono_us(const struct idem_restore *restore)
{
    return idem_clock_mono_us(restore->options.clock);
}

/* How long something that was granted before this start may still be on its way. */
static int64_t longest_way_us(const struct idem_rules *rules)
{
    int64_t longest_us = 0;
    for (size_t i = 0; i < rules->provider_count; i++) {
        const struct idem_provider_rules *provider = &rules->providers[i];
        int64_t way_us = rules->lease_us + provider->request_timeout_us + provider->settle_us;
        longest_us = way_us > longest_us ? way_us : longest_us;
    }
    return longest_us;
}

/* What came to the providers from here on may not be known. */
static int64_t listed_from_us(const struct idem_store *store)
{
    int64_t newest_us = store->newest_us;
    if (newest_us > store->opened_us) {
        bool is_near = newest_us - store->opened_us <= CLOCK_MARGIN_US;
        newest_us = is_near ? store->opened_us : 0;
    }
    return newest_us > CLOCK_MARGIN_US ? newest_us - CLOCK_MARGIN_US : 0;
}

enum idem_err idem_restore_create(const struct idem_restore_options *options,
                                  struct idem_restore **ret_restore)
{
    struct idem_restore *restore = calloc(1, sizeof(*restore));
    if (restore == NULL) {
        return IDEM_E_SYSTEM;
    }
    const struct idem_rules *rules = options->rules;
    int64_t way_us = longest_way_us(rules);
    restore->options = *options;
    restore->state = options->store->restored ? RESTORE_LOOKING : RESTORE_OVER;
    restore->refused = NONE_REFUSED;
    restore->begin_at_us = mono_us(restore) + way_us;
    restore->begins_us = options->store->opened_us + way_us;
    restore->stats.begins_us = idem_clock_wall_us(options->clock) + way_us;
    restore->stats.from_us = listed_from_us(options->store);
    restore->stats.needs_operator = options->store->old_effect_ids;
    for (size_t i = 0; i < rules->provider_count; i++) {
        restore->stats.needs_operator |= !rules->providers[i].listing;
    }
    *ret_restore = restore;
    return IDEM_OK;
}

void idem_restore_destroy(struct idem_restore *restore)
{
    if (restore != NULL) {
        IDEM_ASSERT(idem_restore_idle(restore));
        free(restore);
    }
}

/* Nothing is begun any more; what is under way still comes back. */
static bool is_ended(const struct idem_restore *restore)
{
    return restore->stopped || !restore->options.store->restored;
}

/* ---- where payments are ---- */

static void begin_look(struct idem_restore *restore)
{
    if (restore->looking || mono_us(restore) < restore->again_at_us) {
        return;
    }
    restore->look.kind = IDEM_READ_PLACES;
    restore->look.done = &restore->done_looks;
    restore->looking = true;
    idem_engine_read(restore->options.engine, &restore->look);
}

static bool is_listed(const struct idem_rules *rules, const struct idem_place *place)
{
    const struct idem_provider_rules *provider = idem_rules_provider(rules, place->entry);
    return provider != NULL && provider->listing &&
           idem_str_equal(provider->account, place->account) &&
           idem_str_equal(provider->region, place->region);
}

static void take_look(struct idem_restore *restore)
{
    const struct idem_read *look = &restore->look;
    if (idem_list_pop(&restore->done_looks) == NULL) {
        return;
    }
    restore->looking = false;
    if (look->answer != IDEM_STORE_DURABLE) {
        restore->again_at_us = mono_us(restore) + REFUSED_PAUSE_US;
        return;
    }
    restore->stats.needs_operator |= look->more; /* More places than anybody configures. */
    for (size_t i = 0; i < look->place_count; i++) {
        restore->stats.needs_operator |= !is_listed(restore->options.rules, &look->places[i]);
    }
    restore->state = RESTORE_WAITING;
}

/* ---- pages ---- */

static void ask_later(struct idem_restore *restore)
{
    int64_t pause_us = restore->ask_pause_us == 0 ? ASK_FIRST_US : restore->ask_pause_us * 2;
    restore->ask_pause_us = pause_us < ASK_MAX_US ? pause_us : ASK_MAX_US;
    restore->ask_at_us = mono_us(restore) + restore->ask_pause_us;
    restore->stats.failures += 1;
    restore->state = RESTORE_ASKING;
}

static void begin_providers(struct idem_restore *restore)
{
    if (mono_us(restore) < restore->begin_at_us) {
        return;
    }
    int64_t now_us = idem_clock_wall_us(restore->options.clock);
    now_us = now_us > restore->begins_us ? now_us : restore->begins_us;
    restore->to_us = now_us + CLOCK_MARGIN_US;
    restore->state = RESTORE_ASKING;
}

static void next_provider(struct idem_restore *restore)
{
    restore->provider += 1;
    restore->cursor[0] = '\0';
    restore->last_us = 0;
    restore->state = RESTORE_ASKING;
}

static void ask(struct idem_restore *restore)
{
    const struct idem_rules *rules = restore->options.rules;
    struct idem_listing *listing = &restore->listing;
    while (restore->provider < rules->provider_count &&
           !rules->providers[restore->provider].listing) {
        next_provider(restore);
    }
    if (restore->provider == rules->provider_count) {
        restore->state = restore->stats.needs_operator ? RESTORE_OVER : RESTORE_ENDING;
        return;
    }
    if (mono_us(restore) < restore->ask_at_us) {
        return;
    }
    listing->entry = rules->providers[restore->provider].entry;
    listing->from_us = restore->stats.from_us;
    listing->to_us = restore->to_us;
    memcpy(listing->cursor, restore->cursor, sizeof(listing->cursor));
    restore->asked_us = idem_clock_wall_us(restore->options.clock);
    restore->state = RESTORE_LISTING;
    if (idem_port_list(restore->options.port, listing) != IDEM_OK) {
        ask_later(restore);
    }
}

/* Its effects happened after those of the pages before, and its cursor is another one. */
static bool page_leads_on(const struct idem_restore *restore)
{
    const struct idem_listing *listing = &restore->listing;
    int64_t before_us = restore->last_us;
    IDEM_ASSERT(listing->count <= IDEM_LISTING_MAX);
    for (size_t i = 0; i < listing->count; i++) {
        if (listing->listed[i].happened_us < before_us) {
            return false;
        }
        before_us = listing->listed[i].happened_us;
    }
    return !listing->more || strcmp(listing->cursor, restore->cursor) != 0;
}

static void take_listing(struct idem_restore *restore)
{
    struct idem_list done = { .count = 0 };
    idem_port_reap_listings(restore->options.port, &done);
    if (idem_list_pop(&done) == NULL) {
        return;
    }
    IDEM_ASSERT(done.count == 0);
    IDEM_ASSERT(restore->state == RESTORE_LISTING);
    const struct idem_listing *listing = &restore->listing;
    if (!listing->answered || !page_leads_on(restore)) {
        ask_later(restore);
        return;
    }
    restore->ask_pause_us = 0;
    restore->told = 0;
    restore->counted = 0;
    restore->state = RESTORE_TELLING;
}

/* ---- effects ---- */

static struct idem_command command_of(const struct idem_restore *restore,
                                      const struct idem_listed *listed,
                                      const struct idem_scope *scope)
{
    const struct idem_provider_rules *provider =
        &restore->options.rules->providers[restore->provider];
    struct idem_command command = {
        .kind = IDEM_COMMAND_EVIDENCE,
        .scope = *scope,
        .evidence = {
            .source = IDEM_SOURCE_LISTING,
            .outcome = IDEM_OUTCOME_SUCCESS,
            .entry = provider->entry,
            .account = provider->account,
            .region = provider->region,
            .effect_id = listed->effect_id,
            .amount_minor = listed->amount_minor,
            .currency = listed->currency,
            .reference = listed->reference,
            .asked_us = restore->asked_us,
            .order_no = listed->order_no,
            .payment_effect_id = listed->payment_effect_id,
            .happened_us = listed->happened_us,
        },
    };
    struct idem_scope payment_scope;
    if (idem_effect_id_scope(listed->payment_effect_id, &payment_scope)) {
        command.evidence.payment_scope = payment_scope;
    }
    return command;
}

/* The next effect of the page. */
static void tell(struct idem_restore *restore)
{
    const struct idem_listed *listed = &restore->listing.listed[restore->told];
    struct idem_scope scope;
    bool is_ours = idem_effect_id_scope(listed->effect_id, &scope);
    if (restore->told == restore->counted) {
        restore->counted += 1;
        restore->stats.listed += 1;
        restore->stats.foreign += is_ours ? 0 : 1;
    }
    restore->told += 1;
    if (!is_ours) {
        return;
    }
    struct telling *telling = &restore->tellings[0];
    while (telling->busy) {
        telling += 1;
    }
    IDEM_ASSERT(telling < restore->tellings + TASKS_MAX);
    telling->task.item.command = command_of(restore, listed, &scope);
    telling->task.done = &restore->done_tellings;
    telling->index = restore->told - 1;
    telling->busy = true;
    restore->busy_count += 1;
    idem_engine_run(restore->options.engine, &telling->task);
}

static void take_tellings(struct idem_restore *restore)
{
    struct idem_list_node *node = NULL;
    while ((node = idem_list_pop(&restore->done_tellings)) != NULL) {
        struct telling *telling = IDEM_CONTAINER_OF(node, struct telling, task.item.node);
        telling->busy = false;
        restore->busy_count -= 1;
        if (telling->task.item.answer != IDEM_STORE_DURABLE) {
            bool is_first = telling->index < restore->refused;
            restore->refused = is_first ? telling->index : restore->refused;
            restore->stats.failures += 1;
            restore->again_at_us = mono_us(restore) + REFUSED_PAUSE_US;
        }
    }
}

/* From the one on that the store did not take, once all others are back. False: not yet. */
static bool go_back(struct idem_restore *restore)
{
    if (restore->refused == NONE_REFUSED) {
        return true;
    }
    if (restore->busy_count > 0 || mono_us(restore) < restore->again_at_us) {
        return false;
    }
    restore->told = restore->refused;
    restore->refused = NONE_REFUSED;
    return true;
}

static void tell_page(struct idem_restore *restore)
{
    const struct idem_listing *listing = &restore->listing;
    if (!go_back(restore)) {
        return;
    }
    while (restore->told < listing->count && restore->busy_count < TASKS_MAX) {
        tell(restore);
    }
    if (restore->told < listing->count || restore->busy_count > 0) {
        return;
    }
    if (!listing->more) {
        next_provider(restore);
        return;
    }
    restore->last_us =
        listing->count > 0 ? listing->listed[listing->count - 1].happened_us : restore->last_us;
    memcpy(restore->cursor, listing->cursor, sizeof(restore->cursor));
    restore->state = RESTORE_ASKING;
}

/* ---- the end ---- */

static void begin_mark(struct idem_restore *restore)
{
    if (restore->marking || mono_us(restore) < restore->again_at_us) {
        return;
    }
    restore->mark.item.command = (struct idem_command){
        .kind = IDEM_COMMAND_MARK,
        .mark = {
            .kind = IDEM_MARK_RESTORED_OVER,
            .value_us = idem_clock_wall_us(restore->options.clock),
            .listed = true,
            .by = IDEM_STR("service"),
            .reason = IDEM_STR("every provider's listing was read"),
        },
    };
    restore->mark.done = &restore->done_marks;
    restore->marking = true;
    idem_engine_run(restore->options.engine, &restore->mark);
}

static void take_mark(struct idem_restore *restore)
{
    if (idem_list_pop(&restore->done_marks) == NULL) {
        return;
    }
    restore->marking = false;
    if (restore->mark.item.answer == IDEM_STORE_DURABLE) {
        restore->state = RESTORE_OVER;
        return;
    }
    restore->again_at_us = mono_us(restore) + REFUSED_PAUSE_US;
}

static void go_on(struct idem_restore *restore)
{
    switch (restore->state) {
    case RESTORE_LOOKING:
        begin_look(restore);
        return;
    case RESTORE_WAITING:
        begin_providers(restore);
        return;
    case RESTORE_ASKING:
        ask(restore);
        return;
    case RESTORE_TELLING:
        tell_page(restore);
        return;
    case RESTORE_ENDING:
        begin_mark(restore);
        return;
    case RESTORE_LISTING:
    case RESTORE_OVER:
        return;
    }
    IDEM_UNREACHABLE();
}

void idem_restore_step(struct idem_restore *restore)
{
    if (restore->state == RESTORE_LISTING) {
        take_listing(restore);
    }
    take_look(restore);
    take_tellings(restore);
    take_mark(restore);

    enum restore_state before = RESTORE_OVER;
    while (!is_ended(restore) && restore->state != before) {
        before = restore->state;
        go_on(restore);
    }
}

int64_t idem_restore_wake_us(const struct idem_restore *restore)
{
    size_t done_count =
        restore->done_looks.count + restore->done_tellings.count + restore->done_marks.count;
    if (done_count > 0) {
        return 0;
    }
    if (is_ended(restore)) {
        return INT64_MAX;
    }
    bool is_back = restore->refused != NONE_REFUSED && restore->busy_count == 0;
    switch (restore->state) {
    case RESTORE_LOOKING:
        return restore->looking ? INT64_MAX : restore->again_at_us;
    case RESTORE_WAITING:
        return restore->begin_at_us;
    case RESTORE_ASKING:
        return restore->ask_at_us;
    case RESTORE_TELLING:
        return is_back ? restore->again_at_us : INT64_MAX;
    case RESTORE_ENDING:
        return restore->marking ? INT64_MAX : restore->again_at_us;
    case RESTORE_LISTING:
    case RESTORE_OVER:
        return INT64_MAX;
    }
    IDEM_UNREACHABLE();
}

struct idem_restore_stats idem_restore_stats(const struct idem_restore *restore)
{
    struct idem_restore_stats stats = restore->stats;
    stats.restored = restore->options.store->restored;
    stats.needs_operator = stats.needs_operator && stats.restored;
    return stats;
}

void idem_restore_stop(struct idem_restore *restore)
{
    restore->stopped = true;
    if (restore->state == RESTORE_LISTING) { /* A stop does not wait for a provider. */
        idem_port_cancel_listing(restore->options.port, &restore->listing);
    }
}

bool idem_restore_idle(const struct idem_restore *restore)
{
    return restore->state != RESTORE_LISTING && restore->busy_count == 0 && !restore->looking &&
           !restore->marking;
}
