/*
 * The listener and the life of the whole.
 *
 * A server holds the loop's handles: the listener, one timer, the turns, a spare socket and the
 * connections.
 * Each is counted from its initialisation to its close callback, so `closed` is a fact and not a
 * hope, and destroy can assert it. Nothing refers to the server from an exchange whose connection
 * is gone, so an owner may end such an exchange even after the destruction.
 */
#include "net/net_internal.h"

#include <signal.h>
#include <stdlib.h>

#include "base/bug.h"
#include "base/clock.h"

struct idem_server_options idem_server_options_default(void)
{
    return (struct idem_server_options){
        .host = "127.0.0.1",
        .connections_max = 10000,
        .head_max = (size_t)16 * 1024,
        .body_max = (size_t)64 * 1024,
        .pending_max = (size_t)32 * 1024 * 1024,
        .head_timeout_us = 10 * IDEM_US_PER_SECOND,
        .body_timeout_us = 20 * IDEM_US_PER_SECOND,
        .idle_timeout_us = 75 * IDEM_US_PER_SECOND,
        .write_timeout_us = 20 * IDEM_US_PER_SECOND,
    };
}

void idem_server_handle_closed(struct idem_server *server)
{
    IDEM_ASSERT(server->handles_open > 0);
    server->handles_open -= 1;
}

static void on_closed(uv_handle_t *handle)
{
    idem_server_handle_closed(handle->data);
}

static void on_surplus_closed(uv_handle_t *handle);

/*
 * Without memory a connection is taken and closed: left alone it would stop the listener. The one
 * spare socket may still be closing; then the connection waits for its close callback.
 */
static void connection_take(struct idem_server *server)
{
    if (idem_connection_accept(server)) {
        return;
    }
    if (server->surplus_open) {
        server->accept_waiting = true;
        return;
    }
    int rc = uv_tcp_init(server->options.loop, &server->surplus);
    IDEM_ASSERT(rc == 0); /* Makes no socket yet. */
    server->surplus.data = server;
    server->surplus_open = true;
    server->handles_open += 1;
    /* It is closed at once, whether there was something to accept or not. */
    (void)uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)&server->surplus);
    uv_close((uv_handle_t *)&server->surplus, on_surplus_closed);
}

static void on_surplus_closed(uv_handle_t *handle)
{
    struct idem_server *server = handle->data;
    server->surplus_open = false;
    idem_server_handle_closed(server);
    if (server->accept_waiting && server->listening) {
        server->accept_waiting = false;
        connection_take(server);
    }
}

static void on_connection(uv_stream_t *listener, int status)
{
    if (status == 0) { /* Otherwise the caller hung up again, or descriptors have run out. */
        connection_take(listener->data);
    }
}

static int address_parse(const struct idem_server_options *options,
                         struct sockaddr_storage *ret_address)
{
    int rc = uv_ip4_addr(options->host, options->port, (struct sockaddr_in *)ret_address);
    if (rc == 0) {
        return 0;
    }
    return uv_ip6_addr(options->host, options->port, (struct sockaddr_in6 *)ret_address);
}

static int port_read(struct idem_server *server)
{
    struct sockaddr_storage address = { 0 };
    int len = sizeof(address);
    int rc = uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &len);
    if (rc != 0) {
        return rc;
    }
    server->port =
        ntohs(address.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&address)->sin6_port
                                            : ((const struct sockaddr_in *)&address)->sin_port);
    return 0;
}

/*
 * libuv writes with write(2): to a caller who has gone that must be an error, not the end of the
 * process. A handler that somebody has installed is left alone.
 */
static void broken_pipes_ignore(void)
{
    struct sigaction present;
    if (sigaction(SIGPIPE, NULL, &present) == 0 && present.sa_handler == SIG_DFL) {
        struct sigaction ignored = { .sa_handler = SIG_IGN };
        int rc = sigaction(SIGPIPE, &ignored, NULL);
        IDEM_ASSERT(rc == 0); /* Fails only for a wrong signal number. */
    }
}

/* A libuv code. */
static int listener_start(struct idem_server *server)
{
    struct sockaddr_storage address = { 0 };
    int rc = address_parse(&server->options, &address);
    if (rc == 0) {
        rc = uv_tcp_bind(&server->listener, (const struct sockaddr *)&address, 0);
    }
    if (rc == 0) {
        rc = uv_listen((uv_stream_t *)&server->listener, IDEM_NET_BACKLOG, on_connection);
    }
    if (rc == 0) {
        rc = port_read(server);
    }
    return rc;
}

/*
 * The handles of a server that never opened are closed by the loop, later; the memory goes with
 * the last of them, since the caller has nothing to destroy.
 */
