/*
 * Each delivery that is worked on is in one hand:
 *
 *     FREE --take()--> TAKING --taken()--> POSTING --posted()--> TELLING --told()--> FREE
 *                         |                                       |  ^
 *                         +--somebody else has it--> FREE         v  | tell_again()
 *                                                                REFUSED
 *
 * TAKING is a command with a lease of a minute; not one byte leaves before it is durable, nor so
 * late that the post could outlast the lease. The store may refuse what a post came to (TELLING):
 * then it is told again until the lease is over. After that the delivery is due again, as if this
 * process had died.
 *
 * It looks for what is due at the engine's hint, when a hand is free again (there may be more
 * behind what it had), while a page does not hold it all, and in any case once a second, for
 * retries whose time has come and for what other processes write. Where one could not be taken
 * (the store refuses, its clock is behind ours, another process was faster) it pauses: it may be
 * the same again.
 *
 * One webhook has at most IDEM_OUTBOX_WEBHOOK_MAX hands. Those that have as many are left out of
 * the next look, so a page never fills up with what cannot be begun.
 */
#include "outbox/outbox.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bug.h"
#include "outbox/schedule.h"

#define LOOK_EVERY_US    IDEM_US_PER_SECOND
#define AGAIN_EVERY_US   IDEM_US_PER_SECOND /* What the store refused. */
#define REFUSED_PAUSE_US (100 * IDEM_US_PER_MS)
#define SWEEP_EVERY_US   (5 * IDEM_US_PER_SECOND)
#define SWEEP_PAUSE_US   (20 * IDEM_US_PER_MS) /* While there is more. */
#define NOT_AFTER_US     (IDEM_OUTBOX_LEASE_US / 2)
#define STATUS_GONE      410

static_assert(NOT_AFTER_US + IDEM_POST_TIMEOUT_US < IDEM_OUTBOX_LEASE_US,
              "a post that left in time has ended within its lease");

enum hand_state {
    HAND_FREE = 0,
    HAND_TAKING,
    HAND_POSTING,
    HAND_TELLING,
    HAND_REFUSED
};

struct hand {
    enum hand_state state;
    int64_t delivery_row;
    uint32_t attempt; /* From 1. */
    struct idem_uid token;
    int64_t taken_us; /* Monotonic: when its lease began. */
    int64_t again_us; /* Monotonic: REFUSED. */
    bool cancelled;
    struct idem_task task;
    struct idem_post_call call;
    struct idem_delivery_change change; /* What is told. */

    struct idem_message message;
    struct idem_webhook webhook;
    char text[IDEM_WEBHOOK_URL_MAX + IDEM_MESSAGE_DATA_MAX]; /* Theirs. */
};

struct idem_outbox {
    struct idem_outbox_options options;
    bool stopped;
    struct hand *hands;
    size_t busy_count; /* Hands that are not FREE. */

    struct idem_read read;
    bool reading;
    bool hinted;
    bool more;             /* Behind the last page, or on it, and it could not be begun then. */
    int64_t look_at_us;    /* Monotonic; at the latest, ... */
    int64_t not_before_us; /* ... and not before, whatever the hints. */

    struct idem_task sweep;
    bool sweeping;
    int64_t sweep_at_us; /* Monotonic. */

    struct idem_list done_reads;
    struct idem_list done_tasks;
    struct idem_list done_sweeps;
    struct idem_outbox_stats stats;
};

enum idem_err idem_outbox_create(const struct idem_outbox_options *options,
                                 struct idem_outbox **ret_outbox)
{
    IDEM_ASSERT(options->posts_max > 0);
    IDEM_ASSERT(options->posts_max <= IDEM_OUTBOX_POSTS_MAX);
    IDEM_ASSERT(options->keep_us > 0);
    struct idem_outbox *outbox = calloc(1, sizeof(*outbox));
    struct hand *hands = calloc(options->posts_max, sizeof(*hands));
    if (outbox == NULL || hands == NULL) {
        free(hands);
        free(outbox);
        return IDEM_E_SYSTEM;
    }
    outbox->options = *options;
    outbox->hands = hands;
    outbox->sweep_at_us = idem_clock_mono_us(options->clock) + SWEEP_EVERY_US;
    *ret_outbox = outbox;
    return IDEM_OK;
}

