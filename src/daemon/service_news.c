/*
 * One line for what an operator may have to follow: an outcome that is not known, one that became
 * known after all, a case in front of a person, and what an operator did about one. With
 * `log = "operations"` also one for every end.
 *
 * A line names the operation, never the key; whoever has a key asks for its operation.
 */
#include "daemon/service_internal.h"

#include <stdio.h>

#include "base/attr.h"
#include "base/bug.h"
#include "core/problem.h"
#include "daemon/config.h"
#include "daemon/log.h"

#define NEWS_AT_ONCE 64

static const char *event_name(const struct idem_news *news)
{
    switch (news->kind) {
    case IDEM_NEWS_UNKNOWN:
        return "operation-unknown";
    case IDEM_NEWS_CASE:
        return "case-opened";
    case IDEM_NEWS_ENDED:
        return news->unknown_us > 0 ? "operation-known" : "operation-ended";
    case IDEM_NEWS_NONE:
    case IDEM_NEWS_COUNT:
        break;
    }
    IDEM_UNREACHABLE();
}

static enum idem_log_level level_of(const struct idem_news *news)
{
    if (news->kind == IDEM_NEWS_CASE) {
        return IDEM_LOG_ERROR;
    }
    return news->kind == IDEM_NEWS_UNKNOWN ? IDEM_LOG_WARN : IDEM_LOG_INFO;
}

static void tell(const struct idem_news *news)
{
    char memory[64];
    struct idem_buf id;
    idem_buf_init(&id, memory, sizeof(memory) - 1);
    idem_uid_print(news->id, &id);
    memory[id.len] = '\0';

    struct idem_log_field fields[9];
    size_t count = 0;
    fields[count++] = IDEM_LOG_TEXT("operation", memory);
    fields[count++] = IDEM_LOG_TEXT("endpoint", idem_endpoint_name(news->endpoint));
    fields[count++] = IDEM_LOG_TEXT("state", idem_operation_state_name(news->state));
    fields[count++] = IDEM_LOG_NUMBER("age_ms", news->age_us / IDEM_US_PER_MS);
    if (news->entry[0] != '\0') {
        fields[count++] = IDEM_LOG_TEXT("provider", news->entry);
    }
    if (news->unknown_us > 0) {
        fields[count++] = IDEM_LOG_NUMBER("unknown_ms", news->unknown_us / IDEM_US_PER_MS);
    }
    if (news->kind == IDEM_NEWS_ENDED && news->problem != IDEM_PROBLEM_NONE) {
        fields[count++] = IDEM_LOG_TEXT("problem", idem_problem_entry(news->problem)->code);
    }
    if (news->kind == IDEM_NEWS_CASE) {
        fields[count++] = IDEM_LOG_TEXT("case", idem_case_kind_name(news->opened));
    }
    if (news->trace[0] != '\0') {
        fields[count++] = IDEM_LOG_TEXT("traceparent", news->trace);
    }
    idem_log(level_of(news), event_name(news), fields, count);
}

/* What a person did, or tried; the reason stands in the store. */
static void act_tell(const struct idem_api_act *act)
{
    char id_memory[64];
    char by_memory[IDEM_API_BY_MAX + 1];
    struct idem_buf id;
    idem_buf_init(&id, id_memory, sizeof(id_memory) - 1);
    idem_uid_print(act->object, &id);
    id_memory[id.len] = '\0';
    struct idem_str by = idem_api_act_by(act);
    (void)snprintf(by_memory, sizeof(by_memory), "%.*s", (int)by.len, by.data); /* It has room. */
    const struct idem_log_field fields[] = {
        IDEM_LOG_TEXT("by", by_memory),
        IDEM_LOG_TEXT("verb", act->verb),
        IDEM_LOG_TEXT("object", id_memory),
        IDEM_LOG_TEXT("outcome", act->outcome),
        IDEM_LOG_NUMBER("lost", (int64_t)act->lost),
    };
    bool whole = act->lost == 0;
    idem_log(IDEM_LOG_INFO, "operator", fields, IDEM_ARRAY_COUNT(fields) - (whole ? 1 : 0));
}

static void acts_tell(struct idem_service *service)
{
    struct idem_api_act acts[4];
    size_t count = 0;
    do {
        count = idem_api_take_acts(service->api, acts, IDEM_ARRAY_COUNT(acts));
        for (size_t i = 0; i < count; i++) {
            act_tell(&acts[i]);
        }
    } while (count == IDEM_ARRAY_COUNT(acts));
}

/* How many there were; the ring may have more. */
static size_t news_tell(struct idem_service *service)
{
    struct idem_news news[NEWS_AT_ONCE];
    bool every = service->config->log == IDEM_CONFIG_LOG_OPERATIONS;
    uint64_t lost = 0;
    size_t count = idem_engine_take_news(service->engine, news, NEWS_AT_ONCE, &lost);
    for (size_t i = 0; i < count; i++) {
        bool is_usual = news[i].kind == IDEM_NEWS_ENDED && news[i].unknown_us == 0;
        if (every || !is_usual) {
            tell(&news[i]);
        }
    }
    if (lost > 0) {
        idem_log(IDEM_LOG_WARN, "log-lines-lost", &IDEM_LOG_NUMBER("count", (int64_t)lost), 1);
    }
    return count;
}

void idem_service_tell_news(struct idem_service *service)
{
    acts_tell(service);
    size_t count = 0;
    do {
        count = news_tell(service);
    } while (count == NEWS_AT_ONCE);
}
