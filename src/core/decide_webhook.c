/*
 * Webhooks, and what became of deliveries. No intent and no money changes here.
 *
 * Whoever adds a webhook chooses its id, and whoever rotates names the generation that is replaced,
 * so that both are safe to repeat: what stands there already is answered as if it had just been
 * done. As with credentials, a second run may write nothing.
 *
 * An attempt belongs to the token of its TAKE. Its failure counts only while nobody else has taken
 * the delivery; its success counts always, since the message did arrive. A delivery that comes
 * twice is what the message's id is for. Only what ended is counted as an attempt: a process that
 * dies again and again must not use up what a merchant has, who did nothing wrong.
 */
#include "core/decide_internal.h"

#include "base/bug.h"

static void change_webhook(struct idem_turn *turn, const struct idem_webhook *row)
{
    struct idem_webhook_write *write = &turn->decision->webhook;
    write->write = row->row == 0 ? IDEM_WRITE_INSERT : IDEM_WRITE_UPDATE;
    write->row = *row;
    write->row.version += 1;
}

static bool is_same(const struct idem_webhook *one, const struct idem_webhook *two)
{
    return idem_str_equal(one->principal, two->principal) && idem_str_equal(one->url, two->url) &&
           one->types == two->types;
}

static enum idem_problem add(struct idem_turn *turn)
{
    const struct idem_webhook_change *change = &turn->command->webhook;
    const struct idem_webhook *known = &turn->facts->webhook;
    if (known->row != 0) {
        return is_same(known, &change->row) ? IDEM_PROBLEM_NONE : IDEM_PROBLEM_STATE_CONFLICT;
    }
    if (turn->facts->webhook_count >= IDEM_WEBHOOKS_PRINCIPAL_MAX) {
        return IDEM_PROBLEM_STATE_CONFLICT;
    }
    const struct idem_webhook row = {
        .id = change->row.id,
        .principal = change->row.principal,
        .url = change->row.url,
        .types = change->row.types,
        .generation = 1,
        .created_us = turn->command->now_us,
        .created_by = change->by,
    };
    change_webhook(turn, &row);
    return IDEM_PROBLEM_NONE;
}

static void rotate(struct idem_turn *turn)
{
    struct idem_webhook row = turn->facts->webhook;
    if (row.generation == turn->command->webhook.generation) {
        row.generation += 1;
        row.rotated_us = turn->command->now_us;
        change_webhook(turn, &row);
    }
}

static void disable(struct idem_turn *turn, struct idem_str by)
{
    struct idem_webhook row = turn->facts->webhook;
    if (row.disabled_us == 0) {
        row.disabled_us = turn->command->now_us;
        row.disabled_by = by;
        change_webhook(turn, &row);
    }
}

static void enable(struct idem_turn *turn)
{
    struct idem_webhook row = turn->facts->webhook;
    if (row.disabled_us != 0) {
        row.disabled_us = 0;
        row.disabled_by = (struct idem_str){ .len = 0 };
        change_webhook(turn, &row);
    }
}

static enum idem_problem test(struct idem_turn *turn)
{
    const struct idem_webhook *known = &turn->facts->webhook;
    if (known->disabled_us != 0) {
        return IDEM_PROBLEM_STATE_CONFLICT;
    }
    turn->decision->webhook.row = *known;
    turn->decision->messages[0] = (struct idem_message){
        .id = turn->command->message_id,
        .type = IDEM_MESSAGE_TEST,
        .principal = known->principal,
        .at_us = turn->command->now_us,
        .data = IDEM_STR("{}"),
    };
    turn->decision->message_count = 1;
    return IDEM_PROBLEM_NONE;
}

