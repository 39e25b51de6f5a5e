/*
 * Nothing here knows what a state means: the service has said it, and it is shown.
 */
#include "cli/operation_view.h"

#include <stdio.h>

/* An object's amount with its currency, or nothing. */
void idem_operation_view_money(struct idem_table_view *table,
                               const struct idem_json *json,
                               size_t object)
{
    size_t amount = idem_json_member(json, object, IDEM_STR("amount"));
    size_t currency = idem_json_member(json, object, IDEM_STR("currency"));
    if (amount == 0 || json->tokens[amount].kind != IDEM_JSON_STRING || currency == 0) {
        idem_table_add(table, IDEM_STR(""));
        return;
    }
    char memory[128];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_buf_add(&buf, json->tokens[amount].raw); /* Digits and letters: no escapes. */
    idem_buf_add_char(&buf, ' ');
    idem_buf_add(&buf, json->tokens[currency].raw);
    idem_table_add(table, buf.full ? IDEM_STR("") : idem_buf_str(&buf));
}

/* "ask the provider" and when, of the member "next". */
void idem_operation_view_next(struct idem_table_view *table,
                              const struct idem_json *json,
                              size_t object)
{
    size_t next = idem_json_member(json, object, IDEM_STR("next"));
    if (next == 0 || json->tokens[next].kind != IDEM_JSON_OBJECT) {
        idem_table_add(table, IDEM_STR(""));
        idem_table_add(table, IDEM_STR(""));
        return;
    }
    idem_table_add_member(table, json, next, "step");
    idem_table_add_age(table, json, next, "at");
}

/* A section of one view: the elements of the array `name` as a table. */
static enum idem_exit section_print(const struct idem_json *json,
                                    const char *name,
                                    const char *const *members)
{
    static struct idem_table_view table;
    size_t list = idem_json_member(json, 0, idem_str_from(name));
    if (list == 0 || json->tokens[list].kind != IDEM_JSON_ARRAY || json->tokens[list].count == 0) {
        return IDEM_EXIT_OK;
    }
    idem_table_begin(&table, members);
    size_t element = list + 1;
    for (uint32_t i = 0; i < json->tokens[list].count; i++) {
        idem_table_row(&table);
        for (size_t j = 0; members[j] != NULL; j++) {
            idem_table_add_member(&table, json, element, members[j]);
        }
        element = json->tokens[element].next;
    }
    if (printf("\n%s\n", name) < 0) {
        return IDEM_EXIT_OTHER;
    }
    return idem_table_print(&table);
}

static void line_add(struct idem_table_view *table,
                     const struct idem_json *json,
                     size_t object,
                     const char *name)
{
    size_t index = idem_json_member(json, object, idem_str_from(name));
    if (index == 0 || json->tokens[index].kind == IDEM_JSON_NULL) {
        return;
    }
    idem_table_row(table);
    idem_table_add(table, idem_str_from(name));
    idem_table_add_member(table, json, object, name);
}

static enum idem_exit operation_print(const struct idem_session *session)
{
    static const char *const lines[] = { "id",       "state",         "why",      "principal",
                                         "endpoint", "payment",       "refund",   "created",
                                         "updated",  "unknown_since", "finished", "expires",
                                         NULL };
    static const char *const effect_lines[] = { "kind",   "provider", "account",   "region",
                                                "amount", "currency", "reference", NULL };
    static const char *const attempts[] = {
        "send", "epoch", "state", "granted", "not_after", NULL
    };
    static const char *const timeline[] = { "at", "kind", "cause", "send", "detail", NULL };
    static const char *const cases[] = { "id",      "kind",       "opened",   "detail",
                                         "decided", "decided_by", "decision", NULL };
    static struct idem_table_view table;
    const struct idem_json *json = &session->document;

    idem_table_begin(&table, NULL);
    for (size_t i = 0; lines[i] != NULL; i++) {
        line_add(&table, json, 0, lines[i]);
    }
    idem_table_row(&table);
    idem_table_add(&table, IDEM_STR("next"));
    idem_operation_view_next(&table, json, 0);
    size_t effect = idem_json_member(json, 0, IDEM_STR("effect"));
    if (effect != 0 && json->tokens[effect].kind == IDEM_JSON_OBJECT) {
        idem_table_row(&table);
        idem_table_add(&table, IDEM_STR("effect"));
        idem_table_add_member(&table, json, effect, "id");
        for (size_t i = 0; effect_lines[i] != NULL; i++) {
            line_add(&table, json, effect, effect_lines[i]);
        }
    }
    enum idem_exit status = idem_table_print(&table);
    if (status == IDEM_EXIT_OK) {
        status = section_print(json, "attempts", attempts);
    }
    if (status == IDEM_EXIT_OK) {
        status = section_print(json, "timeline", timeline);
    }
    return status == IDEM_EXIT_OK ? section_print(json, "cases", cases) : status;
}

enum idem_exit idem_operation_view_print(const struct idem_session *session)
{
    return session->json ? idem_session_print_json(session) : operation_print(session);
}
