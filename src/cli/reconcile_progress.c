/*
 * The line that shows how far a reconciliation is. As that of `idem send`: rewritten in place on
 * standard error, never wider than 79 columns, and gone before anything else is printed.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/reconcile_internal.h"

#define COLUMNS 79
#define SHOW_US (200 * IDEM_US_PER_MS)

static int64_t now_us(void)
{
    struct idem_clock clock;
    idem_clock_init_system(&clock);
    return idem_clock_mono_us(&clock);
}

void idem_reconcile_progress_begin(struct idem_reconcile_progress *progress)
{
    *progress = (struct idem_reconcile_progress){
        .wanted = isatty(STDERR_FILENO) != 0,
        .shown_us = now_us(), /* What ends at once needs no line. */
    };
}

void idem_reconcile_progress_clear(struct idem_reconcile_progress *progress)
{
    if (progress->shown) {
        (void)fprintf(stderr, "\r%*s\r", COLUMNS, ""); /* Without it only a line stays. */
        progress->shown = false;
    }
}

void idem_reconcile_progress_show(struct idem_reconcile_progress *progress,
                                  const char *what,
                                  int64_t count)
{
    if (!progress->wanted || now_us() - progress->shown_us < SHOW_US) {
        return;
    }
    char line[COLUMNS + 1];
    (void)snprintf(line, sizeof(line), "%s: %lld", what, (long long)count); /* Cut is fine. */
    (void)fprintf(stderr, "\r%-*s", COLUMNS, line);
    progress->shown = true;
    progress->shown_us = now_us();
}