bool idem_outbox_idle(const struct idem_outbox *outbox)
{
    return outbox->busy_count == 0 && !outbox->reading && !outbox->sweeping;
}

void idem_outbox_destroy(struct idem_outbox *outbox)
{
    if (outbox != NULL) {
        IDEM_ASSERT(idem_outbox_idle(outbox));
        free(outbox->hands);
        free(outbox);
    }
}

static int64_t mono_us(const struct idem_outbox *outbox)
{
    return idem_clock_mono_us(outbox->options.clock);
}

static int64_t wall_us(const struct idem_outbox *outbox)
{
    return idem_clock_wall_us(outbox->options.clock);
}

/* ---- hands ---- */

static struct hand *hand_find_free(struct idem_outbox *outbox)
{
    struct hand *hand = outbox->hands;
    while (hand->state != HAND_FREE) {
        hand += 1;
    }
    IDEM_ASSERT(hand < outbox->hands + outbox->options.posts_max);
    return hand;
}

static void hand_free(struct idem_outbox *outbox, struct hand *hand)
{
    IDEM_ASSERT(hand->state != HAND_FREE);
    IDEM_ASSERT(outbox->busy_count > 0);
    hand->state = HAND_FREE;
    outbox->busy_count -= 1;
}

static bool is_in_hand(const struct idem_outbox *outbox, const struct idem_delivery *delivery)
{
    for (size_t i = 0; i < outbox->options.posts_max; i++) {
        const struct hand *hand = &outbox->hands[i];
        if (hand->state != HAND_FREE && hand->delivery_row == delivery->row) {
            return true;
        }
    }
    return false;
}

static size_t webhook_hands(const struct idem_outbox *outbox, int64_t webhook_row)
{
    size_t count = 0;
    for (size_t i = 0; i < outbox->options.posts_max; i++) {
        const struct hand *hand = &outbox->hands[i];
        count += hand->state != HAND_FREE && hand->webhook.row == webhook_row ? 1 : 0;
    }
    return count;
}

static void run(struct idem_outbox *outbox,
                struct hand *hand,
                const struct idem_delivery_change *change)
{
    hand->task.item.command = (struct idem_command){
        .kind = IDEM_COMMAND_DELIVERY,
        .delivery = *change,
    };
    hand->task.done = &outbox->done_tasks;
    idem_engine_run(outbox->options.engine, &hand->task);
}

static bool was_accepted(const struct hand *hand)
{
    const struct idem_release *release = &hand->task.outcome.release;
    return release->kind == IDEM_RELEASE_REPLY && release->problem == IDEM_PROBLEM_NONE;
}

/* ---- what it came to ---- */

static void tell(struct idem_outbox *outbox, struct hand *hand)
{
    hand->state = HAND_TELLING;
    run(outbox, hand, &hand->change);
}

/* What follows from the receiver's word; `change` has the error already. */
static void judge(struct idem_outbox *outbox, struct hand *hand)
{
    const struct idem_post_call *call = &hand->call;
    struct idem_delivery_change *change = &hand->change;
    uint64_t noise = 0;

    if (call->status >= 200 && call->status <= 299) {
        change->word = IDEM_DELIVERY_WORD_DONE;
        return;
    }
    if (call->status == STATUS_GONE) {
        change->word = IDEM_DELIVERY_WORD_GONE;
        return;
    }
    change->word = IDEM_DELIVERY_WORD_FAILED;
    if (call->status == 0 && hand->cancelled) {
        change->pause_us = 1; /* It was not the receiver. */
        return;
    }
    idem_random_fill(outbox->options.random, &noise, sizeof(noise));
    change->pause_us = idem_schedule_pause_us(hand->attempt, call->retry_after_us, noise);
}