static enum idem_problem change(struct idem_turn *turn)
{
    enum idem_webhook_action action = turn->command->webhook.action;
    if (action != IDEM_WEBHOOK_ADD && turn->facts->webhook.row == 0) {
        return IDEM_PROBLEM_NOT_FOUND;
    }
    switch (action) {
    case IDEM_WEBHOOK_ADD:
        return add(turn);
    case IDEM_WEBHOOK_ROTATE:
        rotate(turn);
        return IDEM_PROBLEM_NONE;
    case IDEM_WEBHOOK_DISABLE:
        disable(turn, turn->command->webhook.by);
        return IDEM_PROBLEM_NONE;
    case IDEM_WEBHOOK_ENABLE:
        enable(turn);
        return IDEM_PROBLEM_NONE;
    case IDEM_WEBHOOK_TEST:
        return test(turn);
    case IDEM_WEBHOOK_NOTHING:
    case IDEM_WEBHOOK_ACTION_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

void idem_decide_webhook(struct idem_turn *turn)
{
    idem_turn_reply(turn, change(turn), false);
}

static void change_delivery(struct idem_turn *turn, const struct idem_delivery *row)
{
    turn->decision->delivery =
        (struct idem_delivery_write){ .write = IDEM_WRITE_UPDATE, .row = *row };
    turn->decision->delivery.row.version += 1;
}

/* It ends, one way or the other. */
static void finish(struct idem_turn *turn, enum idem_delivery_state state)
{
    struct idem_delivery row = turn->facts->delivery;
    row.state = state;
    row.attempts += 1;
    row.due_us = 0;
    row.finished_us = turn->command->now_us;
    row.last_status = turn->command->delivery.status;
    row.last_error = turn->command->delivery.error;
    change_delivery(turn, &row);
}

static enum idem_problem take(struct idem_turn *turn)
{
    struct idem_delivery row = turn->facts->delivery;
    bool again = idem_uid_equal(row.token, turn->command->token); /* After an unknown COMMIT. */
    bool is_free = row.due_us <= turn->command->now_us || again;
    bool is_pending = row.state == IDEM_DELIVERY_PENDING;
    if (turn->facts->webhook.disabled_us != 0 || !is_pending || !is_free) {
        return IDEM_PROBLEM_STATE_CONFLICT;
    }
    row.token = turn->command->token;
    row.due_us = turn->command->now_us + turn->command->delivery.pause_us;
    change_delivery(turn, &row);
    return IDEM_PROBLEM_NONE;
}

/* Nobody else has taken it since, and it has not arrived. */
static bool is_still_its(const struct idem_turn *turn)
{
    const struct idem_delivery *row = &turn->facts->delivery;
    return row->state == IDEM_DELIVERY_PENDING &&
           idem_uid_equal(row->token, turn->command->delivery.token);
}

static enum idem_problem failed(struct idem_turn *turn)
{
    const struct idem_delivery_change *said = &turn->command->delivery;
    struct idem_delivery row = turn->facts->delivery;
    if (!is_still_its(turn)) {
        return IDEM_PROBLEM_NONE;
    }
    if (said->pause_us == 0) {
        finish(turn, IDEM_DELIVERY_DEAD);
        return IDEM_PROBLEM_NONE;
    }
    row.attempts += 1;
    row.token = (struct idem_uid){ .bytes = { 0 } }; /* Running again, it is no failure more. */
    row.due_us = turn->command->now_us + said->pause_us;
    row.last_status = said->status;
    row.last_error = said->error;
    change_delivery(turn, &row);
    return IDEM_PROBLEM_NONE;
}

static enum idem_problem replay(struct idem_turn *turn)
{
    struct idem_delivery row = turn->facts->delivery;
    if (turn->facts->webhook.disabled_us != 0) {
        return IDEM_PROBLEM_STATE_CONFLICT;
    }
    if (row.state != IDEM_DELIVERY_PENDING) {
        row.state = IDEM_DELIVERY_PENDING;
        row.attempts = 0;
        row.token = (struct idem_uid){ .bytes = { 0 } }; /* Who had it has no say any more. */
        row.due_us = turn->command->now_us;
        row.finished_us = 0;
        change_delivery(turn, &row);
    }
    return IDEM_PROBLEM_NONE;
}

static enum idem_problem say(struct idem_turn *turn)
{
    enum idem_delivery_state state = turn->facts->delivery.state;
    if (turn->facts->delivery.row == 0) {
        return IDEM_PROBLEM_NOT_FOUND;
    }
    switch (turn->command->delivery.word) {
    case IDEM_DELIVERY_WORD_TAKE:
        return take(turn);
    case IDEM_DELIVERY_WORD_DONE:
        if (state != IDEM_DELIVERY_DELIVERED) {
            finish(turn, IDEM_DELIVERY_DELIVERED);
        }
        return IDEM_PROBLEM_NONE;
    case IDEM_DELIVERY_WORD_FAILED:
        return failed(turn);
    case IDEM_DELIVERY_WORD_GONE:
        if (is_still_its(turn)) {
            finish(turn, IDEM_DELIVERY_DEAD);
            disable(turn, IDEM_STR("410 Gone"));
        }
        return IDEM_PROBLEM_NONE;
    case IDEM_DELIVERY_WORD_REPLAY:
        return replay(turn);
    case IDEM_DELIVERY_WORD_NONE:
    case IDEM_DELIVERY_WORD_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

void idem_decide_delivery(struct idem_turn *turn)
{
    idem_turn_reply(turn, say(turn), false);
}
