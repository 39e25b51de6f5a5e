/*
 * The thread that carries hints (listener.h).
 *
 *   want(), over()  --under the mutex, pipe-->  thread  --pg_notify-->  other instances
 *   other instances --notifications-->          thread  --heard()-->    the engine's owner
 *
 * A round takes what the connection has, keeps the wishes of others, and sends what is to be said.
 * What could not be sent is not tried again: every hint has the next look as its net.
 */
#include "store/postgres/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/clock.h"
#include "base/thread.h"
#include "store/postgres/rows_internal.h"

#define CHANNEL_WANTED "idem_wanted"
#define TELL           "tell"
#define CHANNEL_MAX    32
#define PAYLOAD_MAX    4000 /* The server takes 8000 bytes. */
#define SIGN_US        (3 * IDEM_US_PER_SECOND)
#define PAUSE_MIN_US   (100 * IDEM_US_PER_MS)
#define PAUSE_MAX_US   (5 * IDEM_US_PER_SECOND)
#define WISH_US        (60 * IDEM_US_PER_SECOND)
#define SAY_ALL_US     (20 * IDEM_US_PER_SECOND)

static void lock(struct idem_postgres_listener *listener)
{
    int rc = pthread_mutex_lock(&listener->mutex);
    IDEM_ASSERT(rc == 0);
}

static void unlock(struct idem_postgres_listener *listener)
{
    int rc = pthread_mutex_unlock(&listener->mutex);
    IDEM_ASSERT(rc == 0);
}

/* A full pipe wakes as well. */
static void wake(struct idem_postgres_listener *listener)
{
    ssize_t rc = write(listener->wake[1], "", 1);
    (void)rc;
}

bool idem_postgres_listener_init(struct idem_postgres_listener *listener,
                                 const struct idem_postgres_settings *settings)
{
    int rc = pthread_mutex_init(&listener->mutex, NULL);
    IDEM_ASSERT(rc == 0);
    listener->settings = settings;
    listener->wire.wait_us = settings->wait_us;
    if (pipe2(listener->wake, O_CLOEXEC | O_NONBLOCK) != 0) {
        listener->wake[0] = -1;
        listener->wake[1] = -1;
        return false;
    }
    return true;
}

static int by_row(const void *left, const void *right)
{
    const int64_t *one = left;
    const int64_t *two = right;
    return (*one > *two) - (*one < *two);
}

void idem_postgres_listener_want(struct idem_postgres_listener *listener,
                                 const struct idem_due *waited,
                                 size_t count)
{
    IDEM_ASSERT(count <= IDEM_READ_WAITED_MAX);
    int64_t now_us = idem_postgres_mono_us();
    lock(listener);
    bool all = now_us >= listener->wanted_all_us;
    listener->wanted_all_us = all ? now_us + SAY_ALL_US : listener->wanted_all_us;
    listener->unsaid_count = 0;
    for (size_t i = 0; i < count; i++) {
        bool said = !all && bsearch(&waited[i].row, listener->wanted, listener->wanted_count,
                                    sizeof(int64_t), by_row) != NULL;
        if (!said) {
            listener->unsaid[listener->unsaid_count] = waited[i].row;
            listener->unsaid_count += 1;
        }
    }
    for (size_t i = 0; i < count; i++) {
        listener->wanted[i] = waited[i].row;
    }
    listener->wanted_count = count;
    bool some = listener->unsaid_count > 0;
    unlock(listener);
    if (some) {
        wake(listener);
    }
}

/* Takes the wishes for `row` out of the table; what has had its time goes as well. */
static void wishes_fulfil(struct idem_postgres_listener *listener, int64_t row, int64_t now_us)
{
    size_t kept = 0;
    size_t count = atomic_load(&listener->wish_count);
    for (size_t i = 0; i < count; i++) {
        const struct idem_postgres_wish *wish = &listener->wishes[i];
        if (wish->row == row && listener->over_count < IDEM_POSTGRES_WISHES_MAX) {
            listener->over[listener->over_count] = *wish;
            listener->over_count += 1;
        } else if (wish->row != row && wish->until_us > now_us) {
            listener->wishes[kept] = *wish;
            kept += 1;
        }
    }
    atomic_store(&listener->wish_count, kept);
}

void idem_postgres_listener_over(struct idem_postgres_listener *listener, int64_t row)
{
    if (atomic_load(&listener->wish_count) == 0) {
        return; /* Nobody elsewhere waits for anything. */
    }
    lock(listener);
    wishes_fulfil(listener, row, idem_postgres_mono_us());
    bool some = listener->over_count > 0;
    unlock(listener);
    if (some) {
        wake(listener);
    }
}

