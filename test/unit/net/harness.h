/*
 * harness.h - a real server and real sockets, turned by hand in one thread.
 *
 * The loop runs only inside the functions below. A byte that a test sends over loopback is readable
 * at once, so "one byte, then a turn of the loop" is a read of one byte, every time.
 *
 * The owner behind the server does what the path says:
 *   /echo     answers "METHOD path?query n=NUMBER h=HEADERS [body]"
 *   /hold     keeps the exchange in `held` until the test answers it
 *   /empty    answers 204
 *   /last     answers and closes
 *   /big      answers BIG_LEN bytes
 *   /reset    breaks with half an answer and a reset
 *   /raw      breaks with RAW_TEXT and a close
 */
#ifndef IDEM_TEST_UNIT_NET_HARNESS_H
#define IDEM_TEST_UNIT_NET_HARNESS_H

#include <stdbool.h>
#include <uv.h>

#include "lib/test.h"
#include "net/server.h"

#define BIG_LEN   ((size_t)16 * 1024 * 1024)
#define RAW_TEXT  "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal"
#define HELD_MAX  4
#define ANSWER_MS 5000

struct harness {
    uv_loop_t loop;
    struct idem_server *server;
    struct idem_server_options options;
    struct idem_exchange *held[HELD_MAX];
    size_t held_count;
    size_t gone_count;
    size_t request_count;
    bool reply_when_gone;
    char *big;
};

/* What a client got. */
struct answer {
    int status;  /* Zero: the connection ended without an answer. */
    bool reset;  /* It ended by a reset. */
    bool closes; /* It says `Connection: close`. */
    char head[4096];
    char body[4096]; /* The beginning of the body. */
    size_t body_len;
};

void harness_open(struct harness *harness, const struct idem_server_options *options);
/* Closes the server, ends every held exchange and checks that nothing is left in the loop. */
void harness_close(struct harness *harness);

/* Runs the loop once without waiting. */
void harness_turn(struct harness *harness);
/* Runs the loop until `*counter` is `wanted`; fails after a while. */
void harness_until(struct harness *harness, const size_t *counter, size_t wanted);
/* Runs the loop until the server has `wanted` connections. */
void harness_until_connections(struct harness *harness, size_t wanted);
/* Answers the oldest held exchange with 200 and `body`. */
void harness_release(struct harness *harness, const char *body);

int client_connect(struct harness *harness);
void client_send(struct harness *harness, int fd, struct idem_str text);
void client_send_bytewise(struct harness *harness, int fd, struct idem_str text);
/* Takes one answer. Bytes behind it stay in the socket. */
void client_answer(struct harness *harness, int fd, bool head_only, struct answer *ret_answer);
/* True if the connection ends, by a FIN if not `reset`, before `wait_ms` have passed. */
bool client_ends(struct harness *harness, int fd, int64_t wait_ms, bool *ret_reset);

int64_t now_ms(void);

#endif /* IDEM_TEST_UNIT_NET_HARNESS_H */
