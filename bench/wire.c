/*
 * The load must cost little beside what it measures: a request is printed once into a buffer, and
 * of a reply's head only the status and two fields are looked for.
 */
#include "bench/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char length_field[] = "\r\nContent-Length: ";
static const char executed_field[] = "\r\nIdempotent-Replayed: false\r\n";

/* splitmix64: a bijection, so different numbers stay different. */
uint64_t bench_mix(uint64_t number)
{
    uint64_t mixed = number + UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ (mixed >> 31);
}

size_t bench_request_print(const struct bench_form *form,
                           uint64_t number,
                           char memory[BENCH_REQUEST_MAX])
{
    char body[512];
    uint64_t mixed = bench_mix((uint64_t)form->seed << 32 ^ number);
    int body_size = snprintf(
        body, sizeof(body),
        "{\"order_no\":\"o-%016" PRIx64
        "\",\"amount\":\"100.00\",\"currency\":\"CNY\","
        "\"provider\":\"%s\",\"capture\":\"automatic\",\"method\":\"tok_ok\","
        "\"description\":\"One pair of shoes\",\"metadata\":{\"cart\":\"%016" PRIx64 "\"}}",
        mixed, form->entry, number);
    int size = snprintf(memory, BENCH_REQUEST_MAX,
                        "POST %s HTTP/1.1\r\n"
                        "Host: bench\r\n"
                        "Authorization: Bearer %s\r\n"
                        "Idempotency-Key: \"bench-%08" PRIx32 "-%016" PRIx64
                        "\"\r\n"
                        "Content-Type: application/json\r\n"
                        "Content-Length: %d\r\n"
                        "\r\n"
                        "%s",
                        form->path, form->bearer, form->seed, number, body_size, body);
    if (body_size <= 0 || (size_t)body_size >= sizeof(body) || size <= 0 ||
        size >= BENCH_REQUEST_MAX) {
        (void)fputs("bench: a request does not fit; shorten path, bearer or entry\n", stderr);
        exit(2);
    }
    return (size_t)size;
}

enum bench_progress bench_reply_read(const char *data, size_t size, struct bench_reply *ret_reply)
{
    const char *end = memmem(data, size, "\r\n\r\n", 4);
    if (end == NULL) {
        return BENCH_REPLY_PART;
    }
    size_t head = (size_t)(end - data) + 4;
    if (head < 16 || memcmp(data, "HTTP/1.1 ", 9) != 0) {
        return BENCH_REPLY_BAD;
    }
    const char *length = memmem(data, head, length_field, sizeof(length_field) - 1);
    if (length == NULL) {
        return BENCH_REPLY_BAD;
    }
    size_t body = strtoul(length + sizeof(length_field) - 1, NULL, 10); /* Ends at the line. */
    if (size < head + body) {
        return BENCH_REPLY_PART;
    }
    *ret_reply = (struct bench_reply){
        .status = (unsigned)strtoul(data + 9, NULL, 10),
        .body_size = body,
        .executed = memmem(data, head, executed_field, sizeof(executed_field) - 1) != NULL,
    };
    return size == head + body ? BENCH_REPLY_WHOLE : BENCH_REPLY_BAD;
}