static void wish_keep(struct idem_postgres_listener *listener, int64_t row, int64_t instance)
{
    size_t count = atomic_load(&listener->wish_count);
    int64_t until_us = idem_postgres_mono_us() + WISH_US;
    for (size_t i = 0; i < count; i++) {
        struct idem_postgres_wish *wish = &listener->wishes[i];
        if (wish->row == row && wish->instance == instance) {
            wish->until_us = until_us;
            return;
        }
    }
    if (count < IDEM_POSTGRES_WISHES_MAX) {
        listener->wishes[count] = (struct idem_postgres_wish){
            .row = row,
            .instance = instance,
            .until_us = until_us,
        };
        atomic_store(&listener->wish_count, count + 1);
    }
}

/* "INSTANCE ROW,ROW,...". Whoever may connect may say it, so it is read as a stranger's. */
static void wanted_read(struct idem_postgres_listener *listener, const char *payload)
{
    char *end = NULL;
    errno = 0;
    long long instance = strtoll(payload, &end, 10);
    if (end == payload || *end != ' ' || errno != 0 || instance <= 0 ||
        instance == listener->incarnation) {
        return;
    }
    lock(listener);
    while (*end == ' ' || *end == ',') {
        const char *begin = end + 1;
        long long row = strtoll(begin, &end, 10);
        if (end == begin || errno != 0 || row <= 0) {
            break;
        }
        wish_keep(listener, row, instance);
    }
    unlock(listener);
}

static void notifications_take(struct idem_postgres_listener *listener)
{
    bool ours = false;
    PGnotify *notify = NULL;
    while (listener->wire.handle != NULL && (notify = PQnotifies(listener->wire.handle)) != NULL) {
        if (strcmp(notify->relname, CHANNEL_WANTED) == 0) {
            wanted_read(listener, notify->extra);
        } else {
            ours = true;
        }
        PQfreemem(notify);
    }
    if (ours) {
        listener->heard(listener->context);
    }
}

/* Behind a connection that was lost something may have been missed, and others know no wishes. */
static bool listen(struct idem_postgres_listener *listener)
{
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "LISTEN idem_%lld", (long long)listener->incarnation);
    idem_postgres_wire_say(&listener->wire, "LISTEN " CHANNEL_WANTED, NULL);
    idem_postgres_wire_say(&listener->wire, sql, NULL);
    idem_postgres_wire_prepare(&listener->wire, TELL, "SELECT pg_notify($1, $2)", NULL);
    if (idem_postgres_wire_round(&listener->wire) != IDEM_POSTGRES_END_OK) {
        idem_postgres_wire_close(&listener->wire);
        return false;
    }
    lock(listener);
    listener->wanted_all_us = 0;
    unlock(listener);
    listener->heard(listener->context);
    return true;
}

static bool connect_if_needed(struct idem_postgres_listener *listener)
{
    if (listener->wire.handle != NULL) {
        return true;
    }
    atomic_store(&listener->connected, false);
    if (idem_postgres_mono_us() < listener->retry_us) {
        return false;
    }
    if (idem_postgres_session_begin(&listener->wire, listener->settings) == IDEM_ROWS_OK &&
        listen(listener)) {
        listener->pause_us = 0;
        listener->sign_us = idem_postgres_mono_us() + SIGN_US;
        atomic_store(&listener->connected, true);
        return true;
    }
    int64_t longer_us = 2 * listener->pause_us;
    listener->pause_us = longer_us < PAUSE_MIN_US ? PAUSE_MIN_US : longer_us;
    listener->pause_us = listener->pause_us > PAUSE_MAX_US ? PAUSE_MAX_US : listener->pause_us;
    listener->retry_us = idem_postgres_mono_us() + listener->pause_us;
    return false;
}

static void tell(struct idem_postgres_listener *listener,
                 const char *channel,
                 const struct idem_buf *payload)
{
    struct idem_postgres_args args = { .count = 0 };
    if (payload->len == 0) {
        return;
    }
    idem_postgres_arg_text(&args, idem_str_from(channel));
    idem_postgres_arg_text(&args, idem_buf_str(payload));
    idem_postgres_wire_queue(&listener->wire, TELL, &args,
                             (struct idem_postgres_pending){ .guarded = false });
}

/* Takes from `unsaid` as much as fits into one message; the rest stays. */
static void wanted_print(struct idem_postgres_listener *listener, struct idem_buf *payload)
{
    size_t i = 0;
    lock(listener);
    if (listener->unsaid_count > 0) {
        idem_buf_add_i64(payload, listener->incarnation);
    }
    for (; i < listener->unsaid_count && payload->len < PAYLOAD_MAX; i++) {
        idem_buf_add(payload, i == 0 ? IDEM_STR(" ") : IDEM_STR(","));
        idem_buf_add_i64(payload, listener->unsaid[i]);
    }
    listener->unsaid_count -= i;
    memmove(listener->unsaid, listener->unsaid + i, listener->unsaid_count * sizeof(int64_t));
    unlock(listener);
}

