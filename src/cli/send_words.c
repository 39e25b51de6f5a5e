/*
 * What a server says of its refusal, for the person who has to deal with it.
 *
 * The words decide nothing here: what an answer means is said by the client's rules, and they read
 * the codes. One is taken for the hint alone: a problem of ours with the advice "query".
 */
#include <string.h>

#include "base/json.h"
#include "cli/send_internal.h"
#include "cli/table.h"

#define TOKENS_MAX 512 /* An error with more has no words for a person. */

/* An error's body, and where its words go. */
struct reading {
    struct idem_json json;
    struct idem_json_token tokens[TOKENS_MAX];
    struct idem_buf text;
};

/* Index of a string of that name; 0: there is none. */
static size_t string_at(const struct idem_json *json, size_t object, struct idem_str name)
{
    if (json->tokens[object].kind != IDEM_JSON_OBJECT) {
        return 0;
    }
    size_t index = idem_json_member(json, object, name);
    return index != 0 && json->tokens[index].kind == IDEM_JSON_STRING ? index : 0;
}

/* Appends the string of that name behind what is there; what does not fit is left out. */
static void words_add(struct reading *reading, size_t object, struct idem_str name)
{
    char memory[IDEM_SEND_SAID_MAX];
    struct idem_buf words;
    idem_buf_init(&words, memory, sizeof(memory));
    size_t index = string_at(&reading->json, object, name);
    if (index == 0) {
        return;
    }
    idem_json_unescape(&reading->json, index, &words);
    size_t room = reading->text.max - reading->text.len;
    if (words.full || words.len == 0 || words.len + 2 > room) {
        return;
    }
    idem_buf_add(&reading->text, reading->text.len > 0 ? IDEM_STR(": ") : IDEM_STR(""));
    idem_buf_add(&reading->text, idem_buf_str(&words));
}

/* The object of that name, or the first of the array of that name; 0: there is none. */
static size_t object_at(const struct idem_json *json, struct idem_str name)
{
    size_t index = idem_json_member(json, 0, name);
    bool listed =
        index != 0 && json->tokens[index].kind == IDEM_JSON_ARRAY && json->tokens[index].count > 0;
    index = listed ? index + 1 : index;
    return index != 0 && json->tokens[index].kind == IDEM_JSON_OBJECT ? index : 0;
}

/* RFC 9457; Adyen and PayPal; Stripe; PayPal's particulars. An answer has one of these shapes. */
static void shapes_read(struct reading *reading)
{
    size_t error = object_at(&reading->json, IDEM_STR("error"));
    size_t details = object_at(&reading->json, IDEM_STR("details"));
    words_add(reading, 0, IDEM_STR("title"));
    words_add(reading, 0, IDEM_STR("detail"));
    words_add(reading, 0, IDEM_STR("message"));
    if (error != 0) {
        words_add(reading, error, IDEM_STR("message"));
    }
    if (details != 0) {
        words_add(reading, details, IDEM_STR("description"));
    }
}

/* A problem of ours with the advice to look at what is there. */
static bool looks_first(const struct idem_json *json)
{
    size_t type = string_at(json, 0, IDEM_STR("type"));
    size_t retry = string_at(json, 0, IDEM_STR("retry"));
    return type != 0 && retry != 0 &&
           idem_str_starts(json->tokens[type].raw, IDEM_STR("urn:idem:problem:")) &&
           idem_str_equal(json->tokens[retry].raw, IDEM_STR("query"));
}

void idem_send_words_read(struct idem_str body, struct idem_send_words *ret_words)
{
    struct reading reading;
    struct idem_json_fault fault;
    *ret_words = (struct idem_send_words){ .look_first = false };
    idem_json_init(&reading.json, reading.tokens, TOKENS_MAX);
    idem_buf_init(&reading.text, ret_words->text, sizeof(ret_words->text) - 1);
    if (!idem_json_parse(&reading.json, body, &fault) ||
        reading.json.tokens[0].kind != IDEM_JSON_OBJECT) {
        return;
    }
    shapes_read(&reading);
    ret_words->look_first = looks_first(&reading.json);
    for (size_t i = 0; i < reading.text.len; i++) { /* Several lines become one. */
        char *byte = &ret_words->text[i];
        *byte = (char)(*byte == '\n' || *byte == '\r' || *byte == '\t' ? ' ' : *byte);
    }
    idem_terminal_safe(ret_words->text, reading.text.len);
}
