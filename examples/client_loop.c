/*
 * client_loop.c - pays many orders at once, on one thread, in an event loop of one's own.
 *
 *     cc -o payall client_loop.c $(pkg-config --cflags --libs idem)
 *     IDEM_CREDENTIAL=demo-secret ./payall 1001 25.00 1002 30.00
 *
 * All orders become durable with one flush of the disk, and then run together. poll() stands for
 * any loop: it waits for the client's one descriptor beside whatever else the program waits for.
 * Each order ends with one line, in the order in which they end. After a crash, run the same line
 * again: what is paid is not paid twice.
 *
 * Exit status: 0 all are paid; 7 of at least one nobody knows yet, so run it again; 6 at least one
 * is not paid; 1 the library could not begin, and nothing was sent; 2 the command line is wrong.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idem/client.h"

#define ORDERS_MAX 1000

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL ? value : otherwise;
}

/* Digits and points only: they become part of a name and of JSON as they are. */
static bool is_number(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && length <= 32 && strspn(text, "0123456789.") == length;
}

static bool intend(struct idem_client *client, char **order, struct idem_client_intent **ret_intent)
{
    char name[64];
    char body[256];
    char credential[512];
    const char *form =
        "{\"order_no\":\"%s\",\"amount\":\"%s\",\"currency\":\"CNY\","
        "\"provider\":\"sandbox\",\"method\":\"tok_ok\"}";
    const char *bearer = setting("IDEM_CREDENTIAL", "demo-secret");
    (void)snprintf(name, sizeof(name), "order-%s", order[0]);
    (void)snprintf(body, sizeof(body), form, order[0], order[1]);
    (void)snprintf(credential, sizeof(credential), "Authorization: Bearer %s", bearer);

    const char *headers[] = { "Content-Type: application/json" };
    const struct idem_client_request request = {
        .size = sizeof(request),
        .name = name,
        .method = "POST",
        .url = setting("PAY_URL", "http://127.0.0.1:8080/v1/payments"),
        .headers = headers,
        .header_count = 1,
        .body = body,
        .body_size = strlen(body),
        .credential = credential,
    };
    struct idem_client_error error;
    bool intended = idem_client_intend(client, &request, ret_intent, &error) == IDEM_CLIENT_OK;
    if (!intended) {
        (void)fprintf(stderr, "payall: %s: %s\n", name, error.text);
    }
    return intended;
}

/* Tells what has ended, and returns how many; `seen` has a flag for each exit status. */
static size_t reap(struct idem_client *client, bool seen[8])
{
    size_t count = 0;
    for (;;) {
        struct idem_client_intent *intent = idem_client_reap(client);
        if (intent == NULL) {
            return count;
        }
        const struct idem_client_verdict *verdict = idem_client_verdict(intent);
        const char *outcome = idem_client_outcome_name(verdict->outcome);
        (void)printf("%s: %s: %s\n", idem_client_name(intent), outcome, verdict->message);
        seen[7] = seen[7] || verdict->outcome == IDEM_CLIENT_UNKNOWN;
        seen[6] = seen[6] || verdict->outcome == IDEM_CLIENT_REFUSED;
        idem_client_release(intent);
        count++;
    }
}

static int pay_all(struct idem_client *client, char **orders, size_t count)
{
    struct idem_client_intent *intents[ORDERS_MAX] = { NULL };
    for (size_t i = 0; i < count; i++) {
        if (!intend(client, orders + 2 * i, &intents[i])) {
            return 1;
        }
    }
    struct idem_client_error error;
    if (idem_client_submit(client, intents, count, &error) != IDEM_CLIENT_OK) {
        (void)fprintf(stderr, "payall: %s\n", error.text);
        return 1;
    }

    bool seen[8] = { false };
    for (size_t running = count; running > 0; running -= reap(client, seen)) {
        struct pollfd waits[] = {
            { .fd = idem_client_fd(client), .events = POLLIN },
            /* What else the program waits for. */
        };
        (void)poll(waits, 1, idem_client_timeout_ms(client));
        idem_client_perform(client, 0);
    }
    if (seen[7]) {
        return 7;
    }
    return seen[6] ? 6 : 0;
}

int main(int argc, char **argv)
{
    bool usable = argc >= 3 && argc % 2 == 1 && argc <= 1 + 2 * ORDERS_MAX;
    for (int i = 1; usable && i < argc; i++) {
        usable = is_number(argv[i]);
    }
    if (!usable) {
        (void)fputs("usage: payall ORDER AMOUNT [ORDER AMOUNT]...\n", stderr);
        return 2;
    }

    const struct idem_client_options options = {
        .size = sizeof(options),
        .journal = setting("PAY_JOURNAL", "pay.db"),
    };
    struct idem_client_error error;
    struct idem_client *client = NULL;
    if (idem_client_open(&options, &client, &error) != IDEM_CLIENT_OK) {
        (void)fprintf(stderr, "payall: %s\n", error.text);
        return 1;
    }
    int status = pay_all(client, argv + 1, (size_t)(argc - 1) / 2);
    idem_client_close(client); /* Releases the intents too. */
    return status;
}
