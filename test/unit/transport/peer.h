/*
 * peer.h - a provider that misbehaves on purpose, over blocking sockets, a thread a connection.
 *
 * What it does with a request stands in the request's path, so it needs no script and a request
 * that is wrongly sent twice meets the same fault twice. It counts arrivals: requests read to
 * their last byte.
 *
 *     /ok            answers 200 "fine" and keeps the connection
 *     /ok-then-close answers likewise, without a word about closing, then closes
 *     /close         reads, closes without an answer
 *     /reset         reads, resets
 *     /silent        reads, answers nothing until the caller leaves
 *     /cut-body      answers half of the body it announced, then closes
 *     /cut-head      answers a status line and half a field, then closes
 *     /cut-status    answers half a status line, then closes
 *     /unframed      answers a body that ends with the connection
 *     /interim       answers 100 and 103, then 200
 *     /interim-only  answers 100, then closes
 *     /switching     answers 101
 *     /no-content    answers 204
 *     /chunked       answers in chunks
 *     /cut-chunks    the same without the last one
 *     /large/N       answers a body of N bytes
 *     /elsewhere     answers 307 to /ok
 *     /set...        answers what peer_answer() was given
 */
#ifndef IDEM_TEST_UNIT_TRANSPORT_PEER_H
#define IDEM_TEST_UNIT_TRANSPORT_PEER_H

#include <stddef.h>
#include <stdint.h>

#define PEER_REQUEST_MAX 32768
#define PEER_ANSWER_MAX  ((size_t)128 * 1024)

struct peer;

struct peer *peer_start(void);

/* Ends every connection and its thread; the client must have no calls left. */
void peer_stop(struct peer *peer);

uint16_t peer_port(const struct peer *peer);
unsigned peer_arrivals(struct peer *peer);
unsigned peer_connections_max(struct peer *peer); /* The most at the same time. */

/* Waits until `count` requests were read, or `count` connections ended on the peer's side. */
void peer_wait_arrivals(struct peer *peer, unsigned count);
void peer_wait_closed(struct peer *peer, unsigned count);

/* The raw bytes of the answer to /set. And the last request read. Both are copied. */
void peer_answer(struct peer *peer, const char *raw);
void peer_last_request(struct peer *peer, char ret_request[PEER_REQUEST_MAX]);

#endif /* IDEM_TEST_UNIT_TRANSPORT_PEER_H */
