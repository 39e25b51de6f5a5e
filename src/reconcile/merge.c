/*
 * A merge of two sorted sides, and the table that judges a pair.
 *
 *                 there: nothing     succeeded          failed     reversed
 *   here
 *   no record     -                  missing-here       nothing    missing-here
 *   open          open               state (settles)    state      state
 *   succeeded     missing-there      matched            state      state
 *   failed        nothing            state              nothing    state
 *   released      nothing            state (settles)    nothing    state
 *
 * Another amount, currency or order number comes before "state" and "matched". Before "missing" on
 * either side come: an id of others, what is too young, and what the period or the listing does not
 * cover. Nobody is told "missing" of what may merely stand in another period's listing: only what
 * lies in this one with all of its life, clocks apart and all, has to be there.
 *
 * Several lines of one id are one after the other; a second success is a duplicate, a reversal
 * behind a success is compared by itself.
 */
#include "reconcile/merge.h"

#include <string.h>

#include "base/bug.h"

static bool is_ours(struct idem_str effect_id)
{
    struct idem_scope scope;
    return idem_effect_id_scope(effect_id, &scope);
}

enum idem_effect_kind idem_merge_effect(const struct idem_merge_pair *pair)
{
    struct idem_str id = pair->has_here ? pair->here.effect_id : pair->there.effect_id;
    return is_ours(id) ? idem_effect_kind_from_letter(id.data[0]) : IDEM_EFFECT_KIND_NONE;
}

static bool is_open(const struct idem_line *line)
{
    return line->state == IDEM_LINE_OPEN || line->state == IDEM_LINE_PARKED;
}

static bool is_young(const struct idem_merge_rules *rules, const struct idem_line *line)
{
    return line->last_us >= rules->young_us;
}

/* Its side has it if it happened: it lies in the period with all that it can have been. */
static bool is_covered(const struct idem_merge_rules *rules, const struct idem_line *here)
{
    enum idem_effect_kind kind = idem_effect_kind_from_letter(here->effect_id.data[0]);
    return (rules->lists >> kind & 1U) != 0 && here->first_us - rules->skew_us >= rules->from_us &&
           here->last_us + rules->skew_us < rules->to_us;
}

/* Records of the margin, which nobody asked about. */
static bool is_margin(const struct idem_merge_rules *rules, const struct idem_line *here)
{
    return here->first_us < rules->from_us || here->first_us >= rules->to_us;
}

static void say(struct idem_merge_pair *pair, enum idem_merge_kind kind, enum idem_merge_word word)
{
    pair->kind = kind;
    pair->word = word;
}

static void judge_here(const struct idem_merge_rules *rules, struct idem_merge_pair *pair)
{
    const struct idem_line *here = &pair->here;
    if (is_open(here)) {
        say(pair, IDEM_MERGE_OPEN, IDEM_MERGE_SAY_NOTHING);
    } else if (here->state != IDEM_LINE_SUCCEEDED) {
        say(pair, IDEM_MERGE_NOTHING, IDEM_MERGE_SAY_NOTHING);
    } else if (is_young(rules, here)) {
        say(pair, IDEM_MERGE_YOUNG, IDEM_MERGE_SAY_NOTHING);
    } else if (!is_covered(rules, here)) {
        say(pair, IDEM_MERGE_OUTSIDE, IDEM_MERGE_SAY_NOTHING);
    } else {
        say(pair, IDEM_MERGE_MISSING_THERE, IDEM_MERGE_SAY_MISSING);
    }
}

static void judge_there(const struct idem_merge_rules *rules, struct idem_merge_pair *pair)
{
    const struct idem_line *there = &pair->there;
    bool dated = there->first_us != 0;
    bool inside = there->first_us >= rules->from_us && there->last_us < rules->to_us;
    if (there->state == IDEM_LINE_FAILED) {
        say(pair, IDEM_MERGE_NOTHING, IDEM_MERGE_SAY_NOTHING);
    } else if (dated && !inside) {
        say(pair, IDEM_MERGE_OUTSIDE, IDEM_MERGE_SAY_NOTHING);
    } else if (is_young(rules, there)) {
        say(pair, IDEM_MERGE_YOUNG, IDEM_MERGE_SAY_NOTHING);
    } else {
        say(pair, IDEM_MERGE_MISSING_HERE,
            there->state == IDEM_LINE_REVERSED ? IDEM_MERGE_SAY_REVERSED : IDEM_MERGE_SAY_LISTED);
    }
}

static bool same_money(const struct idem_line *here, const struct idem_line *there)
{
    return here->amount_minor == there->amount_minor &&
           idem_str_equal(here->currency, there->currency);
}

