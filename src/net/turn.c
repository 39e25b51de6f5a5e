/*
 * Turns: no connection keeps the loop to itself.
 *
 * Answers that need nobody (a health check, a refusal) are given while the bytes are read, and a
 * caller can put hundreds of such requests into one packet. So after IDEM_NET_TURN_MAX of them a
 * connection yields: what it has sent stays in `early`, it is not read, and it goes on when all
 * others have had a look at their sockets. Without this ten callers who only ask for health make a
 * payment wait for seconds.
 *
 * The idle handle runs once in every round of the loop and keeps it from sleeping; it is active
 * only while somebody has yielded.
 */
#include "net/net_internal.h"

#include "base/bug.h"

void idem_turn_yield(struct idem_connection *connection)
{
    struct idem_server *server = connection->server;
    IDEM_ASSERT(!connection->yielded);
    IDEM_ASSERT(connection->early.len > 0);

    connection->yielded = true;
    idem_list_push(&server->yielded, &connection->yielding);
    int rc = uv_idle_start(&server->turns, idem_turn_next);
    IDEM_ASSERT(rc == 0); /* Fails only without a callback. */
}

void idem_turn_begin(struct idem_connection *connection)
{
    connection->turn_served = 0;
    if (connection->yielded) {
        connection->yielded = false;
        idem_list_remove(&connection->server->yielded, &connection->yielding);
    }
}

void idem_turn_next(uv_idle_t *turns)
{
    struct idem_server *server = turns->data;
    /* Those who yield again stand behind these, for the next round. */
    for (size_t left = server->yielded.count; left > 0 && server->yielded.count > 0; left--) {
        struct idem_connection *connection =
            IDEM_CONTAINER_OF(server->yielded.first, struct idem_connection, yielding);
        idem_turn_begin(connection);
        idem_connection_resume(connection);
    }
    if (server->yielded.count == 0) {
        (void)uv_idle_stop(turns); /* Always succeeds. */
    }
}