static void posted(struct idem_outbox *outbox, struct hand *hand)
{
    IDEM_ASSERT(hand->state == HAND_POSTING);
    hand->change = (struct idem_delivery_change){
        .message_id = hand->message.id,
        .webhook_id = hand->webhook.id,
        .token = hand->token,
        .status = hand->call.status,
        .error = idem_str_from(hand->call.detail),
    };
    judge(outbox, hand);
    tell(outbox, hand);
}

static void not_posted(struct idem_outbox *outbox, struct hand *hand, const char *why)
{
    hand->call.status = 0;
    hand->call.retry_after_us = 0;
    (void)snprintf(hand->call.detail, sizeof(hand->call.detail), "%s", why);
    posted(outbox, hand);
}

static void count(struct idem_outbox *outbox, const struct idem_delivery_change *change)
{
    struct idem_outbox_stats *stats = &outbox->stats;
    bool is_done = change->word == IDEM_DELIVERY_WORD_DONE;
    bool is_gone = change->word == IDEM_DELIVERY_WORD_GONE;

    stats->delivered += is_done ? 1 : 0;
    stats->failed += is_done ? 0 : 1;
    stats->gone += is_gone ? 1 : 0;
    stats->dead += !is_done && !is_gone && change->pause_us == 0 ? 1 : 0;
}

static bool lease_lasts(const struct idem_outbox *outbox, const struct hand *hand)
{
    return mono_us(outbox) - hand->taken_us < IDEM_OUTBOX_LEASE_US;
}

static void told(struct idem_outbox *outbox, struct hand *hand)
{
    bool is_durable = hand->task.item.answer == IDEM_STORE_DURABLE;
    if (!is_durable && !outbox->stopped && lease_lasts(outbox, hand)) {
        hand->state = HAND_REFUSED;
        hand->again_us = mono_us(outbox) + AGAIN_EVERY_US;
        return;
    }
    if (is_durable && was_accepted(hand)) {
        count(outbox, &hand->change);
    }
    outbox->hinted = true; /* What waited behind it may go now. */
    hand_free(outbox, hand);
}

static void tell_again(struct idem_outbox *outbox)
{
    for (size_t i = 0; i < outbox->options.posts_max; i++) {
        struct hand *hand = &outbox->hands[i];
        if (hand->state == HAND_REFUSED && mono_us(outbox) >= hand->again_us) {
            tell(outbox, hand);
        }
    }
}

/* ---- taking ---- */

/* The page that the text lies in is read over by the next look. */
static void keep(struct hand *hand, const struct idem_post *post)
{
    struct idem_buf buf;
    idem_buf_init(&buf, hand->text, sizeof(hand->text));
    hand->message = post->message;
    hand->webhook = post->webhook;
    hand->message.data = idem_buf_keep(&buf, post->message.data);
    hand->message.principal = (struct idem_str){ .len = 0 };
    hand->webhook.url = idem_buf_keep(&buf, post->webhook.url);
    hand->webhook.principal = (struct idem_str){ .len = 0 };
    hand->webhook.created_by = (struct idem_str){ .len = 0 };
    hand->webhook.disabled_by = (struct idem_str){ .len = 0 };
    IDEM_ASSERT(!buf.full); /* The store has no longer ones. */
}

static void take(struct idem_outbox *outbox, const struct idem_post *post)
{
    struct hand *hand = hand_find_free(outbox);
    hand->state = HAND_TAKING;
    outbox->busy_count += 1;
    hand->delivery_row = post->delivery.row;
    hand->attempt = post->delivery.attempts + 1;
    hand->cancelled = false;
    hand->taken_us = mono_us(outbox);
    keep(hand, post);
    const struct idem_delivery_change change = {
        .word = IDEM_DELIVERY_WORD_TAKE,
        .message_id = hand->message.id,
        .webhook_id = hand->webhook.id,
        .pause_us = IDEM_OUTBOX_LEASE_US,
    };
    run(outbox, hand, &change);
}