static bool same_order(const struct idem_line *here, const struct idem_line *there)
{
    return here->order_no.len == 0 || there->order_no.len == 0 ||
           idem_str_equal(here->order_no, there->order_no);
}

static void judge_success(const struct idem_merge_rules *rules, struct idem_merge_pair *pair)
{
    const struct idem_line *here = &pair->here;
    const struct idem_line *there = &pair->there;
    if (is_open(here) && is_young(rules, there)) {
        say(pair, IDEM_MERGE_YOUNG, IDEM_MERGE_SAY_NOTHING);
    } else if (!same_money(here, there)) {
        say(pair, IDEM_MERGE_AMOUNT, IDEM_MERGE_SAY_LISTED);
    } else if (!same_order(here, there)) {
        say(pair, IDEM_MERGE_ORDER, IDEM_MERGE_SAY_LISTED);
    } else if (here->state != IDEM_LINE_SUCCEEDED) {
        say(pair, IDEM_MERGE_STATE, IDEM_MERGE_SAY_LISTED);
    } else {
        say(pair, IDEM_MERGE_MATCHED, IDEM_MERGE_SAY_NOTHING);
    }
}

static void judge_both(const struct idem_merge_rules *rules, struct idem_merge_pair *pair)
{
    bool not_here = pair->here.state == IDEM_LINE_FAILED || pair->here.state == IDEM_LINE_RELEASED;
    switch (pair->there.state) {
    case IDEM_LINE_SUCCEEDED:
        judge_success(rules, pair);
        return;
    case IDEM_LINE_FAILED:
        say(pair, not_here ? IDEM_MERGE_NOTHING : IDEM_MERGE_STATE,
            not_here ? IDEM_MERGE_SAY_NOTHING : IDEM_MERGE_SAY_FAILED);
        return;
    case IDEM_LINE_REVERSED:
        say(pair, IDEM_MERGE_STATE, IDEM_MERGE_SAY_REVERSED);
        return;
    case IDEM_LINE_NONE:
    case IDEM_LINE_RELEASED:
    case IDEM_LINE_OPEN:
    case IDEM_LINE_PARKED:
    case IDEM_LINE_STATE_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

void idem_merge_judge(const struct idem_merge_rules *rules,
                      bool again,
                      struct idem_merge_pair *pair)
{
    IDEM_ASSERT(pair->has_here || pair->has_there);
    if (pair->has_there && !is_ours(pair->there.effect_id)) {
        say(pair, IDEM_MERGE_FOREIGN, IDEM_MERGE_SAY_NOTHING);
    } else if (pair->has_there && again) {
        say(pair, IDEM_MERGE_DUPLICATE, IDEM_MERGE_SAY_AGAIN);
    } else if (!pair->has_there) {
        judge_here(rules, pair);
    } else if (!pair->has_here) {
        judge_there(rules, pair);
    } else {
        judge_both(rules, pair);
    }
}

void idem_merge_init(struct idem_merge *merge,
                     const struct idem_merge_rules *rules,
                     const struct idem_merge_source *source)
{
    IDEM_ASSERT(rules->from_us < rules->to_us);
    IDEM_ASSERT(rules->skew_us >= 0);
    *merge = (struct idem_merge){
        .rules = *rules,
        .source = *source,
        .wanted = { true, true },
    };
}

static bool is_last(const struct idem_merge *merge, enum idem_line_side side)
{
    const struct idem_str last = {
        .data = merge->last_ids[side],
        .len = merge->last_lens[side],
    };
    return idem_str_equal(merge->heads[side].effect_id, last);
}

static void last_keep(struct idem_merge *merge, enum idem_line_side side)
{
    struct idem_str id = merge->heads[side].effect_id;
    IDEM_ASSERT(id.len > 0);
    IDEM_ASSERT(id.len <= IDEM_LINE_ID_MAX);
    memcpy(merge->last_ids[side], id.data, id.len);
    merge->last_lens[side] = id.len;
}

/* Two pages of records may both have one: an effect has one record, so the second is the first. */
static enum idem_err head_fetch(struct idem_merge *merge,
                                enum idem_line_side side,
                                struct idem_error *reterr)
{
    bool repeated = true;
    while (merge->wanted[side] && !merge->ended[side] && repeated) {
        enum idem_err err = merge->source.next(merge->source.context, side, &merge->heads[side],
                                               &merge->ended[side], reterr);
        if (err != IDEM_OK) {
            return err;
        }
        repeated = side == IDEM_LINE_HERE && !merge->ended[side] && is_last(merge, side);
    }
    merge->wanted[side] = false;
    return IDEM_OK;
}

/* Below zero: the head here comes first; an ended side comes last. */
static int heads_compare(const struct idem_merge *merge)
{
    if (merge->ended[IDEM_LINE_HERE] || merge->ended[IDEM_LINE_THERE]) {
        return merge->ended[IDEM_LINE_HERE] ? 1 : -1;
    }
    return idem_str_compare(merge->heads[IDEM_LINE_HERE].effect_id,
                            merge->heads[IDEM_LINE_THERE].effect_id);
}

/* The head here stays the partner of all their lines of its id; then it has had its turn. */
static enum idem_err heads_fetch(struct idem_merge *merge, struct idem_error *reterr)
{
    enum idem_err err = head_fetch(merge, IDEM_LINE_THERE, reterr);
    if (err == IDEM_OK && merge->here_met && heads_compare(merge) != 0) {
        merge->wanted[IDEM_LINE_HERE] = true;
        merge->here_met = false;
    }
    return err == IDEM_OK ? head_fetch(merge, IDEM_LINE_HERE, reterr) : err;
}

/* True if their head says once more what their line before said. */
static bool is_again(const struct idem_merge *merge)
{
    return is_last(merge, IDEM_LINE_THERE) && merge->last_state == IDEM_LINE_SUCCEEDED &&
           merge->heads[IDEM_LINE_THERE].state == IDEM_LINE_SUCCEEDED;
}

static void pair_take(struct idem_merge *merge, struct idem_merge_pair *ret_pair)
{
    int order = heads_compare(merge);
    bool again = false;
    *ret_pair = (struct idem_merge_pair){ .has_here = order <= 0, .has_there = order >= 0 };
    if (ret_pair->has_here) {
        ret_pair->here = merge->heads[IDEM_LINE_HERE];
        last_keep(merge, IDEM_LINE_HERE);
    }
    if (ret_pair->has_there) {
        again = is_again(merge);
        ret_pair->there = merge->heads[IDEM_LINE_THERE];
        merge->last_state = ret_pair->there.state;
        last_keep(merge, IDEM_LINE_THERE);
    }
    merge->wanted[IDEM_LINE_THERE] = ret_pair->has_there;
    merge->wanted[IDEM_LINE_HERE] = order < 0;
    merge->here_met = order == 0;
    idem_merge_judge(&merge->rules, again, ret_pair);
}

enum idem_err idem_merge_next(struct idem_merge *merge,
                              struct idem_merge_pair *ret_pair,
                              struct idem_error *reterr)
{
    for (;;) {
        enum idem_err err = heads_fetch(merge, reterr);
        if (err != IDEM_OK) {
            return err;
        }
        if (merge->ended[IDEM_LINE_HERE] && merge->ended[IDEM_LINE_THERE]) {
            *ret_pair = (struct idem_merge_pair){ .kind = IDEM_MERGE_NONE };
            return IDEM_OK;
        }
        pair_take(merge, ret_pair);
        if (ret_pair->has_there || !is_margin(&merge->rules, &ret_pair->here)) {
            return IDEM_OK;
        }
    }
}

const char *idem_merge_kind_name(enum idem_merge_kind kind)
{
    static const char *const names[IDEM_MERGE_KIND_COUNT] = {
        [IDEM_MERGE_NONE] = "none",
        [IDEM_MERGE_MATCHED] = "matched",
        [IDEM_MERGE_MISSING_HERE] = "missing-here",
        [IDEM_MERGE_MISSING_THERE] = "missing-there",
        [IDEM_MERGE_AMOUNT] = "amount-differs",
        [IDEM_MERGE_ORDER] = "order-differs",
        [IDEM_MERGE_STATE] = "state-differs",
        [IDEM_MERGE_DUPLICATE] = "duplicate",
        [IDEM_MERGE_FOREIGN] = "foreign",
        [IDEM_MERGE_OPEN] = "open",
        [IDEM_MERGE_YOUNG] = "too-young",
        [IDEM_MERGE_OUTSIDE] = "outside",
        [IDEM_MERGE_NOTHING] = "nothing-moved",
    };
    IDEM_ASSERT(kind < IDEM_MERGE_KIND_COUNT);
    return names[kind];
}

const char *idem_merge_word_name(enum idem_merge_word word)
{
    static const char *const names[IDEM_MERGE_WORD_COUNT] = {
        [IDEM_MERGE_SAY_NOTHING] = "",      [IDEM_MERGE_SAY_LISTED] = "listed",
        [IDEM_MERGE_SAY_AGAIN] = "again",   [IDEM_MERGE_SAY_MISSING] = "missing",
        [IDEM_MERGE_SAY_FAILED] = "failed", [IDEM_MERGE_SAY_REVERSED] = "reversed",
    };
    IDEM_ASSERT(word < IDEM_MERGE_WORD_COUNT);
    return names[word];
}
