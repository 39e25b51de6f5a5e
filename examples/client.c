/*
 * client.c - pays one order, once, however often it is run.
 *
 *     cc -o pay client.c $(pkg-config --cflags --libs idem)
 *     IDEM_CREDENTIAL=demo-secret ./pay 1001 25.00
 *
 * The order's number names the intent, and the intent is in the journal (pay.db, or PAY_JOURNAL)
 * before the first byte leaves. So after a crash, a lost connection or exit status 7: run it again.
 * It goes on under the same key with the same bytes, and says what became of the payment.
 *
 * Exit status: 0 it is paid; 6 it is not, and nothing that was sent can still pay it; 7 nobody
 * knows yet; 1 the library could not begin, and nothing was sent; 2 the command line is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "idem/client.h"

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL ? value : otherwise;
}

/* What was sent can still be on its way if another process runs the intent at this moment. */
static int failed(enum idem_client_err err, const struct idem_client_error *error)
{
    (void)fprintf(stderr, "pay: %s\n", error->text);
    return err == IDEM_CLIENT_E_BUSY ? 7 : 1;
}

static int told(const struct idem_client_verdict *verdict)
{
    (void)fprintf(stderr, "pay: %s\n", verdict->message);
    if (verdict->body_size > 0) {
        (void)fwrite(verdict->body, 1, verdict->body_size, stdout);
    }
    switch (verdict->outcome) {
    case IDEM_CLIENT_DONE:
        return 0;
    case IDEM_CLIENT_REFUSED:
        return 6;
    case IDEM_CLIENT_UNKNOWN:
    case IDEM_CLIENT_NO_OUTCOME:
        break;
    }
    return 7;
}

static int pay(struct idem_client *client, const char *order, const char *amount)
{
    char name[64];
    char body[256];
    char credential[512];
    const char *form =
        "{\"order_no\":\"%s\",\"amount\":\"%s\",\"currency\":\"CNY\","
        "\"provider\":\"sandbox\",\"method\":\"%.32s\"}";
    const char *bearer = setting("IDEM_CREDENTIAL", "demo-secret");
    (void)snprintf(name, sizeof(name), "order-%s", order);
    (void)snprintf(body, sizeof(body), form, order, amount, setting("PAY_METHOD", "tok_ok"));
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
        .deadline_ms = 30000,
    };
    struct idem_client_error error;
    struct idem_client_intent *intent = NULL;
    enum idem_client_err err = idem_client_intend(client, &request, &intent, &error);
    if (err != IDEM_CLIENT_OK) {
        return failed(err, &error);
    }

    err = idem_client_run(intent, &error);
    int status = err == IDEM_CLIENT_OK ? told(idem_client_verdict(intent)) : failed(err, &error);
    idem_client_release(intent);
    return status;
}

/* Digits and points only: they become part of a name and of JSON as they are. */
static bool is_number(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && length <= 32 && strspn(text, "0123456789.") == length;
}

int main(int argc, char **argv)
{
    if (argc != 3 || !is_number(argv[1]) || !is_number(argv[2])) {
        (void)fputs("usage: pay ORDER AMOUNT, for example: pay 1001 25.00\n", stderr);
        return 2;
    }

    const struct idem_client_options options = {
        .size = sizeof(options),
        .journal = setting("PAY_JOURNAL", "pay.db"),
    };
    struct idem_client_error error;
    struct idem_client *client = NULL;
    enum idem_client_err err = idem_client_open(&options, &client, &error);
    if (err != IDEM_CLIENT_OK) {
        return failed(err, &error);
    }

    int status = pay(client, argv[1], argv[2]);
    idem_client_close(client);
    return status;
}