static void taken(struct idem_outbox *outbox, struct hand *hand)
{
    if (hand->task.item.answer != IDEM_STORE_DURABLE || !was_accepted(hand)) {
        hand_free(outbox, hand);
        outbox->not_before_us = mono_us(outbox) + REFUSED_PAUSE_US;
        return;
    }
    outbox->hinted = outbox->hinted || outbox->more; /* The next page is without this one. */
    hand->token = hand->task.item.command.token;
    hand->state = HAND_POSTING;
    if (outbox->stopped) {
        hand->cancelled = true;
        not_posted(outbox, hand, "the service stopped");
        return;
    }
    hand->call.message = &hand->message;
    hand->call.webhook = &hand->webhook;
    hand->call.not_after_us = hand->taken_us + NOT_AFTER_US;
    if (idem_post_port_submit(outbox->options.port, &hand->call) != IDEM_OK) {
        not_posted(outbox, hand, "no room for the post");
    }
}

static void take_tasks(struct idem_outbox *outbox)
{
    struct idem_list_node *node = NULL;
    while ((node = idem_list_pop(&outbox->done_tasks)) != NULL) {
        struct hand *hand = IDEM_CONTAINER_OF(node, struct hand, task.item.node);
        if (hand->state == HAND_TAKING) {
            taken(outbox, hand);
            continue;
        }
        IDEM_ASSERT(hand->state == HAND_TELLING);
        told(outbox, hand);
    }
}

static void take_posts(struct idem_outbox *outbox)
{
    struct idem_list done = { .count = 0 };
    struct idem_list_node *node = NULL;
    idem_post_port_reap(outbox->options.port, &done);
    while ((node = idem_list_pop(&done)) != NULL) {
        posted(outbox, IDEM_CONTAINER_OF(node, struct hand, call.node));
    }
}

/* ---- looking ---- */

static bool has_room(const struct idem_outbox *outbox)
{
    return outbox->busy_count < outbox->options.posts_max;
}

/* Webhooks that have all the hands that one may have. */
static void leave_out(const struct idem_outbox *outbox, struct idem_read *read)
{
    read->skip_count = 0;
    for (size_t i = 0; i < outbox->options.posts_max; i++) {
        const struct hand *hand = &outbox->hands[i];
        int64_t row = hand->webhook.row;
        if (hand->state == HAND_FREE || webhook_hands(outbox, row) < IDEM_OUTBOX_WEBHOOK_MAX) {
            continue;
        }
        size_t at = 0;
        while (at < read->skip_count && read->skip[at] != row) {
            at += 1;
        }
        IDEM_ASSERT(at < IDEM_READ_SKIP_MAX);
        read->skip[at] = row;
        read->skip_count = at == read->skip_count ? at + 1 : read->skip_count;
    }
}

/* Monotonic: when it looks next, if it has room. */
static int64_t look_us(const struct idem_outbox *outbox)
{
    int64_t wanted_us = outbox->hinted ? 0 : outbox->look_at_us;
    return wanted_us > outbox->not_before_us ? wanted_us : outbox->not_before_us;
}

static void begin_read(struct idem_outbox *outbox)
{
    if (outbox->reading || !has_room(outbox) || mono_us(outbox) < look_us(outbox)) {
        return;
    }
    struct idem_read *read = &outbox->read;
    outbox->hinted = false;
    outbox->look_at_us = mono_us(outbox) + LOOK_EVERY_US;
    read->kind = IDEM_READ_POSTS;
    read->now_us = wall_us(outbox);
    read->after_row = 0;
    read->post_count = 0;
    leave_out(outbox, read);
    read->done = &outbox->done_reads;
    outbox->reading = true;
    idem_engine_read(outbox->options.engine, read);
}

/* Begins what can be begun of a page. */
static void take_page(struct idem_outbox *outbox)
{
    const struct idem_read *read = &outbox->read;
    for (size_t i = 0; i < read->post_count && has_room(outbox); i++) {
        const struct idem_post *post = &read->posts[i];
        bool is_full = webhook_hands(outbox, post->webhook.row) >= IDEM_OUTBOX_WEBHOOK_MAX;
        if (!is_full && !is_in_hand(outbox, &post->delivery)) {
            take(outbox, post);
        }
    }
}

