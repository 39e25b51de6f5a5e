/*
 * Deadlines of all connections, with one timer.
 *
 * Each kind has one duration, so a list per kind in the order of setting is also in the order of
 * expiry: setting and clearing are a push and a removal, and a sweep looks at five first nodes, no
 * matter how many thousands idle. A deadline is total: it is set when its phase begins and nothing
 * that arrives moves it.
 *
 * The timer is armed for the earliest deadline there was. If that has been cleared since, the timer
 * fires for nothing once and is armed anew; that is cheaper than stopping it at every request.
 */
#include "net/net_internal.h"

#include "base/bug.h"
#include "base/clock.h"

/* The loop's own time stands still while a callback runs; a deadline must not begin in the past. */
static int64_t now_us(void)
{
    return (int64_t)(uv_hrtime() / 1000);
}

static void timer_arm(struct idem_server *server, int64_t at_us, int64_t now)
{
    if (server->closing) {
        return; /* Every connection is about to be closed anyway. */
    }
    int64_t wait_ms = at_us > now ? (at_us - now + IDEM_US_PER_MS - 1) / IDEM_US_PER_MS : 1;
    uv_update_time(server->options.loop);
    int rc = uv_timer_start(&server->timer, idem_deadline_sweep, (uint64_t)wait_ms, 0);
    IDEM_ASSERT(rc == 0); /* Fails only without a callback or on a closing handle. */
    server->armed_us = at_us;
}

void idem_deadline_clear(struct idem_connection *connection)
{
    if (connection->deadline == IDEM_DEADLINE_NONE) {
        return;
    }
    idem_list_remove(&connection->server->deadlines[connection->deadline], &connection->timed);
    connection->deadline = IDEM_DEADLINE_NONE;
}

void idem_deadline_set(struct idem_connection *connection, enum idem_deadline deadline)
{
    struct idem_server *server = connection->server;
    IDEM_ASSERT(deadline > IDEM_DEADLINE_NONE);
    IDEM_ASSERT(deadline < IDEM_DEADLINE_COUNT);

    idem_deadline_clear(connection);
    int64_t now = now_us();
    connection->deadline = deadline;
    connection->deadline_us = now + server->durations_us[deadline];
    idem_list_push(&server->deadlines[deadline], &connection->timed);
    if (server->armed_us == 0 || connection->deadline_us < server->armed_us) {
        timer_arm(server, connection->deadline_us, now);
    }
}

static struct idem_connection *first_of(const struct idem_list *list)
{
    return list->first == NULL ? NULL
                               : IDEM_CONTAINER_OF(list->first, struct idem_connection, timed);
}

void idem_deadline_sweep(uv_timer_t *timer)
{
    struct idem_server *server = timer->data;
    int64_t now = now_us();
    int64_t next_us = 0;
    server->armed_us = 0;

    for (size_t kind = IDEM_DEADLINE_IDLE; kind < IDEM_DEADLINE_COUNT; kind++) {
        struct idem_connection *first = first_of(&server->deadlines[kind]);
        while (first != NULL && first->deadline_us <= now) {
            idem_deadline_clear(first);
            idem_connection_expire(first, (enum idem_deadline)kind);
            first = first_of(&server->deadlines[kind]);
        }
    }
    for (size_t kind = IDEM_DEADLINE_IDLE; kind < IDEM_DEADLINE_COUNT; kind++) {
        struct idem_connection *first = first_of(&server->deadlines[kind]);
        if (first != NULL && (next_us == 0 || first->deadline_us < next_us)) {
            next_us = first->deadline_us;
        }
    }
    if (next_us != 0) {
        timer_arm(server, next_us, now);
    }
}
