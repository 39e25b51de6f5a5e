/*
 * The line that shows how a run stands.
 *
 * It is rewritten in place and never wider than 79 columns, so that it can be taken away again by
 * spaces, on any terminal. The name is what is cut: numbers are what is looked at.
 */
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/clock.h"
#include "cli/send_internal.h"
#include "cli/table.h"

#define COLUMNS   79
#define LAST_MAX  20 /* Of what the last try met. */
#define SHOW_US   (200 * IDEM_US_PER_MS)
#define TENTH_MS  100
#define SECOND_MS 1000
#define SHOWN_MS  999999999 /* Longer times are shown as this: eleven days. */

static int64_t shown_ms(int64_t ms)
{
    if (ms < 0) {
        return 0;
    }
    return ms < SHOWN_MS ? ms : SHOWN_MS;
}

static void seconds_add(struct idem_buf *buf, int64_t ms)
{
    int64_t tenths = shown_ms(ms) / TENTH_MS;
    idem_buf_printf(buf, "%lld.%lld s", (long long)(tenths / 10), (long long)(tenths % 10));
}

static void last_add(struct idem_buf *buf, const char *before, const char *last)
{
    if (last[0] != '\0') {
        idem_buf_printf(buf, "%s%.*s", before, LAST_MAX, last);
    }
}

static void phase_add(struct idem_buf *buf, const struct idem_client_progress *progress)
{
    switch (progress->phase) {
    case IDEM_CLIENT_RESTING:
        idem_buf_add(buf, IDEM_STR("beginning"));
        return;
    case IDEM_CLIENT_QUEUED:
        idem_buf_add(buf, IDEM_STR("waiting for its turn"));
        return;
    case IDEM_CLIENT_SENDING:
        idem_buf_printf(buf, "try %u, sending", progress->sends);
        last_add(buf, " again after ", progress->last);
        return;
    case IDEM_CLIENT_ASKING:
        idem_buf_printf(buf, "question %u, asking for the outcome", progress->asks);
        return;
    case IDEM_CLIENT_PAUSING:
        idem_buf_printf(buf, "try %u, waiting ", progress->sends);
        seconds_add(buf, progress->pause_ms);
        last_add(buf, " after ", progress->last);
        return;
    }
    IDEM_UNREACHABLE();
}

/* The bytes of a name that fit, not ending inside a character. */
static size_t name_len(const char *name, size_t room)
{
    size_t len = strlen(name);
    if (len <= room) {
        return len;
    }
    len = room;
    while (len > 0 && ((unsigned char)name[len] & 0xC0) == 0x80) {
        len -= 1;
    }
    return len;
}

void idem_send_progress_text(const char *name,
                             const struct idem_client_progress *progress,
                             struct idem_buf *buf)
{
    char memory[COLUMNS + 1];
    struct idem_buf rest;
    idem_buf_init(&rest, memory, sizeof(memory));
    idem_buf_add(&rest, IDEM_STR(": "));
    phase_add(&rest, progress);
    idem_buf_printf(&rest, ", %lld s left",
                    (long long)(shown_ms(progress->remaining_ms) / SECOND_MS));
    IDEM_ASSERT(rest.len < COLUMNS);

    size_t from = buf->len;
    idem_buf_add_bytes(buf, name, name_len(name, COLUMNS - rest.len));
    idem_buf_add(buf, idem_buf_str(&rest));
    idem_terminal_safe(buf->data + from, buf->len - from);
}

void idem_send_progress_clear(struct idem_send_progress *line)
{
    if (line->shown) {
        (void)fprintf(stderr, "\r%*s\r", COLUMNS, ""); /* Without it only a line stays. */
        line->shown = false;
    }
}

void idem_send_progress_show(struct idem_send_progress *line,
                             const struct idem_client_intent *intent)
{
    struct idem_clock clock;
    idem_clock_init_system(&clock);
    int64_t now_us = idem_clock_mono_us(&clock);
    if (line->looked_us == 0) {
        line->looked_us = now_us; /* What ends at once needs no line. */
    }
    if (now_us - line->looked_us < SHOW_US) {
        return;
    }
    struct idem_client_progress progress;
    idem_client_progress(intent, &progress);
    char memory[COLUMNS + 1];
    struct idem_buf buf;
    idem_buf_init(&buf, memory, sizeof(memory));
    idem_send_progress_text(idem_client_name(intent), &progress, &buf);
    (void)fprintf(stderr, "\r%-*.*s", COLUMNS, (int)buf.len, buf.data);
    line->shown = true;
    line->looked_us = now_us;
}