static void take_read(struct idem_outbox *outbox)
{
    if (idem_list_pop(&outbox->done_reads) == NULL) {
        return;
    }
    outbox->reading = false;
    if (outbox->stopped || outbox->read.answer != IDEM_STORE_DURABLE) {
        return;
    }
    outbox->more = outbox->read.more;
    take_page(outbox);
}

/* ---- forgetting ---- */

/*
 * Some at a time: at most IDEM_ROWS_SWEEP_MAX of a kind, so twelve thousand a second while there is
 * more; in between others have the store. A sweep that finds nothing writes nothing.
 */

static void begin_sweep(struct idem_outbox *outbox)
{
    if (outbox->sweeping || mono_us(outbox) < outbox->sweep_at_us) {
        return;
    }
    outbox->sweep.item.command = (struct idem_command){
        .kind = IDEM_COMMAND_MARK,
        .mark = {
            .kind = IDEM_MARK_SWEPT,
            .value_us = wall_us(outbox) - outbox->options.keep_us,
        },
    };
    outbox->sweep.done = &outbox->done_sweeps;
    outbox->sweeping = true;
    idem_engine_run(outbox->options.engine, &outbox->sweep);
}

static void take_sweep(struct idem_outbox *outbox)
{
    if (idem_list_pop(&outbox->done_sweeps) == NULL) {
        return;
    }
    bool is_durable = outbox->sweep.item.answer == IDEM_STORE_DURABLE;
    bool goes_on = is_durable && outbox->sweep.outcome.sweep_more;
    outbox->sweeping = false;
    outbox->sweep_at_us = mono_us(outbox) + (goes_on ? SWEEP_PAUSE_US : SWEEP_EVERY_US);
}

/* ---- life ---- */

void idem_outbox_step(struct idem_outbox *outbox)
{
    take_sweep(outbox);
    take_read(outbox);
    take_tasks(outbox);
    take_posts(outbox);
    bool hint = idem_engine_take_post_hint(outbox->options.engine);
    outbox->hinted = outbox->hinted || hint;
    if (!outbox->stopped) {
        tell_again(outbox);
        begin_sweep(outbox);
        begin_read(outbox);
    }
}

int64_t idem_outbox_wake_us(const struct idem_outbox *outbox)
{
    if (outbox->done_reads.count + outbox->done_tasks.count + outbox->done_sweeps.count > 0) {
        return 0;
    }
    if (outbox->stopped) {
        return INT64_MAX;
    }
    int64_t wake_us = outbox->sweeping ? INT64_MAX : outbox->sweep_at_us;
    if (!outbox->reading && has_room(outbox)) {
        wake_us = look_us(outbox) < wake_us ? look_us(outbox) : wake_us;
    }
    for (size_t i = 0; i < outbox->options.posts_max; i++) {
        const struct hand *hand = &outbox->hands[i];
        if (hand->state == HAND_REFUSED && hand->again_us < wake_us) {
            wake_us = hand->again_us;
        }
    }
    return wake_us;
}

struct idem_outbox_stats idem_outbox_stats(const struct idem_outbox *outbox)
{
    struct idem_outbox_stats stats = outbox->stats;
    stats.in_hand = outbox->busy_count;
    return stats;
}

void idem_outbox_stop(struct idem_outbox *outbox)
{
    outbox->stopped = true;
    for (size_t i = 0; i < outbox->options.posts_max; i++) {
        struct hand *hand = &outbox->hands[i];
        if (hand->state == HAND_REFUSED) {
            hand_free(outbox, hand); /* Due again when its lease ends. */
        }
    }
}

void idem_outbox_hurry(struct idem_outbox *outbox)
{
    IDEM_ASSERT(outbox->stopped);
    for (size_t i = 0; i < outbox->options.posts_max; i++) {
        struct hand *hand = &outbox->hands[i];
        if (hand->state == HAND_POSTING && !hand->cancelled) {
            hand->cancelled = true;
            idem_post_port_cancel(outbox->options.port, &hand->call);
        }
    }
}
