/*
 * One request and its one answer.
 *
 * The exchange is apart from its connection, so that a caller who hangs up can be forgotten at once
 * while the owner, who may be waiting for a provider, still holds valid text and answers into
 * nothing later. Whoever ends it, ends it here, once.
 */
#include "net/net_internal.h"

#include <stdlib.h>

#include "base/bug.h"

const struct idem_net_request *idem_exchange_request(const struct idem_exchange *exchange)
{
    return &exchange->request;
}

struct idem_str idem_exchange_header(const struct idem_exchange *exchange,
                                     struct idem_str name,
                                     size_t *ret_count)
{
    const struct idem_net_request *request = &exchange->request;
    struct idem_str value = { 0 };
    size_t count = 0;
    for (size_t i = 0; i < request->header_count; i++) {
        if (idem_str_equal_nocase(request->headers[i].name, name)) {
            value = request->headers[i].value;
            count += 1;
        }
    }
    if (ret_count != NULL) {
        *ret_count = count;
    }
    /* Of several none is the value, also for an owner who does not look at the count. */
    return count == 1 ? value : (struct idem_str){ 0 };
}

void idem_exchange_set_owner(struct idem_exchange *exchange, void *owner)
{
    exchange->owner = owner;
}

void *idem_exchange_owner(const struct idem_exchange *exchange)
{
    return exchange->owner;
}

void idem_exchange_free(struct idem_exchange *exchange)
{
    if (exchange == NULL) {
        return;
    }
    idem_bytes_free(&exchange->head);
    idem_bytes_free(&exchange->body);
    free(exchange);
}

/* Parts the exchange from its connection, if it still has one, and says which that was. */
static struct idem_connection *connection_take(struct idem_exchange *exchange)
{
    struct idem_connection *connection = exchange->connection;
    if (connection != NULL) {
        IDEM_ASSERT(connection->exchange == exchange);
        IDEM_ASSERT(connection->state == IDEM_CONNECTION_BUSY);
        connection->exchange = NULL;
    }
    exchange->connection = NULL;
    return connection;
}

void idem_exchange_reply(struct idem_exchange *exchange, const struct idem_net_reply *reply)
{
    struct idem_connection *connection = connection_take(exchange);
    if (connection != NULL) {
        bool silent = connection->ended && connection->early.len == 0 && !connection->consuming;
        bool last = reply->close || connection->last || connection->server->draining || silent;
        connection->then = last ? IDEM_THEN_LINGER : IDEM_THEN_NEXT;
        idem_answer_send(connection, reply, connection->said.head_only);
    }
    idem_exchange_free(exchange); /* After sending: the reply may borrow from the request. */
    if (connection != NULL) {
        idem_connection_resume(connection);
    }
}

void idem_exchange_break(struct idem_exchange *exchange, struct idem_str bytes, bool reset)
{
    struct idem_connection *connection = connection_take(exchange);
    if (connection != NULL) {
        connection->then = reset ? IDEM_THEN_RESET : IDEM_THEN_LINGER;
        idem_answer_send_raw(connection, bytes);
    }
    idem_exchange_free(exchange);
    if (connection != NULL) {
        idem_connection_resume(connection);
    }
}