static void on_abandoned(uv_handle_t *handle)
{
    struct idem_server *server = handle->data;
    idem_server_handle_closed(server);
    if (server->handles_open == 0) {
        free(server);
    }
}

static void server_init(struct idem_server *server, const struct idem_server_options *options)
{
    server->options = *options;
    server->durations_us[IDEM_DEADLINE_IDLE] = options->idle_timeout_us;
    server->durations_us[IDEM_DEADLINE_HEAD] = options->head_timeout_us;
    server->durations_us[IDEM_DEADLINE_BODY] = options->body_timeout_us;
    server->durations_us[IDEM_DEADLINE_WRITE] = options->write_timeout_us;
    server->durations_us[IDEM_DEADLINE_LINGER] = IDEM_NET_LINGER_US;
    llhttp_settings_init(&server->parser_settings);
    server->parser_settings.on_header_value_complete = idem_connection_on_field;
    server->parser_settings.on_body = idem_connection_on_body;
    server->parser_settings.on_message_complete = idem_connection_on_complete;

    int rc = uv_tcp_init(options->loop, &server->listener);
    IDEM_ASSERT(rc == 0); /* Makes no socket yet. */
    rc = uv_timer_init(options->loop, &server->timer);
    IDEM_ASSERT(rc == 0); /* Always succeeds. */
    server->listener.data = server;
    rc = uv_idle_init(options->loop, &server->turns);
    IDEM_ASSERT(rc == 0); /* Always succeeds. */
    server->timer.data = server;
    server->turns.data = server;
    server->handles_open = 3;
    server->listening = true;
}

enum idem_err idem_server_open(const struct idem_server_options *options,
                               struct idem_server **ret_server,
                               struct idem_error *reterr)
{
    IDEM_ASSERT(options->loop != NULL);
    IDEM_ASSERT(options->ops != NULL);
    IDEM_ASSERT(options->head_max > 0);
    IDEM_ASSERT(options->body_max <= INT64_MAX);
    IDEM_ASSERT(options->pending_max > 0);
    IDEM_ASSERT(options->head_timeout_us > 0 && options->body_timeout_us > 0);
    IDEM_ASSERT(options->idle_timeout_us > 0 && options->write_timeout_us > 0);

    struct idem_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return idem_error_set(reterr, IDEM_E_SYSTEM, "no memory for a server");
    }
    broken_pipes_ignore();
    server_init(server, options);
    int rc = listener_start(server);
    if (rc != 0) {
        uv_close((uv_handle_t *)&server->listener, on_abandoned);
        uv_close((uv_handle_t *)&server->timer, on_abandoned);
        uv_close((uv_handle_t *)&server->turns, on_abandoned);
        return idem_error_set(reterr, IDEM_E_SYSTEM, "listen on %s port %u: %s", options->host,
                              (unsigned)options->port, uv_strerror(rc));
    }
    server->options.host = NULL; /* Was borrowed for this call. */
    *ret_server = server;
    return IDEM_OK;
}

uint16_t idem_server_port(const struct idem_server *server)
{
    return server->port;
}

size_t idem_server_connections(const struct idem_server *server)
{
    return server->connections.count - server->crowded_count;
}

struct idem_server_stats idem_server_stats(const struct idem_server *server)
{
    struct idem_server_stats stats = server->stats;
    stats.connections = idem_server_connections(server);
    return stats;
}

void idem_server_drain(struct idem_server *server)
{
    server->draining = true;
    if (server->listening) {
        server->listening = false;
        uv_close((uv_handle_t *)&server->listener, on_closed);
    }
    /* Closing leaves a connection on the list until its close callback. */
    IDEM_LIST_FOREACH (node, &server->connections) {
        struct idem_connection *connection =
            IDEM_CONTAINER_OF(node, struct idem_connection, listed);
        if (idem_connection_is_idle(connection)) {
            idem_connection_close(connection);
        }
    }
}

void idem_server_close(struct idem_server *server)
{
    if (server->closing) {
        return;
    }
    server->closing = true; /* First: an owner who is told `gone` may come back here. */
    idem_server_drain(server);
    IDEM_LIST_FOREACH (node, &server->connections) {
        idem_connection_close(IDEM_CONTAINER_OF(node, struct idem_connection, listed));
    }
    uv_close((uv_handle_t *)&server->timer, on_closed);
    uv_close((uv_handle_t *)&server->turns, on_closed);
}

bool idem_server_closed(const struct idem_server *server)
{
    return server->closing && server->handles_open == 0;
}

void idem_server_destroy(struct idem_server *server)
{
    if (server == NULL) {
        return;
    }
    IDEM_ASSERT(idem_server_closed(server));
    IDEM_ASSERT(server->connections.count == 0);
    free(server);
}