/* Takes from `over` what one instance wants to know; which. */
static int64_t over_print(struct idem_postgres_listener *listener, struct idem_buf *payload)
{
    size_t kept = 0;
    lock(listener);
    int64_t instance = listener->over_count > 0 ? listener->over[0].instance : 0;
    for (size_t i = 0; i < listener->over_count; i++) {
        struct idem_postgres_wish wish = listener->over[i];
        if (wish.instance == instance && payload->len < PAYLOAD_MAX) {
            idem_buf_add(payload, payload->len == 0 ? IDEM_STR("") : IDEM_STR(","));
            idem_buf_add_i64(payload, wish.row);
        } else {
            listener->over[kept] = wish;
            kept += 1;
        }
    }
    listener->over_count = kept;
    unlock(listener);
    return instance;
}

/* One message of each kind; true: there was something. */
static bool say_some(struct idem_postgres_listener *listener)
{
    char memory[2][PAYLOAD_MAX + 64];
    char channel[CHANNEL_MAX];
    struct idem_buf wanted;
    struct idem_buf over;
    idem_buf_init(&wanted, memory[0], sizeof(memory[0]));
    idem_buf_init(&over, memory[1], sizeof(memory[1]));
    wanted_print(listener, &wanted);
    int64_t instance = over_print(listener, &over);
    (void)snprintf(channel, sizeof(channel), "idem_%lld", (long long)instance);
    tell(listener, CHANNEL_WANTED, &wanted);
    tell(listener, channel, &over);
    return wanted.len + over.len > 0;
}

/* What is to be said, and now and then whether anybody is there. */
static void say(struct idem_postgres_listener *listener)
{
    bool some = say_some(listener);
    if (!some && idem_postgres_mono_us() >= listener->sign_us) {
        idem_postgres_wire_say(&listener->wire, "SELECT 1", NULL);
        some = true;
    }
    while (some && listener->wire.handle != NULL) {
        listener->sign_us = idem_postgres_mono_us() + SIGN_US;
        if (idem_postgres_wire_round(&listener->wire) != IDEM_POSTGRES_END_OK) {
            idem_postgres_wire_close(&listener->wire);
            return;
        }
        some = say_some(listener);
    }
}

static void wait(struct idem_postgres_listener *listener)
{
    char drained[64];
    bool connected = listener->wire.handle != NULL;
    int64_t at_us = connected ? listener->sign_us : listener->retry_us;
    int64_t left_us = at_us - idem_postgres_mono_us();
    struct pollfd polled[] = {
        { .fd = listener->wake[0], .events = POLLIN },
        { .fd = connected ? PQsocket(listener->wire.handle) : -1, .events = POLLIN },
    };
    int timeout_ms = left_us <= 0 ? 0 : (int)(left_us / IDEM_US_PER_MS) + 1;
    (void)poll(polled, 2, timeout_ms); /* Interrupted or not: what there is, is looked at. */
    while (read(listener->wake[0], drained, sizeof(drained)) > 0) {
    }
    if (connected && polled[1].revents != 0 && PQconsumeInput(listener->wire.handle) != 1) {
        idem_postgres_wire_close(&listener->wire);
    }
}

static bool is_stopped(struct idem_postgres_listener *listener)
{
    lock(listener);
    bool stops = listener->stops;
    unlock(listener);
    return stops;
}

static void *listener_main(void *argument)
{
    struct idem_postgres_listener *listener = argument;
    while (!is_stopped(listener)) {
        if (connect_if_needed(listener)) {
            say(listener);
            notifications_take(listener);
        }
        wait(listener);
        notifications_take(listener);
    }
    idem_postgres_wire_close(&listener->wire);
    return NULL;
}

int idem_postgres_listener_start(struct idem_postgres_listener *listener,
                                 int64_t incarnation,
                                 void (*heard)(void *context),
                                 void *context)
{
    listener->incarnation = incarnation;
    listener->heard = heard;
    listener->context = context;
    int rc = idem_thread_start(&listener->thread, "idem-listener", listener_main, listener);
    listener->started = rc == 0;
    return rc;
}

void idem_postgres_listener_deinit(struct idem_postgres_listener *listener)
{
    if (listener->started) {
        lock(listener);
        listener->stops = true;
        unlock(listener);
        wake(listener);
        int rc = pthread_join(listener->thread, NULL);
        IDEM_ASSERT(rc == 0);
    }
    idem_postgres_wire_close(&listener->wire);
    if (listener->wake[0] >= 0) {
        (void)close(listener->wake[0]); /* Nobody reads it any more. */
        (void)close(listener->wake[1]); /* Likewise. */
    }
    (void)pthread_mutex_destroy(&listener->mutex); /* Nobody waits for it. */
}
