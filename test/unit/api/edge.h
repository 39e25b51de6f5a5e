/*
 * edge.h - the real edge on a real server, engine and memory store, turned by hand in one thread.
 *
 * Only the provider is the test's: a port that says what the test has told it to, or keeps calls
 * until the test lets them go.
 */
#ifndef IDEM_TEST_UNIT_API_EDGE_H
#define IDEM_TEST_UNIT_API_EDGE_H

#include <uv.h>

#include "api/api.h"
#include "lib/test.h"
#include "store/store.h"

struct scripted_port {
    struct idem_port port; /* First: the engine knows only this. */
    bool hold;             /* Calls stay on the wire. */
    enum idem_outcome_kind outcome;
    struct idem_list held;
    struct idem_list done;
    size_t sends;
};

struct edge {
    uv_loop_t loop;
    struct idem_clock clock;
    struct idem_random random;
    struct idem_rules rules;
    struct idem_store *store;
    struct scripted_port port;
    struct idem_engine *engine;
    struct idem_api_options options;
    struct idem_api *api;
    struct idem_server *server;
};

/*
 * Accounts: alice and bob (tokens "alice" and "bob", provider sandbox), and root, an operator.
 * `change` (may be NULL) alters the api's options.
 */
void edge_open(struct edge *edge, void (*change)(struct idem_api_options *options));
/* The same store and engine behind another edge, whose options `change` alters. */
void edge_open_again(struct edge *edge, void (*change)(struct idem_api_options *options));
/* With as many provider entries as there can be, and names as long. */
void edge_open_crowded(struct edge *edge);
void edge_close(struct edge *edge);

/* Everything moves on as far as it goes. */
void edge_turn(struct edge *edge);

/* Likewise, but the edge does not look at what the engine has finished. */
void edge_turn_engine(struct edge *edge);

/* Lets the calls on the wire end with `outcome`. */
void edge_let_go(struct edge *edge, enum idem_outcome_kind outcome);

int edge_connect(struct edge *edge);

/* Sends without a turn, and with one. */
void edge_write(int fd, const char *text);
void edge_send(struct edge *edge, int fd, const char *text);

/*
 * The next answer on the connection, with everything that changes from run to run written as a
 * word: {id}, {time}, {date}, {len}.
 */
const char *edge_answer(struct edge *edge, int fd);

/* A request on a connection of its own, and its answer. Lines end in "\n" here. */
const char *edge_ask(struct edge *edge, const char *text);

/* The first UUID in the last answer, as it was. */
const char *edge_id(void);

/* The first one behind `text`, which the last answer has. */
const char *edge_id_behind(const char *text);

#endif /* IDEM_TEST_UNIT_API_EDGE_H */
