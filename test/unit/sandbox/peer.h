/*
 * peer.h - a sandbox in a thread of its own, and callers on raw sockets who describe what they got.
 */
#ifndef IDEM_TEST_UNIT_SANDBOX_PEER_H
#define IDEM_TEST_UNIT_SANDBOX_PEER_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/clock.h"

struct idem_sandbox;
struct idem_sandbox_options;

#define PEER_ANSWER_MAX   ((size_t)8 * 1024 * 1024)
#define PEER_DESCRIBE_LEN 128

struct peer {
    uv_loop_t loop;
    uv_async_t stop;
    pthread_t thread;
    struct idem_clock clock;
    struct idem_sandbox *sandbox;
    uint16_t port;
};

void peer_start(struct peer *peer, const char *ledger_path, const char *credential);

/* The same with callbacks: `told` has addresses and secrets, and what NULL would be above. */
void peer_start_telling(struct peer *peer, const struct idem_sandbox_options *told);
void peer_stop(struct peer *peer);

/* One request to be sent. What is NULL is left out. */
struct peer_request {
    const char *method;
    const char *path;
    const char *key;
    const char *authorization;
    const char *trace;
    const char *body;
};

int peer_dial(const struct peer *peer);
void peer_send(int fd, const struct peer_request *request);

/*
 * Reads one answer and says what it is: "silence" (closed without a byte), "reset", "200 cut",
 * "200 garbage", or the status with the members status, amount, currency, code of its body, and
 * "other-id" if it names another id than `id`.
 */
void peer_describe(int fd, const char *id, char ret_text[PEER_DESCRIBE_LEN]);

/* Sends and describes on a connection of its own. */
void peer_ask(const struct peer *peer,
              const struct peer_request *request,
              const char *id,
              char ret_text[PEER_DESCRIBE_LEN]);

/* The JSON body of a GET that is answered 200. Give it back with json_decref(). */
json_t *peer_get(const struct peer *peer, const char *path);

#endif /* IDEM_TEST_UNIT_SANDBOX_PEER_H */
