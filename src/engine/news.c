/*
 * News: a ring that its owner empties. What does not fit is counted and lost: a log is no record,
 * and the record is in the store.
 */
#include "engine/engine_internal.h"

#include <string.h>

#include "base/bug.h"

static enum idem_news_kind kind_of(const struct idem_store_item *item)
{
    const struct idem_outcome *outcome = item->outcome;
    const struct idem_intent *intent = &outcome->intent;
    if (!idem_uid_equal(intent->last_command, item->command.token)) {
        return IDEM_NEWS_NONE;
    }
    if (outcome->opened != IDEM_CASE_NONE) {
        return IDEM_NEWS_CASE;
    }
    if (intent->state == IDEM_INTENT_UNKNOWN) {
        bool begins = intent->unknown_since_us == item->command.now_us;
        return begins ? IDEM_NEWS_UNKNOWN : IDEM_NEWS_NONE;
    }
    bool ended =
        intent->state != IDEM_INTENT_PARKED && idem_tally_made_end(outcome, &item->command);
    return ended ? IDEM_NEWS_ENDED : IDEM_NEWS_NONE;
}

static void text_copy(char *ret_text, size_t max, struct idem_str text)
{
    struct idem_str shown = idem_str_slice(text, 0, max - 1);
    memcpy(ret_text, shown.len > 0 ? shown.data : "", shown.len);
    ret_text[shown.len] = '\0';
}

void idem_news_tell(struct idem_engine *engine, const struct idem_store_item *item)
{
    enum idem_news_kind kind = engine->options.news_max > 0 ? kind_of(item) : IDEM_NEWS_NONE;
    if (kind == IDEM_NEWS_NONE) {
        return;
    }
    if (engine->news_count == engine->options.news_max) {
        engine->news_lost += 1;
        return;
    }
    const struct idem_intent *intent = &item->outcome->intent;
    size_t at = (engine->news_first + engine->news_count) % engine->options.news_max;
    struct idem_news *news = &engine->news[at];
    int64_t since_us = intent->unknown_since_us;
    *news = (struct idem_news){
        .kind = kind,
        .id = intent->id,
        .endpoint = intent->endpoint,
        .state = intent->state,
        .problem = intent->problem,
        .opened = item->outcome->opened,
        .age_us = item->command.now_us - intent->created_us,
        .unknown_us = since_us != 0 ? item->command.now_us - since_us : 0,
    };
    text_copy(news->entry, sizeof(news->entry), intent->effect.entry);
    text_copy(news->trace, sizeof(news->trace), intent->trace);
    engine->news_count += 1;
}

size_t idem_engine_take_news(struct idem_engine *engine,
                             struct idem_news *ret_news,
                             size_t max,
                             uint64_t *ret_lost)
{
    size_t count = engine->news_count < max ? engine->news_count : max;
    for (size_t i = 0; i < count; i++) {
        ret_news[i] = engine->news[engine->news_first];
        engine->news_first = (engine->news_first + 1) % engine->options.news_max;
    }
    engine->news_count -= count;
    *ret_lost = engine->news_lost;
    engine->news_lost = 0;
    return count;
}
